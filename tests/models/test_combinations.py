"""Models of votes and stacks of linear estimators predict like scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.svm import SVC, LinearSVC, LinearSVR

from reference.selection import parametrize_pairs
from unkernel.models import from_estimator, load_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
VALUES = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=80)
TWO, THREE = np.array(["no", "yes"])[(VALUES > 0).astype(int)], np.digitize(VALUES, [-1, 1]) * 10
REGRESSIONS = [("one", Ridge()), ("two", LinearSVR()), ("three", LinearRegression())]
PROBABLE = [("one", LogisticRegression(C=0.1)), ("two", SGDClassifier(loss="modified_huber", random_state=0))]
SCORED = [("one", LinearSVC()), ("two", LogisticRegression()), ("three", RidgeClassifier())]


def check_answers(estimator, path):
    model = from_estimator(estimator)
    model.save(path)
    for one in (model, load_model(path)):
        scores = one.scores(X)
        own = estimator.predict(X)
        if one.decision.scheme == "regression":
            np.testing.assert_allclose(one.decision.choose(scores), own, rtol=1e-9)
            continue
        np.testing.assert_array_equal(one.decision.choose(scores), own)
        if one.decision.probability is not None:
            chances = one.decision.probabilities(scores)
            np.testing.assert_allclose(chances, estimator.predict_proba(X), rtol=1e-9, atol=1e-9)
        if hasattr(estimator, "decision_function"):
            np.testing.assert_allclose(one.decision.decide(scores), estimator.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("weights", [None, [2, 2]])
def test_soft_votes(weights, tmp_path):
    check_answers(VotingClassifier(PROBABLE, voting="soft", weights=weights).fit(X, TWO), tmp_path / "m.uk")


@pytest.mark.parametrize("weights", [None, [1, 2, 0.5]])
def test_mean_values(weights, tmp_path):
    check_answers(VotingRegressor(REGRESSIONS, weights=weights).fit(X, VALUES), tmp_path / "m.uk")
    dropped = [REGRESSIONS[0], ("gone", "drop"), REGRESSIONS[2]]
    check_answers(VotingRegressor(dropped, weights=weights).fit(X, VALUES), tmp_path / "m.uk")


@parametrize_pairs(passthrough=[True, False], labels=[TWO, THREE], final=[None, LinearSVC()])
def test_stacks(passthrough, labels, final, tmp_path):
    options = {"passthrough": passthrough, "final_estimator": final}
    stack = StackingClassifier(SCORED, stack_method="decision_function", **options)
    check_answers(stack.fit(X, labels), tmp_path / "m.uk")
    if final is None:
        check_answers(StackingRegressor(REGRESSIONS, **options).fit(X, VALUES), tmp_path / "m.uk")


@pytest.mark.parametrize(
    ("estimator", "labels", "message"),
    [
        (VotingClassifier(PROBABLE), TWO, "with voting='soft' and equal weights only"),
        (VotingClassifier(PROBABLE, voting="soft", weights=[1, 2]), TWO, "equal weights only"),
        (VotingClassifier(PROBABLE, voting="soft"), THREE, "of 3 classes is not supported"),
        (VotingClassifier([("one", SVC(probability=True))], voting="soft"), TWO, "VotingClassifier of SVC"),
        (StackingClassifier(PROBABLE), TWO, "fit it with stack_method='decision_function'"),
        (
            StackingClassifier([("one", SVC())], stack_method="decision_function"),
            TWO,
            "of SVC is not supported",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_refused_combinations(estimator, labels, message):
    with pytest.raises(ValueError, match=message):
        from_estimator(estimator.fit(X, labels))
