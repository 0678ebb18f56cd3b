"""Parsed text: a treebank that gives its text back, and that other libraries can take."""

from __future__ import annotations

import importlib
from typing import Any

from unkernel.data.text.conll import Sentence, Treebank
from unkernel.parsing.text.gold_text import gold_tokens, original_text


class Document(Treebank):
    """A parsed text: a treebank that can restore its text and be converted for other libraries.

    :meth:`TextParserModel.parse` returns documents.

    See Also
    --------
    unkernel.data.Treebank : The base class.
    TextParser : Parse raw text.

    Examples
    --------
    >>> from unkernel.parsing import Document
    >>> doc = Document.from_words([["Dogs", "bark"]], [["NOUN", "VERB"]], heads=[[2, 0]])
    >>> doc[0].forms, doc.text
    (['Dogs', 'bark'], 'Dogs bark ')
    """

    @property
    def text(self) -> str:
        """The text that was parsed, with all its blanks."""
        return original_text(self)

    def to_conllu(self) -> str:
        """Return the sentences in CoNLL-U, including multiword tokens and blanks.

        Returns
        -------
        str
            The text in CoNLL-U.
        """
        return self.to_bytes().decode()

    def to_spacy(self, vocab: Any = None) -> Any:
        """Convert the document to a ``spacy.tokens.Doc``.

        The tokens of the ``Doc`` are the words. A multiword token becomes several of them, without spaces
        between, so the text can differ where words are not parts of their token (French ``du``). Sequences of
        blanks and line breaks become one space.

        Parameters
        ----------
        vocab : spacy.vocab.Vocab, default=None
            Vocabulary of a pipeline; None makes a new one.

        Returns
        -------
        spacy.tokens.Doc
            The document.

        Raises
        ------
        ImportError
            If spaCy is not installed.
        """
        try:
            spacy: Any = importlib.import_module("spacy")
            tokens: Any = importlib.import_module("spacy.tokens")
        except ImportError as error:
            raise ImportError("to_spacy needs spaCy: pip install spacy") from error
        columns: dict[str, list[Any]] = {name: [] for name in _SPACY_COLUMNS}
        for sentence in self:
            before = len(columns["words"])
            for name, values in _spacy_values(sentence, before).items():
                columns[name] += values
        return tokens.Doc(spacy.vocab.Vocab() if vocab is None else vocab, **columns)


_SPACY_COLUMNS = ("words", "spaces", "pos", "tags", "morphs", "lemmas", "heads", "deps", "sent_starts")


def _spacy_values(sentence: Sentence, before: int) -> dict[str, list[Any]]:
    """The columns of a sentence as spaCy takes them; `before` it, the text has so many words."""
    blanks: list[bool] = []  # after the last word of a token only
    for token in gold_tokens(sentence):
        blanks += [False] * (len(token.words) - 1) + [token.blank_follows]
    return {
        "words": sentence.forms,
        "spaces": blanks,
        "pos": _given(sentence.upos),
        "tags": _given(sentence.xpos),
        "morphs": _given(sentence.feats),
        "lemmas": _given(sentence.lemmas),
        "heads": [before + (head - 1 if head > 0 else own) for own, head in enumerate(sentence.heads)],
        "deps": [
            relation if head else "ROOT"  # as spaCy calls it
            for head, relation in zip(sentence.heads, _given(sentence.deprels), strict=True)
        ],
        "sent_starts": [number == 0 for number in range(len(sentence))],
    }


def _given(column: list[str]) -> list[str]:
    return ["" if value == "_" else value for value in column]
