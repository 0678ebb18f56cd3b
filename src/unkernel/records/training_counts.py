"""Counts of a model's training records, with which new records can be compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.repr_html import is_lazy
from unkernel.records.plan_json import check_type

if TYPE_CHECKING:
    from unkernel.records.column_summary import ColumnFacts

_MAX_CLASSES = 1000
_MAX_NUMBER_CLASSES = 100  # more different numbers are hardly classes
_DECILES = np.arange(1, 10) / 10


@dataclass(frozen=True)
class TrainingCounts:
    """Counts of the training records: missing and unknown values by column, and targets.

    The shares of new records can be compared with these shares, to notice that the records have changed.

    Attributes
    ----------
    n_records : int
        Number of training records.
    missing : mapping of str to int
        For each column, the number of records without a value.
    unknown : mapping of str to int
        For each column of categories, the number of values that have no feature of their own, because they
        are rarer than ``min_count``.
    classes : mapping of str to int, default={}
        The number of records of each class. Empty if the targets are unknown or are not classes.
    bounds : sequence of float, default=()
        Bounds of intervals of the targets: the deciles of the training targets. Empty if the targets are
        unknown or are not numbers.
    interval_counts : sequence of int, default=()
        The number of targets in each interval: up to ``bounds[0]``, above ``bounds[0]`` and up to
        ``bounds[1]``, and so on; the last interval is above all bounds.

    See Also
    --------
    Plan : The encoding of records, which holds these counts.

    Examples
    --------
    >>> from unkernel import RecordEncoder
    >>> people = [{"job": "clerk", "age": 39}, {"job": "clerk", "age": None}, {"job": "pilot", "age": 41}]
    >>> counts = RecordEncoder(min_count=2).fit(people, ["no", "no", "yes"]).plan_.training
    >>> counts.missing, counts.unknown, counts.classes
    ({'job': 0, 'age': 1}, {'job': 1}, {'no': 2, 'yes': 1})
    """

    n_records: int
    missing: Mapping[str, int]
    unknown: Mapping[str, int]
    classes: Mapping[str, int] = field(default_factory=dict)
    bounds: Sequence[float] = ()
    interval_counts: Sequence[int] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the counts as values that JSON can represent.

        Returns
        -------
        dict
            The counts, without those that are empty.
        """
        counts: dict[str, Any] = {
            "records": self.n_records,
            "missing": dict(self.missing),
            "unknown": dict(self.unknown),
        }
        if self.classes:
            counts["classes"] = dict(self.classes)
        if self.bounds:
            counts["bounds"] = list(self.bounds)
            counts["interval_counts"] = list(self.interval_counts)
        return counts

    @classmethod
    def from_json(cls, stored: Any, columns: Sequence[str]) -> TrainingCounts:
        """Return stored counts, after checks.

        Parameters
        ----------
        stored : dict
            The counts from a file.
        columns : sequence of str
            The columns of the plan.

        Returns
        -------
        TrainingCounts
            The counts.

        Raises
        ------
        LookupError, TypeError or ValueError
            If the counts are damaged.
        """
        n_records = check_type(check_type(stored, dict)["records"], int)
        counts = cls(
            n_records,
            _read_counts(stored["missing"], n_records, columns),
            _read_counts(stored["unknown"], n_records, columns),
            _read_counts(stored.get("classes", {}), n_records),
            tuple(_check_number(bound) for bound in check_type(stored.get("bounds", []), list)),
            tuple(
                _check_count(count, n_records)
                for count in check_type(stored.get("interval_counts", []), list)
            ),
        )
        _check_intervals(counts)
        return counts


def _read_counts(stored: Any, n_records: int, columns: Sequence[str] | None = None) -> dict[str, int]:
    for name in check_type(stored, dict):
        if columns is not None and name not in columns:
            raise ValueError(f"it counts values of a column {name!r} that it does not have")
    counts = {name: _check_count(count, n_records) for name, count in stored.items()}
    if columns is None and counts and sum(counts.values()) != n_records:
        raise ValueError("its classes do not have all training records")
    return counts


def _check_count(count: Any, n_records: int) -> int:
    if type(count) is not int or not 0 <= count <= n_records:
        raise ValueError(f"it counts {count!r} of {n_records} training records")
    return count


def _check_number(bound: Any) -> float:
    if type(bound) not in (int, float):
        raise TypeError(f"expected a number, got {type(bound).__name__}")
    return float(bound)


