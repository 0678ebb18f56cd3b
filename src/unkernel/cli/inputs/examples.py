"""Base class of training and test examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Examples:
    """The examples of a file; optional attributes are None by default."""

    file: str
    source: Any  # the examples, for `fit`
    count: Any  # the number of examples; None if only the workers of a cluster read the examples
    labels: Any = None  # labels as classes, for `fit`; None if `source` includes labels
    groups: Any = None  # query numbers, for `fit`
    zero_based: Any = None  # whether indices in the file start at 0; None for files without indices
    packed: Path | None = None  # the file with the packed copy of rows

    def targets(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Return the gold labels and the query numbers, for evaluation."""
        return self.labels, self.groups

    def scores(self, estimator: Any) -> NDArray[np.float64]:
        """Return the scores of all examples, of shape (examples, scores)."""
        has_decision = hasattr(estimator, "decision_function")  # regressors have only `predict`
        score = estimator.decision_function if has_decision else estimator._scores
        scores: NDArray[np.float64] = score(self.source)
        return scores.reshape(self.count, -1)
