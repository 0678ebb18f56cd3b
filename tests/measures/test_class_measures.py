"""Measures and intervals, compared with scikit-learn's and scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics
from sklearn.datasets import load_iris

from unkernel import PolyLogisticRegression, PolySVC
from unkernel.data.rows.csr import canonical_rows
from unkernel.measures import class_measures as named
from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.detection import Detection, roc_area
from unkernel.measures.intervals import (
    bootstrap,
    compute_central_interval,
    compute_wilson_interval,
    draw_resamples,
)
from unkernel.measures.predictions import Examples, find_class_indices, predict_examples
from unkernel.report.sections.agreement import compute_mcnemar_p
from unkernel.report.sections.calibration import compute_expected_error, make_bins

SCORED = st.lists(
    st.tuples(st.integers(-5, 5), st.booleans(), st.integers(0, 3)), min_size=2, max_size=40
).filter(lambda rows: {positive for _, positive, count in rows if count} == {False, True})


@given(SCORED)
def test_areas_equal_scikit_learns(rows):
    scores, positive, counts = (np.array(column) for column in zip(*rows, strict=True))
    curve = Detection(scores.astype(float), positive.astype(bool)).curve(counts)
    assert curve.roc_area() == pytest.approx(metrics.roc_auc_score(positive, scores, sample_weight=counts))
    expected = metrics.average_precision_score(positive, scores, sample_weight=counts)
    assert curve.average_precision() == pytest.approx(expected)
    assert curve.true_positives[-1] == counts[positive].sum() == curve.positives


def test_the_area_of_one_class_is_undefined():
    assert roc_area(np.array([1.0, 2.0]), np.array([True, True])) is None
    assert roc_area(np.empty(0), np.empty(0, dtype=bool)) is None


@pytest.mark.parametrize(("part", "whole"), [(0, 5), (3, 7), (50, 50), (999, 1000)])
def test_wilson_intervals_equal_scipys(part, whole):
    expected = stats.binomtest(part, whole).proportion_ci(method="wilson")
    assert compute_wilson_interval(part, whole) == pytest.approx((expected.low, expected.high))
    assert np.isnan(compute_wilson_interval(0, 0)).all()


def test_all_models_share_bootstrap_draws():
    drawn = [counts.sum() for counts in draw_resamples(50)]
    assert set(drawn) == {50}
    assert all(
        (one == other).all() for one, other in zip(draw_resamples(50), draw_resamples(50), strict=True)
    )


def test_the_interval_of_a_mean_is_about_the_interval_of_its_deviation():
    values = np.random.default_rng(3).normal(size=2000)
    samples = bootstrap(lambda counts: {"mean": np.average(values, weights=counts)}, len(values))
    low, high = compute_central_interval(samples["mean"])
    assert high - low == pytest.approx(2 * 1.96 / np.sqrt(len(values)), rel=0.2)
    assert low < values.mean() < high
    assert np.isnan(compute_central_interval(np.array([np.nan, 1.0]))).all()


@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 9), (40, 20), (700, 600)])
def test_mcnemar_equals_the_binomial_test(first, second):
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert compute_mcnemar_p(first, second) == pytest.approx(expected, rel=0.02)


def measure_classes(model, X, y):
    classifier = model._fitted_classifier
    return ClassMeasures(predict_examples("m", classifier, canonical_rows(X), Examples(np.asarray(y))))


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return (X.mean(axis=0) < X).astype(float), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_of_three_classes(iris, weighted):
    X, y = iris
    result = measure_classes(PolyLogisticRegression(degree=2).fit(X, y), X, y)
    counts = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else np.ones(len(y), dtype=int)
    values, predicted = (
        result.values(counts),
        result.predictions.decision.classes[result.predictions.predicted],
    )
    expected = {
        named.ACCURACY: metrics.accuracy_score(y, predicted, sample_weight=counts),
        named.BALANCED: metrics.balanced_accuracy_score(y, predicted, sample_weight=counts),
        named.MACRO_F1: metrics.f1_score(y, predicted, average="macro", sample_weight=counts),
        named.CORRELATION: metrics.matthews_corrcoef(y, predicted, sample_weight=counts),
        named.LOG_LOSS: metrics.log_loss(y, result.predictions.probabilities, sample_weight=counts),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert named.ROC_AREA not in values
    assert (result.confusion == metrics.confusion_matrix(y, predicted)).all()


def test_measures_of_two_classes(iris):
    X, y = iris
    two = np.where(y == "a", "a", "b")
    y = np.where(np.arange(len(two)) % 9 == 0, "a", two)  # some that cannot be predicted
    result = measure_classes(PolyLogisticRegression(degree=2).fit(X, y), X, y)
    predicted, positive = (
        result.predictions.decision.classes[result.predictions.predicted],
        result.predictions.probabilities[:, 1],
    )
    expected = {
        named.PRECISION: metrics.precision_score(y, predicted, pos_label="b"),
        named.RECALL: metrics.recall_score(y, predicted, pos_label="b"),
        named.F1: metrics.f1_score(y, predicted, pos_label="b"),
        named.ROC_AREA: metrics.roc_auc_score(y, positive),
        named.AVERAGE_PRECISION: metrics.average_precision_score(y, positive, pos_label="b"),
        named.BRIER: metrics.brier_score_loss(y, positive, pos_label="b"),
    }
    measures = {measure.name: measure for measure in result.measures}
    assert {name: measures[name].value for name in expected} == pytest.approx(expected)
    for one in measures.values():
        assert one.low <= one.value <= one.high, one
    assert measures[named.PRECISION].method == "Wilson"
    assert measures[named.F1].method == "bootstrap"


def test_labels_that_a_model_does_not_know():
    classes = np.array([3, 1, 2])
    assert find_class_indices(np.array([1.0, 3.0]), classes, "m", "row").tolist() == [1, 0]
    assert find_class_indices(np.array(["2", "3"]), classes, "m", "row").tolist() == [2, 0]
    with pytest.raises(ValueError, match=r"1 row of 2 have labels that the model m does not know \(7\)"):
        find_class_indices(np.array([1, 7]), classes, "m", "row")


def test_probabilities_are_binned_by_tenths():
    predicted = np.repeat([0.2, 0.8], 50)
    result = make_bins(predicted, np.arange(100) % 5 == 0)
    content = [(round(one.predicted, 9), one.observed, one.count) for one in result]
    assert content == [(0.2, 0.2, 50), (0.8, 0.2, 50)]
    assert compute_expected_error(result) == pytest.approx(0.3)
    assert [one.count for one in make_bins(np.linspace(0, 1, 100), np.ones(100, dtype=bool))] == [10] * 10


def test_scores_of_several_calibrated_classifiers_are_probabilities(iris):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    import unkernel

    X, y = iris
    two = np.where(y == "a", "a", "b")
    model = CalibratedClassifierCV(SVC(kernel="poly", degree=2, gamma=0.5), cv=2).fit(X, two)
    result = ClassMeasures(
        predict_examples("m", unkernel.compile(model, measure=False), canonical_rows(X), Examples(two))
    )
    expected = metrics.roc_auc_score(two, model.predict_proba(X)[:, 1])
    assert result.values()[named.ROC_AREA] == pytest.approx(expected)


def test_a_model_without_probabilities_has_no_losses(iris):
    X, y = iris
    assert named.LOG_LOSS not in measure_classes(PolySVC(degree=2).fit(X, y), X, y).values()
