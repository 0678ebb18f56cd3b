"""Check the labels, targets and weights of training examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import _check_sample_weight

from unkernel.data.rows.row_checks import check_inputs
from unkernel.learners.parameters import LARGEST_COST

_LARGEST_TARGET = 1e100


def check_targets(targets: ArrayLike) -> NDArray[np.float64]:
    """Return the targets of a regression as an array of numbers.

    Raises
    ------
    ValueError
        If values are not numbers or missing, or if their squares could overflow.
    """
    numbers = np.asarray(targets, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity: a regression needs a number for each row")
    if np.abs(numbers).max(initial=0.0) > _LARGEST_TARGET:
        raise ValueError(f"Input y has values beyond {_LARGEST_TARGET:g}: divide y by a number")
    return numbers


def check_weights(sample_weight: ArrayLike, rows: Any) -> NDArray[np.float64]:
    """Return one weight per row; raise a ``ValueError`` for negative, infinite, NaN or too large values."""
    check_inputs(sample_weight)
    weights: NDArray[np.float64] = _check_sample_weight(
        sample_weight, rows, dtype=np.float64, ensure_non_negative=True
    )
    if weights.max(initial=0.0) > LARGEST_COST:
        raise ValueError(
            f"sample_weight has a value of {weights.max():g}, above the limit of {LARGEST_COST:g}: divide "
            "all weights by a number"
        )
    return weights


def check_single_target(y: Any, estimator: Any) -> None:
    """Raise a ``ValueError`` that names the way to fit several labels or targets, if y has several."""
    name = type(estimator).__name__
    kind = "Regressor" if is_regressor(estimator) else "Classifier"
    several = f"sklearn.multioutput.MultiOutput{kind}({name}())"
    try:
        shape, has_lists = np.asarray(y).shape, False
    except ValueError:  # lists of different lengths
        shape, has_lists = (), True
    has_sets = isinstance(y, list | tuple) and bool(y) and isinstance(y[0], set | frozenset)
    if (has_lists or has_sets) and kind == "Classifier":
        raise ValueError(
            f"y has a list of labels for each row, and {name} predicts one: make columns of them with "
            "sklearn.preprocessing.MultiLabelBinarizer, and fit "
            f"sklearn.multiclass.OneVsRestClassifier({name}())"
        )
    if len(shape) == 2 and shape[1] > 1:
        if kind == "Classifier":
            several = f"sklearn.multiclass.OneVsRestClassifier({name}()) to labels, or {several} to targets"
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead: fit {several} of several columns"
        )


def encode_classes(
    labels: NDArray[Any], weights: NDArray[np.float64] | None, learner: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the classes of the rows with a positive weight, and the index of each row's class."""
    weighted_labels = labels if weights is None else labels[weights > 0]
    classes = np.unique(weighted_labels)
    if len(classes) < 2:
        raise ValueError(
            f"{learner} needs rows of at least two classes, but there is only one class: {classes.tolist()}"
            if len(classes)
            else f"{learner} needs at least one row with a positive sample_weight"
        )
    codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1).astype(np.int32)
    return classes, codes


def compute_class_weights(
    class_weight: dict[Any, float] | str | None,
    classes: NDArray[Any],
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
) -> list[float]:
    """Return one factor of C per class: as given, 1 for None, or equal total weights for "balanced"."""
    count = len(classes)
    if class_weight is None:
        return [1.0] * count
    if isinstance(class_weight, str):  # "balanced"
        rows = np.bincount(codes, weights=weights, minlength=count)
        return [float(rows.sum() / (count * class_weight_sum)) for class_weight_sum in rows]
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names classes that do not occur: {sorted(map(str, unknown))}")
    factors = [float(class_weight.get(label, 1.0)) for label in classes.tolist()]
    for label, weight in zip(classes.tolist(), factors, strict=True):
        if not 0 <= weight <= LARGEST_COST:
            raise ValueError(
                f"class_weight of {label!r} is {weight:g}: it must be 0 or a positive number up to "
                f"{LARGEST_COST:g}"
            )
    return factors
