"""Models of pairs whose weights are short have an engine of their own, which shows by its size alone."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.conjunctions import score
from reference.models import make_model
from unkernel import CompiledClassifier, load
from unkernel.engines import build


def short_model(seed, *, used=7, n_features=9, classes=4, unit=1 / 64, degree=2):
    model = make_model(
        seed, degree=degree, sets=True, used=used, n_features=n_features, classes=range(classes), share=0.6
    )
    return with_weights(model, lambda weights: unit * np.round(weights / unit))


def with_weights(model, change):
    return dataclasses.replace(model, weights=change(model.weights), constants=change(model.constants))


@given(seed=st.integers(0, 2**32), classes=st.integers(3, 9), binary=st.booleans())
@settings(max_examples=60, deadline=None)
def test_scores_are_the_sums_over_conjunctions(seed, classes, binary):
    model = short_model(seed, classes=classes)
    assert build.int16_pair_engine(model) is not None
    rng = np.random.default_rng(seed)
    X = (rng.random((8, model.n_features)) < 0.6).astype(float)
    X = X if binary else X * np.round(rng.normal(size=X.shape), 2)
    compiled = CompiledClassifier(model)
    expected = np.array([score(model, x) for x in X])
    # Sums of integers know no rounding.
    np.testing.assert_allclose(
        compiled.decision_function(X), expected, rtol=0 if binary else 1e-12, atol=1e-11
    )
    np.testing.assert_array_equal(compiled.predict(X), model.classes[expected.argmax(axis=1)])


def test_it_is_smaller_than_tables_and_answers_the_same(tmp_path):
    rng = np.random.default_rng(0)
    model = short_model(1, used=150, n_features=150, classes=5)
    X = (rng.random((200, 150)) < 0.2).astype(float)
    compiled = CompiledClassifier(model)
    tables = CompiledClassifier(model, build.conjunctions(model, head=build.default_head(model)))
    assert compiled.nbytes < 0.5 * tables.nbytes
    np.testing.assert_allclose(
        compiled.decision_function(X), tables.decision_function(X), rtol=1e-13, atol=1e-13
    )
    assert compiled.trie is None
    compiled.save(tmp_path / "short.uk")
    for again in (load(tmp_path / "short.uk"), pickle.loads(pickle.dumps(compiled))):
        np.testing.assert_array_equal(again.decision_function(X), compiled.decision_function(X))
        assert again.nbytes == compiled.nbytes


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(short_model(2, classes=2), id="one score"),
        pytest.param(short_model(2, degree=3), id="degree 3"),
        pytest.param(short_model(2, degree=1), id="degree 1"),
        pytest.param(
            with_weights(short_model(2), lambda weights: weights / 3), id="weights that are not short"
        ),
        pytest.param(
            with_weights(short_model(2), lambda weights: weights * 2.0**20 + (weights > 0)), id="long ones"
        ),
    ],
)
def test_other_models_have_tables(model):
    assert build.int16_pair_engine(model) is None
    x = np.ones(model.n_features)
    scores = np.ravel(CompiledClassifier(model).decision_function([x]))
    np.testing.assert_allclose(scores, np.ravel(score(model, x)), rtol=1e-9)
