"""Stored thresholds: every way of predicting follows them, with the same bits."""

from __future__ import annotations

import copy
import functools
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

import unkernel
from reference.thresholds import choose_labels, find_cheapest
from unkernel import CuttingPlaneSVC, FormatError, PolyLogisticRegression, PolySVC, RecordEncoder
from unkernel.models import Threshold, container

GOLDEN = Path(__file__).parents[1] / "golden"
X, CODES = make_classification(300, 8, n_informative=4, weights=[0.75], random_state=0)
X = np.round(X, 1)
LABELS = np.array(["no", "yes"])[CODES]
BINARY = (X > 0).astype(float)
RECORDS = [{"a": int(row[0]), "b": str(row[1] > 0), "c": float(row[2])} for row in X]
FITTED = {
    "softmax": lambda: (PolyLogisticRegression().fit(BINARY, LABELS), BINARY),
    "linear softmax": lambda: (LogisticRegression().fit(X, LABELS), X),
    "one curve": lambda: (CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X, LABELS), X),
    "several curves": lambda: (CalibratedClassifierCV(PolySVC(), cv=3).fit(BINARY, LABELS), BINARY),
    "isotonic": lambda: (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=3).fit(X, LABELS), X),
    "platt": lambda: (GOLDEN / "libsvm-poly2-prob.model", read_golden_rows()),
    "records": lambda: (
        make_pipeline(RecordEncoder(), PolyLogisticRegression()).fit(RECORDS, LABELS),
        RECORDS,
    ),
}


def read_golden_rows():
    return unkernel.read_svmlight(GOLDEN / "binary.test.svm", n_features=64).X.toarray()


@functools.cache
def fit_once(name):
    """Return a compiled classifier without a threshold, and its examples."""
    source, examples = FITTED[name]()
    return unkernel.compile(source, measure=False), examples


@pytest.fixture(params=FITTED)
def plain(request):
    return fit_once(request.param)


def predict_each(fast, examples):
    """Predict every example alone."""
    if hasattr(fast, "plan"):
        return [fast.predict_one(record if isinstance(record, dict) else list(record)) for record in examples]
    return [fast.predict_one(np.flatnonzero(row), row[row != 0]) for row in np.asarray(examples)]


