"""Compiled scikit-learn wrappers of several classifiers predict like the wrappers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import unkernel
from unkernel import CuttingPlaneSVC, PolyLogisticRegression, PolySVC, RecordEncoder

X, THREE = make_classification(120, 8, n_informative=5, n_classes=3, random_state=0)
BINARY = (X > 0).astype(float)
RECORDS = [{"a": int(row[0]), "b": str(row[1] > 0), "c": float(row[2])} for row in X]
LABELS = {"two": np.array(["no", "yes"])[THREE % 2], "three": np.array(["a", "b", "c"])[THREE]}
# Classifiers of every form of model: weights of conjunctions, of features, and support vectors.
MEMBERS = [
    PolySVC(storage="condensed", random_state=0),
    PolySVC(storage="kernel", random_state=0),
    PolySVC(degree=3, gamma=0.3, random_state=0),
    PolyLogisticRegression(),
    PolyLogisticRegression(degree=1, penalty="l2"),
    CuttingPlaneSVC(),
    LogisticRegression(),
    RidgeClassifier(),
    SVC(),
    SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.4),
]


def has_clear_winner(scores):
    """Return for each row whether rounding cannot change the label: margins of exactly 1 occur often."""
    if scores.ndim == 1:
        return np.abs(scores) > 1e-9
    two_largest = np.sort(scores, axis=1)[:, -2:]
    return two_largest[:, 1] - two_largest[:, 0] > 1e-9


def check_same(fitted, examples, path):
    """Check labels, scores and probabilities, of many rows and of one, before and after saving."""
    fast = unkernel.compile(fitted, measure=False)
    fast.save(path)
    for compiled in (fast, unkernel.load(path)):
        scores = fitted.decision_function(examples)
        is_certain = has_clear_winner(scores)
        assert is_certain.mean() > 0.9
        labels = fitted.predict(examples)
        np.testing.assert_array_equal(compiled.predict(examples)[is_certain], labels[is_certain])
        np.testing.assert_allclose(
            compiled.decision_function(examples), scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max()
        )
        if hasattr(fitted, "predict_proba"):
            expected = fitted.predict_proba(examples)
            np.testing.assert_allclose(compiled.predict_proba(examples), expected, rtol=1e-9, atol=1e-9)
        row = (
            [examples[0]]
            if isinstance(examples, list)
            else [np.flatnonzero(examples[0]), examples[0][examples[0] != 0]]
        )
        assert compiled.predict_one(*row) == fitted.predict(examples[:1])[0]
    return fast


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: " ".join(str(member).split()))
def test_one_versus_the_rest(member, labels, tmp_path):
    for rows in (X, BINARY):
        fitted = OneVsRestClassifier(member).fit(rows, LABELS[labels])
        check_same(fitted, rows, tmp_path / "model.uk")


@pytest.mark.parametrize(
    "member",
    [
        CuttingPlaneSVC(),
        LogisticRegression(),
        SVC(gamma=0.5),
        SVC(kernel="poly", degree=2, gamma=0.2, coef0=1.0),
    ],
    ids=lambda member: " ".join(str(member).split()),
)
def test_pairs_of_classes(member, tmp_path):
    fitted = OneVsOneClassifier(member).fit(X, LABELS["three"])
    check_same(fitted, X, tmp_path / "model.uk")


@pytest.mark.parametrize("member", [PolySVC(random_state=0), PolyLogisticRegression(), CuttingPlaneSVC()])
def test_records(member, tmp_path):
    fitted = make_pipeline(RecordEncoder(), OneVsRestClassifier(member)).fit(RECORDS, LABELS["three"])
    check_same(fitted, RECORDS, tmp_path / "model.uk")


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (OneVsOneClassifier(PolySVC()), "OneVsRestClassifier, or the classifier inside alone"),
        (OneVsOneClassifier(SVC()), "different kernels.*give gamma a number$"),
        (
            OneVsRestClassifier(make_pipeline(StandardScaler(), LinearSVC())),
            "put it at the end of the pipeline",
        ),
    ],
)
def test_refusals_name_the_remedy(wrapper, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = wrapper.fit(X, THREE)
    with pytest.raises(ValueError, match=message):
        unkernel.compile(fitted)
