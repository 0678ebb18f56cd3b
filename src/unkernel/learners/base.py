"""What all learners share: labels, weights, and how they tell what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from unkernel._core import Progress

OnProgress = Callable[[Progress], None]


def check_weights(sample_weight: ArrayLike, rows: Any) -> NDArray[np.float64]:
    """Weights of rows: finite, not negative, one a row."""
    weights: NDArray[np.float64] = _check_sample_weight(
        sample_weight, rows, dtype=np.float64, ensure_non_negative=True
    )
    return weights


def class_codes(
    labels: NDArray[Any], weights: NDArray[np.float64] | None, learner: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The classes that rows of positive weight have, and each row's place among them."""
    counted = labels if weights is None else labels[weights > 0]
    classes = np.unique(counted)
    if len(classes) < 2:
        raise ValueError(
            f"{learner} needs rows of at least two classes, but there is only one class: {classes.tolist()}"
            if len(classes)
            else f"{learner} needs at least one row with a positive sample_weight"
        )
    codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1).astype(np.int32)
    return classes, codes


def class_weights(
    class_weight: dict[Any, float] | str | None,
    classes: NDArray[Any],
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
) -> list[float]:
    """A factor of C for each class: as given, all 1, or such that all classes weigh the same."""
    count = len(classes)
    if class_weight is None:
        return [1.0] * count
    if isinstance(class_weight, str):  # "balanced"
        rows = np.bincount(codes, weights=weights, minlength=count)
        return [float(rows.sum() / (count * share)) for share in rows]
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names classes that do not occur: {sorted(map(str, unknown))}")
    return [float(class_weight.get(label, 1.0)) for label in classes.tolist()]


def relative_gap(primal: float, dual: float) -> float:
    """(P - D) / P, never below 0."""
    return max(primal - dual, 0.0) / primal if primal > 0 else 0.0


class Narrator:
    """Prints a line a second about a long training, when asked to."""

    def __init__(self, learner: str, verbose: int, unit: str) -> None:
        self._learner = learner
        self._verbose = verbose
        self._unit = unit  # what is active: rows, or cuts
        self._calls = 0

    def on_progress(self, progress: Progress) -> None:
        """Called about twenty times a second."""
        self._calls += 1
        if self._verbose > 1 and self._calls % 20 == 0:
            bounds = (
                f", objective {progress.objective:.6g}, bound {progress.bound:.6g}"
                if progress.objective
                else ""
            )
            print(
                f"[{self._learner}] {progress.stage}: {progress.finished}/{progress.problems} problems done, "
                f"epoch {progress.epoch}, {progress.active} {self._unit} active{bounds}, "
                f"gap about {progress.relative_gap:.2g}"
            )
