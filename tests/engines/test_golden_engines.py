"""Compiled models of other programs give the scores that these programs print, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from reference import golden
from reference.kernels import EXACT, applicable
from unkernel.models import KernelModel, LinearModel, read_model

# Half a unit of the last digit that the program prints, and rounding.
TOLERANCE = {"libsvm": 1e-9, "liblinear": 1e-9, "svmlight": 5.1e-8, "tinysvm": 5.1e-6, "opal": 5.1e-7}
PROBABILITIES = [name for name in golden.NAMES if "prob" in name and "svr" not in name]


def list_engines(name):
    model = read_model(golden.model_path(name))
    return ("auto", *(applicable(model, EXACT) if isinstance(model, KernelModel) else ["expanded"]))


ALL_PAIRS = [(name, engine) for name in golden.NAMES for engine in list_engines(name)]
RARE = {"split": (0.0, 0.5, 3, 1e9)}


def compile_variants(name, engine):
    for rare in RARE.get(engine, (0.005,)):
        yield unkernel.compile(golden.model_path(name), engine, rare=rare, sample=golden.test_rows(name))


@pytest.mark.parametrize(("name", "engine"), [pair for pair in ALL_PAIRS if pair[0] not in PROBABILITIES])
def test_margins(name, engine):
    X, margins = golden.test_rows(name), golden.margins(name)
    expected = margins[:, 1:] if name[0] == "l" else margins[:, -1:]
    for fast in compile_variants(name, engine):
        result = fast.decision_function(X).reshape(expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=TOLERANCE[name.split("-")[0]])


@pytest.mark.parametrize(
    ("name", "engine"), [(n, e) for n, e in ALL_PAIRS if n.startswith("lib") and n not in PROBABILITIES]
)
def test_answers(name, engine):
    expected = golden.margins(name)[:, 0]
    for fast in compile_variants(name, engine):
        predictions = fast.predict(golden.test_rows(name))
        if fast.decision.scheme == "regression":
            np.testing.assert_allclose(predictions, expected, rtol=1e-9)
        else:
            assert np.array_equal(predictions, expected)


@pytest.mark.parametrize(("name", "engine"), [pair for pair in ALL_PAIRS if pair[0] in PROBABILITIES])
def test_probabilities(name, engine):
    expected = golden.margins(name)
    for fast in compile_variants(name, engine):
        probabilities = fast.predict_proba(golden.test_rows(name))
        np.testing.assert_allclose(probabilities, expected[:, 1:], rtol=1e-9)
        assert np.array_equal(fast.classes_[probabilities.argmax(axis=1)], expected[:, 0])


@pytest.mark.parametrize("name", golden.NAMES)
def test_one_row_at_a_time(name):
    fast = unkernel.compile(golden.model_path(name), list_engines(name)[-1])
    X = golden.test_rows(name)[:20]
    rows = [X.indices[begin:end].tolist() for begin, end in zip(X.indptr, X.indptr[1:], strict=False)]
    assert (X.data == 1).all()
    assert np.array_equal([fast.score_one(row) for row in rows], fast.decision_function(X))


@pytest.mark.parametrize("name", golden.NAMES)
def test_rows_of_any_width(name):
    fast = unkernel.compile(golden.model_path(name))
    X = golden.test_rows(name)[:5].toarray()
    X = np.hstack([X, np.zeros((5, fast.n_features_in_ - X.shape[1]))])
    assert np.array_equal(
        fast.decision_function(np.hstack([X, np.zeros((5, 100))])), fast.decision_function(X)
    )
    # An RBF kernel depends on the norm of the row, and so on unknown columns.
    if isinstance(fast.model, LinearModel) or fast.model.kernel.name != "rbf":
        more_columns = np.hstack([X, np.ones((5, 100))])
        assert np.array_equal(fast.decision_function(more_columns), fast.decision_function(X))
    np.testing.assert_allclose(
        fast.decision_function(X[:, :30]),
        fast.decision_function(X * (np.arange(X.shape[1]) < 30)),
        rtol=1e-12,
    )


def test_models_of_trees_compile_to_a_tree_classifier():
    path = golden.model_path("svmlight-tk-sst")
    assert isinstance(unkernel.compile(path), unkernel.TreeClassifier)
    with pytest.raises(ValueError, match="one engine"):
        unkernel.compile(path, "expanded")
