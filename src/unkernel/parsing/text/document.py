"""Parsed texts, which can be converted for other libraries."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any, Self

from unkernel._core import ColumnText
from unkernel.data.text.columns import parse_text
from unkernel.data.text.conll import Treebank
from unkernel.parsing.text.gold_text import original_text
from unkernel.parsing.text.spacy_columns import make_spacy_columns
from unkernel.parsing.text.tokenizer_model import TEXT_NAME


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

    _conllu: bytes

    @classmethod
    def _from_conllu(cls, conllu: bytes) -> Self:
        """Return a document made from CoNLL-U, which is parsed when the sentences are first needed."""
        document = cls.__new__(cls)
        document._conllu = conllu
        return document

    @cached_property
    def _text(self) -> ColumnText:  # type: ignore[override]  # an attribute of the base class
        return parse_text(self._conllu, "conllu", name=TEXT_NAME)

    def to_bytes(self) -> bytes:
        return self._conllu if "_conllu" in vars(self) else super().to_bytes()

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

        The ``Doc`` has the text of the document with all its blanks, and its tokens have the same offsets as
        in the text. Each word becomes a token. The exception is a multiword token whose words do not
        concatenate to its form (French ``du``: ``de le``): it becomes one token. This token has the head, the
        dependency and the part of speech of the topmost word, and the lemmas (``de le``), tags (``P_D``) and
        features of all its words. Blanks other than a single space are separate tokens, as in spaCy.

        Parameters
        ----------
        vocab : spacy.vocab.Vocab, default=None
            Vocabulary of a spaCy pipeline; None creates a new one.

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
        return tokens.Doc(spacy.vocab.Vocab() if vocab is None else vocab, **make_spacy_columns(self))
