"""Sentences of treebanks and their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from unkernel._core import ColumnText
from unkernel.data.text.columns import ColumnSentence, DrawnSentence

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
COLUMN_NUMBERS = {name: number for number, name in enumerate(COLUMNS)}


def _column_property(name: str, doc: str) -> Any:
    """Return a property for a column of sentences, with one string per word."""

    def get_column(self: Sentence) -> list[str]:
        return self._get_column(COLUMN_NUMBERS[name])

    return property(get_column, doc=doc)


class Word(NamedTuple):
    """A word of a sentence, with its columns; ``"_"`` means that a column is empty.

    Attributes
    ----------
    form : str
        Written form of the word.
    lemma : str
        Dictionary form of the word.
    upos : str
        Universal part of speech (CPOSTAG in CoNLL-X).
    xpos : str
        Part of speech of the treebank's own tag set (POSTAG in CoNLL-X).
    head : int
        Number of the word that this word depends on, counted from 1; 0 for the root, -1 if there is no head.
    deprel : str
        Dependency relation to the head.
    feats : str, default="_"
        Morphological features.
    deps : str, default="_"
        Enhanced dependencies (PHEAD in CoNLL-X).
    misc : str, default="_"
        Any other annotation (PDEPREL in CoNLL-X).

    See Also
    --------
    Sentence : The sentence that a word belongs to.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> word = Treebank.from_words([["Dogs", "bark"]], [["NOUN", "VERB"]], heads=[[2, 0]])[0].words[0]
    >>> word.form, word.upos, word.head
    ('Dogs', 'NOUN', 2)
    """

    form: str
    lemma: str
    upos: str
    xpos: str
    head: int
    deprel: str
    feats: str = "_"
    deps: str = "_"
    misc: str = "_"


class Sentence(ColumnSentence, DrawnSentence):
    """A sentence of a treebank, one list per column.

    Sentences are immutable. To get sentences, index a treebank. Multiword tokens (``1-2``) and empty nodes
    (``1.1``) are not among the words, but they are part of ``str(sentence)``.

    Parameters
    ----------
    source : ColumnText
        The text that contains the sentence.
    number : int
        Number of the sentence in the text, counted from 0.

    See Also
    --------
    Treebank : A sequence of sentences.
    unkernel.read_conllu : Read a treebank.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> sentence = Treebank.from_words([["Dogs", "bark"]], [["NOUN", "VERB"]], heads=[[2, 0]])[0]
    >>> sentence.forms, sentence.upos, sentence.heads
    (['Dogs', 'bark'], ['NOUN', 'VERB'], [2, 0])
    >>> print(sentence.text, len(sentence))
    Dogs bark 2
    """

    __slots__ = ()

    forms: list[str] = _column_property("form", "The words as they are written.")
    lemmas: list[str] = _column_property("lemma", "The dictionary forms.")
    upos: list[str] = _column_property("upos", "The universal parts of speech (CPOSTAG in CoNLL-X).")
    xpos: list[str] = _column_property("xpos", "The treebank's own parts of speech (POSTAG in CoNLL-X).")
    feats: list[str] = _column_property("feats", "The morphological features.")

    @property
    def heads(self) -> list[int]:
        """The heads, counted from 1; 0 for the root, -1 for words without a head."""
        begin, end = self._get_token_range()
        heads: list[int] = np.asarray(self._source.heads)[begin:end].tolist()
        return heads

    deprels: list[str] = _column_property("deprel", "The dependency relations to the heads.")
    deps: list[str] = _column_property("deps", "The enhanced dependencies (PHEAD in CoNLL-X).")
    misc: list[str] = _column_property("misc", "The last column (PDEPREL in CoNLL-X).")

    @property
    def words(self) -> tuple[Word, ...]:
        """The words with all their columns."""
        columns = (self.forms, self.lemmas, self.upos, self.xpos, self.heads, self.deprels)
        return tuple(map(Word, *columns, self.feats, self.deps, self.misc))

    @property
    def comments(self) -> tuple[str, ...]:
        """The comment lines above the words, without their ``#``."""
        lines = str(self).split("\n")
        return tuple(line[1:].strip() for line in lines if line.startswith("#"))

    @property
    def metadata(self) -> dict[str, str]:
        """The comments ``key = value`` as a dict; a comment without ``=`` is a key with an empty value."""
        pairs = (comment.partition("=") for comment in self.comments)
        return {key.strip(): value.strip() for key, _, value in pairs}

    @property
    def text(self) -> str:
        """The comment ``text`` or, if there is none, the forms joined by spaces."""
        text = self.metadata.get("text")
        if text:
            return text
        parts = []
        for form, misc in zip(self.forms, self.misc, strict=True):
            parts.append(form if "SpaceAfter=No" in misc.split("|") else f"{form} ")
        return "".join(parts).rstrip(" ")

    def draw(self, width: int | None = None) -> str:
        """Draw the dependency tree as text, one word per line.

        Parameters
        ----------
        width : int, default=None
            Largest number of terminal cells per line; None sets no limit.

        Returns
        -------
        str
            The drawing, several lines.

        Examples
        --------
        >>> from unkernel.data import Treebank
        >>> words, heads = [["They", "saw", "the", "dog"]], [[2, 0, 4, 2]]
        >>> print(Treebank.from_words(words, heads=heads)[0].draw(), end="")
          ╭─── They
        ──┼─── saw
          │ ╭─ the
          ╰─┴─ dog
        """
        from unkernel.data.text.drawing import draw_text

        return draw_text(self, width=width)

    def to_svg(self) -> str:
        from unkernel.data.text.drawing import draw_svg

        return draw_svg(self)

    def __iter__(self) -> Iterator[Word]:
        return iter(self.words)

    def __repr__(self) -> str:
        return f"<Sentence of {len(self)} words: {self.text!r}>"

    @property
    def _content(self) -> tuple[Any, ...]:
        return self.words, self.comments

    def __reduce__(self) -> tuple[Any, ...]:
        lines = self._source.sentence_text(self._number)
        return _restore_sentence, (lines, self._source.file, self._source.format, self.line)


def _restore_sentence(lines: bytes, file: str, format: str, line: int) -> Sentence:
    """Return an unpickled sentence."""
    return Sentence(ColumnText(lines, file, format, 0, "none", False, line), 0)


def sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    """Return a sentence as JSON: its comments, words and multiword tokens, without empty fields."""
    rows = [line.split("\t") for line in str(sentence).split("\n") if line and not line.startswith("#")]
    stored: dict[str, Any] = {"text": sentence.text} | sentence.metadata
    stored["words"] = [_word_to_json(row) for row in rows if "-" not in row[0]]
    stored["multiwords"] = [_word_to_json(row) for row in rows if "-" in row[0]]
    return stored


def _word_to_json(row: list[str]) -> dict[str, Any]:
    """Return the fields of a line that are not empty; whole numbers in `id` and `head` become integers."""
    fields = {name: value for name, value in zip(COLUMNS, row, strict=True) if value != "_" or name == "form"}
    return fields | {name: int(fields[name]) for name in ("id", "head") if fields.get(name, "-").isdigit()}
