"""Plain tables of numbers bypass scikit-learn's checks; results and errors are the same as with checks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unkernel
from unkernel import CuttingPlaneSVC, PolyLogisticRegression, PolySVC, RankSVM
from unkernel.data.rows import row_checks
from unkernel.data.rows.csr import canonical_rows
from unkernel.data.rows.row_checks import plain_rows
from unkernel.learners import base

rng = np.random.default_rng(0)
X = np.round(rng.random((60, 4)), 1)
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.8).astype(int)


def coo_with_repeats() -> Any:
    return sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 4))


def make_damaged_rows() -> Any:
    rows = sparse.csr_matrix(X[:2])
    rows.indices[0] = 77
    return rows


def make_unsorted_rows() -> Any:
    return sparse.csr_matrix((np.array([1.0, 2.0]), np.array([3, 0]), np.array([0, 2])), shape=(1, 4))


GIVEN: dict[str, Any] = {
    "one row": X[:1],
    "many rows": X,
    "columns first": np.asfortranarray(X),
    "every other row": X[::2],
    "read only": np.frombuffer(X.tobytes()).reshape(X.shape),
    "float32": X.astype(np.float32),
    "float16": X.astype(np.float16),
    "long double": X.astype(np.longdouble),
    "too large for float64": np.full((1, 4), np.longdouble(1e300)) * np.longdouble(1e300),
    "int": np.arange(8).reshape(2, 4),
    "uint8": np.arange(8, dtype=np.uint8).reshape(2, 4),
    "bool": X > 0.5,
    "big-endian": X.astype(">f8"),
    "list": X[:1].tolist(),
    "list of ints": [[1, 2, 3, 4]],
    "list of arrays": [X[0], X[1]],
    "tuple": tuple(map(tuple, X.tolist())),
    "numbers as text": [["1", "2", "3", "4"]],
    "text": [["a", "b", "c", "d"]],
    "huge ints": [[10**400, 0, 0, 0]],
    "ragged": [[1.0, 2.0], [3.0]],
    "None": [[1.0, None, 2.0, 3.0]],
    "objects": X[:2].astype(object),
    "nan": np.array([[1.0, np.nan, 0.0, 0.0]]),
    "nan in a list": [[1.0, float("nan"), 0.0, 0.0]],
    "infinity": np.array([[1.0, -np.inf, 0.0, 0.0]]),
    "sum overflows": np.full((2, 4), 1e308),
    "one dimension": X[0],
    "a list of numbers": X[0].tolist(),
    "three dimensions": X[None],
    "a scalar": 3.0,
    "no rows": X[:0],
    "no columns": X[:, :0],
    "an empty list": [],
    "narrow": X[:, :3],
    "wide": np.hstack([X, X]),
    "complex": X.astype(complex),
    "dates": np.zeros((1, 4), "M8[D]"),
    "matrix": np.asmatrix(X),
    "masked": np.ma.masked_array(X[:1], mask=[[True, False, False, False]]),
    "masked nowhere": np.ma.masked_array(X[:1]),
    "frame": pd.DataFrame(X),
    "frame with names": pd.DataFrame(X, columns=list("abcd")),
    "csr_matrix": sparse.csr_matrix(X),
    "csr_array": sparse.csr_array(X[:1]),
    "csc": sparse.csc_matrix(X),
    "coo": coo_with_repeats(),
    "unsorted": make_unsorted_rows(),
    "sparse ints": sparse.csr_matrix(np.arange(8).reshape(2, 4)),
    "sparse and narrow": sparse.csr_matrix(X[:, :3]),
    "sparse with nan": sparse.csr_matrix([[np.nan, 0.0, 0.0, 1.0]]),
    "sparse with stored zeros": sparse.csr_matrix((np.zeros(1), [2], [0, 1]), shape=(1, 4)),
    "sparse and damaged": make_damaged_rows(),
    "sparse without rows": sparse.csr_matrix((0, 4)),
}
EXPECTED_PLAIN = {"one row", "many rows", "columns first", "float32", "int", "bool", "list", "csr_matrix"}


def outcome(ask: Any, inputs: Any) -> Any:
    """Return the result or the error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        try:
            answer: Any = np.asarray(ask(inputs)).tolist()
        except Exception as error:
            answer = (type(error), str(error))
    return answer, [(warning.category, str(warning.message)) for warning in recorded]


LEARNERS = {
    "poly": PolySVC(degree=2).fit(X, Y),
    "logistic": PolyLogisticRegression(degree=2).fit(X > 0.5, Y),
    "linear": CuttingPlaneSVC().fit(X, Y),
    "ranking": RankSVM().fit(X, Y),
    "with names": PolySVC(degree=2).fit(pd.DataFrame(X, columns=list("abcd")), Y),
    "not fitted": PolySVC(degree=2),
}
CLASSIFIERS = {
    "compiled": unkernel.compile(LEARNERS["poly"], measure=False),
    "compiled with names": unkernel.compile(LEARNERS["with names"], measure=False),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("name", [*LEARNERS, *CLASSIFIERS])
def test_results_equal_results_with_all_checks(monkeypatch: pytest.MonkeyPatch, name: str, kind: str) -> None:
    model = LEARNERS.get(name) or CLASSIFIERS[name]
    for method in ("predict", "decision_function"):
        ask = getattr(model, method, model.decision_function)  # two levels of relevance are not classes
        expected = outcome(ask, GIVEN[kind])
        with monkeypatch.context() as patch:
            for module in (row_checks, base):
                patch.setattr(module, "plain_rows", lambda *_: None)
            assert outcome(ask, GIVEN[kind]) == expected


def test_which_tables_are_plain() -> None:
    plain_names = {
        name for name, inputs in GIVEN.items() if name != "sparse and damaged" and _is_plain(inputs)
    }
    assert plain_names >= EXPECTED_PLAIN
    assert "matrix" not in plain_names and "masked nowhere" not in plain_names and "frame" not in plain_names


def _is_plain(inputs: Any) -> bool:
    rows = plain_rows(inputs, 4)
    if rows is not None:
        table = inputs.toarray() if sparse.issparse(inputs) else np.asarray(inputs)
        assert (rows.toarray() == table.astype(np.float64)).all()
    return rows is not None


@pytest.mark.parametrize("row", [X[:1], np.zeros((1, 3)), np.ones((1, 1)), np.array([[0.0, -0.0, 2.0]])])
def test_one_row_is_as_one_of_many(row: Any) -> None:
    single, doubled = canonical_rows(row), canonical_rows(np.vstack([row, row]))[:1]
    for name in ("indptr", "indices", "data"):
        array, array_of_many = getattr(single, name), getattr(doubled, name)
        assert array.tolist() == array_of_many.tolist() and array.dtype == array_of_many.dtype
    assert single.shape == doubled.shape
