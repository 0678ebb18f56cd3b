"""Treebanks in the CoNLL-U and CoNLL-X formats; docs/formats/columns.md describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import ColumnText
from unkernel.data.files import Source
from unkernel.data.text.columns import (
    ColumnCorpus,
    ColumnSentence,
    OnError,
    blocks,
    check_field,
    check_lengths,
    flat,
    head_numbers,
    numbered,
    read_text,
    rewritten,
    text_of,
)

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_NUMBER = {name: number for number, name in enumerate(COLUMNS)}
_ENDS_A_FIELD = re.compile(r"[\t\n\r\0]")

TreebankFormat = Literal["conllu", "conllx"]
# UD has one root per sentence; the treebanks of CoNLL-X have sentences with several.
_TREES: dict[TreebankFormat, str] = {"conllu": "tree", "conllx": "forest"}


class Word(NamedTuple):
    """A word of a sentence, with what the file says of it; ``"_"`` is nothing said.

    Attributes
    ----------
    form, lemma, upos, xpos : str
        The word as it is written, as a dictionary has it, and its part of speech, the universal and the
        treebank's own (in CoNLL-X: the coarse and the fine).
    head : int
        The number, counted from 1, of the word it depends on; 0 for the root, -1 where none is given.
    deprel : str
        How it depends on that word.
    feats, deps, misc : str
        The other columns, as they are in the file.
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


class Sentence(ColumnSentence):
    r"""A sentence of a :class:`Treebank`: its words, one list per column, and its comments. Never changes.

    Multiword tokens (``1-2``) and empty nodes (``1.1``) are not among the words; they are in
    ``str(sentence)``.

    Attributes
    ----------
    forms, lemmas, upos, xpos, feats, deprels, deps, misc : list of str
        The columns. In CoNLL-X `upos` is its CPOSTAG, `xpos` its POSTAG.
    heads : list of int
        The number, from 1 on, of the word that each depends on; 0 for the root, -1 where none is given.
    words : tuple of Word
        The same, word by word.
    comments : tuple of str
        The lines above the words that begin with ``#``, without it.
    metadata : dict of str
        The comments ``key = value``; one without ``=`` is a key with an empty value.
    text : str
        The comment ``text``, or else the forms with blanks between them.
    line : int
        The number of its first line in the file.

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

    def _named(self, column: str) -> list[str]:
        return self._column(_NUMBER[column])

    @property
    def forms(self) -> list[str]:
        return self._named("form")

    @property
    def lemmas(self) -> list[str]:
        return self._named("lemma")

    @property
    def upos(self) -> list[str]:
        return self._named("upos")

    @property
    def xpos(self) -> list[str]:
        return self._named("xpos")

    @property
    def feats(self) -> list[str]:
        return self._named("feats")

    @property
    def heads(self) -> list[int]:
        begin, end = self._tokens()
        heads: list[int] = np.asarray(self._source.heads)[begin:end].tolist()
        return heads

    @property
    def deprels(self) -> list[str]:
        return self._named("deprel")

    @property
    def deps(self) -> list[str]:
        return self._named("deps")

    @property
    def misc(self) -> list[str]:
        return self._named("misc")

    @property
    def words(self) -> tuple[Word, ...]:
        columns = (self.forms, self.lemmas, self.upos, self.xpos, self.heads, self.deprels)
        return tuple(map(Word, *columns, self.feats, self.deps, self.misc))

    @property
    def comments(self) -> tuple[str, ...]:
        lines = str(self).split("\n")
        return tuple(line[1:].strip() for line in lines if line.startswith("#"))

    @property
    def metadata(self) -> dict[str, str]:
        pairs = (comment.partition("=") for comment in self.comments)
        return {key.strip(): value.strip() for key, _, value in pairs}

    @property
    def text(self) -> str:
        if text := self.metadata.get("text"):
            return text
        no_blank = ["SpaceAfter=No" in misc.split("|") for misc in self.misc]
        parts = [form if glued else f"{form} " for form, glued in zip(self.forms, no_blank, strict=True)]
        return "".join(parts).rstrip(" ")

    def draw(self, width: int | None = None) -> str:
        """The tree for the terminal, one word per line, in lines of at most `width` cells.

        Examples
        --------
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
        """The tree as arcs over the words, a whole SVG picture."""
        from unkernel.data.text.drawing import draw_svg

        return draw_svg(self)

    def _repr_html_(self) -> str:
        """Give notebooks the picture."""
        return f'<div style="overflow-x: auto">{self.to_svg()}</div>'

    def __iter__(self) -> Iterator[Word]:
        return iter(self.words)

    def __repr__(self) -> str:
        return f"<Sentence of {len(self)} words: {self.text!r}>"

    @property
    def _content(self) -> tuple[Any, ...]:
        return self.words, self.comments

    def __reduce__(self) -> tuple[Any, ...]:
        lines = self._source.sentence_text(self._number)
        return _restored, (lines, self._source.file, self._source.format, self.line)


