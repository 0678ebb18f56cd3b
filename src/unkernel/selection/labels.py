"""Targets of several labels per record: read them, and learn one model for each label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.selection.targets import MAX_CLASSES

_LABEL_SETS = (list, tuple, set, frozenset)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of records.

    Attributes
    ----------
    names : ndarray of shape (n_labels,)
    indicator : ndarray of int, shape (n_records, n_labels)
        1 if a record has a label, otherwise 0.
    """

    names: NDArray[Any]
    indicator: NDArray[np.int64]


def read_labels(y: Any, names: NDArray[Any] | None = None) -> Labels | None:
    """Return the labels in y; None if y is something else.

    Parameters
    ----------
    y : list of lists or sets of labels, or array or data frame of 0 and 1 of shape (n_records, n_labels)
    names : ndarray, default=None
        The names of known labels; by default, the labels that occur, or the names of the columns.

    Returns
    -------
    Labels or None
    """
    if not hasattr(y, "columns"):
        rows = _list_label_sets(y)
        if rows is not None:
            return _read_label_sets(rows, names)
    table = np.asarray(y)
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "biuf":
        return None
    if not np.isin(table, (0, 1)).all():
        return None
    if names is None:
        names = np.arange(table.shape[1])
        if hasattr(y, "columns"):
            names = np.array([str(name) for name in y.columns])
    return Labels(names, table.astype(np.int64))


def _list_label_sets(y: Any) -> list[Any] | None:
    """Return the records of y if they are lists or sets of labels, and not rows of numbers."""
    if isinstance(y, np.ndarray) and y.ndim != 1:
        return None
    rows = y if isinstance(y, list) else list(y)
    if not any(isinstance(row, _LABEL_SETS) for row in rows):
        return None
    try:
        table = np.asarray(rows)
    except ValueError:  # lists of different lengths
        return rows
    is_table = table.ndim == 2 and table.size > 0 and table.dtype.kind in "biuf"
    return None if is_table else rows


def _read_label_sets(rows: list[Any], names: NDArray[Any] | None) -> Labels:
    for number, row in enumerate(rows):
        if not isinstance(row, _LABEL_SETS):
            raise ValueError(f"y[{number}] is {row!r}, and other targets are lists of labels")
    if names is None:
        names = _find_names(rows)
    column_of = {name: column for column, name in enumerate(names.tolist())}
    indicator = np.zeros((len(rows), len(names)), dtype=np.int64)
    for number, row in enumerate(rows):
        for label in row:
            if label not in column_of:
                raise ValueError(f"y[{number}] has the label {label!r}, which the model does not know")
            indicator[number, column_of[label]] = 1
    return Labels(names, indicator)


def _find_names(rows: list[Any]) -> NDArray[Any]:
    names = {label for row in rows for label in row}
    for kind in (str, int):
        if names and all(type(name) is kind for name in names):
            _check_text(names)
            return np.array(sorted(names))
    raise ValueError("labels must be all strings, or all whole numbers" if names else "no record has a label")


def _check_text(names: set[Any]) -> None:
    for name in names:
        if isinstance(name, str) and name.endswith("\0"):  # which numpy would remove
            raise ValueError(f"the label {name!r} ends in a NUL character")


def check_labels(labels: Labels) -> None:
    """Raise ``ValueError`` for labels that cannot be learned."""
    count = len(labels.names)
    if count < 2:
        raise ValueError(f"there is only the label {labels.names[0].item()!r}: give two classes instead")
    if count > MAX_CLASSES:
        raise ValueError(f"{count} labels are too many, at most {MAX_CLASSES} are supported")
    totals = labels.indicator.sum(axis=0)
    for total, owners in ((0, "no record has"), (len(labels.indicator), "all records have")):
        if (totals == total).any():
            name = labels.names[totals == total][0].item()
            raise ValueError(f"{owners} the label {name!r}: leave it out, as nothing can be learned")


class LabelLearners:
    """One learner of probabilities for each label.

    Parameters
    ----------
    make_learner : callable
        Returns an unfitted learner of two classes.
    count : int
        Number of labels.
    """

    def __init__(self, make_learner: Callable[[], Any], count: int) -> None:
        self._learners = [make_learner() for _ in range(count)]
        self._constants: list[float | None] = [None] * count

    def set_params(self, C: float) -> LabelLearners:
        for learner in self._learners:
            learner.set_params(C=C)
        return self

    def fit(self, rows: Any, indicator: NDArray[np.int64]) -> None:
        for number, learner in enumerate(self._learners):
            column = indicator[:, number]
            is_constant = bool((column == column[0]).all())
            self._constants[number] = float(column[0]) if is_constant else None
            if not is_constant:
                learner.fit(rows, column)

    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """Return the probability of each label, of shape (rows, labels)."""
        columns = [
            learner.predict_proba(rows)[:, 1] if constant is None else np.full(rows.shape[0], constant)
            for learner, constant in zip(self._learners, self._constants, strict=True)
        ]
        return np.column_stack(columns)


def compute_label_loss(indicator: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Return the mean log loss of all labels of all records."""
    of_truth = np.where(indicator == 1, probabilities, 1.0 - probabilities)
    return float(-np.log(of_truth.clip(min=np.finfo(float).eps)).mean())
