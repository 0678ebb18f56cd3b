"""Read tables of records: frames, Arrow tables, lists of dicts, dicts of columns, arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """Columns of equal length; each is a float64 array, a stream of Arrow arrays, or a list of objects."""

    columns: list[Any]
    n_rows: int


def is_arrow(X: Any) -> bool:
    """Return whether a table exports Arrow columns without conversion; pandas frames do not."""
    return hasattr(X, "__arrow_c_stream__") and not type(X).__module__.startswith("pandas")


def get_column_names(X: Any) -> list[str] | None:
    """Return the names of a table's columns; None for arrays, whose columns have no names."""
    if isinstance(X, Mapping):
        _check_names(list(X))
        return list(X)
    names = getattr(X, "columns", None)
    if names is not None and not callable(names):
        labels = list(getattr(X, "column_names", names))  # pyarrow has arrays in `columns`, not names
        _check_names(labels)
        return labels
    if isinstance(X, Sequence) and not isinstance(X, str) and len(X) and isinstance(X[0], Mapping):
        keys: dict[str, None] = {}
        for record in X:
            if not isinstance(record, Mapping):
                raise TypeError(
                    f"a list of records must hold dicts, and has a value of type {type(record).__name__}"
                )
            keys.update(dict.fromkeys(record))
        _check_names(list(keys))
        return list(keys)
    return None


def _check_names(names: list[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"the names of columns must be strings, and there is {name!r}: rename the columns, for a "
                "data frame by frame.columns = frame.columns.astype(str)"
            )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns have the name {repeated!r}")


def make_table(
    X: Any,
    columns: Sequence[str],
    *,
    whole: bool = False,
    required: Sequence[str] = (),
    nan: bool = False,
) -> Table:
    """Return a table of the named columns. An array must have exactly these columns, in this order.

    Parameters
    ----------
    X : records
    columns : sequence of str
    whole : bool, default=False
        Whether each record is a single value, such as a text.
    required : sequence of str
        Columns that must exist; other missing columns count as missing values.
    nan : bool, default=False
        Whether missing strings in pandas columns must remain NaN. Otherwise they may become None.
    """
    if whole:
        records = X.tolist() if hasattr(X, "tolist") else list(X)
        return Table([records], len(records))
    if isinstance(X, Mapping):
        _check_columns(X, columns)
        sized = [value for value in X.values() if hasattr(value, "__len__") and not isinstance(value, str)]
        n_rows = len(sized[0]) if sized else 0
        values = [X.get(name) for name in columns]
        return _complete_table(values, columns, n_rows=n_rows, required=required, nan=nan)
    if getattr(X, "columns", None) is not None and not callable(X.columns):
        present = set(get_column_names(X) or ())
        values = [X[name] if name in present else None for name in columns]
        return _complete_table(values, columns, n_rows=len(X), required=required, nan=nan)
    if isinstance(X, Sequence) and not isinstance(X, str) and (not len(X) or isinstance(X[0], Mapping)):
        _ = get_column_names(X)  # checks that all records are dicts
        return _make_table_of_records(X, columns, required=required)
    return _make_table_of_array(X, columns)


def _check_columns(X: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Raise a ``TypeError`` if a dict is a record instead of a dict of columns."""
    for name in columns:
        value = X.get(name)
        if value is not None and (isinstance(value, str) or not hasattr(value, "__len__")):
            raise TypeError(
                f"a dict of columns must hold lists or arrays, and {name!r} is a value of type "
                f"{type(value).__name__}: put a single record into a list, or use the methods for one"
            )


def check_no_unknown_columns(X: Any, columns: Sequence[str]) -> None:
    """Raise a ``ValueError`` if a table or a record has a column that is not in `columns`."""
    known_names = set(columns)
    unknown = next((name for name in get_column_names(X) or () if name not in known_names), None)
    if unknown is None:
        return
    owner = "the table"
    if isinstance(X, Sequence):
        owner = f"record {next(number for number, record in enumerate(X) if unknown in record)}"
    raise ValueError(f"{owner} has a column {unknown!r} that the model does not know")


def _make_table_of_records(
    X: Sequence[Mapping[str, Any]], columns: Sequence[str], *, required: Sequence[str]
) -> Table:
    for number, record in enumerate(X if required else ()):
        for name in required:
            if name not in record:
                raise ValueError(f"record {number} has no column {name!r}")
    return Table([[record.get(name) for record in X] for name in columns], len(X))


def _make_table_of_array(X: Any, columns: Sequence[str]) -> Table:
    array = np.asarray(X) if not isinstance(X, np.ndarray) else X
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: records are a frame, a list of dicts, a "
            "dict of columns, or an array of two dimensions. Reshape your data"
        )
    if array.shape[1] != len(columns):
        raise ValueError(
            f"X has {array.shape[1]} features, but the plan is expecting {len(columns)} features as input"
        )
    return Table([_convert_column(array[:, k]) for k in range(len(columns))], len(array))


def _complete_table(
    columns: list[Any], names: Sequence[str], *, n_rows: int, required: Sequence[str], nan: bool
) -> Table:
    """Return a table with missing columns (None) filled in; `n_rows` applies if all columns are missing."""
    lengths = {len(column) for column in columns if column is not None}
    if len(lengths) > 1:
        raise ValueError(f"the columns have different lengths: {', '.join(map(str, sorted(lengths)))}")
    present = {name for name, column in zip(names, columns, strict=True) if column is not None}
    missing = [name for name in required if name not in present]
    if missing:
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    n_rows = lengths.pop() if lengths else n_rows
    converted = [
        [None] * n_rows if column is None else _convert_column(column, nan=nan) for column in columns
    ]
    return Table(converted, n_rows)


def _convert_column(values: Any, *, nan: bool = False) -> Any:
    """Convert numbers to a float64 array, Arrow strings to an Arrow array, and other columns to a list."""
    if isinstance(values, list):
        return list(values)  # copy the list: another thread may change it during encoding
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind == "M":  # `tolist` would return integers or pandas timestamps
        return list(
            values.to_numpy("datetime64[s]") if hasattr(values, "to_numpy") else values.astype("M8[s]")
        )
    if getattr(dtype, "storage", None) == "pyarrow":
        return _convert_strings(values, nan=nan)
    if hasattr(dtype, "na_value") and hasattr(values, "to_numpy"):
        return _convert_nullable(values)
    return (
        np.ascontiguousarray(np.asarray(values), dtype=np.float64)
        if kind in ("i", "u", "f")
        else _to_list(values)
    )


def _to_list(values: Any) -> list[Any]:
    # pandas and polars, pyarrow, and numpy each have another of these methods.
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _convert_strings(values: Any, *, nan: bool) -> Any:
    """Return the Arrow array of a pandas column, or a list if missing values must remain NaN."""
    if nan and isinstance(values.dtype.na_value, float) and values.hasnans:
        return _to_list(values.to_numpy(dtype=object))
    return values.array.__arrow_array__()


def _convert_nullable(values: Any) -> NDArray[np.float64] | list[Any]:
    """Convert a pandas column in which missing values are pandas.NA."""
    if getattr(values.dtype, "kind", None) in ("i", "u", "f"):
        numbers: NDArray[np.float64] = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.ascontiguousarray(numbers)
    if isinstance(values.dtype.na_value, float):  # missing values are NaN
        return list(values.to_numpy(dtype=object).tolist())
    return list(values.to_numpy(dtype=object, na_value=None).tolist())
