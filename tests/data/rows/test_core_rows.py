"""Sparse rows that the C++ core accepts and refuses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from unkernel._core import BlockPacker, format_svmlight, pack_rows, pack_rows_by_frequency
from unkernel.data.rows.csr import CsrRows, narrow

WEIGHTS = np.array([1.0, 10.0, 100.0, 1000.0])
DENSE = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 4.0, 0.0]])


def make_rows(**changed):
    X = sparse.csr_matrix(DENSE)
    arrays = {"indptr": X.indptr, "indices": X.indices, "data": X.data, "shape": X.shape}
    return SimpleNamespace(**{**arrays, **changed})


def scores(rows):
    return pack_rows(rows, threads=1).scores(WEIGHTS, 0.0, 1)


@pytest.mark.parametrize("offsets", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [np.int32, np.int64])
@pytest.mark.parametrize("step", [1, 2])
def test_both_index_types_mixed_and_with_gaps(offsets, columns, step):
    X = sparse.csr_matrix(DENSE)
    rows = make_rows(
        indptr=np.repeat(X.indptr.astype(offsets), step)[::step],
        indices=np.repeat(X.indices.astype(columns), step)[::step],
        data=np.repeat(X.data, step)[::step],
    )
    np.testing.assert_array_equal(scores(rows), DENSE @ WEIGHTS)


def copy_to_unaligned_address(array):
    """Return a copy at an unaligned address, like an array inside a message from another process."""
    buffer = np.zeros(array.nbytes + 16, np.uint8)
    begin = 1 + (-buffer.ctypes.data) % 8
    unaligned = buffer[begin : begin + array.nbytes].view(array.dtype)
    unaligned[:] = array
    assert not unaligned.flags.aligned
    return unaligned


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_arrays_at_unaligned_addresses_are_accepted(index):
    """Unaligned reads behave differently on different processors, and sanitizers report them."""
    rows = make_rows()
    unaligned = make_rows(
        indptr=copy_to_unaligned_address(rows.indptr.astype(index)),
        indices=copy_to_unaligned_address(rows.indices.astype(index)),
        data=copy_to_unaligned_address(rows.data),
    )
    np.testing.assert_array_equal(scores(unaligned), DENSE @ WEIGHTS)
    packed = pack_rows(unaligned, threads=1)
    np.testing.assert_array_equal(packed.scores(copy_to_unaligned_address(WEIGHTS), 0.0, 1), DENSE @ WEIGHTS)


@pytest.mark.parametrize(
    "kind", [sparse.csr_matrix, sparse.csr_array, lambda X: sparse.csr_matrix(X, dtype="f")]
)
def test_matrices_of_scipy(kind):
    np.testing.assert_array_equal(scores(kind(DENSE)), DENSE @ WEIGHTS)


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_ordered_by_frequency(seed):
    """Columns of equal frequency keep their order; unused columns have no number."""
    rng = np.random.default_rng(seed)
    X = sparse.random(rng.integers(0, 30), 40, 0.1, format="csr", random_state=seed)
    uses = np.bincount(X.indices, minlength=40)
    packed, columns = pack_rows_by_frequency(X, threads=1)
    assert columns.tolist() == [column for column in np.argsort(-uses, kind="stable") if uses[column]]
    weights = rng.random(40)
    np.testing.assert_allclose(packed.scores(weights[columns], 0.0, 1), X @ weights)


@pytest.mark.parametrize("order", [[2, 0, 0], [1], []])
@pytest.mark.parametrize("values", [1.0, 0.5, 0.1])
def test_rows_in_another_order(order, values):
    X = sparse.csr_matrix(np.where(DENSE != 0, values, 0.0))
    packed, columns = pack_rows_by_frequency(X, order=np.array(order, np.int64), threads=1)
    # scipy may fuse multiplications and additions.
    np.testing.assert_allclose(packed.scores(WEIGHTS[columns], 0.0, 1), (X @ WEIGHTS)[order], rtol=1e-15)


@pytest.mark.parametrize("row", [-1, len(DENSE), 2**62])
def test_row_numbers_outside_of_the_matrix_are_refused(row):
    with pytest.raises(ValueError, match="row number"):
        pack_rows_by_frequency(sparse.csr_matrix(DENSE), order=np.array([0, row]), threads=1)


@pytest.mark.parametrize("value", [1.0, 0.1, -0.0, 5e-324, 1e300, 2.0**-130, np.float32(0.1)])
def test_values_are_kept_in_as_few_bytes_as_hold_them(value):
    packed = pack_rows(sparse.csr_matrix((np.full(8, value), np.arange(8), [0, 4, 8])), threads=1)
    assert packed.scores(np.ones(8), 0.0, 1).tolist() == [value + value + (value + value)] * 2
    bytes_per_value = (
        0 if value == 1.0 else 4 if abs(value) < 1e38 and float(np.float32(value)) == value else 8
    )
    assert packed.nbytes == 8 * (2 + bytes_per_value) + 3 * 8


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="not finite"):
        pack_rows(make_rows(data=np.array([1.0, 2.0, value, 1.0])), threads=1)


@pytest.mark.parametrize("column", [-1, 4, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_columns_outside_of_the_matrix_are_refused(column, index):
    rows = make_rows(indices=np.array([1, 3, 0, column], index), indptr=make_rows().indptr.astype(index))
    for pack in (pack_rows, pack_rows_by_frequency):
        with pytest.raises(ValueError, match="column index"):
            pack(rows, threads=1)


@pytest.mark.parametrize("name", ["indptr", "indices"])
@pytest.mark.parametrize("dtype", [float, np.uint64, np.int16, bool])
def test_indices_of_other_types_are_refused(name, dtype):
    rows = make_rows(**{name: getattr(make_rows(), name).astype(dtype)})
    with pytest.raises(TypeError, match="CsrRows"):
        scores(rows)


@pytest.mark.parametrize(
    "changed",
    [
        {"indptr": None},
        {"indices": np.zeros((2, 2), np.int32)},
        {"data": "abcd"},
        {"shape": 4},
        {"shape": (3,)},
        {"shape": (3, -1)},
        {"shape": (3, 2**70)},
        {"shape": (3, None)},
    ],
)
def test_objects_that_are_not_matrices_are_refused(changed):
    with pytest.raises(TypeError, match="CsrRows"):
        scores(make_rows(**changed))


@pytest.mark.parametrize("attribute", ["indptr", "indices", "data", "shape"])
def test_a_missing_attribute(attribute):
    rows = make_rows()
    delattr(rows, attribute)
    with pytest.raises(TypeError, match="CsrRows"):
        scores(rows)


@pytest.mark.parametrize(
    "indptr", [[], [1, 2, 2, 4], [0, 2, 1, 4], [0, 2, 2, 3], [0, 2, 2, 5], [0, -1, 2, 4], [0, 9, 2, 4]]
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_offsets_that_lead_out_of_the_arrays(indptr, dtype):
    rows = make_rows(indptr=np.array(indptr, dtype), indices=make_rows().indices.astype(dtype))
    with pytest.raises(ValueError, match="index pointer"):
        scores(rows)
    with pytest.raises(ValueError, match="index pointer"):
        BlockPacker().add(rows)


def test_fewer_values_than_columns():
    with pytest.raises(ValueError, match="index pointer"):
        scores(make_rows(data=np.ones(3)))


@pytest.mark.parametrize("begin, end", [(-1, 2), (0, 4), (2, 1)])
def test_ranges_that_lead_out_of_the_rows(begin, end):
    with pytest.raises((ValueError, IndexError)):
        format_svmlight(make_rows(), np.ones(3), np.empty(0, np.int64), 1, begin, end)


def test_narrow_rows_clip_large_columns():
    wide = CsrRows(np.array([0, 1, 3]), np.array([5, 7, 2**40]), np.array([1.0, 2.0, 3.0]), (2, 2**40 + 1))
    rows = narrow(wide)
    assert rows.indptr.dtype == rows.indices.dtype == np.int32
    assert rows.indptr.tolist() == [0, 1, 3]
    assert rows.indices.tolist() == [5, 7, 2**31 - 1]
    assert rows.shape == (2, 2**31 - 1)


def test_too_many_entries_to_narrow():
    with pytest.raises(ValueError, match=r"2\^31"):
        narrow(SimpleNamespace(nnz=2**31))
