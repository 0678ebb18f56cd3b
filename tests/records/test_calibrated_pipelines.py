"""Compiled ``CalibratedClassifierCV`` of pipelines gives scikit-learn's probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import unkernel
from reference.selection import parametrize_pairs
from unkernel import PolySVC, RecordEncoder

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 4)) + 7.0
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "big"]
TEXTS = [" ".join(RNG.choice(WORDS, 5)) for _ in range(60)]
RECORDS = [{"job": str(RNG.integers(4)), "city": str(RNG.integers(5))} for _ in range(60)]
TWO, THREE = np.array(["no", "yes"])[np.arange(60) % 2], np.arange(60) % 3


def check_answers(calibrated, X, path):
    fast = unkernel.compile(calibrated, measure=False)
    fast.save(path)
    chances = calibrated.predict_proba(X)
    for model in (fast, unkernel.load(path)):
        np.testing.assert_allclose(model.predict_proba(X), chances, rtol=1e-9, atol=1e-9)
        two = np.sort(chances, axis=1)[:, -2:]
        sure = two[:, 1] - two[:, 0] > 1e-9
        np.testing.assert_array_equal(model.predict(X)[sure], calibrated.predict(X)[sure])


@parametrize_pairs(
    labels=[TWO, THREE],
    method=["sigmoid", "isotonic"],
    ensemble=[True, False],
    last=[LinearSVC(), LogisticRegression(), SGDClassifier(random_state=0)],
)
def test_rows_and_texts(labels, method, ensemble, last, tmp_path):
    options = {"method": method, "ensemble": ensemble, "cv": 3}
    for first, X in ((StandardScaler(), ROWS), (TfidfVectorizer(), TEXTS)):
        calibrated = CalibratedClassifierCV(make_pipeline(first, last), **options)
        check_answers(calibrated.fit(X, labels), X, tmp_path / "model.uk")


def test_one_pipeline_may_end_with_any_classifier(tmp_path):
    path = tmp_path / "model.uk"
    kernel = make_pipeline(StandardScaler(), SVC(gamma=0.1))
    check_answers(CalibratedClassifierCV(kernel, ensemble=False).fit(ROWS, TWO), ROWS, path)
    mapped = make_pipeline(StandardScaler(), PCA(2), LinearSVC())
    check_answers(CalibratedClassifierCV(mapped, ensemble=False).fit(ROWS, THREE), ROWS, path)
    encoded = make_pipeline(RecordEncoder(min_count=1), PolySVC(gamma=1, C=0.1))
    check_answers(CalibratedClassifierCV(encoded, cv=2, ensemble=False).fit(RECORDS, TWO), RECORDS, path)
    frozen = FrozenEstimator(make_pipeline(TfidfVectorizer(), LinearSVC()).fit(TEXTS, THREE))
    check_answers(CalibratedClassifierCV(frozen).fit(TEXTS, THREE), TEXTS, path)


def test_the_best_of_a_search(tmp_path):
    calibrated = CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), cv=2)
    search = GridSearchCV(calibrated, {"method": ["sigmoid", "isotonic"]}, cv=2).fit(ROWS, TWO)
    check_answers(search, ROWS, tmp_path / "model.uk")


@pytest.mark.parametrize(
    ("pipeline", "X", "message"),
    [
        (
            make_pipeline(StandardScaler(), SVC()),
            ROWS,
            "end with SVC is not supported",
        ),
        (make_pipeline(RecordEncoder(), LinearSVC()), RECORDS, "begin with a RecordEncoder is not supported"),
        (make_pipeline(StandardScaler(), PCA(2), LinearSVC()), ROWS, "only before a linear model"),
    ],
)
def test_refused_folds(pipeline, X, message):
    with pytest.raises(ValueError, match=message):
        unkernel.compile(CalibratedClassifierCV(pipeline, cv=2).fit(X, TWO))
