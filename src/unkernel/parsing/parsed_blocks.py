"""Blocks of parsed sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unkernel.data.text.bunsetsu import BunsetsuCorpus
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.data.text.conll import Treebank
from unkernel.errors import FormatError

Corpus = Treebank | BunsetsuCorpus | ChunkCorpus


@dataclass(frozen=True, eq=False)
class Parsed:
    r"""Some analysed sentences of a stream, as ``parse_stream`` yields them.

    Attributes
    ----------
    data : bytes
        The lines of the input with the annotation filled in; CoNLL-U if the input is raw text.
    n_sentences : int
        Number of sentences that were analysed.
    n_words : int
        Number of words or bunsetsu of these sentences.
    skipped : list of FormatError
        The errors of malformed sentences. ``data`` contains the lines of these sentences unchanged, except
        for raw text.

    See Also
    --------
    parse_stream : Parse a file of any length.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import Chunker, parse_stream
    >>> text = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    >>> part = next(parse_stream(Chunker().fit(text), io.BytesIO(b"She PRP\nsaw VBD\n\n")))
    >>> part.n_words, part.corpus[0].tags
    (2, ['B-NP', 'B-VP'])
    """

    data: bytes
    n_sentences: int
    n_words: int
    skipped: list[FormatError]
    _read: Callable[[bytes], Corpus]

    @property
    def corpus(self) -> Corpus:
        """The analysed sentences as a corpus."""
        return self._read(self.data)
