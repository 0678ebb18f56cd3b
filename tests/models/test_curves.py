"""Curves from scores to probabilities: storage, checks, and the classifiers that have them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import LinearSVC

import unkernel
from unkernel.models.curves import Curves, Interpolated, Sigmoid
from unkernel.models.decision import Decision

GENERATOR = np.random.default_rng(3)
X = GENERATOR.normal(size=(120, 6))
TWO = np.where(X[:, 0] + 0.3 * GENERATOR.normal(size=120) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.3 * GENERATOR.normal(size=120), [-0.4, 0.4])
LINE = Interpolated(np.array([-1.0, 0.0, 2.0]), np.array([0.1, 0.4, 0.9]))


def test_curves_are_stored() -> None:
    curves = Curves([Sigmoid(-1.5, 0.25), LINE], uniform=False)
    loaded = Curves.from_json(json.loads(json.dumps(curves.to_json())))
    scores = np.linspace(-3, 3, 25)
    assert loaded.uniform is False
    for curve, loaded_curve in zip(curves.of_scores, loaded.of_scores, strict=True):
        assert type(curve) is type(loaded_curve)
        assert curve(scores).tolist() == loaded_curve(scores).tolist()


@pytest.mark.parametrize(
    "stored",
    [
        {"curves": {}, "uniform": True},
        {"curves": [], "uniform": 1},
        {"curves": [3], "uniform": True},
        {"curves": [{"x": [0.0], "y": "1"}], "uniform": True},
        {"curves": [{"a": "1", "b": 0.0}], "uniform": True},
        {"curves": [{"a": 1.0}], "uniform": True},
    ],
)
def test_damaged_curves(stored: dict[str, Any]) -> None:
    with pytest.raises((TypeError, KeyError)):
        Curves.from_json(stored)


@pytest.mark.parametrize(
    ("curve", "why"),
    [
        (Sigmoid(np.nan, 0.0), "not finite"),
        (Sigmoid(1.0, np.inf), "not finite"),
        (Interpolated(np.zeros(0), np.zeros(0)), "no points"),
        (Interpolated(np.zeros(2), np.zeros(3)), "another number"),
        (Interpolated(np.array([1.0, 0.0]), np.zeros(2)), "ascend"),
        (Interpolated(np.array([0.0, 1.0]), np.array([0.0, np.nan])), "finite"),
    ],
)
def test_curves_are_checked(curve: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Curves([curve]).check(2, 1)


def test_each_score_has_a_curve() -> None:
    with pytest.raises(ValueError, match="expected the curves of 3 scores, got 1"):
        Curves([LINE]).check(3, 3)
    with pytest.raises(ValueError, match="expected the curves"):
        Curves([LINE] * 4).check(3, 4)


@pytest.mark.parametrize(
    ("scheme", "probability", "why"),
    [
        ("one_vs_one", Curves([LINE] * 3), "no curve for each score"),
        ("calibrated", None, "needs a curve"),
    ],
)
def test_schemes_without_probabilities_refuse_curves(scheme: str, probability: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Decision(scheme, np.arange(3), probability=probability)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_classifiers_in_files(y: Any, method: str, ensemble: bool, tmp_path: Any) -> None:
    classifier = CalibratedClassifierCV(LinearSVC(), method=method, ensemble=ensemble, cv=3).fit(X, y)
    compiled = unkernel.compile(classifier)
    compiled.save(tmp_path / "calibrated.uk")
    loaded = unkernel.load(tmp_path / "calibrated.uk")
    np.testing.assert_allclose(loaded.predict_proba(X), classifier.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert loaded.predict(X).tolist() == classifier.predict(X).tolist()
    assert loaded.predict_proba(X).tolist() == compiled.predict_proba(X).tolist()


def test_a_frozen_classifier() -> None:
    classifier = CalibratedClassifierCV(FrozenEstimator(LinearSVC().fit(X, TWO))).fit(X, TWO)
    np.testing.assert_allclose(
        unkernel.compile(classifier).predict_proba(X), classifier.predict_proba(X), rtol=1e-9
    )


def test_a_classifier_that_has_not_seen_all_classes() -> None:
    classifier = CalibratedClassifierCV(LinearSVC(), cv=3).fit(X, THREE)
    classifier.calibrated_classifiers_[1].estimator = LinearSVC().fit(X[THREE > 0], THREE[THREE > 0])
    with pytest.raises(ValueError, match="has not seen all classes; fit it with more rows"):
        unkernel.compile(classifier)


def test_a_class_of_no_rows() -> None:
    classifier = OneVsRestClassifier(LinearSVC()).fit(X, THREE)
    constant = OneVsRestClassifier(LinearSVC())
    with pytest.warns(UserWarning, match="present in all training examples"):
        constant.fit(X, np.column_stack([np.ones(120, int), TWO == "yes"]).astype(int))
    classifier.estimators_[0] = constant.estimators_[0]
    with pytest.raises(ValueError, match="a class of all rows or none"):
        unkernel.compile(classifier)


def test_a_pair_without_a_classifier() -> None:
    classifier = OneVsOneClassifier(LinearSVC()).fit(X, THREE)
    classifier.estimators_ = classifier.estimators_[:2]
    with pytest.raises(ValueError, match="another number of classifiers than there are pairs"):
        unkernel.compile(classifier)
