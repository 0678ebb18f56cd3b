"""Reports of rankings and regressions, compared with the package's measures and scikit-learn."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from sklearn import metrics
from sklearn.svm import SVR

import unkernel
from reference.pages import Page
from unkernel import PolyRegressor, RankSVM
from unkernel.cutplane import ndcg_score, ordered_pairs
from unkernel.report import report

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


@pytest.fixture(scope="module")
def ranked_data():
    generator = np.random.default_rng(0)
    X = generator.random((120, 5)).round(2)
    y = np.digitize(X @ np.arange(5) + 0.5 * generator.normal(size=120), [3, 5, 7])
    qid = np.arange(120) // 8 + 100
    return RankSVM(C=1).fit(X, y, qid=qid), X, y, qid


def test_a_report_of_rankings(ranked_data):
    model, X, y, qid = ranked_data
    ranking_report = model.report(X, y, qid=qid)
    measures = {measure.name: measure for measure in ranking_report.measures["RankSVM"]}
    scores = model.decision_function(X)
    assert measures["ordered pairs"].value == pytest.approx(ordered_pairs(y, scores, qid))
    for depth in (1, 5, 10):
        assert measures[f"NDCG@{depth}"].value == pytest.approx(ndcg_score(y, scores, qid, k=depth))
    for measure in measures.values():
        assert measure.low <= measure.value <= measure.high
    page = Page(ranking_report.html())
    assert page.texts["h2"] == [
        "Model",
        "Data",
        "Quality",
        "Ranking",
        "Heaviest conjunctions",
        "Training",
        "Time and memory",
    ]
    assert len(page.find_elements("svg")) == 4
    assert page.loads == []


def test_rankings_side_by_side_and_without_groups(ranked_data):
    model, X, y, qid = ranked_data
    other_model = RankSVM(C=1e-4).fit(X, y, qid=qid)
    assert "Differences to a" in report({"a": model, "b": other_model}, X, y, qid=qid).html()
    without_groups = model.report(X, y).measures["RankSVM"]
    assert np.isnan([measure.low for measure in without_groups]).all()  # a single query cannot be resampled


def test_labels_that_are_no_grades(ranked_data):
    model, X, y, qid = ranked_data
    words = Page(model.report(X, y - 2, qid=qid).html()).texts["p"]
    assert any("Labels are not grades" in word for word in words)
    with pytest.raises(ValueError, match="labels of a ranking are numbers"):
        model.report(X, np.array(["a"] * len(X)))


def test_a_report_of_numbers():
    generator = np.random.default_rng(0)
    X = generator.random((80, 4)).round(2)
    y = X @ np.arange(4) + 0.3 * generator.normal(size=80)
    fast = unkernel.compile(SVR(kernel="linear").fit(X, y), measure=False)
    numbers_report = fast.report(X, y)
    measures = {measure.name: measure.value for measure in numbers_report.measures["CompiledClassifier"]}
    predictions = fast.predict(X)
    assert measures == pytest.approx(
        {
            "R squared": metrics.r2_score(y, predictions),
            "root mean squared error": metrics.root_mean_squared_error(y, predictions),
            "mean absolute error": metrics.mean_absolute_error(y, predictions),
        }
    )
    page = Page(numbers_report.html())
    assert {"Values", "Mistakes"} <= set(page.texts["h2"])
    with pytest.raises(ValueError, match="right answers of a regression must be numbers"):
        fast.report(X, np.array(["a"] * len(X)))


def test_a_report_of_counts():
    generator = np.random.default_rng(0)
    X = generator.random((80, 4)).round(2)
    y = generator.poisson(np.exp(X @ np.arange(4)))
    fast = unkernel.compile(PolyRegressor(loss="poisson", C=0.1).fit(X, y), measure=False)
    counts_report = report({"counts": fast, "again": fast}, X, y)
    measures = {measure.name: measure.value for measure in counts_report.measures["counts"]}
    predictions = fast.predict(X)
    assert measures == pytest.approx(
        {
            "R squared": metrics.r2_score(y, predictions),
            "root mean squared error": metrics.root_mean_squared_error(y, predictions),
            "mean absolute error": metrics.mean_absolute_error(y, predictions),
            "Poisson deviance": metrics.mean_poisson_deviance(y, predictions),
        }
    )
    page = Page(counts_report.html())
    assert {"Values", "Mistakes"} <= set(page.texts["h2"])
    assert "Differences to counts" in counts_report.html()
    assert "the mean of a count, exp(score)" in page.texts["td"]
    worst = np.abs(predictions - y).argmax()
    assert any(f"{y[worst]} is right" in title for title in page.texts["h4"])
    # With negative values, the deviance is unknown.
    measures = fast.report(X, y - 5).measures["CompiledClassifier"]
    assert "Poisson deviance" not in {measure.name for measure in measures}