@pytest.mark.parametrize("positive", [0, 1])
def test_every_way_follows_the_threshold(plain, positive, tmp_path):
    fast, examples = plain
    probabilities = np.sort(fast.predict_proba(examples)[:, positive])
    inner = probabilities[(probabilities > 0) & (probabilities < 1)]
    # Between two probabilities, and exactly one of them, which is enough.
    for value in (0.9, inner[len(inner) // 3], np.nextafter(inner[len(inner) // 3], 1)):
        decided = fast.with_threshold(Threshold(value, positive))
        expected = choose_labels(fast, examples, value, positive)
        assert decided.predict(examples).tolist() == expected
        assert decided.predict(examples, n_jobs=2).tolist() == expected
        assert predict_each(decided, examples) == expected
        assert pickle.loads(pickle.dumps(decided)).predict(examples).tolist() == expected
        assert copy.copy(decided).predict(examples).tolist() == expected
        assert decided.with_cache(8).predict(examples).tolist() == expected
        np.testing.assert_array_equal(decided.decision_function(examples), fast.decision_function(examples))
        np.testing.assert_array_equal(decided.predict_proba(examples), fast.predict_proba(examples))
        decided.save(tmp_path / "decided.uk")
        loaded = unkernel.load(tmp_path / "decided.uk")
        assert loaded.decision.threshold == Threshold(value, positive)
        assert loaded.predict(examples).tolist() == expected
        assert predict_each(loaded, examples) == expected
        assert loaded.with_threshold(None).predict(examples).tolist() == fast.predict(examples).tolist()


def test_a_model_keeps_its_threshold_when_it_is_compiled(plain):
    fast, examples = plain
    rows = fast.transform(examples) if hasattr(fast, "plan") else examples
    model = fast.to_model().with_threshold(0.25)
    recompiled = unkernel.compile(model, measure=False)
    assert recompiled.predict(rows).tolist() == choose_labels(fast, examples, 0.25)


def test_bound_records_follow_the_threshold():
    fast = fit_once("records")[0].with_threshold(0.2)
    bound = fast.bind({"a": 1})
    others = [{"b": record["b"], "c": record["c"]} for record in RECORDS[:50]]
    expected = choose_labels(bound, others, 0.2)
    assert bound.predict(others).tolist() == expected
    assert [bound.predict_one(record) for record in others] == expected


def test_estimators_follow_the_threshold_of_their_file(tmp_path):
    fitted = PolyLogisticRegression().fit(BINARY, LABELS)
    fitted.to_model().with_threshold(0.2).save(tmp_path / "model.uk")
    loaded = PolyLogisticRegression.load(tmp_path / "model.uk")
    assert loaded.predict(BINARY).tolist() == choose_labels(unkernel.compile(fitted), BINARY, 0.2)
    assert unkernel.compile(loaded).predict(BINARY).tolist() == choose_labels(
        unkernel.compile(fitted), BINARY, 0.2
    )


def test_an_explanation_shows_the_evidence_for_both_classes():
    fast, _ = fit_once("softmax")
    row = BINARY[:1]
    explained = fast.with_threshold(0.01).explain(row)
    assert explained.score == fast.explain(row).score
    assert explained.for_class == "yes"


# --- scikit-learn's thresholds --------------------------------------------------------------------------

F1_OF_NO = make_scorer(f1_score, pos_label="no")


@pytest.mark.parametrize(
    ("estimator", "examples"),
    [
        (FixedThresholdClassifier(LogisticRegression(), threshold=0.2), X),
        (FixedThresholdClassifier(LogisticRegression(), threshold=0.3, pos_label="no"), X),
        (FixedThresholdClassifier(LogisticRegression(), threshold=0.6, response_method="predict_proba"), X),
        (FixedThresholdClassifier(LogisticRegression(), response_method="decision_function"), X),
        (FixedThresholdClassifier(LogisticRegression()), X),
        (FixedThresholdClassifier(LinearSVC(), threshold=-0.5), X),
        (FixedThresholdClassifier(CuttingPlaneSVC(), threshold=0.2, pos_label="no"), X),
        (FixedThresholdClassifier(PolyLogisticRegression(), threshold=0.2), BINARY),
        (FixedThresholdClassifier(CalibratedClassifierCV(LinearSVC(), cv=3), threshold=0.2), X),
        (TunedThresholdClassifierCV(LogisticRegression(), scoring="f1", thresholds=9, cv=3), X),
        (TunedThresholdClassifierCV(LogisticRegression(), scoring=F1_OF_NO, thresholds=9, cv=3), X),
        (TunedThresholdClassifierCV(LinearSVC(), scoring=F1_OF_NO, thresholds=9, cv=3), X),
        (make_pipeline(StandardScaler(), FixedThresholdClassifier(LogisticRegression(), threshold=0.1)), X),
        (FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.1), X),
        (FixedThresholdClassifier(make_pipeline(MinMaxScaler(), MultinomialNB()), threshold=0.2), X),
        (
            FixedThresholdClassifier(
                make_pipeline(PolynomialFeatures(interaction_only=True), LogisticRegression()), threshold=0.1
            ),
            BINARY,
        ),
        (
            FixedThresholdClassifier(
                CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), cv=3), threshold=0.2
            ),
            X,
        ),
        (
            GridSearchCV(
                FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
                {"threshold": [0.2, 0.4]},
                cv=2,
            ),
            X,
        ),
        (FixedThresholdClassifier(make_pipeline(RecordEncoder(), PolyLogisticRegression())), RECORDS),
    ],
    ids=lambda value: " ".join(repr(value).split())[:60] if hasattr(value, "fit") else "",
)
def test_thresholds_of_scikit_learn(estimator, examples):
    labels = CODES if getattr(estimator, "scoring", None) == "f1" else LABELS
    fitted = estimator.fit(examples, labels)
    fast = unkernel.compile(fitted, measure=False)
    assert fast.decision.threshold is not None
    assert fast.predict(examples).tolist() == fitted.predict(examples).tolist()
    assert predict_each(fast, examples) == fitted.predict(examples).tolist()


def test_a_fitted_classifier_inside_a_threshold():
    fitted = LogisticRegression().fit(X, LABELS)
    fixed = FixedThresholdClassifier(FrozenEstimator(fitted), threshold=0.2).fit(X, LABELS)
    assert unkernel.compile(fixed).predict(X).tolist() == fixed.predict(X).tolist()


def test_the_outer_threshold_decides():
    inner = FixedThresholdClassifier(LogisticRegression(), threshold=0.9)
    outer = FixedThresholdClassifier(inner, threshold=0.2).fit(X, LABELS)
    assert unkernel.compile(outer).predict(X).tolist() == outer.predict(X).tolist()


def test_a_threshold_that_always_predicts_one_class_is_refused():
    fixed = FixedThresholdClassifier(LogisticRegression(), threshold=1.5).fit(X, LABELS)
    with pytest.raises(ValueError, match="between 0 and 1"):
        unkernel.compile(fixed)


def test_calibration_after_a_threshold_forgets_it():
    fixed = FixedThresholdClassifier(PolyLogisticRegression(), threshold=0.9)
    calibrated = CalibratedClassifierCV(fixed, cv=2).fit(BINARY, LABELS)
    assert unkernel.compile(calibrated).predict(BINARY).tolist() == calibrated.predict(BINARY).tolist()


# --- Refusals, and files -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.1, 1.5, float("nan"), float("inf"), "0.3", True, [0.3]])
def test_impossible_thresholds_are_refused(value):
    fast, _ = fit_once("softmax")
    with pytest.raises(ValueError, match="threshold"):
        fast.with_threshold(value)


