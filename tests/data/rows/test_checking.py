"""check_rows accepts and refuses the same input as scikit-learn's check_array."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import check_array

from unkernel.data.rows.row_checks import check_rows

FINE = {
    "lists": [[0, 1.5], [2, 0]],
    "tuples": ((0, 1.5), (2, 0)),
    "integers": np.array([[0, 1], [2, 0]]),
    "bytes": np.array([[0, 1], [2, 0]], dtype=np.uint8),
    "booleans": np.array([[False, True], [True, False]]),
    "float32": np.array([[0, 1.5]], dtype=np.float32),
    "float16": np.array([[0, 1.5]], dtype=np.float16),
    "column by column": np.asfortranarray([[0, 1.5], [2, 0]]),
    "objects": np.array([[0, 1.5], [2, 0]], dtype=object),
    "numbers as text": np.array([["0", "1.5"]]),
    "large integers": [[2**70, 0]],
    "strides": np.arange(24.0).reshape(4, 6)[::2, ::3],
    "read-only": np.broadcast_to(np.arange(3.0), (2, 3)),
    "masked": np.ma.array([[1.0, 2.0]], mask=False),
    "frame": pd.DataFrame({"a": [0, 1], "b": [1.5, 0]}),
    "nullable frame": pd.DataFrame({"a": pd.array([0, 1], "Int64"), "b": pd.array([1.5, 0], "Float64")}),
    "boolean frame": pd.DataFrame({"a": pd.array([True, False], "boolean")}),
    "sparse frame": pd.DataFrame.sparse.from_spmatrix(sparse.eye(3, format="csr")),
    "csr_matrix": sparse.csr_matrix([[0, 1.5], [2, 0]]),
    "csr_array": sparse.csr_array([[0, 1.5], [2, 0]]),
    "csc of integers": sparse.csc_matrix(np.array([[0, 1], [2, 0]])),
    "coo": sparse.coo_array([[0, 1.5], [2, 0]]),
    "dok": sparse.dok_matrix(np.eye(3)),
    "dia": sparse.eye(3),
    "sums that overflow": np.full((2, 3), 1e308),
}
BAD = {
    "scalar": (5.0, "Expected 2D array, got scalar"),
    "one row": ([1.0, 2.0], "Expected 2D array, got 1D"),
    "series": (pd.Series([1.0, 2.0]), "Expected 2D array, got 1D"),
    "three dimensions": (np.zeros((2, 2, 2)), "Found array with dim 3"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((3, 0)), "0 feature"),
    "no rows, sparse": (sparse.csr_matrix((0, 3)), "0 sample"),
    "complex": (np.array([[1j]]), "Complex data not supported"),
    "complex, sparse": (sparse.csr_matrix([[1j]]), "Complex data not supported"),
    "NaN": ([[np.nan, 1.0]], "Input X contains NaN"),
    "NaN, sparse": (sparse.csr_matrix([[0.0, np.nan]]), "Input X contains NaN"),
    "infinity": ([[np.inf, 1.0]], "infinity"),
    "both infinities": ([[np.inf, -np.inf]], "infinity"),
    "infinity, sparse": (sparse.csr_matrix([[0.0, -np.inf]]), "infinity"),
    "None": ([[None, 1.0]], "NaN"),
    "missing": (pd.DataFrame({"a": pd.array([1, None], "Int64")}), "NaN"),
    "missing float": (pd.DataFrame({"a": [1.0, np.nan]}), "NaN"),
    "words": ([["a", "b"]], "could not convert"),
    "ragged": ([[1.0], [1.0, 2.0]], "inhomogeneous"),
}


@pytest.mark.parametrize("name", FINE)
def test_rows_that_scikit_learn_accepts_are_accepted(name):
    rows = FINE[name]
    expected = check_array(rows, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True)
    expected = expected.toarray() if sparse.issparse(expected) else expected
    np.testing.assert_array_equal(check_rows(rows).toarray(), expected)


@pytest.mark.parametrize("name", BAD)
def test_rows_that_scikit_learn_refuses_are_refused(name):
    rows, message = BAD[name]
    with pytest.raises(ValueError):
        check_array(rows, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True)
    with pytest.raises(ValueError, match=message):
        check_rows(rows)


def test_matrices_of_numpy_are_refused():
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        check_rows(np.matrix([[1.0]]))


def test_minimum_numbers_of_rows_and_columns_can_be_lowered():
    assert check_rows(np.empty((0, 3)), min_rows=0).shape == (0, 3)
    assert check_rows(np.empty((3, 0)), min_columns=0).shape == (3, 0)


def test_large_sparse_frames_are_not_made_dense():
    wide = sparse.csr_matrix((np.ones(2), ([0, 19_999], [3, 4])), shape=(20_000, 5))
    rows = check_rows(pd.DataFrame.sparse.from_spmatrix(wide))
    assert rows.nnz == 2
