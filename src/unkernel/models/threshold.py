"""Thresholds of probabilities or scores, at which one of two classes is predicted."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_KINDS = ("probability", "score")


@dataclass(frozen=True)
class Threshold:
    """Predict one of two classes if its probability, or score, is at least `value`.

    Otherwise the other one of the two classes is predicted. A probability that equals `value` is enough, as
    in scikit-learn's ``FixedThresholdClassifier``.

    Attributes
    ----------
    value : float
        The threshold. For probabilities, it lies strictly between 0 and 1.
    positive : {0, 1}, default=1
        Index of the class in ``classes_``.
    of : {"probability", "score"}, default="probability"
        The number to compare. The score of the first class is the negative score of the second.

    See Also
    --------
    unkernel.CompiledClassifier.with_threshold : Store a threshold in a compiled classifier.
    Decision : How scores become predictions.

    Examples
    --------
    >>> from unkernel.models import Threshold
    >>> Threshold(0.31)
    Threshold(value=0.31, positive=1, of='probability')

    A missed positive that costs four times as much as a false alarm:

    >>> Threshold.from_costs(false_negative=4, false_positive=1).value
    0.2
    """

    value: float
    positive: int = 1
    of: str = "probability"

    def __post_init__(self) -> None:
        """Check the value, the class and the number to compare."""
        if self.of not in _KINDS:
            raise ValueError(f"a threshold is one of {' or '.join(_KINDS)}, not of {self.of!r}")
        if not _is_integer(self.positive) or self.positive not in (0, 1):
            raise ValueError(f"a threshold is for the class 0 or 1 of two classes, not {self.positive!r}")
        if not _is_number(self.value) or not math.isfinite(self.value):
            raise ValueError(f"a threshold must be a finite number, got {self.value!r}")
        if self.of == "probability" and not 0 < self.value < 1:
            raise ValueError(
                f"a threshold of probabilities must lie between 0 and 1, got {self.value!r}, for which the "
                "prediction would not depend on the row"
            )
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "positive", int(self.positive))

    @classmethod
    def from_costs(cls, false_negative: float, false_positive: float, *, positive: int = 1) -> Self:
        """Return the threshold with the lowest expected cost, if the probabilities are right.

        Parameters
        ----------
        false_negative : float
            Cost of a row of the positive class that is predicted as the other class.
        false_positive : float
            Cost of a row of the other class that is predicted as the positive class.
        positive : {0, 1}, default=1
            Index of the positive class.

        Returns
        -------
        Threshold
            The threshold false_positive / (false_positive + false_negative).

        Raises
        ------
        ValueError
            If a cost is not a finite number above 0.
        """
        for name, cost in (("false_negative", false_negative), ("false_positive", false_positive)):
            if not _is_number(cost) or not 0 < cost < math.inf:
                raise ValueError(f"the cost {name} must be a number above 0, got {cost!r}")
        # Not fp / (fp + fn), whose sum may overflow.
        return cls(1 / (1 + float(false_negative) / float(false_positive)), positive)

    def codes(self, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the index of the predicted class for each row.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows,)
            Probabilities, or scores, of the positive class.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Indices into ``classes_``.
        """
        reaches = numbers >= self.value
        return np.where(reaches, self.positive, 1 - self.positive).astype(np.intp, copy=False)

    def to_json(self) -> dict[str, Any]:
        """Return the threshold as a JSON object for ``.uk`` files.

        Returns
        -------
        dict
            The JSON object.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any) -> Self | None:
        """Make a threshold from the JSON object in a file, and check it.

        Parameters
        ----------
        stored : dict or None
            The JSON object.

        Returns
        -------
        Threshold or None
            The threshold; None for None.

        Raises
        ------
        TypeError, KeyError or ValueError
            If the object is damaged.
        """
        if stored is None:
            return None
        if not isinstance(stored, dict) or not isinstance(stored["of"], str):
            raise TypeError("not a threshold")
        return cls(stored["value"], stored["positive"], stored["of"])


def parse_threshold(threshold: Any) -> Threshold | None:
    """Return a number as a threshold for the probability of the second class; keep thresholds and None."""
    return threshold if threshold is None or isinstance(threshold, Threshold) else Threshold(threshold)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
