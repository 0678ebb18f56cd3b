"""Rows of data as the models here see them: canonical CSR matrices of float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from unkernel.data import SvmlightData, read_svmlight


def checked(X: Any, n_features: int, fixed_width: bool) -> sparse.csr_matrix:
    """Rows that a model was asked about, refused if they do not have its columns and it has to have them."""
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0, ensure_min_features=0)
    if fixed_width and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model was trained on {n_features}")
    return canonical(X)


def canonical(X: Any) -> sparse.csr_matrix:
    """Sorted, without repeated or zero entries."""
    if sparse.issparse(X) and X.format == "csr" and X.dtype == np.float64 and X.has_canonical_format:
        matrix = X
    else:
        matrix = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
    if not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def csr(
    offsets: NDArray[Any], columns: NDArray[Any], values: NDArray[np.float64], n_features: int
) -> sparse.csr_matrix:
    """A CSR matrix of arrays that are known to be canonical."""
    matrix = sparse.csr_matrix((values, columns, offsets), shape=(len(offsets) - 1, n_features), copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def only_columns(X: sparse.csr_matrix, columns: NDArray[np.int64]) -> sparse.csr_matrix:
    """The given columns of X, which ascend, numbered from 0. X may be as wide as a file's index 10^18."""
    place = np.searchsorted(columns, X.indices)
    known = place < len(columns)
    known[known] = columns[place[known]] == X.indices[known]
    row_of_entry = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return sparse.csr_matrix((X.data[known], (row_of_entry[known], place[known])), (X.shape[0], len(columns)))


def inner_products(X: sparse.csr_matrix, Z: sparse.csr_matrix) -> NDArray[np.float64]:
    """The products x'z for each row of X and of Z, whatever their widths."""
    used = np.unique(Z.indices)
    products: NDArray[np.float64] = (only_columns(X, used) @ only_columns(Z, used).T).toarray()
    return products


def squared_distances(X: sparse.csr_matrix, Z: sparse.csr_matrix) -> NDArray[np.float64]:
    """|x - z|^2 for each row of X and of Z: squares that are added, and none that are taken away.

    |x|^2 + |z|^2 - 2 x'z would be faster, and wrong where rows are far from 0 and near each other.
    """
    result = np.empty((X.shape[0], Z.shape[0]))
    row_of_entry = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))
    for place in range(X.shape[0]):
        x = X[place]
        shared = only_columns(Z, x.indices).toarray()
        others = ~np.isin(Z.indices, x.indices)
        rest = np.bincount(row_of_entry[others], Z.data[others] ** 2, Z.shape[0])
        result[place] = ((x.data - shared) ** 2).sum(axis=1) + rest
    return result


def squared_norms(X: sparse.csr_matrix) -> NDArray[np.float64]:
    """|x|^2 for each row."""
    row_of_entry = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    norms = np.bincount(row_of_entry, weights=X.data**2, minlength=X.shape[0])
    return norms.astype(np.float64, copy=False)


def read_for(
    model: Any, source: Any, zero_based: bool | None = None, n_jobs: int | None = None
) -> SvmlightData:
    """Rows of an svmlight file whose columns are the model's: numbered as told, else as in training.

    Other programs take an index for a name. So where nothing is told, index 7 of the rows is index 7 of such
    a program's model, and an index 0 that its model does not have is just one more unknown feature.
    """
    noted = model.origin.get("zero_based")
    by_name = zero_based is None and noted is False and not model.fixed_width
    trained = noted if isinstance(noted, bool) and not by_name else None
    known = trained if zero_based is None else zero_based
    rows = read_svmlight(source, zero_based="auto" if known is None else known, n_jobs=n_jobs)
    return replace(rows, X=_counted_from_one(rows.X)) if by_name and rows.zero_based else rows


def _counted_from_one(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Columns 1, 2, .. become 0, 1, ..; column 0 moves behind all others."""
    columns = np.where(X.indices == 0, X.shape[1], X.indices) - 1
    shifted = sparse.csr_matrix((X.data, columns, X.indptr), shape=X.shape)
    shifted.sort_indices()
    return shifted
