"""Sparse rows that need only numpy.

Models and engines need the arrays of a sparse matrix, but no arithmetic. They store the arrays in
:class:`CsrRows`, and therefore load models and predict without scipy. :func:`canonical_rows` converts
matrices and arrays to such rows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

_LARGEST_INT32 = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class CsrRows:
    """Sparse rows in the form that the core reads, with the attributes of scipy's ``csr_matrix``.

    Attributes
    ----------
    indptr : (rows + 1,) int32 or int64
        The offset of each row in the entries.
    indices : (entries,) of the same type
        The column of each entry, strictly ascending within each row.
    data : (entries,) float64
        The value of each entry.
    shape : (rows, columns)

    Examples
    --------
    >>> rows = canonical_rows([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]])
    >>> rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
    ([0, 1, 1, 3], [1, 0, 1], [2.0, 3.0, 4.0])
    >>> rows[[2]].toarray()
    array([[3., 4.]])
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[np.float64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, indptr: Any, indices: Any, data: Any, n_columns: int) -> CsrRows:
        """Return rows made from valid arrays; indices become 32-bit integers if all of them fit."""
        narrow = len(indices) <= _LARGEST_INT32 and n_columns <= _LARGEST_INT32
        index_type = np.int32 if narrow else np.int64
        return cls(
            np.asarray(indptr, dtype=index_type),
            np.asarray(indices, dtype=index_type),
            np.asarray(data, dtype=np.float64),
            (len(indptr) - 1, int(n_columns)),
        )

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.data.nbytes)

    def row_of_entry(self) -> NDArray[np.intp]:
        """Return the row number of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def __getitem__(self, selection: Any) -> CsrRows:
        """Return the rows that a slice, a list of numbers or a mask selects."""
        if isinstance(selection, slice) and selection.step in (None, 1):
            begin, end, _ = selection.indices(self.shape[0])
            indptr = self.indptr[begin : max(begin, end) + 1]
            entries = slice(int(indptr[0]), int(indptr[-1]))
            return self._with(indptr - indptr[0], self.indices[entries], self.data[entries])
        row_numbers = np.arange(self.shape[0])[selection]
        if row_numbers.ndim != 1:
            raise IndexError("rows are selected by a slice, a list of numbers or a mask")
        lengths = np.diff(self.indptr)[row_numbers]
        indptr = np.zeros(len(row_numbers) + 1, self.indptr.dtype)
        np.cumsum(lengths, out=indptr[1:])
        # For each entry of the result, its position in the arrays of `self`.
        entry_numbers = np.repeat(self.indptr[:-1][row_numbers] - indptr[:-1], lengths) + np.arange(
            indptr[-1]
        )
        return self._with(indptr, self.indices[entry_numbers], self.data[entry_numbers])

    def _with(self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[np.float64]) -> CsrRows:
        return CsrRows(indptr, indices, data, (len(indptr) - 1, self.shape[1]))

    def filter_entries(self, entries: NDArray[np.bool_]) -> CsrRows:
        """Return rows that contain only the entries for which the mask is true."""
        n_kept_before = np.concatenate([[0], np.cumsum(entries)]).astype(self.indptr.dtype)
        return self._with(n_kept_before[self.indptr], self.indices[entries], self.data[entries])

    def select_columns(self, columns: NDArray[np.int64]) -> CsrRows:
        """Return rows with only the given columns, which must be ascending, renumbered from 0."""
        positions = np.searchsorted(columns, self.indices)
        is_selected = positions < len(columns)
        is_selected[is_selected] = columns[positions[is_selected]] == self.indices[is_selected]
        selected = self.filter_entries(is_selected)
        return CsrRows.of(selected.indptr, positions[is_selected], selected.data, len(columns))

    def sort_columns(self) -> CsrRows:
        """Return the same rows with the entries of each row sorted by column."""
        order = np.lexsort((self.indices, self.row_of_entry()))
        return self._with(self.indptr, self.indices[order], self.data[order])

    def multiply_transposed(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product of the transposed rows with a (rows, k) matrix, of shape (columns, k)."""
        row_of_entry = self.row_of_entry()
        result = np.empty((self.shape[1], matrix.shape[1]))
        for k in range(matrix.shape[1]):
            products = self.data * matrix[row_of_entry, k]
            result[:, k] = np.bincount(self.indices, weights=products, minlength=self.shape[1])
        return result

    def copy(self) -> CsrRows:
        """Return the same rows in new arrays."""
        return self._with(self.indptr.copy(), self.indices.copy(), self.data.copy())

    def toarray(self) -> NDArray[np.float64]:
        """Return the rows as a dense array."""
        result = np.zeros(self.shape)
        result[self.row_of_entry(), self.indices] = self.data
        return result

    def to_scipy(self) -> sparse.csr_matrix:
        """Return the rows as a scipy matrix that shares the arrays if possible."""
        from scipy import sparse

        arrays = (self.data, self.indices, self.indptr)
        matrix = sparse.csr_matrix(arrays, shape=self.shape, copy=False)
        matrix.has_sorted_indices = True
        matrix.has_canonical_format = True
        return matrix


def stack_rows(parts: Sequence[CsrRows]) -> CsrRows:
    """Return the rows of all parts in sequence; the result has as many columns as the widest part."""
    counts = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    return CsrRows.of(
        np.cumsum(counts, dtype=np.int64),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.data for part in parts]),
        max(part.shape[1] for part in parts),
    )


