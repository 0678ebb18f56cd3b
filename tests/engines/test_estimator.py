"""Compiled classifiers are estimators of scikit-learn without its base classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import unkernel

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (60, 5)).astype(float)
Y = np.array(["odd", "even"])[(X[:, 0] + X[:, 1]).astype(int) % 2]
FAST = unkernel.compile(SVC(kernel="poly", degree=2, coef0=1).fit(X, Y), measure=False)
TREES = ["(S (NP dogs) (VP bark))", "(NP (NP cats) (PP of))", "(S (NP cats) (VP bark))"]
OF_TREES = unkernel.compile(unkernel.TreeSVC().fit(TREES, [1, 0, 1]))
rows_and_trees = pytest.mark.parametrize("fast", [FAST, OF_TREES], ids=["rows", "trees"])


@rows_and_trees
def test_scikit_learn_recognises_classifiers(fast):
    assert not isinstance(fast, BaseEstimator)
    assert is_classifier(fast)
    check_is_fitted(fast)
    tags = get_tags(fast)
    assert (tags.estimator_type, tags.target_tags.required) == ("classifier", True)
    assert (tags.input_tags.sparse, tags.input_tags.two_d_array) == (fast is FAST, fast is FAST)
    assert fast._estimator_type == "classifier"
    assert fast.get_params()["model"] is fast.model
    assert fast.set_params() is fast
    with pytest.raises(TypeError, match="immutable"):
        fast.set_params(model=None)
    with pytest.raises(TypeError, match="cannot be fitted"):
        fast.fit(X, Y)


@rows_and_trees
def test_a_clone_shares_the_model(fast):
    other = clone(fast)
    assert other is not fast
    assert other.model is fast.model


def test_inside_other_estimators():
    calibrated = CalibratedClassifierCV(FrozenEstimator(FAST)).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (60, 2)
    pipeline = make_pipeline(Binarizer(), FAST)
    assert np.array_equal(pipeline.predict(X), FAST.predict(X))
    assert pipeline.score(X, Y) == FAST.score(X, Y)
    assert get_scorer("roc_auc")(FAST, X, Y) > 0.9
    voting = VotingClassifier([("a", FAST), ("b", SVC())])
    assert voting.get_params()["a"] is FAST


@pytest.mark.parametrize("labels", [Y, Y.tolist(), Y.astype(object), Y[:, None]])
def test_the_score_is_the_accuracy(labels):
    label_list = np.asarray(labels).reshape(-1)
    other_labels = np.where(np.arange(60) < 20, "even", label_list)
    for weight in (None, np.arange(60.0), np.ones(60)):
        expected = accuracy_score(other_labels, FAST.predict(X), sample_weight=weight)
        assert FAST.score(X, other_labels.reshape(np.shape(labels)), weight) == pytest.approx(
            expected, rel=1e-15
        )


def test_the_score_of_a_regression():
    values = X @ np.arange(5) + RNG.normal(size=60)
    svr = SVR().fit(X, values)
    fast = unkernel.compile(svr, measure=False)
    weight = RNG.random(60)
    assert fast._estimator_type == "regressor"
    assert fast.score(X, values) == pytest.approx(r2_score(values, svr.predict(X)))
    assert fast.score(X, values, weight) == pytest.approx(
        r2_score(values, svr.predict(X), sample_weight=weight)
    )


@pytest.mark.parametrize(
    ("labels", "weight", "message"),
    [
        (Y[:-1], None, "inconsistent numbers of samples: 60 and 59"),
        (np.stack([Y, Y], axis=1), None, "1d array"),
        (np.zeros(60), None, "y holds numbers, but the model predicts text"),
        (Y, np.ones(59), "inconsistent numbers"),
    ],
)
def test_labels_that_cannot_be_compared(labels, weight, message):
    with pytest.raises(ValueError, match=message):
        FAST.score(X, labels, weight)


def test_missing_labels_are_refused():
    with pytest.raises(ValueError, match="y contains NaN"):
        OF_TREES.score(TREES, [1.0, np.nan, 0.0])


def test_probabilities_exist_only_where_the_model_has_them():
    assert not hasattr(FAST, "predict_proba")
    with pytest.raises(AttributeError, match="no parameters of probabilities"):
        _ = FAST.predict_proba
    log_linear = unkernel.compile(unkernel.PolyLogisticRegression().fit(X, Y), measure=False)
    assert log_linear.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(60))
    assert type(log_linear).predict_proba.__doc__.startswith("Predict the probability of each class")
