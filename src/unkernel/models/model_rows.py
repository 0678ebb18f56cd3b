"""Check rows of data for models, and compute with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.data.rows.row_checks import check_rows

if TYPE_CHECKING:
    from scipy import sparse

    from unkernel.data import SvmlightData


def check_model_rows(X: Any, n_features: int, fixed_width: bool) -> CsrRows:
    """Return checked rows for a model; if the width is fixed, it is checked as well."""
    rows = check_rows(X, min_rows=0, min_columns=0)
    check_width(rows, n_features, fixed_width)
    return rows


def check_width(rows: CsrRows, n_features: int, fixed_width: bool) -> None:
    """Check that rows have `n_features` columns if `fixed_width` is true."""
    if fixed_width and rows.shape[1] != n_features:
        raise ValueError(f"X has {rows.shape[1]} features, but the model was trained on {n_features}")


def distinct(columns: NDArray[Any]) -> NDArray[np.int64]:
    """Return the distinct columns in ascending order.

    ``np.unique`` would import ``numpy.ma``, which takes 20 ms.

    >>> distinct(np.array([5, 1, 5])).tolist()
    [1, 5]
    """
    ordered = np.sort(columns).astype(np.int64, copy=False)
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def inner_products(X: CsrRows, Z: CsrRows) -> NDArray[np.float64]:
    """Return the products x'z of all rows x of X and z of Z, which may have different widths."""
    used = distinct(Z.indices)
    left, right = X.select_columns(used).to_scipy(), Z.select_columns(used).to_scipy()
    products: NDArray[np.float64] = (left @ right.T).toarray()
    return products


def compute_squared_distances(X: CsrRows, Z: CsrRows) -> NDArray[np.float64]:
    """Return |x - z|^2 for all rows x of X and z of Z, computed as sums of squared differences.

    The formula |x|^2 + |z|^2 - 2 x'z is faster, but inexact if rows are far from 0 and close together.
    """
    result = np.empty((X.shape[0], Z.shape[0]))
    row_of_entry = Z.row_of_entry()
    for index in range(X.shape[0]):
        x = X[index : index + 1]
        shared = Z.select_columns(x.indices.astype(np.int64)).toarray()
        is_other = ~np.isin(Z.indices, x.indices)
        other_squares = np.bincount(row_of_entry[is_other], Z.data[is_other] ** 2, Z.shape[0])
        result[index] = ((x.data - shared) ** 2).sum(axis=1) + other_squares
    return result


def compute_squared_norms(X: CsrRows) -> NDArray[np.float64]:
    """Return |x|^2 of each row."""
    norms = np.bincount(X.row_of_entry(), weights=X.data**2, minlength=X.shape[0])
    return norms.astype(np.float64, copy=False)


def read_for(
    model: Any, source: Any, zero_based: bool | None = None, n_jobs: int | None = None
) -> SvmlightData:
    """Return the rows of an svmlight file for a model; by default, indices start as in training.

    Models of other programs refer to features by their indices in files. If such a model counts from 1, an
    index 0 in the rows is an unknown feature.
    """
    from unkernel.data.rows.svmlight import read_svmlight

    trained_zero_based = model.origin.get("zero_based")
    keeps_indices = zero_based is None and trained_zero_based is False and not model.fixed_width
    if zero_based is None and isinstance(trained_zero_based, bool) and not keeps_indices:
        zero_based = trained_zero_based
    rows = read_svmlight(source, zero_based="auto" if zero_based is None else zero_based, n_jobs=n_jobs)
    return replace(rows, X=_shift_to_zero(rows.X)) if keeps_indices and rows.zero_based else rows


def _shift_to_zero(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return rows in which columns 1, 2, ... have become 0, 1, ..., and column 0 has become the last."""
    columns = np.where(X.indices == 0, X.shape[1], X.indices) - 1
    from scipy import sparse

    shifted = sparse.csr_matrix((X.data, columns, X.indptr), shape=X.shape)
    shifted.sort_indices()
    return shifted
