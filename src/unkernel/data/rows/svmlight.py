"""Read the svmlight (LIBSVM) text format; docs/formats/svmlight.md describes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from unkernel._core import SvmlightParser
from unkernel.data.files import BLOCK_BYTES, Source, name_of, read_blocks
from unkernel.data.threads import thread_count
from unkernel.errors import FormatError

if TYPE_CHECKING:
    from scipy import sparse

Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
ZeroBased = bool | Literal["auto"]

_LARGEST_INDEX = 2**63 - 2
_CACHED_BYTES = 1 << 17


@dataclass(frozen=True, eq=False)
class SvmlightData:
    r"""Contents of an svmlight file; unpack them with ``X, y = read_svmlight(path)``.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix of shape (n_rows, n_features)
        The rows, with sorted indices and without duplicate or zero entries. Indices are int32 if they fit,
        otherwise int64.
    y : ndarray of float64
        The labels.
    qid : ndarray of int64, or None
        The query numbers, if the rows have them.
    zero_based : bool
        Whether the first feature of the file has the number 0.
    ignored_fields : int
        Number of ``name:value`` fields that were ignored, such as ``cost:`` and ``sid:``.
    comments : int
        Number of lines with a comment.

    See Also
    --------
    unkernel.read_svmlight : Read a file.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_svmlight
    >>> data = read_svmlight(io.StringIO("2 qid:1 1:0.5\n1 qid:1 2:1\n"))
    >>> data.X.shape, data.qid.tolist()
    ((2, 2), [1, 1])
    """

    X: sparse.csr_matrix
    y: Float64s
    qid: Int64s | None
    zero_based: bool
    ignored_fields: int
    comments: int

    def __iter__(self) -> Iterator[Any]:
        """Yield X and y, but not ``qid``."""
        return iter((self.X, self.y))


def read_svmlight(
    path_or_file: Source,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: npt.DTypeLike = np.float64,
    n_jobs: int | None = None,
) -> SvmlightData:
    r"""Read rows in the svmlight (LIBSVM) format.

    A line has the form ``label [qid:n] [index:value ...] [# comment]``.

    Parameters
    ----------
    path_or_file : path, or open binary or text file
        Plain text, or text compressed by gzip, xz, bzip2 or Zstandard. The compression is detected from the
        content, not from the name.
    n_features : int, default=None
        Number of columns; None means that the largest index determines it. For a test file, pass the number
        of columns of the training file.
    zero_based : bool or "auto", default="auto"
        Whether indices start at 0 instead of 1. With "auto", they start at 0 if the file has an index 0.
    dtype : {float64, float32}, default=float64
        Type of the values.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

    Returns
    -------
    SvmlightData
        The rows, labels and query numbers.

    Raises
    ------
    FormatError
        If a line is malformed, or if there are no rows. The message names the first malformed line.
    OSError
        If the file cannot be read.

    See Also
    --------
    write_svmlight : Write such a file.
    unkernel.data.read_svmlight_parts : Read a file of any length in parts.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_svmlight
    >>> X, y = read_svmlight(io.StringIO("+1 1:0.5 3:2\n-1 2:1  # a remark\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    value_type = _check_dtype(dtype)
    name = name_of(path_or_file)
    parser = _make_parser(name, n_features, zero_based, n_jobs)
    for block in read_blocks(path_or_file):
        parser.feed(block)
    parser.finish()
    _require_rows(parser, name)

    starts_at_zero = bool(parser.has_zero_index) if zero_based == "auto" else zero_based
    columns = _count_columns(parser, name, n_features, first_index=0 if starts_at_zero else 1)
    offsets, indices, values, labels, queries = parser.take(0 if starts_at_zero else 1)
    return SvmlightData(
        X=_to_csr(offsets, indices, _convert_type(values, value_type, name), columns),
        y=labels,
        qid=queries if len(queries) else None,
        zero_based=starts_at_zero,
        ignored_fields=parser.ignored_fields,
        comments=parser.comments,
    )


@dataclass(frozen=True, eq=False)
class SvmlightPart:
    r"""Consecutive rows of an svmlight file, as ``read_svmlight_parts`` yields them.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix of shape (n_rows, largest_index + 1)
        The rows. Columns are numbered like the indices of the file: if these start at 1, column 0 is empty.
    y : ndarray of float64
        The labels.
    qid : ndarray of int64, or None
        The query numbers, if the rows have them.
    has_zero_index : bool
        Whether index 0 has occurred so far.
    largest_index : int
        The largest index so far; -1 if there was no index.
    largest_index_line : int
        Line of the largest index; 0 if there was no index.

    See Also
    --------
    read_svmlight_parts : Read a file in parts.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_svmlight_parts
    >>> part = next(read_svmlight_parts(io.StringIO("+1 1:0.5 3:2\n-1 2:1\n")))
    >>> part.X.shape, part.largest_index
    ((2, 4), 3)
    """

    X: sparse.csr_matrix
    y: Float64s
    qid: Int64s | None
    has_zero_index: bool
    largest_index: int
    largest_index_line: int


def read_svmlight_parts(
    path_or_file: Source,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    part_bytes: int = 1 << 26,
    n_jobs: int | None = None,
) -> Iterator[SvmlightPart]:
    r"""Read an svmlight file of any length in parts of bounded size.

    Parameters
    ----------
    path_or_file : path, or open binary or text file
        Plain or compressed text, as for :func:`~unkernel.read_svmlight`.
    n_features : int, default=None
        Number of columns; larger indices are errors. None allows any index.
    zero_based : bool or "auto", default="auto"
        Whether indices start at 0 instead of 1.
    part_bytes : int, default=67108864
        Approximate number of bytes of text per part. A part takes a few times as much memory.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors.

    Returns
    -------
    iterator of SvmlightPart
        The rows in the order of the file. Errors are the same as in :func:`~unkernel.read_svmlight`; they are
        raised when the iterator reaches the malformed line.

    See Also
    --------
    unkernel.read_svmlight : Read the whole file at once.
    unkernel.CuttingPlaneSVC : Train on files that are larger than memory.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_svmlight_parts
    >>> for part in read_svmlight_parts(io.StringIO("+1 1:0.5 3:2\n-1 2:1\n"), part_bytes=1):
    ...     print(part.y, part.X.indices)
    [1.] [1 3]
    [-1.] [2]
    """
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be positive, got {part_bytes}")
    name = name_of(path_or_file)
    return _read_parts(
        path_or_file, name, _make_parser(name, n_features, zero_based, n_jobs), n_features, part_bytes
    )


def _read_parts(
    source: Source, name: str, parser: SvmlightParser, n_features: int | None, part_bytes: int
) -> Iterator[SvmlightPart]:
    n_bytes = n_yielded = 0
    for block in read_blocks(source, min(part_bytes, BLOCK_BYTES)):
        parser.feed(block)
        n_bytes += len(block)
        if n_bytes >= part_bytes and parser.rows > n_yielded:
            yield _take_part(parser)
            n_bytes, n_yielded = 0, parser.rows
    parser.finish()
    _require_rows(parser, name)
    if parser.has_zero_index:
        _count_columns(parser, name, n_features, first_index=0)  # raises an error if there are too many
    if parser.rows > n_yielded:
        yield _take_part(parser)


def _take_part(parser: SvmlightParser) -> SvmlightPart:
    """Return the rows that have been parsed since the previous part was taken."""
    offsets, indices, values, labels, queries = parser.take_part()
    return SvmlightPart(
        X=_to_csr(offsets, indices, values, parser.largest_index + 1),
        y=labels,
        qid=queries if len(queries) else None,
        has_zero_index=parser.has_zero_index,
        largest_index=parser.largest_index,
        largest_index_line=parser.largest_index_line,
    )


def _make_parser(
    name: str, n_features: int | None, zero_based: ZeroBased, n_jobs: int | None
) -> SvmlightParser:
    smallest, largest = index_range(n_features, zero_based)
    threads = thread_count(n_jobs)
    # Give a single thread pieces that fit into its cache. Several threads divide a whole block evenly.
    piece_bytes = _CACHED_BYTES if threads == 1 else max(_CACHED_BYTES, BLOCK_BYTES // threads)
    return SvmlightParser(name, threads, piece_bytes, smallest, largest)


def _require_rows(parser: SvmlightParser, name: str) -> None:
    if parser.rows == 0:
        raise FormatError(name, 0, 0, "there are no rows in it; expected lines such as '1 3:0.5 7:2'")


def _check_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    result = np.dtype(dtype)
    if result not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype must be float64 or float32, got {result}")
    return result


def index_range(n_features: int | None, zero_based: ZeroBased) -> tuple[int, int]:
    """Return the smallest and the largest index allowed in a file."""
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}')
    smallest = 1 if zero_based is False else 0
    if n_features is None:
        return smallest, _LARGEST_INDEX
    if not isinstance(n_features, SupportsIndex) or not 1 <= int(n_features) <= _LARGEST_INDEX:
        raise ValueError(f"n_features must be a positive integer or None, got {n_features!r}")
    return smallest, int(n_features) - 1 if zero_based is True else int(n_features)


def _count_columns(parser: SvmlightParser, name: str, n_features: int | None, first_index: int) -> int:
    n_columns = max(0, parser.largest_index - first_index + 1)
    if n_features is not None and n_columns > n_features:
        # With zero_based="auto", indices are known to start at 0 or 1 only at the end of the file.
        reason = (
            f"index {parser.largest_index} is beyond {n_features - 1}, the last that n_features={n_features} "
            "allows in a file with an index 0; allow more features"
        )
        raise FormatError(name, parser.largest_index_line, 0, reason)
    return n_columns if n_features is None else n_features


def _convert_type(values: Float64s, dtype: np.dtype[Any], name: str) -> npt.NDArray[Any]:
    if dtype == values.dtype:
        return values
    with np.errstate(over="ignore"):
        result = values.astype(dtype)
    if not np.isfinite(result).all():
        raise FormatError(name, 0, 0, f"a value is too large for {dtype}; read the file as float64")
    return result


def _to_csr(offsets: Int64s, indices: Int64s, values: npt.NDArray[Any], columns: int) -> sparse.csr_matrix:
    from scipy import sparse

    X = sparse.csr_matrix((values, indices, offsets), shape=(len(offsets) - 1, columns), copy=False)
    X.has_sorted_indices = True
    X.has_canonical_format = True
    if values.dtype != np.float64:
        X.eliminate_zeros()  # removes values that became 0 in the narrower type
    return X
