"""Rows of data as the models here see them: canonical CSR matrices of float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array


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


def inner_products(X: sparse.csr_matrix, Z: sparse.csr_matrix) -> NDArray[np.float64]:
    """The products x'z for each row of X and of Z, whatever their widths.

    Columns are renumbered to those that Z uses: a transposed matrix takes memory for all of its columns, and
    a file may use index 10^18.
    """
    used = np.unique(Z.indices)
    narrow_Z = sparse.csr_matrix(
        (Z.data, np.searchsorted(used, Z.indices), Z.indptr), (Z.shape[0], len(used))
    )
    place = np.searchsorted(used, X.indices)
    known = place < len(used)
    known[known] = used[place[known]] == X.indices[known]
    row_of_entry = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    narrow_X = sparse.csr_matrix(
        (X.data[known], (row_of_entry[known], place[known])), (X.shape[0], len(used))
    )
    products: NDArray[np.float64] = (narrow_X @ narrow_Z.T).toarray()
    return products


def squared_distances(X: sparse.csr_matrix, Z: sparse.csr_matrix) -> NDArray[np.float64]:
    """|x - z|^2 for each row of X and of Z, difference by difference.

    |x|^2 + |z|^2 - 2 x'z would be faster, and wrong where rows are far from 0 and near each other.
    """
    used = np.union1d(X.indices, Z.indices)
    dense_X, dense_Z = (
        sparse.csr_matrix((M.data, np.searchsorted(used, M.indices), M.indptr), (M.shape[0], len(used)))
        for M in (X, Z)
    )
    result = np.empty((X.shape[0], Z.shape[0]))
    others = dense_Z.toarray()
    for place in range(X.shape[0]):
        result[place] = ((dense_X[place].toarray() - others) ** 2).sum(axis=1)
    return result


def squared_norms(X: sparse.csr_matrix) -> NDArray[np.float64]:
    """|x|^2 for each row."""
    row_of_entry = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    norms = np.bincount(row_of_entry, weights=X.data**2, minlength=X.shape[0])
    return norms.astype(np.float64, copy=False)
