"""Reports: pages have the expected contents, escape all data and load no other resource."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import unkernel
from reference.pages import Page
from unkernel import PolyLogisticRegression, PolySVC, RecordEncoder, TreeSVC
from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.permutation import compute_permutation_losses
from unkernel.measures.predictions import Examples, predict_examples
from unkernel.report import report
from unkernel.report.markup import clean_text, element, escape_html, table
from unkernel.report.options import Costs
from unkernel.report.sections.thresholds import BEST_F1, CHEAPEST, MODEL_THRESHOLD, choose_thresholds

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)

HOSTILE = '<script>alert("1")</script>&\'"$x$_\x00\x1b[31m{}%s'
SECTIONS = {"Model", "Data", "Quality", "Confusion", "Curves", "Calibration", "Thresholds"}
SECTIONS |= {"Columns", "Heaviest conjunctions", "Mistakes", "Training", "Time and memory"}


def people(count: int, job: str = "pilot", rich: str = "yes") -> tuple[list[dict], list[str]]:
    generator = np.random.default_rng(0)
    ages = generator.integers(18, 80, count).tolist()
    jobs = generator.choice(np.array(["clerk", job], dtype=object), count).tolist()
    records = [{"age": age, "job": job_of} for age, job_of in zip(ages, jobs, strict=True)]
    noise = generator.random(count) < 0.1
    labels = [
        rich if ((record["age"] > 45) == (record["job"] == job)) != flip else "no"
        for record, flip in zip(records, noise, strict=True)
    ]
    return records, labels


@pytest.fixture(scope="module")
def records() -> SimpleNamespace:
    X, y = people(300)
    pipeline = make_pipeline(RecordEncoder(), PolyLogisticRegression(degree=2)).fit(X, y)
    fast = unkernel.compile(pipeline)
    return SimpleNamespace(fast=fast, X=X, y=y, report=fast.report(X, y, costs=(1, 5)))


def test_a_report_of_records(records, tmp_path):
    page = Page(records.report.html())
    assert set(page.texts["h2"]) == SECTIONS
    assert "RecordClassifier" in page.texts["h1"][0]
    assert page.loads == []
    assert page.find_elements("script") == []
    records.report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes().decode() == records.report.html()


def test_a_page_can_be_read_by_all(records):
    page, text = Page(records.report.html()), records.report.html()
    assert page.find_elements("html") == [{"lang": "en"}]
    assert len(page.find_elements("table")) == len(page.find_elements("caption")) > 5
    assert all(element["scope"] in ("row", "col") for element in page.find_elements("th"))
    pictures = page.find_elements("svg")
    assert len(pictures) == 9  # three of them show what columns contribute
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in pictures)
    assert all(f'href="#{element["id"]}"' in text for element in page.find_elements("section"))
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    element_ids = [element["id"] for _, element in page.elements if element.get("id")]
    assert len(element_ids) == len(set(element_ids))
    assert "#010203" not in text  # text of figures has the page's colour


@pytest.mark.slow
def test_equal_examples_give_equal_pages_except_for_times(records):
    repeated = records.fast.report(records.X, records.y, costs=(1, 5))
    assert repeated.measures == records.report.measures
    same = [
        section == other_section
        for section, other_section in zip(repeated.sections, records.report.sections, strict=True)
        if section.title != "Time and memory"
    ]
    assert all(same)


def test_measures_as_a_frame(records):
    pytest.importorskip("pandas")
    frame = records.report.to_frame()
    assert frame.columns.tolist() == ["model", "measure", "value", "low", "high", "interval"]
    assert frame.measure[0] == "accuracy"
    assert frame.value[0] == records.fast.score(records.X, records.y)


def test_notebooks_show_reports_in_a_frame(records):
    page = Page(records.report._repr_html_())
    ((tag, attributes),) = page.elements
    assert tag == "iframe"
    assert attributes["sandbox"] == ""
    assert attributes["srcdoc"] == records.report.html()


def test_data_is_escaped_in_html():
    X, y = people(120, job=HOSTILE, rich=HOSTILE)
    X = [{HOSTILE: record["age"], "<b>job": record["job"]} for record in X]
    pipeline = make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y)
    fast = unkernel.compile(pipeline)
    hostile_report = report({HOSTILE: fast, "_b": fast}, X, y, title=HOSTILE + "\ud800")
    page = Page(hostile_report.html())  # every element is closed
    assert page.find_elements("script") == page.find_elements("b") == []
    assert page.loads == []
    assert clean_text(HOSTILE + "\ud800") in page.texts["h1"]
    assert not {"\x00", "\x1b"} & set(hostile_report.html())
    hostile_report.html().encode()
    for shown_object in (fast, fast.to_model(), fast.explain_one(X[0])):
        assert Page(shown_object._repr_html_()).find_elements("script") == []


def test_the_page_begins_with_three_sentences(records):
    people_report = records.fast.report(records.X, records.y, train=(records.X, records.y))
    quality, against, fails = people_report.summary["RecordClassifier"]
    assert quality.startswith("Accuracy")
    assert "95 % interval" in quality
    assert "the most frequent class" in against
    assert "A linear model of the same features" in against
    assert "the model is better by" in against
    assert fails.startswith("Fails most on class")
    assert Page(people_report.html()).texts["li"][0] == quality
    assert "linear" not in records.report.summary["RecordClassifier"][1]


def test_no_linear_baseline_of_trees_and_of_other_lengths(records):
    with pytest.raises(ValueError, match="inconsistent"):
        records.fast.report(records.X, records.y, train=(records.X, records.y[1:]))
    trees = TreeSVC().fit(["(A a)", "(B b)"], ["a", "b"])
    with pytest.raises(ValueError, match="omit train"):
        trees.report(["(A a)"], ["a"], train=(["(A a)"], ["a"]))


def test_without_records_no_example_is_shown(records):
    X = [record | {"name": f"person {number}"} for number, record in enumerate(records.X)]
    without_records = records.fast.report(X, records.y, records=False)
    assert {section.title for section in without_records.sections} == SECTIONS - {"Mistakes"}
    assert "person" not in without_records.html()


def test_a_column_that_decides_is_more_important_than_noise():
    generator = np.random.default_rng(0)
    X = [{"age": age, "noise": noise} for age, noise in generator.integers(0, 90, (300, 2)).tolist()]
    y = ["old" if record["age"] > 45 else "young" for record in X]
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y), measure=False)
    measures = ClassMeasures(predict_records(fast, X, y))
    name, losses = compute_permutation_losses(measures, n_repeats=5, max_records=2000)
    assert name == "accuracy"
    assert losses["age"].mean() > 0.2 > abs(losses["noise"].mean()) * 2


def predict_records(fast, X: list[dict], y: list[str]):
    return predict_examples("fast", fast, fast.plan.encode(X, 1), Examples(np.array(y), unit="record"))


def test_text_is_escaped_in_html():
    assert escape_html("<a&\"'>") == "&lt;a&amp;&quot;&#x27;&gt;"
    assert element("p", "<", element("b", "x"), class_='"') == '<p class="&quot;">&lt;<b>x</b></p>'
    assert "<td" in table(["<a>", "b"], [["1", "2"]], caption="c")
    assert "<a>" not in table(["<a>", "b"], [["<a>", "<a>"]], caption="<a>", texts=[1])
    assert escape_html("\x00\ud800a\ufffe") == "��a�"


@pytest.fixture(scope="module")
def iris() -> SimpleNamespace:
    X, y = load_iris(return_X_y=True)
    X = (np.median(X, axis=0) < X).astype(float)
    return SimpleNamespace(X=X, y=y, model=PolySVC(degree=2).fit(X, y))


def test_a_report_of_rows_and_many_classes(iris):
    iris_report = iris.model.report(iris.X, iris.y)
    page = Page(iris_report.html())
    assert set(page.texts["h2"]) == SECTIONS - {"Thresholds", "Columns"}
    assert {"feature 0", "feature 3"} & set(page.texts["th"])
    assert any("There are no probabilities" in words for words in page.texts["p"])
    assert iris_report.measures["PolySVC"][0].value == iris.model.score(iris.X, iris.y)


def test_costs_are_for_two_classes(iris):
    with pytest.raises(ValueError, match="costs is for two classes; the model has 3"):
        iris.model.report(iris.X, iris.y, costs=(1, 5))


def test_models_side_by_side(iris):
    other_model = PolyLogisticRegression(degree=1).fit(iris.X, iris.y)
    both_report = report({"svm": iris.model, "odds": unkernel.compile(other_model)}, iris.X, iris.y)
    page = Page(both_report.html())
    assert "Agreement" in page.texts["h2"]
    assert list(both_report.measures) == ["svm", "odds"]
    assert {"svm", "odds"} <= set(page.texts["th"])
    assert any("svm and odds" in words for words in page.texts["th"])


def test_a_report_of_trees():
    trees = ["(S (NP dogs) (VP bark))", "(NP (NP cats) (PP of))", "(S (NP cats) (VP bark))"] * 5
    labels = ["S", "NP", "S"] * 4 + ["S", "NP", "NP"]
    fast = unkernel.compile(TreeSVC().fit(trees, labels))
    page = Page(fast.report(trees, labels).html())
    assert {"Mistakes", "Heaviest fragments"} <= set(page.texts["h2"])
    drawings = [picture["aria-label"] for picture in page.find_elements("svg")]
    assert "(S (NP cats) (VP bark))" in drawings  # a mistake
    assert any("..." in words for words in drawings)  # a fragment


def test_reports_say_why_a_model_is_not_explained(iris):
    from sklearn.svm import SVC

    fast = unkernel.compile(SVC(kernel="rbf").fit(iris.X, iris.y == 0), measure=False)
    labels = np.where(np.arange(len(iris.y)) == 0, False, iris.y == 0)
    words = Page(fast.report(iris.X, labels).html()).texts["p"]
    assert any("not a sum over few conjunctions" in word for word in words)


@pytest.mark.parametrize(
    ("X", "y", "reason"),
    [
        ([[0.0] * 4], [7], "labels that the model PolySVC does not know"),
        ([[0.0] * 4] * 2, [1], "inconsistent numbers of samples: 2 and 1"),
        (np.empty((0, 4)), [], "empty|0 sample"),
        ([[0.0] * 4], [[1]], "y should be a 1d array"),
    ],
)
def test_examples_that_are_refused(iris, X, y, reason):
    with pytest.raises(ValueError, match=reason):
        iris.model.report(X, y)


def test_models_with_different_classes_are_not_compared(iris):
    binary = PolySVC(degree=1).fit(iris.X, iris.y == 0)
    with pytest.raises(ValueError, match="a and b cannot be compared: one answers with 0, 1, 2, the other"):
        report({"a": iris.model, "b": binary}, iris.X, iris.y)
    with pytest.raises(TypeError, match="there is no report of a dict_keys"):
        report({}.keys(), iris.X, iris.y)


def test_thresholds_equal_those_computed_by_hand(records):
    from unkernel.measures.predictions import Examples, predict_examples

    rows = records.fast.plan.encode(records.X)
    predictions = predict_examples("m", records.fast, rows, Examples(np.array(records.y)))
    curve = predictions.detection.curve()
    index_of = {
        reason: index
        for index, reasons in choose_thresholds(predictions, Costs(1, 5)).items()
        for reason in reasons
    }
    n_predicted = np.count_nonzero(records.fast.predict(records.X) == "yes")
    index = index_of[MODEL_THRESHOLD]
    assert curve.true_positives[index] + curve.false_positives[index] == n_predicted
    assert curve.f1[index_of[BEST_F1]] == curve.f1.max()
    costs = curve.false_positives + 5 * (curve.positives - curve.true_positives)
    assert costs[index_of[CHEAPEST]] == costs.min()
    index = index_of["recall 90 %"]
    assert curve.recall[index] >= 0.9 > curve.recall[index - 1]
    # False negatives cost nothing, so it is cheapest to predict no positives.
    assert choose_thresholds(predictions, Costs(1, 0))[-1] == [CHEAPEST]
    with pytest.raises(ValueError, match="the cost of a false negative must be a number from 0 on, got -1"):
        Costs(1, -1)


def test_explanations_are_shown_in_notebooks_and_become_frames(records, iris):
    pandas = pytest.importorskip("pandas")
    for explanation in (records.fast.explain_one(records.X[0]), iris.model.explain([0, 1], top=None)):
        frame = explanation.to_frame()
        assert isinstance(frame, pandas.DataFrame)
        assert frame.iloc[:, 1].sum() == pytest.approx(explanation.comparison.numbers(explanation.score)[0])
        assert len(Page(explanation._repr_html_()).find_elements("tr")) == len(
            explanation.contributions
        ) + 3 + bool(explanation.n_conjunctions - len(explanation.contributions))


def test_models_are_described_in_notebooks(records, iris):
    tree = TreeSVC().fit(["(S (A b))", "(S (C d))"], [0, 1])
    models = [records.fast, records.fast.classifier, unkernel.compile(tree), iris.model.to_model()]
    for model in models:
        page = Page(model._repr_html_())
        assert page.texts["caption"] == [type(model).__name__]
        assert "answers" in page.texts["th"]


def test_invalid_inputs_of_reports_are_refused(iris):
    with pytest.raises(ValueError, match="models is empty"):
        report({}, iris.X, iris.y)
    with pytest.raises(ValueError, match="costs must be two numbers"):
        report(iris.model, iris.X, iris.y, costs=(1,))


def test_columns_have_shares_of_the_variance_and_drawings(records):
    text = next(section.content for section in records.report.sections if section.title == "Columns")
    assert "share of the variance of the score" in text
    for names in ("age", "job", "age and job"):
        assert f"<figcaption>{names}</figcaption>" in text
