"""Calibration curves, which convert scores to probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import sigmoid as native_sigmoid

_MAX_ROUNDED_PROBABILITY = 1.0 + 1e-5  # as in scikit-learn, probabilities from 1 to this number become 1


@dataclass(frozen=True)
class Sigmoid:
    """The curve 1 / (1 + exp(a f + b)) of a score f."""

    a: float
    b: float

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each score."""
        return sigmoid(self.a * scores + self.b)


@dataclass(frozen=True, eq=False)
class Interpolated:
    """Linear interpolation between points (x, y) with ascending x; constant outside the range of x."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each score."""
        return np.interp(scores, self.x, self.y)


Curve = Sigmoid | Interpolated


@dataclass(frozen=True)
class Curves:
    """Probabilities from one curve per score.

    With two classes, the score supports the second class. With more than two classes, each class has a score,
    and the values of the curves are divided by their sum (if the sum is 0, see `uniform`). A model may have
    the scores of several classifiers (members), one after the other; their probabilities are averaged.

    Attributes
    ----------
    of_scores : sequence of Sigmoid or Interpolated
        The curve of each score.
    uniform : bool
        Whether all classes get the same probability if all curves are 0. Otherwise all probabilities are then
        0, as in scikit-learn's ``OneVsRestClassifier``.
    """

    of_scores: Sequence[Curve]
    uniform: bool = True

    def members(self, n_classes: int) -> int:
        """Return the number of classifiers (members) whose probabilities are averaged."""
        return len(self.of_scores) // scores_per_member(n_classes)

    def check(self, n_classes: int, n_scores: int) -> None:
        """Check that there is a valid curve for each score, and that every member has all of its scores."""
        if len(self.of_scores) != n_scores or n_scores % scores_per_member(n_classes):
            raise ValueError(f"expected the curves of {n_scores} scores, got {len(self.of_scores)}")
        for curve in self.of_scores:
            _check_curve(curve)

    def probabilities(self, scores: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
        """Return the probability of each class for each row."""
        values = np.column_stack([curve(scores[:, k]) for k, curve in enumerate(self.of_scores)])
        width = scores_per_member(n_classes)
        mean = np.zeros((len(scores), n_classes))
        for begin in range(0, values.shape[1], width):
            mean += _compute_member_probabilities(values[:, begin : begin + width], uniform=self.uniform)
        return mean / self.members(n_classes)

    def to_json(self) -> dict[str, Any]:
        """Return the curves as a JSON object for ``.uk`` files."""
        return {"curves": [_curve_to_json(curve) for curve in self.of_scores], "uniform": self.uniform}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Curves:
        """Return curves from the result of :meth:`to_json`; TypeError or KeyError if it is damaged."""
        if not isinstance(stored["curves"], list) or not isinstance(stored["uniform"], bool):
            raise TypeError("not a list of curves")
        return cls([_curve_from_json(curve) for curve in stored["curves"]], stored["uniform"])


def scores_per_member(n_classes: int) -> int:
    """Return the number of scores of one member."""
    return 1 if n_classes == 2 else n_classes


def sigmoid(exponent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(exponent)) without overflow. Results do not depend on the size of the array."""
    return np.asarray(native_sigmoid(np.ravel(exponent))).reshape(np.shape(exponent))


def _compute_member_probabilities(values: NDArray[np.float64], *, uniform: bool) -> NDArray[np.float64]:
    """Return probabilities (rows, classes), given the values (rows, scores) of one member's curves."""
    if values.shape[1] == 1:
        probabilities = np.column_stack([1.0 - values[:, 0], values[:, 0]])
    else:
        total = values.sum(axis=1, keepdims=True)
        probabilities = np.full_like(values, 1.0 / values.shape[1] if uniform else 0.0)
        np.divide(values, total, out=probabilities, where=total != 0)
    probabilities[(probabilities > 1.0) & (probabilities <= _MAX_ROUNDED_PROBABILITY)] = 1.0
    return probabilities


def _check_curve(curve: Curve) -> None:
    if isinstance(curve, Sigmoid):
        if not (np.isfinite(curve.a) and np.isfinite(curve.b)):
            raise ValueError("the parameters of a sigmoid are not finite")
        return
    if curve.x.ndim != 1 or curve.x.shape != curve.y.shape or not len(curve.x):
        raise ValueError("a curve has no points, or another number of x than of y")
    if not (np.isfinite(curve.x).all() and np.isfinite(curve.y).all() and (np.diff(curve.x) >= 0).all()):
        raise ValueError("the points of a curve must be finite, and their x ascend")


def _curve_to_json(curve: Curve) -> dict[str, Any]:
    if isinstance(curve, Sigmoid):
        return {"a": curve.a, "b": curve.b}
    return {"x": curve.x.tolist(), "y": curve.y.tolist()}


def _curve_from_json(stored: Any) -> Curve:
    if not isinstance(stored, dict):
        raise TypeError("not the table of a curve")
    if "x" in stored:
        return Interpolated(parse_numbers(stored["x"]), parse_numbers(stored["y"]))
    a, b = parse_numbers([stored["a"], stored["b"]]).tolist()
    return Sigmoid(a, b)


def parse_numbers(stored: Any) -> NDArray[np.float64]:
    """Return a list of numbers from a file as an array; raise a ``TypeError`` for other values."""
    if not isinstance(stored, list) or not all(type(value) in (int, float) for value in stored):
        raise TypeError("not a list of numbers")
    return np.array(stored, dtype=np.float64)
