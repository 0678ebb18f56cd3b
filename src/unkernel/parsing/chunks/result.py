"""Accuracy of chunks, by the rules of the CoNLL-2000 shared task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import count_chunks, read_chunk_tags, recode_chunks
from unkernel.data.frames import frame_of
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.parsing.score_figures import compute_percentage, compute_rate


@dataclass(frozen=True)
class ChunkCounts:
    """Numbers of chunks in the output, in the annotated text, and in both.

    A chunk is correct if its words and its type are correct.

    Attributes
    ----------
    found : int
        Number of chunks in the output.
    right : int
        Number of chunks in the annotated text.
    correct : int
        Number of chunks in both.

    See Also
    --------
    ChunkResult : Accuracy of a chunker.

    Examples
    --------
    >>> from unkernel.parsing import ChunkCounts
    >>> counts = ChunkCounts(found=4, right=5, correct=3)
    >>> counts.precision, counts.recall
    (75.0, 60.0)
    >>> round(counts.f1, 2)
    66.67
    """

    found: int
    right: int
    correct: int

    @property
    def precision(self) -> float:
        """Percentage of the found chunks that are correct."""
        return _compute_percent(self.correct, self.found)

    @property
    def recall(self) -> float:
        """Percentage of the annotated chunks that were found."""
        return _compute_percent(self.correct, self.right)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in percent."""
        return _compute_percent(2 * self.correct, self.found + self.right)


@dataclass(frozen=True)
class ChunkResult:
    """Accuracy and speed of a chunker, by the rules of the CoNLL-2000 shared task.

    Attributes
    ----------
    f1 : float
        Harmonic mean of precision and recall of chunks, in percent. A chunk is correct if its first word, its
        last word and its type are correct.
    precision : float
        Percentage of the found chunks that are correct.
    recall : float
        Percentage of the annotated chunks that were found.
    accuracy : float
        Percentage of words with the correct tag, in IOB2.
    per_type : mapping of str to ChunkCounts
        The counts of each chunk type.
    found : int
        Number of chunks in the output.
    right : int
        Number of chunks in the annotated text.
    correct : int
        Number of chunks in both.
    sentences : int
        Number of sentences.
    tokens : int
        Number of words.
    sentences_per_second : float
        Sentences per second of CPU time, without reading files; NaN if time was not measured.
    tokens_per_second : float
        Words per second of CPU time.

    See Also
    --------
    ChunkModel.evaluate : Evaluate a chunker.
    compare_chunks : Compare two taggings.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import compare_chunks
    >>> right = ChunkCorpus.from_words([["He", "gave", "up"]], tags=[["B-NP", "B-VP", "B-PRT"]])
    >>> result = compare_chunks(right, right.with_tags(["B-NP", "B-VP", "I-VP"]))
    >>> result.found, result.right, result.correct
    (2, 3, 1)
    """

    f1: float
    precision: float
    recall: float
    accuracy: float
    per_type: Mapping[str, ChunkCounts]
    found: int
    right: int
    correct: int
    sentences: int
    tokens: int
    sentences_per_second: float
    tokens_per_second: float

    def to_frame(self) -> Any:
        """Return the accuracy of each chunk type as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per type.
        """
        return frame_of(
            [
                {"type": name, "precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
                | asdict(counts)
                for name, counts in self.per_type.items()
            ]
        )

    def __str__(self) -> str:
        """Return a table in the style of the scorer of CoNLL-2000."""
        lines = [
            f"{self.tokens:,} words in {self.sentences:,} sentences, {self.right:,} chunks: "
            f"{self.found:,} found, {self.correct:,} of them right",
            f"{'':10} {'precision':>9} {'recall':>9} {'F1':>9} {'found':>9} {'right':>9}",
            _format_line("all", ChunkCounts(self.found, self.right, self.correct)),
            *(_format_line(name or "(no type)", counts) for name, counts in sorted(self.per_type.items())),
            f"tags right: {self.accuracy:.2f} %",
        ]
        if np.isfinite(self.tokens_per_second):
            lines[-1] += (
                f"; {self.tokens_per_second:,.0f} words, {self.sentences_per_second:,.0f} sentences"
                " per second"
            )
        return "\n".join(lines)


def _format_line(name: str, counts: ChunkCounts) -> str:
    shares = f"{counts.precision:9.2f} {counts.recall:9.2f} {counts.f1:9.2f}"
    return f"{name:10} {shares} {counts.found:9,} {counts.right:9,}"


def _compute_percent(part: int, total: int) -> float:
    return compute_percentage(part, total, default=0.0)


def compare_chunks(right: ChunkCorpus, found: ChunkCorpus) -> ChunkResult:
    """Evaluate the tags of sentences by the rules of CoNLL-2000.

    Parameters
    ----------
    right : ChunkCorpus
        The text with correct tags, in any tag scheme.
    found : ChunkCorpus
        The text with the tags to evaluate, in any tag scheme.

    Returns
    -------
    ChunkResult
        The accuracy.

    Raises
    ------
    ValueError
        If the sentences have different lengths.

    See Also
    --------
    ChunkModel.evaluate : Evaluate a chunker.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import compare_chunks
    >>> right = ChunkCorpus.from_words([["He", "gave", "up"]], tags=[["B-NP", "B-VP", "B-PRT"]])
    >>> found = right.with_tags(["B-NP", "B-VP", "I-VP"])
    >>> round(compare_chunks(right, found).recall, 1)
    33.3
    """
    if not np.array_equal(right.offsets, found.offsets):
        raise ValueError("the two corpora have sentences of different lengths")
    found_tags, types = read_tags(found, [])
    return score_tags(right, found_tags, types)


def read_tags(corpus: ChunkCorpus, types: list[str]) -> tuple[NDArray[np.int32], list[str]]:
    """Return the tags of a corpus in IOB2, and the chunk types: `types`, then the corpus's own new types."""
    if not len(corpus):
        return np.empty(0, np.int32), types
    if not corpus.tagged:
        raise ValueError(f"{corpus.name}: its last column must be a tag, and it has no tags")
    tags, names = read_chunk_tags(corpus._text, corpus.n_columns - 1, types)
    return np.asarray(recode_chunks(corpus.offsets, tags, "IOB2")), list(names)


def score_tags(
    corpus: ChunkCorpus, predicted: NDArray[np.int32], types: list[str], seconds: float = 0.0
) -> ChunkResult:
    """Return the accuracy of predicted IOB2 tags with the chunk types `types`, compared with a corpus."""
    gold_tags, all_types = read_tags(corpus, types)
    counts_and_equal: tuple[Any, int] = count_chunks(corpus.offsets, gold_tags, predicted, len(all_types))
    counts, n_equal_tags = np.asarray(counts_and_equal[0]), counts_and_equal[1]
    total = ChunkCounts(*(int(number) for number in counts.sum(axis=0)))
    occurring = [type_index for type_index in range(len(all_types)) if counts[type_index].any()]
    return ChunkResult(
        f1=total.f1,
        precision=total.precision,
        recall=total.recall,
        accuracy=_compute_percent(n_equal_tags, corpus.n_words),
        per_type={
            all_types[type_index]: ChunkCounts(*(int(number) for number in counts[type_index]))
            for type_index in occurring
        },
        found=total.found,
        right=total.right,
        correct=total.correct,
        sentences=len(corpus),
        tokens=corpus.n_words,
        sentences_per_second=compute_rate(len(corpus), seconds),
        tokens_per_second=compute_rate(corpus.n_words, seconds),
    )
