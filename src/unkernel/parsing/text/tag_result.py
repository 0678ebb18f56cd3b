"""Accuracy of tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.text.conll import Treebank
from unkernel.parsing.score_figures import compute_percent_true, compute_rate


@dataclass(frozen=True)
class TagResult:
    """Accuracy and speed of a tagger.

    Attributes
    ----------
    accuracy : dict of str to float
        Percentage of words with the correct value, for each column that the tagger fills and the treebank
        contains.
    all : float
        Percentage of words for which all these columns are correct.
    n_sentences : int
        Number of sentences.
    n_words : int
        Number of words.
    seconds : float
        CPU time of tagging, excluding reading and comparing.

    See Also
    --------
    TaggerModel.evaluate : Evaluate a tagger.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tagger
    >>> bank = Treebank.from_words([["They", "saw"], ["Dogs", "bark"]], [["PRON", "VERB"], ["NOUN", "VERB"]])
    >>> Tagger(min_count=1, min_updates=1).fit(bank).evaluate(bank).accuracy
    {'upos': 100.0}
    """

    accuracy: dict[str, float]
    all: float
    n_sentences: int
    n_words: int
    seconds: float

    @property
    def words_per_second(self) -> float:
        """Number of words tagged per second of CPU time."""
        return compute_rate(self.n_words, self.seconds)

    def to_frame(self) -> Any:
        """Return the accuracy of the columns as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per column.
        """
        shares = self.accuracy | {"all": self.all}
        return frame_of([{"column": name, "accuracy": share} for name, share in shares.items()])

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.2f} %" for name, share in self.accuracy.items())
        return (
            f"{shares}, all {self.all:.2f} % of {self.n_words:,} words; {self.words_per_second:,.0f} words/s"
        )


def score_columns(gold: Treebank, predicted: Treebank, columns: Sequence[str], seconds: float) -> TagResult:
    """Return the accuracy of the given columns of a tagged treebank."""
    is_correct = {name: _compare_column(gold, predicted, name) for name in columns}
    return TagResult(
        accuracy={name: compute_percent_true(values) for name, values in is_correct.items()},
        all=compute_percent_true(np.logical_and.reduce(list(is_correct.values()))),
        n_sentences=len(gold),
        n_words=gold.n_words,
        seconds=seconds,
    )


def _compare_column(gold: Treebank, predicted: Treebank, column: str) -> NDArray[np.bool_]:
    """Return for each word whether its value is correct."""
    codes, names = gold.symbols(column)
    predicted_codes, predicted_names = predicted.symbols(column)
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of.get(name, -1) for name in predicted_names], np.int32)
    same: NDArray[np.bool_] = numbers[predicted_codes] == codes
    return same
