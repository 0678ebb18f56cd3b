"""Kernels of dense rows: blocks of rows, one-vs-one classes, and extreme scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import SVC, NuSVC

import unkernel
from reference.kernels import assert_scores, make_pairs_model, polynomial, sizes, slow_votes
from reference.selection import few_examples, parametrize_pairs, slow_after
from unkernel.engines.tables.builders import Machine
from unkernel.models import Decision
from unkernel.models.kernel import Kernel
from unkernel.models.pair_coefficients import PairCoefficients, find_pairs

TOLERANCE = 1e-12  # relative to the sum of the sizes of all terms


def compile_inverted(model: Any) -> Any:
    return unkernel.compile(model, "inverted", measure=False)


def check_scores(model: Any, X: Any) -> Any:
    """Check that scores equal the kernel sum, and do not depend on the number of rows scored together."""
    fast = compile_inverted(model)
    rows = fast._check_rows(X)
    scores = fast.score_csr(rows, 1)
    assert_scores(scores, model, X, TOLERANCE)
    for begin in range(0, len(scores), 7):
        assert (fast.score_csr(rows[begin : begin + 7], 1) == scores[begin : begin + 7]).all()
    for k in range(min(len(scores), 5)):
        row = rows[k : k + 1]
        single_scores = fast._engine.one_row.score_one(row.indices, row.data)
        assert np.atleast_1d(single_scores).tolist() == scores[k].tolist()
    return fast


@pytest.mark.parametrize("classes", slow_after(5, [2, 3, 8, 9, 100, 4, 5, 10, 26]))
@pytest.mark.parametrize("shuffled", [False, True])
def test_one_against_one(classes: int, shuffled: bool) -> None:
    model = make_pairs_model(classes, classes, vectors=300, shuffled=shuffled)
    X = np.random.default_rng(classes).normal(size=(35, 5))
    fast = check_scores(model, X)
    begins = fast.tables.arrays["class_begins"]
    assert len(begins) == classes + 1 and begins[-1] == 300
    assert len(fast.tables.arrays["coefficients"]) == 300 * (classes - 1)
    votes, summary = slow_votes(model.scores(X), classes)
    merits = summary if model.decision.breaks_ties else votes
    expected = model.decision.classes[merits.argmax(axis=1)]
    assert fast.predict(X).tolist() == expected.tolist()
    assert [fast.predict_one(range(5), row) for row in X] == expected.tolist()
    if classes > 2:
        np.testing.assert_allclose(fast.decision_function(X), summary, rtol=1e-9)
        scores_of_rows = [fast.score_one(range(5), row) for row in X[:3]]
        assert scores_of_rows == fast.decision_function(X[:3]).tolist()


KERNELS = [Kernel("rbf", gamma=0.3), polynomial(3), Kernel("sigmoid", gamma=0.2, coef0=-0.1), polynomial(7)]
MODELS = st.builds(
    make_pairs_model,
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.sampled_from(KERNELS),
    vectors=st.integers(0, 540),
    features=st.integers(1, 9),
    share=st.sampled_from([0.0, 0.1, 0.45, 0.6, 1.0]),
)


@few_examples(10)
@given(MODELS, st.integers(1, 40), st.sampled_from([1e-3, 1.0, 30.0]), st.booleans())
def test_random_models(model: Any, rows: int, scale: float, sparse_rows: bool) -> None:
    rng = np.random.default_rng(rows)
    X: Any = scale * rng.normal(size=(rows, model.n_features))
    X *= rng.random(X.shape) < 0.7
    check_scores(model, sparse.csr_matrix(X) if sparse_rows else X)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1.0, 1e9, 1e150])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_extreme_scales(scale: float, offset: float) -> None:
    """Vectors are scaled and moved away from 0; gamma is scaled with their distances."""
    model = make_pairs_model(3, 5, vectors=150, features=6)
    vectors = scale * (model.vectors.toarray() + offset)
    model = replace(model, vectors=vectors, kernel=Kernel("rbf", gamma=0.3 / scale**2))
    X = scale * (np.random.default_rng(0).normal(size=(20, 6)) + offset)
    check_scores(model, X)


@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-3, 1.0, 1e3, 1e300])
def test_any_gamma(gamma: float) -> None:
    model = make_pairs_model(4, 4, Kernel("rbf", gamma=gamma), vectors=140)
    X = np.concatenate([model.vectors.toarray()[:9], np.random.default_rng(1).normal(size=(9, 5))])
    check_scores(model, X)


def test_rows_so_far_that_kernel_values_vanish() -> None:
    model = make_pairs_model(5, 3, vectors=20)
    X = np.full((5, 5), 1e200)
    assert (
        compile_inverted(model).score_csr(compile_inverted(model)._check_rows(X), 1) == model.intercept
    ).all()


def test_values_of_polynomials_that_overflow_are_refused() -> None:
    model = make_pairs_model(5, 3, polynomial(9), vectors=20)
    with pytest.raises(ValueError, match="a score is not finite"):
        compile_inverted(model).predict(np.full((3, 5), 1e200))


@pytest.mark.parametrize("scores", [1, 2, 7, 8, 9, 40, 260])
def test_one_against_the_rest(scores: int) -> None:
    rng = np.random.default_rng(scores)
    decision = Decision("one_vs_rest", np.arange(scores)) if scores > 1 else Decision("binary", np.arange(2))
    model = replace(
        make_pairs_model(1, 3, vectors=200),
        coefficients=rng.normal(size=(200, scores)),
        intercept=rng.normal(size=scores),
        decision=decision,
    )
    X = rng.normal(size=(21, 5))
    fast = check_scores(model, X)
    assert "class_begins" not in fast.tables.arrays
    assert [fast.predict_one(range(5), row) for row in X] == fast.predict(X).tolist()


def test_vectors_of_no_class_keep_all_coefficients() -> None:
    model = make_pairs_model(2, 4, vectors=30)
    model.coefficients[7] = 1.0
    fast = check_scores(model, np.random.default_rng(0).normal(size=(9, 5)))
    assert "class_begins" not in fast.tables.arrays
    assert find_pairs(model.coefficients, 4) is None


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("shuffled", [False, True])
def test_coefficients_of_pairs_equal_the_matrix_of_coefficients(classes: int, shuffled: bool) -> None:
    model = make_pairs_model(classes, classes, shuffled=shuffled)
    result = find_pairs(model.coefficients, classes)
    assert result is not None
    order, pairs = result
    assert isinstance(pairs, PairCoefficients)
    assert (np.asarray(pairs) == model.coefficients[order]).all()
    assert sorted(order) == list(range(60))
    ordered_model = Machine(model).by_class.model
    X = np.random.default_rng(0).normal(size=(6, 5))
    assert (np.abs(ordered_model.scores(X) - model.scores(X)) <= TOLERANCE * sizes(model, X)).all()


@parametrize_pairs(machine=[SVC(C=5.0), NuSVC(nu=0.2)], classes=[2, 5, 26], shape=["ovr", "ovo"])
def test_predictions_equal_scikit_learns(machine: Any, classes: int, shape: str) -> None:
    rng = np.random.default_rng(classes)
    centres = 2.5 * rng.normal(size=(classes, 8))
    y = rng.integers(classes, size=600)
    X = centres[y] + rng.normal(size=(600, 8))
    svc = machine.set_params(decision_function_shape=shape).fit(X, y)
    fast = compile_inverted(svc)
    X = X[:50] + 0.1
    np.testing.assert_allclose(fast.decision_function(X), svc.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(
        [fast.score_one(range(8), row) for row in X], svc.decision_function(X), atol=1e-9
    )
    assert (fast.predict(X) == svc.predict(X)).all()
    assert [fast.predict_one(range(8), row) for row in X] == svc.predict(X).tolist()


def test_files_with_classes_and_without(tmp_path: Any) -> None:
    """Files of older versions have a column of coefficients per pair."""
    model = make_pairs_model(6, 6, vectors=90)
    X = np.random.default_rng(0).normal(size=(9, 5))
    fast = compile_inverted(model)
    fast.save(tmp_path / "new.uk")
    assert (unkernel.load(tmp_path / "new.uk").decision_function(X) == fast.decision_function(X)).all()
    arrays = {name: array for name, array in fast.tables.arrays.items() if name != "class_begins"}
    arrays["coefficients"] = model.coefficients.reshape(-1)
    classifier = type(fast)(model, replace(fast.tables, arrays=arrays), fast.candidates)
    classifier.save(tmp_path / "old.uk")
    loaded = unkernel.load(tmp_path / "old.uk")
    assert_scores(loaded.score_csr(loaded._check_rows(X), 1), model, X, TOLERANCE)
