"""``RecordEncoder``: makes a plan from data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from unkernel.data.rows.csr import is_sparse
from unkernel.data.threads import thread_count
from unkernel.records import steps
from unkernel.records.analyzing import analyzer_of
from unkernel.records.labels import interval_labels
from unkernel.records.plan import Plan, PlanStep
from unkernel.records.tables import Table, column_names, table_of

KINDS = ("category", "number", "binned", "text", "strings", "drop")
_SHARED = ("category", "number", "binned")  # kinds of which one step encodes all columns
_WORDS_IN_TEXT = 4.0  # strings with more words than this, on average, are texts


class RecordEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns raw records into sparse rows of features.

    Each column becomes features of one kind: categories one feature per value, numbers one feature per
    interval, texts one feature per word, lists of strings one feature per string. A missing value (None, NaN,
    or a key that a record lacks) has a feature of its own. What was learned is a plan, which
    ``unkernel.compile`` puts into the model's file.

    Parameters
    ----------
    kinds : dict, default=None
        The kind of each column that should not be guessed: ``"category"``, ``"binned"`` (a number, by
        intervals), ``"number"`` (a number as it is, divided by its standard deviation), ``"text"``,
        ``"strings"`` (a list of strings) or ``"drop"``.
    n_bins : int, default=16
        Intervals per number. Each holds about the same number of training records, except that a frequent
        value has an interval of its own.
    min_count : int, default=3
        Categories and words that fewer training records have get no feature of their own: such categories,
        and those that were not seen at all, share one; such words are ignored.
    n_jobs : int, default=None
        Threads; None means one, -1 all cores.

    Attributes
    ----------
    plan_ : Plan
        How records become rows.
    kinds_ : dict
        The kind of each column.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        The names of the columns, where there are any.

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
        "n_bins": [Interval(Integral, 2, 1000, closed="both")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        n_bins: int = 16,
        min_count: int = 3,
        n_jobs: int | None = None,
    ) -> None:
        self.kinds = kinds
        self.n_bins = n_bins
        self.min_count = min_count
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the kinds of the columns, their categories, intervals and words.

        Parameters
        ----------
        X : frame, list of dicts, dict of columns, or array of two dimensions
        y : ignored
        """
        self._fit_table(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and give the rows of the same records, which are read once."""
        table = self._fit_table(X)
        return self.plan_.encode_table(table, thread_count(self.n_jobs)).to_scipy()

    def _fit_table(self, X: Any) -> Table:
        names, table = self._read(X)
        if table.n_rows == 0:
            raise ValueError(
                "Found array with 0 sample(s) (shape=(0, ...)) while a minimum of 1 is required."
            )
        if not names:
            raise ValueError(f"0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required.")
        self._check_kinds(names)
        given = self.kinds or {}
        self.kinds_ = {
            name: given.get(name) or kind_of(name, values)
            for name, values in zip(names, table.columns, strict=True)
        }
        self.n_features_in_ = len(names)
        self.plan_ = self._plan(names, table)
        return table

    def transform(self, X: Any) -> Any:
        """The rows of records.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_records, n_features_out)
        """
        check_is_fitted(self)
        if is_sparse(X):
            raise TypeError("Sparse data was passed, but records are frames, dicts or dense arrays.")
        X = _checked_array(X)
        if isinstance(X, np.ndarray) and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return self.plan_.encode(X, thread_count(self.n_jobs)).to_scipy()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """A label for each feature, such as ``"job = pilot"`` or ``"age in [35, 44)"``."""
        check_is_fitted(self)
        return np.array(self.plan_.feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _read(self, X: Any) -> tuple[list[str], Table]:
        if is_sparse(X):
            raise TypeError("Sparse data was passed, but records are frames, dicts or dense arrays.")
        X = _checked_array(X)
        names = column_names(X)
        if names is None:
            width = np.shape(X)[1] if np.ndim(X) == 2 else 0
            self.__dict__.pop("feature_names_in_", None)
            names = [f"x{k}" for k in range(width)]
        else:
            self.feature_names_in_ = np.array(names, dtype=object)
        return names, table_of(X, names)

    def _check_kinds(self, names: Sequence[str]) -> None:
        for name, kind in (self.kinds or {}).items():
            if name not in names:
                raise ValueError(f"kinds names a column {name!r} that X does not have")
            if kind not in KINDS:
                raise ValueError(
                    f"the kind of column {name!r} is {kind!r}, and must be one of {', '.join(KINDS)}"
                )

    def _plan(self, names: Sequence[str], table: Table) -> Plan:
        """Columns of one kind share a step: records are then encoded in few, short loops."""
        made: list[PlanStep] = []
        parts: list[int] = []
        by_kind: dict[str, list[int]] = {}
        for column, name in enumerate(names):
            by_kind.setdefault(self.kinds_[name], []).append(column)
        for kind in KINDS:
            columns = by_kind.get(kind, [])
            groups = [columns] if kind in _SHARED else [[column] for column in columns]
            for group in groups:
                added = self._steps_of(kind, group, names, table, len(made)) if group else []
                made += added
                parts += [len(made) - 1] if added else []
        if not parts:
            raise ValueError("every column is dropped: nothing is left to learn from")
        labels = [label for part in parts for label in made[part].names]
        return Plan(list(names), [*made, steps.concatenate(parts, labels)])

    def _steps_of(
        self, kind: str, columns: list[int], names: Sequence[str], table: Table, first: int
    ) -> list[PlanStep]:
        """The steps of some columns of one kind, of which the first will have this number."""
        named = [(names[column], table.columns[column]) for column in columns]
        if kind == "category":
            return [self._categories(columns, named)]
        if kind == "binned":
            return self._bins(columns, named, first)
        if kind == "number":
            return _scaled(columns, named, first)
        if kind == "text":
            return [self._text(columns[0], *named[0])]
        if kind == "strings":
            return [self._strings(columns[0], *named[0])]
        return []

    def _categories(self, columns: list[int], named: list[tuple[str, Any]]) -> PlanStep:
        tables: list[dict[str, Any]] = []
        labels: list[str] = []
        for name, values in named:
            counts = _category_counts(name, values)
            frequent = sorted((key for key in counts if counts[key] >= self.min_count), key=_order)
            codes: dict[Any, int] = {key: len(labels) + place for place, key in enumerate(frequent)}
            rest = len(labels) + len(frequent)
            codes |= {None: rest + 1, float("nan"): rest + 1}
            tables.append(steps.categories(codes, unknown=rest))
            labels += [f"{name} = {_shown(key)}" for key in frequent]
            labels += [f"{name} = (other)", f"{name} is missing"]
        return steps.one_hot(columns, tables, labels)

    def _bins(self, columns: list[int], named: list[tuple[str, Any]], first: int) -> list[PlanStep]:
        edges = [quantile_edges(_numbers(name, values), self.n_bins) for name, values in named]
        labels = []
        for (name, _), own in zip(named, edges, strict=True):
            labels += [*interval_labels(name, own), f"{name} is missing"]
        names = [name for name, _ in named]
        missing = [len(own) + 1 for own in edges]
        return [
            steps.numbers(columns, names),
            steps.bins(first, edges, missing, labels, columns=names),
        ]

    def _text(self, column: int, name: str, values: Any) -> PlanStep:
        table = steps.text_table(column)
        analyze = analyzer_of(table)
        counts: Counter[str] = Counter()
        for value in values:
            if not is_missing(value):
                counts.update(set(analyze(_text_of(name, value))))
        return self._words("text", name, counts, table)

    def _strings(self, column: int, name: str, values: Any) -> PlanStep:
        counts: Counter[str] = Counter()
        for value in values:
            if not is_missing(value):
                counts.update(_strings_of(name, value))
        return self._words("strings", name, counts, {"columns": steps.int32([column]), "binary": True})

    def _words(self, kind: str, name: str, counts: Counter[str], table: dict[str, Any]) -> PlanStep:
        """A step with one feature per frequent word, and one for a missing value."""
        words = sorted(word for word in counts if counts[word] >= self.min_count)
        labels = [*(f"{name} has {word!r}" for word in words), f"{name} is missing"]
        table = table | steps.vocabulary(words, width=len(labels)) | {"missing": len(words)}
        return PlanStep(kind, table, labels)


def _checked_array(X: Any) -> Any:
    """Arrays and lists of rows as arrays of two dimensions; records stay what they are."""
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


def kind_of(name: str, values: Any) -> str:
    """The kind of a column, from its values."""
    if isinstance(values, np.ndarray):
        return "binned"
    kinds = set(map(type, values)) - {type(None)}
    if any(issubclass(kind, float) for kind in kinds):  # of which NaN says nothing
        kinds = {type(value) for value in values if not is_missing(value)}
    if not kinds or all(issubclass(kind, bool) for kind in kinds):
        return "category"
    if all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return "binned"
    if all(issubclass(kind, str) for kind in kinds):
        counts = Counter(values)
        seen = {value: count for value, count in counts.items() if isinstance(value, str)}
        words = sum(count * (value.count(" ") + 1) for value, count in seen.items())
        total = sum(seen.values())
        return "text" if words > _WORDS_IN_TEXT * total and 2 * len(seen) > total else "category"
    if all(issubclass(kind, (list, tuple, set, frozenset)) for kind in kinds):
        return "strings"
    if all(issubclass(kind, (str, int, float, bool, np.number)) for kind in kinds):
        return "category"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(
        f"column {name!r} holds values of type {names}, which have no features: turn them into numbers or "
        f"strings, or leave the column out: kinds={{{name!r}: 'drop'}}"
    )


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _category(name: str, value: Any) -> Any:
    """A value as a key: missing values are None, numbers that are whole are equal to their ints."""
    if is_missing(value):
        return None
    if not isinstance(value, (str, int, float, np.number, np.bool_)):
        raise TypeError(f"column {name!r} is a category, and holds a {type(value).__name__}")
    return value if isinstance(value, str) else _as_float(name, value)


def _category_counts(name: str, values: Any) -> Counter[Any]:
    """How often each category is there; missing values are none."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    try:
        found = Counter(listed)
    except TypeError:  # a list, say, which _category names
        found = Counter(_category(name, value) for value in listed)
    counts: Counter[Any] = Counter()
    for value, count in found.items():
        counts[_category(name, value)] += count
    counts.pop(None, None)
    return counts


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"column {name!r} holds a number that is larger than any float") from None


