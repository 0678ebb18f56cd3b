"""Blocks of parsed sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from unkernel.data.text.bunsetsu import BunsetsuCorpus
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.data.text.conll import Treebank
from unkernel.errors import FormatError

Corpus = Treebank | BunsetsuCorpus | ChunkCorpus


@dataclass(frozen=True, eq=False)
class Parsed:
    r"""A block of analysed sentences, as ``parse_stream`` yields it.

    Attributes
    ----------
    corpus : Treebank, BunsetsuCorpus or ChunkCorpus
        The analysed sentences.
    skipped : list of FormatError
        The errors of malformed sentences. ``data`` contains the lines of these sentences unchanged. For raw
        text, it omits them.
    prefix : bytes, default=b""
        Bytes before the sentences, such as the blank line that separates them from a previous file.

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

    corpus: Corpus
    skipped: list[FormatError]
    prefix: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """The input lines with the annotation filled in, or CoNLL-U if the input is raw text."""
        return self.prefix + self.corpus.to_bytes()

    @property
    def n_sentences(self) -> int:
        """Number of sentences that were analysed."""
        return len(self.corpus)

    @property
    def n_words(self) -> int:
        """Number of words or bunsetsu in these sentences."""
        return count_words(self.corpus)


def count_words(corpus: Corpus) -> int:
    """Return the number of words or bunsetsu in a corpus."""
    return corpus.n_bunsetsu if isinstance(corpus, BunsetsuCorpus) else corpus.n_words