def narrow(rows: Any) -> CsrRows:
    """Return rows with 32-bit indices, for engines that only look up known columns.

    Larger column numbers become the largest 32-bit number, which is no known column. More than 2^31 entries
    raise a ``ValueError``.
    """
    if rows.nnz > _LARGEST_INT32:
        raise ValueError("rows with more than 2^31 entries are too many at once; split them")
    columns = np.minimum(rows.indices, _LARGEST_INT32)
    return CsrRows.of(rows.indptr, columns, rows.data, min(rows.shape[1], _LARGEST_INT32))


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array, without importing scipy."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(X))


def canonical_rows(X: Any) -> CsrRows:
    """Convert rows to canonical form: float64, sorted columns, no duplicates or zeros.

    Parameters
    ----------
    X : CsrRows, array or sparse matrix of shape (rows, columns)
        ``CsrRows`` are returned unchanged. A matrix in canonical form is not copied.
    """
    if isinstance(X, CsrRows):
        return X
    return _from_sparse(X) if is_sparse(X) else _from_dense(np.asarray(X, dtype=np.float64))


def _from_dense(X: NDArray[np.float64]) -> CsrRows:
    if len(X) == 1:  # a faster way for a single row
        row: NDArray[np.float64] = X[0]
        (columns,) = row.nonzero()
        return CsrRows.of(np.array([0, len(columns)]), columns, row[columns], len(row))
    is_nonzero = X != 0
    if is_nonzero.all():  # skips the slow search for nonzero columns
        columns = np.tile(np.arange(X.shape[1], dtype=np.int32), len(X))
        return CsrRows.of(X.shape[1] * np.arange(len(X) + 1), columns, X.flatten(), X.shape[1])
    indptr = np.zeros(len(X) + 1, np.int64)
    np.cumsum(np.count_nonzero(is_nonzero, axis=1), out=indptr[1:])
    return CsrRows.of(indptr, np.nonzero(is_nonzero)[1], X[is_nonzero], X.shape[1])


def _from_sparse(X: Any) -> CsrRows:
    check_sparse(X)
    matrix = X.asformat("csr")
    if matrix.dtype != np.float64:
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # do not change the caller's matrix
        matrix.sum_duplicates()
    indptr, indices = matrix.indptr, matrix.indices
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    end = indptr[-1]  # the arrays may have unused entries after the last row
    rows = CsrRows(indptr, indices[:end], matrix.data[:end], (int(matrix.shape[0]), int(matrix.shape[1])))
    return rows if rows.data.all() else rows.filter_entries(rows.data != 0)


# --- Malformed matrices -------------------------------------------------------------------------------


def check_sparse(X: Any) -> None:
    """Check a sparse matrix before scipy converts it: scipy accesses memory out of bounds if it is invalid.

    Raises
    ------
    ValueError
        If the arrays of the matrix do not match its shape or each other.
    """
    if not is_sparse(X):
        return
    if len(X.shape) != 2:
        raise ValueError(f"Found array with dim {len(X.shape)}: expected 2, rows and columns")
    if X.format in _COMPRESSED:
        _check_compressed(X)
    elif X.format == "coo":
        for indices, size, axis_name in ((X.row, X.shape[0], "row"), (X.col, X.shape[1], "column")):
            _check_length(X.data, indices)
            _check_indices(indices, size, axis_name)
    elif X.format == "lil" and _has_invalid_lists(X):
        raise ValueError("the sparse matrix is malformed: its lists do not fit its rows")


_COMPRESSED = ("csr", "csc", "bsr")


def _has_invalid_lists(X: Any) -> bool:
    if len(X.rows) != X.shape[0] or [*map(len, X.rows)] != [*map(len, X.data)]:
        return True
    return any(row and not 0 <= min(row) <= max(row) < X.shape[1] for row in X.rows)


def _check_compressed(X: Any) -> None:
    """Check a matrix in CSR, CSC or BSR format; its index pointer divides the entries along axis `major`."""
    major, minor = (1, 0) if X.format == "csc" else (0, 1)
    block = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if len(block) != 2 or 0 in block or any(X.shape[axis] % block[axis] for axis in (0, 1)):
        raise ValueError("the sparse matrix is malformed: its blocks do not fit its shape")
    offsets = X.indptr
    is_valid = _is_integral(offsets) and len(offsets) == X.shape[major] // block[major] + 1
    if not is_valid or offsets[0] != 0 or offsets[-1] > len(X.indices) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("the sparse matrix's index pointer does not fit its entries")
    _check_length(X.data, X.indices)
    _check_indices(X.indices[: offsets[-1]], X.shape[minor] // block[minor], ("row", "column")[minor])


def _is_integral(numbers: Any) -> bool:
    return isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype.kind in "iu"


def _check_length(values: Any, indices: Any) -> None:
    if len(values) != len(indices):
        raise ValueError(
            f"the sparse matrix is malformed: it has {len(values)} values and {len(indices)} indices"
        )


def _check_indices(indices: Any, size: int, axis_name: str) -> None:
    if not _is_integral(indices):
        raise ValueError(f"the sparse matrix is malformed: its {axis_name} indices are not integers")
    if len(indices) and not 0 <= indices.min() <= indices.max() < size:
        invalid = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(
            f"the sparse matrix is malformed: it has a {axis_name} {invalid}, and {size} {axis_name}s"
        )
