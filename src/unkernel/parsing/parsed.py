"""What streams of sentences give: some of them at a time, with answers."""

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
    """Some sentences of a stream, with answers.

    Attributes
    ----------
    data : bytes
        The lines that were read, byte for byte but for the answers; of raw text, CoNLL-U.
    n_sentences : int
        Sentences that were answered.
    n_words : int
        Their words, or bunsetsu.
    skipped : list of FormatError
        What is wrong with those that were not; their lines are in `data` as they were read, but for those of
        raw text.
    """

    data: bytes
    n_sentences: int
    n_words: int
    skipped: list[FormatError]
    _read: Callable[[bytes], Corpus]

    @property
    def corpus(self) -> Corpus:
        """The sentences that were answered."""
        return self._read(self.data)