def _order(key: Any) -> tuple[bool, Any]:
    return (isinstance(key, str), key)


def _shown(key: Any) -> str:
    if isinstance(key, float) and key.is_integer():
        return str(int(key))
    return str(key)


def _text_of(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"column {name!r} is a text, and holds a {type(value).__name__}")
    return value


def _strings_of(name: str, value: Any) -> set[str]:
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"column {name!r} is a list of strings, and holds a {type(value).__name__}")
    for item in value:
        if not isinstance(item, str):
            raise TypeError(f"column {name!r} is a list of strings, and one holds a {type(item).__name__}")
    return set(value)


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    """The values that are not missing."""
    try:
        numbers = values
        if not isinstance(values, np.ndarray):
            numbers = [np.nan if value is None else value for value in values]
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"column {name!r} is a number, and holds something else: {error}") from error
    found = array[~np.isnan(array)]
    if not np.isfinite(found).all():
        raise ValueError(f"Input X contains infinity: column {name!r}")
    return found


def quantile_edges(values: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    """Ascending edges of intervals that hold about equally many of the values.

    A value that is more frequent than an interval should be gets one of its own, and the others are shared
    among what is left.
    """
    distinct, counts = (found.tolist() for found in np.unique(values, return_counts=True))
    edges = []
    left, room, filled = len(values), n_bins, 0
    for place in range(len(distinct) - 1):
        filled += counts[place]
        if room > 1 and (filled + 0.5 * counts[place + 1]) * room >= left:
            edges.append(_between(distinct[place], distinct[place + 1]))
            left, room, filled = left - filled, room - 1, 0
    return np.array(edges, dtype=np.float64)


def _between(low: float, high: float) -> float:
    """A number above `low` and not above `high`, also where there is none between them."""
    middle = 0.5 * low + 0.5 * high  # low + high may be infinite
    return float(middle if middle > low else high)


def _scaled(columns: list[int], named: list[tuple[str, Any]], first: int) -> list[PlanStep]:
    deviations = []
    for name, values in named:
        found = _numbers(name, values)
        deviation = float(np.std(found)) if len(found) else 0.0
        deviations.append(deviation if deviation > 0 else 1.0)
    names = [name for name, _ in named]
    flags = [f"{name} is missing" for name in names]
    return [
        steps.numbers(columns, names),
        steps.impute(first, np.zeros(len(names)), names),
        steps.scale(first + 1, names, divide=deviations),
        steps.indicate(first, range(len(names)), flags),
        steps.concatenate([first + 2, first + 3], [*names, *flags]),
    ]
