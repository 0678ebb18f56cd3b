"""CsrRows, which do not need scipy, behave like scipy's matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from unkernel.data.rows.csr import CsrRows, canonical_rows, is_sparse, stack_rows

numbers = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.5, 1e-300, 1e300])
tables = hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(1, 6)), elements=numbers)


def make_disordered_rows(table, rng):
    """Return the rows of a table with entries in random order, split into summands, and explicit zeros."""
    matrix = sparse.coo_matrix(table)
    rows = np.concatenate([matrix.row, matrix.row, np.arange(len(table))])
    columns = np.concatenate([matrix.col, matrix.col, np.zeros(len(table), int)])
    values = np.concatenate([matrix.data / 2, matrix.data / 2, np.zeros(len(table))])
    order = rng.permutation(len(rows))
    rows, columns, values = rows[order], columns[order], values[order]
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(table)))])
    return sparse.csr_matrix((values[order], columns[order], offsets), shape=table.shape)


def assert_rows(rows, table):
    """Check that rows are canonical and equal to the table."""
    expected = sparse.csr_matrix(table)
    expected.sort_indices()
    assert rows.shape == table.shape
    assert rows.indptr.tolist() == expected.indptr.tolist()
    assert rows.indices.tolist() == expected.indices.tolist()
    assert rows.data.tolist() == expected.data.tolist()
    assert rows.indptr.dtype == rows.indices.dtype
    assert rows.data.dtype == np.float64


@given(tables, st.integers(0, 99))
def test_all_forms_of_rows_become_the_same_canonical_rows(table, seed):
    given_matrix = make_disordered_rows(table, np.random.default_rng(seed))
    unchanged = given_matrix.copy()
    forms = [table, table.tolist() if len(table) else table, given_matrix, sparse.csr_array(given_matrix)]
    forms += [sparse.csc_matrix(table), sparse.coo_array(table), sparse.lil_matrix(table)]
    for form in forms:
        assert_rows(canonical_rows(form), table)
    assert given_matrix.indices.tolist() == unchanged.indices.tolist()
    assert given_matrix.data.tolist() == unchanged.data.tolist()


@given(tables, st.data())
def test_rows_are_sliced_like_arrays(table, data):
    rows = canonical_rows(table)
    size = len(table)
    cuts = [slice(None), slice(1, 4), slice(4, 1), slice(None, None, -1), slice(-3, None, 2)]
    cuts.append(np.array(data.draw(st.lists(st.integers(-size, size - 1))) if size else [], dtype=int))
    cuts.append(np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool))
    for cut in cuts:
        assert_rows(rows[cut], table[cut])
    with pytest.raises(IndexError):
        _ = rows[[size]]
    with pytest.raises(IndexError, match="selected by a slice"):
        _ = rows[np.zeros((1, 1), int)] if size else rows[np.zeros((0, 1), int)]


@given(tables, st.data())
def test_csr_rows_multiply_like_scipys(table, data):
    rows, matrix = canonical_rows(table), sparse.csr_matrix(table)
    assert np.array_equal(rows.toarray(), table)
    assert (rows.to_scipy() != matrix).nnz == 0
    assert rows.to_scipy().has_canonical_format
    assert rows.nnz == matrix.nnz
    columns = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=6, max_size=6))[: table.shape[1]])
    assert_rows(rows.select_columns(columns), table[:, columns])
    clipped = np.clip(table, -3, 3)
    factors = np.arange(2.0 * len(table)).reshape(-1, 2)
    product = canonical_rows(clipped).multiply_transposed(factors)
    np.testing.assert_allclose(product, sparse.csr_matrix(clipped).T @ factors, rtol=1e-13, atol=0)
    assert_rows(stack_rows([rows, rows[:1], rows]), np.concatenate([table, table[:1], table]))
    copied = rows.copy()
    assert_rows(copied, table)
    assert not np.shares_memory(copied.data, rows.data) or rows.nnz == 0


def test_rows_of_other_widths_are_stacked_to_the_widest():
    narrow, wide = canonical_rows([[1.0]]), canonical_rows([[0.0, 0.0, 2.0]])
    assert stack_rows([narrow, wide]).toarray().tolist() == [[1, 0, 0], [0, 0, 2]]


def test_entries_are_sorted_by_column():
    rows = CsrRows.of(np.array([0, 3, 3, 5]), np.array([4, 0, 2, 1, 0]), np.arange(5.0), 5)
    assert rows.sort_columns().toarray().tolist() == rows.toarray().tolist()
    assert rows.sort_columns().indices.tolist() == [0, 2, 4, 0, 1]


def test_wide_rows_have_wide_indices():
    matrix = sparse.csr_matrix((np.ones(1), np.array([2**40]), np.array([0, 1])), shape=(1, 2**40 + 1))
    rows = canonical_rows(matrix)
    assert rows.indices.tolist() == [2**40]
    assert rows.indptr.dtype == rows.indices.dtype == np.int64
    mixed = sparse.csr_matrix(np.eye(2))
    mixed.indices = mixed.indices.astype(np.int64)
    assert canonical_rows(mixed).indptr.dtype == np.int64


def test_canonical_matrices_are_not_copied():
    matrix = sparse.csr_matrix(np.eye(3))
    rows = canonical_rows(matrix)
    assert np.shares_memory(rows.data, matrix.data)
    assert canonical_rows(rows) is rows


def test_unused_capacity_of_arrays_is_dropped():
    roomy = sparse.csr_matrix(np.eye(2))
    roomy.data, roomy.indices = np.append(roomy.data, np.nan), np.append(roomy.indices, 7)
    assert canonical_rows(roomy).data.tolist() == [1.0, 1.0]


def test_sparse_matrices_are_recognised():
    assert is_sparse(sparse.csr_array((1, 1)))
    assert not is_sparse(np.eye(1))
    assert not is_sparse([[1.0]])


def test_rows_of_a_dense_array_do_not_share_its_memory():
    table = np.arange(1.0, 7.0).reshape(3, 2)
    for form in (table, np.asfortranarray(table)):
        rows = canonical_rows(form)
        assert_rows(rows, table)
        assert not np.shares_memory(rows.data, form)
