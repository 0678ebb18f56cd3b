"""Accuracy of dependencies between bunsetsu."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.text.bunsetsu import BunsetsuCorpus
from unkernel.parsing.score_figures import compute_percentage, compute_rate


@dataclass(frozen=True)
class BunsetsuResult:
    """Accuracy and speed of a parser of bunsetsu.

    Attributes
    ----------
    dependency_accuracy : float
        Percentage of bunsetsu with the correct head, not counting the last bunsetsu of each sentence.
    sentence_accuracy : float
        Percentage of sentences in which all heads are correct.
    n_dependencies : int
        Number of dependencies.
    n_sentences : int
        Number of sentences with at least one bunsetsu.
    seconds : float
        CPU time of parsing, excluding reading and scoring.

    See Also
    --------
    BunsetsuModel.evaluate : Evaluate a parser.

    Examples
    --------
    >>> from unkernel.parsing import BunsetsuResult
    >>> print(BunsetsuResult(90.0, 50.0, n_dependencies=20, n_sentences=4, seconds=0.5))
    90.00 % of 20 dependencies, 50.00 % of 4 sentences; 8 sentences/s
    """

    dependency_accuracy: float
    sentence_accuracy: float
    n_dependencies: int
    n_sentences: int
    seconds: float

    @property
    def sentences_per_second(self) -> float:
        """Number of sentences parsed per second of CPU time."""
        return compute_rate(self.n_sentences, self.seconds)

    def to_frame(self) -> Any:
        """Return all figures as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row.
        """
        return frame_of([asdict(self)])

    def __str__(self) -> str:
        return (
            f"{self.dependency_accuracy:.2f} % of {self.n_dependencies:,} dependencies, "
            f"{self.sentence_accuracy:.2f} % of {self.n_sentences:,} sentences; "
            f"{self.sentences_per_second:,.0f} sentences/s"
        )


def score_heads(corpus: BunsetsuCorpus, heads: NDArray[np.int32], seconds: float) -> BunsetsuResult:
    """Return the accuracy of predicted heads, not counting the last bunsetsu of each sentence."""
    first = corpus.first_bunsetsu
    begins = first[:-1][np.diff(first) > 0]  # the first bunsetsu of each nonempty sentence
    is_correct = np.asarray(heads == corpus.heads)
    is_correct[first[1:][np.diff(first) > 0] - 1] = True  # the last bunsetsu of each nonempty sentence
    dependencies = len(is_correct) - len(begins)
    wrong = int((~is_correct).sum())
    n_correct_sentences = int(np.logical_and.reduceat(is_correct, begins).sum()) if len(begins) else 0
    return BunsetsuResult(
        dependency_accuracy=compute_percentage(dependencies - wrong, dependencies, default=100.0),
        sentence_accuracy=compute_percentage(n_correct_sentences, len(begins)),
        n_dependencies=dependencies,
        n_sentences=len(begins),
        seconds=seconds,
    )
