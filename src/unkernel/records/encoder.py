"""The estimator ``RecordEncoder``, which learns a plan from records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from unkernel.data.repr_html import ask, is_lazy
from unkernel.data.rows.csr import is_sparse
from unkernel.data.threads import thread_count
from unkernel.records import steps
from unkernel.records.column_summary import KINDS, ColumnFacts, Records, summarize_columns
from unkernel.records.feature_labels import format_category, make_interval_labels, make_value_labels
from unkernel.records.feature_names import JoinedNames
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep
from unkernel.records.tables import get_column_names
from unkernel.records.training_counts import count_training

_SHARED = ("category", "number", "binned", "date")  # kinds whose columns share one step per kind
_MAX_BINS = 1000


class RecordEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode raw records (data frames, dicts, Arrow tables) as sparse rows of features.

    Each column has a kind, which determines its features. Categories have one feature per value, numbers one
    per interval, dates one per month, weekday and so on, texts one per word, and lists of strings one per
    string. A missing value (None, NaN, or a key that a record lacks) has a feature of its own.
    :func:`unkernel.compile` stores the fitted encoding in the file of the model.

    Parameters
    ----------
    kinds : dict, default=None
        The kinds of some columns; the kinds of all other columns are inferred. Kinds are ``"category"``,
        ``"binned"`` (a number, by intervals), ``"number"`` (a number, divided by its standard deviation),
        ``"date"`` (including strings such as ``"2026-11-17"`` and ``"2026-11-17T14:05+01:00"``), ``"text"``,
        ``"strings"`` (a list of strings) and ``"drop"``.
    n_bins : int or tuple of int, default=(4, 16, 64)
        Number of intervals for each column of numbers, and for the year and the day of dates. Intervals
        contain about the same number of training records, but a frequent value gets an interval of its own.
        If `n_bins` is a tuple, the range is divided several times, and a value has one feature per division:
        wide intervals need few records to learn from, and narrow ones capture details.
    min_count : int, default=3
        Smallest number of training records in which a category or word must occur to get its own feature.
        Rarer and unknown categories share one feature; rarer words are ignored.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors.

    Attributes
    ----------
    plan_ : Plan
        The fitted encoding as plain data.
    kinds_ : dict
        The kind of each column.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns, if there are any.

    See Also
    --------
    compile : Compile a pipeline of an encoder and a classifier.
    unkernel.records.Plan : The fitted encoding as plain data.

    Examples
    --------
    >>> from unkernel import RecordEncoder
    >>> people = [{"job": "clerk", "age": 39}, {"job": "clerk", "age": 50}, {"job": "pilot", "age": None}]
    >>> encoder = RecordEncoder(min_count=1, n_bins=2).fit(people)
    >>> encoder.kinds_
    {'job': 'category', 'age': 'binned'}
    >>> encoder.transform([{"job": "pilot", "age": 30}]).shape
    (1, 7)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kinds": [Mapping, None],
        "n_bins": [Interval(Integral, 2, _MAX_BINS, closed="both"), tuple],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        n_bins: int | tuple[int, ...] = (4, 16, 64),
        min_count: int = 3,
        n_jobs: int | None = None,
    ) -> None:
        self.kinds = kinds
        self.n_bins = n_bins
        self.min_count = min_count
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kinds, categories, intervals and words of the columns.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            Training records. Records in a Dask data frame or array are counted on the workers.
        y : array-like of shape (n_records,), default=None
            The targets. They do not affect the encoding; only their counts are kept, in ``plan_.training``.

        Returns
        -------
        RecordEncoder
            The fitted encoder itself.
        """
        self._fit(X, y)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the encoder and encode the same records.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            Training records.
        y : array-like of shape (n_records,), default=None
            The targets. They do not affect the encoding; only their counts are kept, in ``plan_.training``.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_records, n_features_out)
            The encoded rows; a lazy Dask array of such blocks if X is a Dask collection.
        """
        records, columns = self._fit(X, y)
        return records.encode(self.plan_, thread_count(self.n_jobs), columns)

    def _fit(self, X: Any, y: Any) -> tuple[Any, list[ColumnFacts]]:
        """Set the fitted attributes; return the records and the facts about their columns."""
        records = self._read(X)
        names = records.names
        if records.n_rows == 0:
            raise ValueError(
                "Found array with 0 sample(s) (shape=(0, ...)) while a minimum of 1 is required."
            )
        if not names:
            raise ValueError(f"0 feature(s) (shape=({records.n_rows}, 0)) while a minimum of 1 is required.")
        self._check_kinds(names)
        self._check_resolutions()
        kinds = {name: (self.kinds or {}).get(name) for name in names}
        columns = summarize_columns(names, kinds, records.summaries(kinds))
        self.kinds_ = {column.name: column.kind for column in columns}
        self.n_features_in_ = len(names)
        training = count_training(columns, records.n_rows, self.min_count, y)
        self.plan_ = replace(self._make_plan(names, columns), training=training)
        return records, columns

    def transform(self, X: Any) -> Any:
        """Encode records.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_records, n_features_out)
            The encoded rows; a lazy Dask array of such blocks if X is a Dask collection.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return ask("lazy_records", X, self.plan_.columns).encode(self.plan_, thread_count(self.n_jobs))
        return self.plan_.encode(self.check_records(X), thread_count(self.n_jobs)).to_scipy()

    def check_records(self, X: Any) -> Any:
        """Check records, and convert arrays and lists of rows to two-dimensional arrays.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.

        Returns
        -------
        records
            The records as a plan takes them.
        """
        if is_sparse(X):
            raise TypeError("Sparse data was passed, but records are frames, dicts or dense arrays.")
        X = _convert_arrays(X)
        if isinstance(X, np.ndarray) and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a label for each feature, such as ``"job = pilot"`` or ``"age 35–44"``.

        Parameters
        ----------
        input_features : ignored, default=None
            Not used; present for compatibility with pipelines.

        Returns
        -------
        ndarray of str
            The labels.
        """
        check_is_fitted(self)
        return np.array(list(self.plan_.feature_names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _read(self, X: Any) -> Any:
        """Return training records, and set or remove ``feature_names_in_``."""
        if is_sparse(X):
            raise TypeError("Sparse data was passed, but records are frames, dicts or dense arrays.")
        X = X if is_lazy(X) else _convert_arrays(X)
        names = get_column_names(X)
        if names is None:
            width = np.shape(X)[1] if np.ndim(X) == 2 else 0
            self.__dict__.pop("feature_names_in_", None)
            names = [f"x{k}" for k in range(width)]
        else:
            self.feature_names_in_ = np.array(names, dtype=object)
        return ask("lazy_records", X, names) if is_lazy(X) else Records.from_input(X, names)

    def _check_resolutions(self) -> None:
        if not self._resolutions or not all(
            isinstance(number, Integral) and 2 <= number <= _MAX_BINS for number in self._resolutions
        ):
            raise ValueError(
                f"n_bins must be an integer from 2 to {_MAX_BINS}, or a tuple of them, got {self.n_bins!r}"
            )

    def _check_kinds(self, names: Sequence[str]) -> None:
        for name, kind in (self.kinds or {}).items():
            if name not in names:
                raise ValueError(f"kinds names a column {name!r} that X does not have")
            if kind not in KINDS:
                raise ValueError(
                    f"the kind of column {name!r} is {kind!r}, and must be one of {', '.join(KINDS)}"
                )

    def _make_plan(self, names: Sequence[str], columns: Sequence[ColumnFacts]) -> Plan:
        """Return a plan. Columns of the same kind share a step, because few steps are encoded faster."""
        plan_steps: list[PlanStep] = []
        parts: list[int] = []
        for kind in KINDS:
            columns_of_kind = [column for column in columns if column.kind == kind]
            groups = [columns_of_kind] if kind in _SHARED else [[column] for column in columns_of_kind]
            for group in groups:
                group_steps = self._make_steps(kind, group, len(plan_steps)) if group else []
                plan_steps += group_steps
                parts += [len(plan_steps) - 1] if group_steps else []
        if not parts:
            raise ValueError("every column is dropped: nothing is left to learn from")
        labels = JoinedNames([plan_steps[part].names for part in parts])
        usual_values = {
            column.name: column.usual_value(self.min_count) for column in columns if column.kind != "drop"
        }
        example = {name: value for name, value in usual_values.items() if value is not None}
        return Plan(list(names), [*plan_steps, steps.concatenate(parts, labels)], example=example)

    def _make_steps(self, kind: str, columns: list[ColumnFacts], first: int) -> list[PlanStep]:
        """Return the steps for columns of one kind; the first of them will have the index `first`."""
        if kind == "category":
            return [self._make_category_step(columns)]
        if kind in ("text", "strings"):
            return [self._make_string_step(kind, columns[0])]
        make_steps = {
            "binned": self._make_bin_steps,
            "date": self._make_date_steps,
            "number": _make_scale_steps,
        }
        return make_steps[kind](columns, first) if kind in make_steps else []

    def _make_category_step(self, columns: list[ColumnFacts]) -> PlanStep:
        """Return a step with one feature per frequent category, one for all others, and one if missing."""
        tables: list[dict[str, Any]] = []
        labels: list[str] = []
        for column in columns:
            frequent = column.categories(self.min_count)
            codes: dict[Any, int] = {key: len(labels) + index for index, key in enumerate(frequent)}
            other = len(labels) + len(frequent)
            codes |= {None: other + 1, float("nan"): other + 1}
            tables.append(steps.categories(codes, unknown=other))
            category_values = (
                [bool(key) for key in frequent] if column.is_boolean() else map(format_category, frequent)
            )
            labels += [f"{column.name} = {key}" for key in category_values]
            labels += [f"{column.name} = (other)", f"{column.name} is missing"]
        return steps.one_hot([column.index for column in columns], tables, labels)

    def _make_bin_steps(self, columns: list[ColumnFacts], first: int) -> list[PlanStep]:
        """Return the steps for numbers by intervals: one feature per interval of each division."""
        divisions: list[tuple[ColumnFacts, NDArray[np.float64]]] = []
        missing: list[int] = []
        labels: list[str] = []
        for column in columns:
            for index, edges in enumerate(self._divide(column.edges)):
                divisions.append((column, edges))
                labels += make_interval_labels(column.name, edges, are_integers=column.is_whole())
                # A missing number has one feature, which belongs to the first division.
                missing.append(steps.IGNORED if index else len(edges) + 1)
                labels += [] if index else [f"{column.name} is missing"]
        names = [column.name for column, _ in divisions]
        return [
            steps.numbers([column.index for column, _ in divisions], names),
            steps.bins(first, [edges for _, edges in divisions], missing, labels, columns=names),
        ]

    def _divide(self, find_edges: Callable[[int], NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return the edges of a range for each number of bins, coarse to fine, without repetitions."""
        divisions: list[NDArray[np.float64]] = []
        for n_bins in self._resolutions:
            edges = find_edges(n_bins)
            if not divisions or not np.array_equal(edges, divisions[-1]):
                divisions.append(edges)
        return divisions

    @property
    def _resolutions(self) -> list[int]:
        return sorted(set(self.n_bins) if isinstance(self.n_bins, tuple) else {self.n_bins})

    def _make_date_steps(self, columns: list[ColumnFacts], first: int) -> list[PlanStep]:
        """Return the steps for dates. Each part of dates that varies, such as the month, has features."""
        parts: list[tuple[ColumnFacts, int]] = []
        edges: list[NDArray[np.float64]] = []
        missing: list[int] = []
        labels: list[str] = []
        for column in columns:
            varying_parts = [part for part in range(len(steps.DATE_PARTS)) if column.date_part_differs(part)]
            intervals = [
                (part, part_edges, part_labels)
                for part in varying_parts or [0]
                for part_edges, part_labels in self._make_date_intervals(column, part)
            ]
            for index, (part, part_edges, part_labels) in enumerate(intervals):
                parts.append((column, part))
                edges.append(part_edges)
                labels += part_labels
                # A missing date has one feature, which belongs to the first part.
                missing.append(steps.IGNORED if index else len(part_labels))
                labels += [] if index else [f"{column.name} is missing"]
        names = [f"{column.name} {steps.DATE_PARTS[part]}" for column, part in parts]
        return [
            steps.dates([column.index for column, _ in parts], [part for _, part in parts], names),
            steps.bins(first, edges, missing, labels, columns=names),
        ]

    def _make_date_intervals(
        self, column: ColumnFacts, part: int
    ) -> list[tuple[NDArray[np.float64], list[str]]]:
        """Return edges and labels for a date part: by interval for years and days, by value for others."""
        name = f"{column.name} {steps.DATE_PARTS[part]}"
        if steps.DATE_PARTS[part] not in ("year", "day"):
            return [make_value_labels(name, steps.DATE_PARTS[part])]
        divisions = self._divide(partial(column.date_edges, part))
        if not len(divisions[-1]):
            return [(divisions[-1], [f"{column.name} is a date"])]
        return [(edges, make_interval_labels(name, edges, are_integers=True)) for edges in divisions]

    def _make_string_step(self, kind: str, column: ColumnFacts) -> PlanStep:
        """Return a step with one feature per frequent word or string, and one for missing values."""
        table = {"columns": steps.int32([column.index]), "binary": True}
        if kind == "text":
            table = steps.text_table(column.index)
        words = column.words(table, self.min_count) if kind == "text" else column.items(self.min_count)
        labels = [*(f"{column.name} has {word!r}" for word in words), f"{column.name} is missing"]
        table = table | steps.vocabulary(words, width=len(labels)) | {"missing": len(words)}
        return PlanStep(kind, table, labels)


def _convert_arrays(X: Any) -> Any:
    """Return arrays and lists of rows as two-dimensional arrays, and other records unchanged."""
    is_rows = isinstance(X, list) and X and not isinstance(X[0], Mapping)
    if is_rows or (hasattr(X, "__array__") and not hasattr(X, "columns")):
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: records are a "
                "frame, a list of dicts, a dict of columns, or an array of two dimensions"
            )
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        return array
    return X


def _make_scale_steps(columns: list[ColumnFacts], first: int) -> list[PlanStep]:
    """Return the steps for scaled numbers, which replace missing numbers by 0 and flag them."""
    deviations = [column.deviation() or 1.0 for column in columns]
    names = [column.name for column in columns]
    flags = [f"{name} is missing" for name in names]
    return [
        steps.numbers([column.index for column in columns], names),
        steps.impute(first, np.zeros(len(names)), names),
        steps.scale(first + 1, names, divide=deviations),
        steps.indicate(first, range(len(names)), flags),
        steps.concatenate([first + 2, first + 3], [*names, *flags]),
    ]
