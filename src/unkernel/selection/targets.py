"""Decide whether a column of targets is predicted as classes or as numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

Task = Literal["classes", "numbers", "labels"]
TASKS = ("auto", "classes", "numbers", "labels")
MAX_CLASSES = 1000
MAX_NUMBER_CLASSES = 20  # integers with more different values are predicted as numbers, not as classes


def find_task(y: NDArray[Any]) -> Task:
    """Return "numbers" for fractions and for integers with many different values, otherwise "classes"."""
    if y.dtype.kind not in "iuf":
        return "classes"
    values = np.unique(y)
    is_whole = y.dtype.kind != "f" or bool((values == np.round(values)).all())
    return "classes" if is_whole and len(values) <= MAX_NUMBER_CLASSES else "numbers"


def check_targets(y: Any, task: str) -> NDArray[Any]:
    """Return the targets as an array; ValueError if nothing can be learned from them."""
    try:
        targets = np.asarray(y)
    except ValueError:  # lists of different lengths
        raise ValueError(
            "y must have one dimension; use task='labels' if records have several labels"
        ) from None
    if targets.ndim == 2 and targets.shape[1] == 1 and not isinstance(y, list | tuple):  # lists may be labels
        targets = column_or_1d(targets, warn=True)
    if targets.ndim != 1:
        raise ValueError(f"y must have one dimension, got an array of shape {targets.shape}")
    if targets.dtype.kind == "O":
        targets = _convert_objects(targets)
    if targets.dtype.kind in "Mm":
        raise ValueError("y contains dates: convert them to numbers, such as days since the first date")
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        row = int(np.flatnonzero(~np.isfinite(targets))[0])
        raise ValueError(f"y[{row}] is {targets[row]}: leave out records without a finite target")
    if task == "numbers" and targets.dtype.kind not in "biuf":
        raise ValueError(
            f"y contains {targets[0].item()!r}, which is not a number; use task='classes' for classification"
        )
    return targets


def check_variety(y: NDArray[Any]) -> None:
    """Raise ``ValueError`` if all targets are equal."""
    if len(y) and (y == y[0]).all():
        raise ValueError(f"all {len(y)} targets are {y[0].item()!r}: there is nothing to learn")


def check_classes(y: NDArray[Any]) -> None:
    """Raise ``ValueError`` for classes that cannot be learned."""
    classes, counts = np.unique(y, return_counts=True)
    if counts.max() == 1:
        raise ValueError(f"no class occurs twice, such as {classes[0].item()!r}: is this an identifier?")
    if len(classes) > MAX_CLASSES:
        raise ValueError(f"{len(classes)} classes are too many, at most {MAX_CLASSES} are supported")


def _convert_objects(targets: NDArray[Any]) -> NDArray[Any]:
    """Return an array of Python objects as numbers, booleans or strings."""
    for row, value in enumerate(targets.tolist()):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise ValueError(f"y[{row}] is missing: leave out records without a target")
        if isinstance(value, list | tuple | set):
            raise ValueError(
                f"y[{row}] is a {type(value).__name__}: use task='labels' if records have several labels"
            )
    if all(isinstance(value, Decimal | Fraction) for value in targets):
        return targets.astype(np.float64)
    converted = np.array(targets.tolist())
    return targets.astype(str) if converted.dtype.kind in "OU" else converted