def _check_intervals(counts: TrainingCounts) -> None:
    bounds = counts.bounds
    if not all(map(math.isfinite, bounds)) or any(low >= high for low, high in pairwise(bounds)):
        raise ValueError("the bounds of training targets do not ascend")
    if len(counts.interval_counts) != (len(bounds) + 1 if bounds else 0):
        raise ValueError("the intervals of training targets do not fit their counts")
    if bounds and sum(counts.interval_counts) != counts.n_records:
        raise ValueError("the intervals of training targets do not have all training records")


def count_training(facts: Sequence[ColumnFacts], n_records: int, min_count: int, y: Any) -> TrainingCounts:
    """Count the training records.

    Parameters
    ----------
    facts : sequence of ColumnFacts
        The summaries of the columns.
    n_records : int
        Number of records.
    min_count : int
        Smallest number of records in which a category must occur to get a feature.
    y : array-like or None
        The targets. They are not counted if they are lazy, or not one class or number per record.
    """
    columns = [fact for fact in facts if fact.kind != "drop"]
    return TrainingCounts(
        n_records,
        {fact.name: n_records - fact.count_values() for fact in columns},
        {fact.name: fact.count_rare(min_count) for fact in columns if fact.kind == "category"},
        **_count_targets(y, n_records),
    )


def add_records(
    training: TrainingCounts, n_records: int, values: Mapping[str, Mapping[str, int]], y: NDArray[Any]
) -> TrainingCounts:
    """Return the counts of the training records and of more records.

    Parameters
    ----------
    training : TrainingCounts
        The counts of the training records.
    n_records : int
        Number of records to add.
    values : mapping
        The number of missing and of unknown values by column: ``values["missing"]["age"]``.
    y : ndarray of shape (n_records,)
        The targets of these records.
    """

    def add(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
        return {name: count + more.get(name, 0) for name, count in counts.items()}

    classes = _count_targets(y, n_records).get("classes", {}) if training.classes else {}
    interval_counts: Sequence[int] = ()
    if training.bounds:
        intervals = np.searchsorted(training.bounds, y.astype(np.float64))
        added = np.bincount(intervals, minlength=len(training.bounds) + 1)
        interval_counts = tuple((added + training.interval_counts).tolist())
    return TrainingCounts(
        training.n_records + n_records,
        add(training.missing, values["missing"]),
        add(training.unknown, values["unknown"]),
        dict(Counter(training.classes) + Counter(classes)) if classes else {},
        training.bounds,
        interval_counts,
    )


def _count_targets(y: Any, n_records: int) -> dict[str, Any]:
    """Return the counts of targets, as arguments of TrainingCounts; empty if they cannot be counted."""
    targets = _read_targets(y)
    if targets is None or targets.shape != (n_records,):
        return {}
    if targets.dtype.kind not in "iuf":
        return {"classes": _count_labels(targets.tolist())}
    values, counts = np.unique(targets, return_counts=True)
    if not np.isfinite(values).all():
        return {}
    ends = np.cumsum(counts)
    deciles = np.unique(np.searchsorted(ends, _DECILES * n_records))
    interval_ends = [0, *ends[deciles].tolist(), n_records]
    return {
        "classes": _name_counts(values.tolist(), counts.tolist(), _MAX_NUMBER_CLASSES),
        "bounds": tuple(values[deciles].astype(np.float64).tolist()),
        "interval_counts": tuple(end - begin for begin, end in pairwise(interval_ends)),
    }


def _read_targets(y: Any) -> NDArray[Any] | None:
    """Return the targets as an array of one dimension if possible, else None."""
    if y is None or is_lazy(y):
        return None
    try:
        targets = np.asarray(y)
    except (ValueError, TypeError):
        return None
    return targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets


def _count_labels(labels: list[Any]) -> dict[str, int]:
    """Count labels by their names; return nothing if one is not a label, or if there are too many."""
    try:
        counts = Counter(labels)
    except TypeError:  # a list, for example
        return {}
    return _name_counts(list(counts), list(counts.values()), _MAX_CLASSES)


def _name_counts(labels: list[Any], counts: list[int], most: int) -> dict[str, int]:
    """Return counts by the names of labels; empty if there are more than `most`, or one is not a label."""
    if len(labels) > most or not all(isinstance(label, str | bool | int | float) for label in labels):
        return {}
    return dict(zip(map(str, labels), counts, strict=True))