def test_models_without_probabilities_or_with_more_classes_are_refused():
    with pytest.raises(ValueError, match=r"needs probabilities.*--calibrate"):
        unkernel.compile(PolySVC().fit(BINARY, LABELS)).with_threshold(0.3)
    three = PolyLogisticRegression().fit(BINARY, np.arange(len(BINARY)) % 3)
    with pytest.raises(ValueError, match="two classes"):
        unkernel.compile(three).with_threshold(0.3)
    with pytest.raises(ValueError, match="two classes"):
        unkernel.compile(unkernel.PolyRegressor().fit(BINARY, X[:, 0])).with_threshold(
            Threshold(0.3, of="score")
        )


def test_trees_follow_a_threshold_of_scores():
    trees, labels = ["(A b)", "(A (B c))", "(B b)", "(B (A c) (A b))"], [1, 1, 0, 0]
    fast = unkernel.compile(unkernel.TreeSVC().fit(trees, labels))
    scores = fast.decision_function(trees)
    decided = fast.with_threshold(Threshold(scores[0], of="score"))
    expected = [int(score >= scores[0]) for score in scores]
    assert decided.predict(trees).tolist() == expected


def test_formats_of_other_programs_have_no_threshold(tmp_path):
    model = unkernel.read_model(GOLDEN / "libsvm-poly2-prob.model").with_threshold(0.3)
    with pytest.raises(ValueError, match=r"no threshold.*with_threshold\(None\)"):
        unkernel.write_model(model, tmp_path / "libsvm.model", format="libsvm")
    unkernel.write_model(model, tmp_path / "model.uk")
    assert unkernel.models.load_model(tmp_path / "model.uk").decision.threshold == Threshold(0.3)


STORED = {"value": 0.3, "positive": 1, "of": "probability"}


@pytest.mark.parametrize(
    "damage",
    [
        {"value": float("nan")},
        {"value": 0.0},
        {"value": 1},
        {"value": "0.3"},
        {"value": True},
        {"value": None},
        {"value": float("-inf")},
        {"positive": 2},
        {"positive": True},
        {"positive": None},
        {"of": "margin"},
        {"of": None},
        {"of": ["score"]},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("kind", ["conjunctions", "linear", "records"])
def test_damaged_thresholds_are_refused(damage, kind, tmp_path):
    _write_with_threshold(tmp_path / "model.uk", kind, STORED)
    assert unkernel.load(tmp_path / "model.uk").decision.threshold == Threshold(0.3)
    _write_with_threshold(tmp_path / "model.uk", kind, STORED | damage)
    with pytest.raises(FormatError, match="damaged"):
        unkernel.load(tmp_path / "model.uk")


def test_a_list_is_no_threshold(tmp_path):
    _write_with_threshold(tmp_path / "model.uk", "conjunctions", [0.3, 1, "probability"])
    with pytest.raises(FormatError, match="damaged"):
        unkernel.load(tmp_path / "model.uk")


def test_a_stored_threshold_needs_two_classes_and_probabilities(tmp_path):
    unkernel.PolySVC(storage="condensed").fit(BINARY, LABELS).save(tmp_path / "model.uk")
    kind, arrays, settings = container.read(tmp_path / "model.uk", mmap=False)
    container.write(tmp_path / "model.uk", kind, arrays, settings | {container.THRESHOLD: STORED})
    with pytest.raises(FormatError, match="needs probabilities"):
        unkernel.load(tmp_path / "model.uk")


def test_only_files_with_a_threshold_need_a_new_reader(plain, tmp_path):
    fast, _ = plain
    for model, version in ((fast, b"1"), (fast.with_threshold(0.3), b"2")):
        model.save(tmp_path / "model.uk")
        assert b'"version": "%s"' % version in (tmp_path / "model.uk").read_bytes()


def _write_with_threshold(path, kind, stored):
    """Write a model whose settings have a threshold."""
    fitted, _ = fit_once({"conjunctions": "softmax", "linear": "linear softmax"}.get(kind, kind))
    fitted.save(path)
    file_kind, arrays, settings = container.read(path, mmap=False)
    place = settings["classifier"]["settings"] if kind == "records" else settings
    place = place["model"]["settings"] if "model" in place else place
    place.get("decision", place)[container.THRESHOLD] = stored
    container.write(path, file_kind, arrays, settings)


# --- Costs ----------------------------------------------------------------------------------------------


@given(
    st.floats(0, 1),
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1e6),
)
def test_costs_choose_the_cheaper_class(probability, false_negative, false_positive):
    threshold = Threshold.from_costs(false_negative=false_negative, false_positive=false_positive)
    if abs(probability - threshold.value) > 1e-9:
        chosen = threshold.codes(np.array([probability]))
        assert chosen.tolist() == [find_cheapest(probability, false_negative, false_positive)]


@pytest.mark.parametrize("cost", [0, -1, float("nan"), float("inf"), "5", True])
def test_impossible_costs_are_refused(cost):
    with pytest.raises(ValueError, match="false_negative must be a number above 0"):
        Threshold.from_costs(false_negative=cost, false_positive=1)
    with pytest.raises(ValueError, match="false_positive must be a number above 0"):
        Threshold.from_costs(false_negative=1, false_positive=cost)
