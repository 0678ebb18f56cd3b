"""Compiled models of real data: labels and scores of all test rows equal scikit-learn's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.svm import SVC

import unkernel
from reference import real_data
from reference.kernels import applicable
from unkernel.models import from_estimator

TASKS = {
    "a9a": (3000, lambda X, y: (X, y > 0)),
    "mnist38": (1500, lambda X, y: (X / 255, y > 0)),
    "arc_eager_ewt": (3000, lambda X, y: (X, y >= 3)),
}
RARE = {"split": (0.0, 0.005, 0.05, 20, 1e9)}


@cache
def task(name):
    """Return some training rows, and all test rows."""
    rows, prepare = TASKS[name]
    train, test = real_data.load(name), real_data.load(name, "test")
    return prepare(train.X[:rows], train.y[:rows]), prepare(test.X, test.y)[0]


@cache
def machine(name, degree):
    (X, y), X_test = task(name)
    gamma = 1.0 / (X.multiply(X).sum() / X.shape[0])  # proportional to a row's norm
    svc = SVC(kernel="poly", degree=degree, gamma=gamma, coef0=1.0).fit(X, y)
    return svc, svc.decision_function(X_test), svc.predict(X_test)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("name", TASKS)
def test_labels_of_every_row(name, degree):
    svc, scores, labels = machine(name, degree)
    X = task(name)[1]
    assert 0.01 < labels.mean() < 0.99
    model = from_estimator(svc)
    assert model.binary == (name != "mnist38")
    # All cubes of 784 pixels would take several hundred megabytes: too much for a test.
    engines = [engine for engine in applicable(model) if (name, degree, engine) != ("mnist38", 3, "expanded")]
    for engine in ("auto", *engines):
        for rare in RARE.get(engine, (0.005,)):
            fast = unkernel.compile(svc, engine, rare=rare, memory="200M", sample=X[:500])
            assert fast.exact
            size = np.abs(model.coefficients).sum() * 2.0**degree
            assert np.abs(fast.decision_function(X) - scores).max() <= 1e-12 * size, (engine, rare)
            assert np.array_equal(fast.predict(X), labels), (engine, rare)
            sample = X[:200]
            rows = zip(sample.indptr, sample.indptr[1:], strict=False)
            one_by_one = [fast.score_one(sample.indices[a:b], sample.data[a:b]) for a, b in rows]
            assert np.array_equal(one_by_one, fast.decision_function(sample))


@pytest.mark.slow
def test_explanations_of_a_parsers_decisions():
    svc, scores, _ = machine("arc_eager_ewt", 2)
    fast = unkernel.compile(svc, "split", memory="200M")
    X = task("arc_eager_ewt")[1]
    for k in range(0, 200, 10):
        explanation = fast.explain(X[[k]])
        total = explanation.intercept + explanation.rest + sum(c.value for c in explanation.contributions)
        assert explanation.score == pytest.approx(total, rel=1e-10, abs=1e-12)
        assert explanation.score == pytest.approx(scores[k], rel=1e-9, abs=1e-9)
        assert explanation.n_conjunctions > len(explanation.contributions) == 10
