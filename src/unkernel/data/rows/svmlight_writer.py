"""Write the svmlight (LIBSVM) text format; docs/formats/svmlight.md describes it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from unkernel._core import format_svmlight
from unkernel.data.files import Source, open_writer
from unkernel.data.rows.csr import CsrRows, is_sparse
from unkernel.data.rows.row_checks import check_rows

_LARGEST_EXACT_INTEGER = 2**53
_ITEMS_PER_WRITE = 1 << 17


def write_svmlight(
    path_or_file: Source,
    X: Any,
    y: npt.ArrayLike,
    *,
    qid: npt.ArrayLike | None = None,
    zero_based: bool = False,
    comment: str | None = None,
) -> None:
    """Write rows in the svmlight (LIBSVM) format.

    Numbers are written with enough digits: reading the file gives exactly the same values.

    Parameters
    ----------
    path_or_file : path, or open binary or text file
        The file to write. The suffix of a path selects the compression: .gz, .xz, .bz2 or .zst. An existing
        file is replaced in one step, or left unchanged if writing fails.
    X : array or sparse matrix of shape (n_rows, n_features)
        Finite numbers. Zeros are not written. If the last columns contain only zeros, set ``n_features`` when
        you read the file.
    y : array of shape (n_rows,)
        Finite labels.
    qid : array of int of shape (n_rows,), default=None
        Query numbers.
    zero_based : bool, default=False
        Whether the first column has the number 0 instead of 1. Read such a file with ``zero_based=True``.
    comment : str, default=None
        Text to write at the beginning of the file, with a ``#`` before each line.

    See Also
    --------
    read_svmlight : Read such a file.

    Examples
    --------
    >>> import io
    >>> from unkernel import write_svmlight
    >>> file = io.StringIO()
    >>> write_svmlight(file, [[0.5, 0.0], [0.0, 2.0]], [1, -1])
    >>> print(file.getvalue(), end="")
    1 1:0.5
    -1 2:2
    """
    matrix = _check_matrix(X)
    labels = _check_labels(y)
    queries = _check_queries(qid)
    for name, count in (("y", len(labels)), ("qid", len(labels) if qid is None else len(queries))):
        if count != matrix.shape[0]:
            raise ValueError(f"X has {matrix.shape[0]} rows and {name} has {count}: inconsistent lengths")
    arrays = (matrix, labels, queries, 0 if zero_based else 1)
    with open_writer(path_or_file) as write:
        if comment is not None:
            write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        for begin, end in _split_rows(matrix.indptr):
            write(format_svmlight(*arrays, begin, end))


def _check_matrix(X: Any) -> CsrRows:
    _check_exact_integers(X.data if is_sparse(X) else X, "X")
    return check_rows(X, min_columns=0)


def _flatten_column(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Return one number per row; a single column is flattened."""
    array = np.asarray(values)
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return array.reshape(-1)
    raise ValueError(f"{name} should be a 1d array, got an array of shape {array.shape} instead")


def _check_labels(y: npt.ArrayLike) -> npt.NDArray[np.float64]:
    _check_exact_integers(y, "y")
    labels = np.ascontiguousarray(_flatten_column(y, "y"), dtype=np.float64)
    if not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity; the format has finite labels only")
    return labels


def _check_exact_integers(values: npt.ArrayLike, name: str) -> None:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.size == 0:
        return
    if max(-int(array.min()), int(array.max())) > _LARGEST_EXACT_INTEGER:
        raise ValueError(f"{name} has integers beyond 2^53, which a double does not hold; scale them down")


def _check_queries(qid: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    if qid is None:
        return np.empty(0, dtype=np.int64)
    queries = _flatten_column(qid, "qid")
    if queries.dtype.kind not in "iu":
        raise ValueError(f"qid must be integers, got {queries.dtype}")
    if queries.size and int(queries.max()) >= 2**63:
        raise ValueError("qid must fit into 64 bits with a sign")
    return np.ascontiguousarray(queries, dtype=np.int64)


def _split_rows(offsets: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about ``_ITEMS_PER_WRITE`` labels and entries each."""
    items = offsets.astype(np.int64) + np.arange(len(offsets))
    cuts = np.searchsorted(items, np.arange(0, items[-1], _ITEMS_PER_WRITE))
    bounds = np.unique(np.append(cuts, len(offsets) - 1)).tolist()
    return itertools.pairwise(bounds)
