"""Check the rows that callers pass, like scikit-learn's ``check_array``, but without scikit-learn."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows, canonical_rows, check_sparse, is_sparse

_DOUBLE_BYTES = 8


def check_rows(X: Any, *, min_rows: int = 1, min_columns: int = 1) -> CsrRows:
    """Check that rows are a table of finite numbers, and return them in canonical form.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (rows, columns)
        Numbers, or values that numpy converts to numbers.

    Raises
    ------
    ValueError, TypeError
        If X does not have two dimensions, has too few rows or columns, or has a value that is not a finite
        real number.
    """
    if isinstance(X, CsrRows):
        return X
    plain = plain_rows(X)
    if plain is not None:
        return plain
    check_inputs(X)
    table = _unwrap_frame(X)
    if not is_sparse(table):
        table = _to_array(table)
    _check_shape(table.shape, min_rows, min_columns)
    _check_real(table.dtype)
    rows = canonical_rows(table)
    _check_finite(rows.data)
    return rows


def plain_rows(X: Any, width: int | None = None) -> CsrRows | None:
    """Return rows in canonical form if they are a plain table of finite numbers; otherwise None.

    If `width` is given, the table must have this number of columns. For any other table, the caller must use
    :func:`check_rows`, which takes many times longer than predicting one row.

    >>> plain_rows(np.array([[0.0, 2.0]])).indices.tolist()
    [1]
    >>> plain_rows([[0.0, float("nan")]]) is None
    True
    """
    if is_sparse(X):
        table = X if X.format == "csr" and X.dtype == np.float64 else None
    else:
        table = X if type(X) is np.ndarray else _from_list(X)  # subclasses of ndarray may behave differently
    if table is None or table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiub":
        return None
    if table.dtype.itemsize > _DOUBLE_BYTES or table.shape[1] != (width or table.shape[1]):
        return None
    rows = canonical_rows(table)
    return rows if np.isfinite(rows.data).all() else None


def _from_list(X: Any) -> NDArray[Any] | None:
    """Return a list of lists as an array; None for any other object, and if numpy cannot convert it."""
    if type(X) is not list or not X or type(X[0]) is not list:
        return None
    try:
        return np.asarray(X)
    except (ValueError, TypeError, OverflowError):  # check_rows will raise an error that gives the reason
        return None


def check_inputs(*inputs: Any) -> None:
    """Raise an error for malformed sparse matrices and masked values, which scikit-learn does not check."""
    for X in inputs:
        check_sparse(X)
        if isinstance(X, np.ma.MaskedArray) and X.mask.any():
            raise ValueError("masked values are missing values: leave them out, or fill them in (X.filled)")
        if getattr(X, "ndim", 0) == 2 and isinstance(getattr(X, "dtype", None), np.dtype):
            _check_real(X.dtype)


def _unwrap_frame(X: Any) -> Any:
    """Return the table of a data frame; missing values become NaN, and sparse columns remain sparse."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        return X
    if len(X.columns) and all(isinstance(dtype, pandas.SparseDtype) for dtype in X.dtypes):
        return X.sparse.to_coo()
    has_numpy_types = all(isinstance(dtype, np.dtype) for dtype in X.dtypes)
    return X.to_numpy() if has_numpy_types else X.to_numpy(na_value=np.nan)


def _to_array(X: Any) -> NDArray[Any]:
    if isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported: convert it to an array with np.asarray")
    array = np.asarray(X)
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {'scalar' if array.ndim == 0 else '1D'} array instead: give a row as "
            "[row], or a column as X.reshape(-1, 1)"
        )
    return array


def _check_shape(shape: tuple[int, ...], min_rows: int, min_columns: int) -> None:
    if len(shape) != 2:
        raise ValueError(f"Found array with dim {len(shape)}: expected 2, rows and columns")
    for count, minimum, unit in ((shape[0], min_rows, "sample"), (shape[1], min_columns, "feature")):
        if count < minimum:
            raise ValueError(
                f"Found array with {count} {unit}(s) (shape={shape}) while a minimum of {minimum} is required"
            )


def _check_real(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if dtype.kind in "Mm":
        raise ValueError("Dates and times are not numbers: convert them, for example to days since a date")


def _check_finite(values: NDArray[np.float64]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        # A fast pass first. A sum of finite values may overflow; only then are the slower checks needed.
        if np.isfinite(values.sum()):
            return
    if np.isnan(values).any():
        raise ValueError("Input X contains NaN: leave missing values out or fill them in")
    if np.isinf(values).any():
        raise ValueError("Input X contains infinity or a value too large for float64")