def _restored(lines: bytes, file: str, format: str, line: int) -> Sentence:
    return Sentence(ColumnText(lines, file, format, 0, "none", False, line), 0)


class Treebank(ColumnCorpus[Sentence]):
    r"""Sentences with their dependencies, as :func:`read_conllu` and :func:`read_conllx` give them.

    A treebank is a sequence of :class:`Sentence`: ``len(bank)``, ``bank[0]``, ``for sentence in bank``.
    Slices and lists of numbers give treebanks: ``bank[:100]``, ``bank[[3, 1]]``. It never changes.

    Attributes
    ----------
    name : str
        What error messages call the file.
    n_words : int
    offsets : ndarray of int64
        Sentence i has the words ``offsets[i]`` to ``offsets[i + 1]``, the second excluded.
    heads : ndarray of int32
        The heads of all words, counted from 1 in their sentences; 0 for a root, -1 where none is given.
    skipped : list of FormatError
        What was wrong with the sentences that ``on_error="skip"`` left out.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> bank = Treebank.from_words([["They", "saw", "it"]], [["PRON", "VERB", "PRON"]])
    >>> parsed = bank.with_trees([[2, 0, 2]], [["nsubj", "root", "obj"]])
    >>> parsed[0].deprels, parsed.to_bytes()[:22]
    (['nsubj', 'root', 'obj'], b'1\tThey\t_\tPRON\t_\t_\t2\tns')
    """

    columns: ClassVar[tuple[str, ...]] = COLUMNS

    def _sentence(self, number: int) -> Sentence:
        return Sentence(self._text, number)

    @property
    def format(self) -> TreebankFormat:
        """``"conllu"`` or ``"conllx"``."""
        format: TreebankFormat = self._format
        return format

    @property
    def heads(self) -> NDArray[np.int32]:
        return np.asarray(self._text.heads)

    def symbols(self, column: str) -> tuple[NDArray[np.int32], list[str]]:
        """A column of all words, as numbers of its different strings, and these in the order of first sight.

        Parameters
        ----------
        column : {"form", "lemma", "upos", "xpos", "feats", "deprel", "deps", "misc"}

        Returns
        -------
        numbers : ndarray of int32
            One per word.
        names : list of str

        Examples
        --------
        >>> Treebank.from_words([["a", "b"], ["a"]]).symbols("form")
        (array([0, 1, 0], dtype=int32), ['a', 'b'])
        """
        if column not in COLUMNS:
            raise ValueError(f"column must be one of {', '.join(COLUMNS)}, got {column!r}")
        numbers, names = self._text.symbols(_NUMBER[column])
        return np.asarray(numbers), list(names)

    def check_trees(self) -> None:
        """Raise FormatError, with the line, where heads make no tree.

        That is where one is missing, or they go round in a circle.
        A sentence of CoNLL-U must have one root only.
        """
        self._text.check_trees(_TREES[self.format])

    def with_trees(
        self, heads: ArrayLike | Sequence[Sequence[int]], deprels: Sequence[str] | Sequence[Sequence[str]]
    ) -> Self:
        """The same sentences with other heads and relations, and every other byte as it is.

        Parameters
        ----------
        heads : array of int, or a sequence of them for each sentence
            Numbers of words, counted from 1 in the sentence; 0 for the root, -1 for none.
        deprels : sequence of str, or one for each sentence

        Returns
        -------
        Treebank
        """
        lengths = np.diff(self.offsets)
        relations, names = numbered(flat(deprels, lengths, "relations"))
        return self._with_trees(head_numbers(flat(heads, lengths, "heads")), relations, names)

    def _with_trees(self, heads: NDArray[np.int32], relations: NDArray[np.int32], names: list[str]) -> Self:
        """The same from arrays of all words; a relation is a number in `names`, -1 for none."""
        return self._of(rewritten(self._text, self._text.write_trees(heads, relations, names)))

    @classmethod
    def from_words(
        cls,
        words: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        xpos: Sequence[Sequence[str]] | None = None,
        lemmas: Sequence[Sequence[str]] | None = None,
        heads: Sequence[Sequence[int]] | None = None,
        deprels: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """A treebank of sentences that are lists of words.

        Parameters
        ----------
        words : sequence of sequences of str
            The forms; tabs and line ends cannot be in them, blanks can.
        tags : sequence of sequences of str, optional
            The universal parts of speech, one per word.
        xpos, lemmas, deprels : sequence of sequences of str, optional
            The treebank's own parts of speech, dictionary forms, relations.
        heads : sequence of sequences of int, optional
            Numbers of words, counted from 1 in the sentence; 0 for the root, -1 for none.

        Returns
        -------
        Treebank

        Examples
        --------
        >>> bank = Treebank.from_words([["They", "saw", "it"], ["No"]], [["PRON", "VERB", "PRON"], ["INTJ"]])
        >>> bank
        <Treebank <memory>: 2 sentences, 4 words>
        >>> bank[1].upos
        ['INTJ']
        """
        if isinstance(words, str) or any(isinstance(sentence, str) for sentence in words):
            raise TypeError("words are lists of words, one list per sentence: [['They', 'saw', 'it']]")
        lengths = [len(sentence) for sentence in words]
        if 0 in lengths:
            raise ValueError(f"sentence {lengths.index(0)} has no words")
        given = {"tags": tags, "xpos": xpos, "lemmas": lemmas, "heads": heads, "deprels": deprels}
        for what, values in given.items():
            if values is not None:
                check_lengths([len(own) for own in values], lengths, what)
        columns = (words, lemmas, tags, xpos, None, heads, deprels, None, None)
        lines = (_lines(i, [None if c is None else c[i] for c in columns]) for i in range(len(words)))
        return cls._of(text_of("".join(lines).encode(), "conllu"))


def _lines(sentence: int, columns: list[Any]) -> str:
    """The lines of a sentence from its columns, of which those that are None are empty."""
    lines = []
    for word in range(len(columns[0])):
        fields = ["_" if column is None else _field(column[word], sentence) for column in columns]
        lines.append("\t".join([str(word + 1), *fields]))
    return "\n".join([*lines, "\n"])


def _field(value: Any, sentence: int) -> str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return "_" if value == -1 else str(value)
    return check_field(value, sentence, _ENDS_A_FIELD)


def read_conllu(source: Source, *, trees: bool = False, on_error: OnError = "raise") -> Treebank:
    r"""Read a treebank in the CoNLL-U format, fast, and so that it can be written byte for byte.

    Parameters
    ----------
    source : path, or open binary or text file
        UTF-8. Plain, or compressed by gzip, xz, bzip2 or Zstandard, whatever its name is.
    trees : bool, default=False
        Whether every sentence must be a tree: all words have heads, one is the root, and none goes round in a
        circle. Else heads need only be words of the sentence, or ``_``.
    on_error : {"raise", "skip"}, default="raise"
        What becomes of bad sentences: the first is a FormatError, or all are left out of the sentences,
        stay in the text, and are listed in ``skipped``.

    Returns
    -------
    Treebank

    Raises
    ------
    FormatError
        A line has not ten columns, words are not numbered 1, 2, 3, ..., a head is not there, or the text is
        not UTF-8. Line and column are named; the column counts characters, not fields.
    OSError
        The file cannot be read.

    See Also
    --------
    read_conllx : The same for CoNLL-X.
    read_trees : Dependencies as trees for tree kernels.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_conllu
    >>> text = "1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    >>> bank = read_conllu(io.StringIO(text))
    >>> bank[0].forms, bank[0].heads
    (['dogs', 'bark'], [2, 0])
    >>> bank.to_bytes() == text.encode()
    True
    """
    return _read(source, "conllu", trees, on_error)


def read_conllx(source: Source, *, trees: bool = False, on_error: OnError = "raise") -> Treebank:
    r"""Read a treebank in the CoNLL-X format: as CoNLL-U, without multiword tokens and empty nodes.

    Parameters
    ----------
    source : path, or open binary or text file
        UTF-8. Plain, or compressed by gzip, xz, bzip2 or Zstandard, whatever its name is.
    trees : bool, default=False
        Whether the heads of every sentence must be given and lead to a root, of which there can be several.
    on_error : {"raise", "skip"}, default="raise"
        As for :func:`read_conllu`.

    Returns
    -------
    Treebank
        Its `upos` is CPOSTAG, its `xpos` POSTAG, its `deps` PHEAD and its `misc` PDEPREL.

    Raises
    ------
    FormatError
        As for :func:`read_conllu`.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_conllx
    >>> bank = read_conllx(io.StringIO("1\tNee\tnee\tAdv\tAdv\t_\t0\tROOT\t_\t_\n\n"))
    >>> bank[0].xpos
    ['Adv']
    """
    return _read(source, "conllx", trees, on_error)


def read_conllu_parts(
    source: Source, *, on_error: OnError = "raise", size: int = 1 << 20
) -> Iterator[Treebank]:
    r"""Read a treebank of any length in parts, in memory that does not grow with it.

    Parameters
    ----------
    source : path, or open binary or text file
    on_error : {"raise", "skip"}, default="raise"
        As for :func:`read_conllu`; each part lists its own bad sentences.
    size : int, default=1 MiB
        About how many bytes a part has.

    Yields
    ------
    Treebank
        Of whole sentences, with the lines of the file. The texts one after another are the file.

    Examples
    --------
    >>> import io
    >>> from unkernel.data.text.conll import read_conllu_parts
    >>> text = Treebank.from_words([["Go"], ["Stay", "here"]]).to_bytes()
    >>> [(len(part), part[0].forms, part[0].line) for part in read_conllu_parts(io.BytesIO(text), size=30)]
    [(1, ['Go'], 1), (1, ['Stay', 'here'], 3)]
    """
    return map(Treebank._of, blocks(source, "conllu", on_error=on_error, size=size))


def _read(source: Source, format: TreebankFormat, trees: bool, on_error: OnError) -> Treebank:
    check = _TREES[format] if trees else "none"
    return Treebank._of(read_text(source, format, trees=check, on_error=on_error))
