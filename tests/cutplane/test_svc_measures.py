"""CuttingPlaneSVC with measures of all predictions as objectives, evaluated by these measures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from reference import cutting_planes as reference
from reference.linear_problems import EXACT, imbalanced_problem, make_problem
from unkernel import CuttingPlaneSVC


def compute_precision(y, scores, k):
    return y[np.argsort(-scores)[:k]].mean()


MEASURES = {
    "f1": lambda y, scores: f1_score(y, scores > 0, zero_division=0.0),
    "break_even": lambda y, scores: compute_precision(y, scores, int(y.sum())),
    "precision_at_k": lambda y, scores: compute_precision(y, scores, 60),
    "roc_area": roc_auc_score,
}


@pytest.mark.parametrize("objective", ["f1", "break_even", "precision_at_k", "roc_area"])
def test_measures_are_optimised(objective):
    X, y = imbalanced_problem()
    hinge = CuttingPlaneSVC(C=0.1, random_state=0).fit(X, y)  # the dual solver: its seed may move a row
    clf = CuttingPlaneSVC(C=0.1, objective=objective, k=60, tol=1e-2).fit(X, y)
    measure = MEASURES[objective]
    assert clf.gap_ <= 1e-2
    assert measure(y, clf.decision_function(X)) >= measure(y, hinge.decision_function(X)) - 1e-9
    if objective == "f1":  # the error rate finds hardly any of the few positive rows
        assert measure(y, clf.decision_function(X)) > measure(y, hinge.decision_function(X)) + 0.05


# If only the order counts, the intercept is set at the end and is no longer part of the objective.
@pytest.mark.parametrize(
    ("objective", "fit_intercept"),
    [("f1", True), ("f1", False), ("break_even", False), ("precision_at_k", False), ("roc_area", False)],
)
def test_reported_objectives_equal_objectives_of_the_weights(objective, fit_intercept):
    X, y = make_problem(6, rows=10, features=3)
    y[:2] = [0, 1]
    options = {"objective": objective, "k": 3, "fit_intercept": fit_intercept}
    clf = CuttingPlaneSVC(C=0.4, **options, **EXACT).fit(X, y)
    pairs = list(reference.ordered_pairs(y))
    cuts = None
    if objective != "roc_area":
        n_positive = {"f1": None, "break_even": int(y.sum()), "precision_at_k": 3}[objective]
        cuts = reference.measure_cuts(y == 1, k=n_positive)

    def risk(scores):
        return (
            reference.ordinal_risk(pairs, 10, scores) if cuts is None else reference.largest_cut(cuts, scores)
        )

    wide = reference.add_constant(X, float(fit_intercept))
    weights = np.append(clf.coef_[0], clf.intercept_[0]) if fit_intercept else clf.coef_[0]
    assert clf.objective_ == pytest.approx(reference.objective(weights, wide, 0.4, risk), rel=1e-8)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(30):
            elsewhere = weights + size * rng.normal(size=len(weights))
            assert reference.objective(elsewhere, wide, 0.4, risk) >= clf.objective_ * (1 - 1.1e-7)


@pytest.mark.parametrize(
    ("objective", "above"), [("roc_area", 150), ("break_even", 150), ("precision_at_k", 149)]
)
def test_the_intercept_sets_the_number_of_positive_predictions(objective, above):
    X, y = imbalanced_problem()
    learner = CuttingPlaneSVC(C=0.1, objective=objective, k=149, tol=1e-2)
    assert y.sum() == 150
    (by_path,) = learner.path(X, y, [0.1])
    assert (learner.fit(X, y).decision_function(X) > 0).sum() == above
    assert learner.predict(X).sum() == above
    assert np.array_equal(by_path.intercept_, learner.intercept_)


def test_measures_of_many_classes_are_one_against_the_rest():
    X, y = make_problem(3, rows=150, classes=3)
    clf = CuttingPlaneSVC(C=0.1, objective="f1", tol=1e-4).fit(X, y)
    binary = [CuttingPlaneSVC(C=0.1, objective="f1", tol=1e-4).fit(X, y == label) for label in range(3)]
    assert np.array_equal(clf.coef_, np.vstack([classifier.coef_ for classifier in binary]))
    assert clf.objective_ == pytest.approx(sum(classifier.objective_ for classifier in binary))
