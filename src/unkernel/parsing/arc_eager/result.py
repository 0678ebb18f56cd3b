"""Accuracy of parsed trees."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.text.conll import Treebank
from unkernel.parsing.score_figures import compute_percent_true, compute_percentage, compute_rate

_PUNCTUATION = "PUNCT"


@dataclass(frozen=True)
class LabelResult:
    """Accuracy of one dependency relation.

    Attributes
    ----------
    label : str
        The relation.
    count : int
        Number of words that have the relation in the treebank.
    precision : float
        Among the words with this relation in the output, the percentage with the correct head and relation.
    recall : float
        Among the words with this relation in the treebank, the percentage with the correct head and relation.

    See Also
    --------
    TreeResult : Accuracy of all relations.

    Examples
    --------
    >>> from unkernel.parsing import LabelResult
    >>> LabelResult("nsubj", count=10, precision=90.0, recall=80.0).recall
    80.0
    """

    label: str
    count: int
    precision: float
    recall: float


@dataclass(frozen=True)
class TreeResult:
    """Accuracy and speed of a dependency parser.

    Attributes
    ----------
    uas : float
        Percentage of words with the correct head.
    las : float
        Percentage of words with the correct head and relation.
    uas_no_punct : float
        ``uas`` without punctuation. Punctuation is every word tagged ``PUNCT`` or, if there are no universal
        tags, every word without letters and digits.
    las_no_punct : float
        ``las`` without punctuation.
    exact : float
        Percentage of sentences without an error.
    n_sentences : int
        Number of sentences.
    n_words : int
        Number of words.
    seconds : float
        CPU time of parsing, excluding reading and scoring.
    per_label : tuple of LabelResult
        Accuracy of each relation, most frequent first.

    See Also
    --------
    ArcEagerModel.evaluate : Evaluate a parser.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import ArcEagerParser
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "it"], ["Dogs", "bark"]],
    ...     [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]],
    ...     heads=[[2, 0, 2], [2, 0]],
    ...     deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
    ... )
    >>> result = ArcEagerParser(min_count=1, min_updates=1).fit(bank).evaluate(bank)
    >>> result.uas, result.n_words, [label.label for label in result.per_label]
    (100.0, 5, ['nsubj', 'root', 'obj'])
    """

    uas: float
    las: float
    uas_no_punct: float
    las_no_punct: float
    exact: float
    n_sentences: int
    n_words: int
    seconds: float
    per_label: tuple[LabelResult, ...]

    @property
    def sentences_per_second(self) -> float:
        """Number of sentences parsed per second of CPU time."""
        return compute_rate(self.n_sentences, self.seconds)

    @property
    def words_per_second(self) -> float:
        """Number of words parsed per second of CPU time."""
        return compute_rate(self.n_words, self.seconds)

    def __str__(self) -> str:
        return (
            f"UAS {self.uas:.2f} %, LAS {self.las:.2f} % of {self.n_words:,} words; without punctuation "
            f"{self.uas_no_punct:.2f} and {self.las_no_punct:.2f}; {self.exact:.1f} % of "
            f"{self.n_sentences:,} sentences without a mistake; {self.words_per_second:,.0f} words/s"
        )

    def to_frame(self) -> Any:
        """Return the accuracy of the relations as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per relation.
        """
        return frame_of([asdict(label) for label in self.per_label])

    def table(self) -> str:
        """Return the accuracy of the relations as a text table.

        Returns
        -------
        str
            One line per relation.
        """
        width = max([len("relation"), *(len(label.label) for label in self.per_label)])
        lines = [f"{'relation':{width}}   words  precision  recall"]
        for row in self.per_label:
            lines.append(f"{row.label:{width}}  {row.count:6,}  {row.precision:8.2f} %  {row.recall:5.2f} %")
        return "\n".join(lines)


def score_trees(gold: Treebank, parsed: Treebank, seconds: float) -> TreeResult:
    """Return the accuracy of a parsed treebank, compared with the correct trees of the same words."""
    codes, names = gold.symbols("deprel")
    predicted, predicted_names = parsed.symbols("deprel")
    index_of = {name: number for number, name in enumerate(names)}
    new_names = [name for name in predicted_names if name not in index_of]
    index_of |= {name: len(names) + number for number, name in enumerate(new_names)}
    labels = np.array([index_of[name] for name in predicted_names], dtype=np.int32)[predicted]
    is_head_correct = parsed.heads == gold.heads
    is_correct = is_head_correct & (labels == codes)
    is_scored = ~_find_punctuation(gold)
    per_label = _score_labels([*names, *new_names], codes, labels, is_correct)
    return TreeResult(
        uas=compute_percent_true(is_head_correct),
        las=compute_percent_true(is_correct),
        uas_no_punct=compute_percent_true(is_head_correct[is_scored]),
        las_no_punct=compute_percent_true(is_correct[is_scored]),
        exact=compute_percent_true(
            np.logical_and.reduceat(is_correct, gold.offsets[:-1]) if len(is_correct) else is_correct
        ),
        n_sentences=len(gold),
        n_words=gold.n_words,
        seconds=seconds,
        per_label=per_label,
    )


def _find_punctuation(bank: Treebank) -> NDArray[np.bool_]:
    """Return for each word whether it is punctuation, as defined in ``TreeResult.uas_no_punct``."""
    tags, names = bank.symbols("upos")
    if set(names) - {"_"}:
        has_tag: NDArray[np.bool_] = np.array([name == _PUNCTUATION for name in names])[tags]
        return has_tag
    forms, names = bank.symbols("form")
    has_no_letter: NDArray[np.bool_] = np.array(
        [not any(map(str.isalnum, name)) for name in names], dtype=bool
    )[forms]
    return has_no_letter


def _score_labels(
    names: list[str], gold: NDArray[np.int32], predicted: NDArray[np.int32], is_correct: NDArray[np.bool_]
) -> tuple[LabelResult, ...]:
    """Return the accuracy of each relation, given the relations of all words as indices into `names`."""
    size = len(names)
    counts = np.bincount(gold, minlength=size)
    predicted_counts = np.bincount(predicted, minlength=size)
    correct_counts = np.bincount(gold[is_correct], minlength=size)
    order = sorted(range(size), key=lambda number: (-counts[number], names[number]))
    return tuple(
        LabelResult(
            names[k],
            int(counts[k]),
            compute_percentage(correct_counts[k], predicted_counts[k]),
            compute_percentage(correct_counts[k], counts[k]),
        )
        for k in order
    )
