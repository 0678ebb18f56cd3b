"""Compiled Explainable Boosting Machines answer like interpret."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import unkernel
from reference import boosting_machines, golden_machines
from reference.selection import few_examples

CLOSE = 1e-9
NAMES = sorted(path.name for path in boosting_machines.GOLDEN.glob("*.json"))


def check_answers(fast, machine, X, answers):
    """Check answers to batches and to single records."""
    scores = answers.get("decision_function", answers["predict"])
    fast_scores = fast.decision_function(X) if hasattr(machine, "classes_") else fast.predict(X)
    np.testing.assert_allclose(fast_scores, scores, rtol=CLOSE, atol=CLOSE)
    records = X.astype(object).to_dict("records")
    singles = [fast.score_one(record) for record in records]
    np.testing.assert_allclose(singles, scores, rtol=CLOSE, atol=CLOSE)
    if not hasattr(machine, "classes_"):
        return
    np.testing.assert_array_equal(fast.predict(X), answers["predict"])
    assert [fast.predict_one(record) for record in records] == answers["predict"].tolist()
    chances = answers["predict_proba"]
    np.testing.assert_allclose(fast.predict_proba(X), chances, rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(fast.predict_proba_one(records[0]), chances[0], rtol=CLOSE, atol=CLOSE)


def answer(machine, X):
    names = ("predict", "decision_function", "predict_proba")
    return {name: getattr(machine, name)(X) for name in names if hasattr(machine, name)}


def test_golden_machines_are_there():
    assert len(NAMES) == 6


@pytest.mark.parametrize("name", NAMES)
def test_answers_of_interpret(name, tmp_path):
    machine, X, answers = boosting_machines.read(name)
    fast = unkernel.compile(machine)
    check_answers(fast, machine, X, answers)
    fast.save(tmp_path / "model.uk")
    check_answers(unkernel.load(tmp_path / "model.uk"), machine, X, answers)


@pytest.mark.parametrize("name", NAMES)
def test_the_slow_twin_answers_like_interpret(name):
    machine, X, answers = boosting_machines.read(name)
    for key, own in answer(machine, X).items():
        if key == "predict" and hasattr(machine, "classes_"):
            np.testing.assert_array_equal(own, answers[key])
        else:
            np.testing.assert_allclose(own, answers[key], rtol=CLOSE, atol=CLOSE)


@few_examples(8, derandomize=True)
@given(boosting_machines.machines())
def test_generated_machines(case):
    machine, X = case
    fast = unkernel.compile(machine, sample=X, measure=False)
    check_answers(fast, machine, X, answer(machine, X))


@pytest.mark.filterwarnings("ignore")
def test_machines_of_the_installed_package():
    pytest.importorskip("interpret")
    X = golden_machines.people(100, 2, unseen=True)
    for machine in golden_machines.machines().values():
        check_answers(unkernel.compile(machine), machine, X, answer(machine, X))


def test_explanation_and_names():
    machine, _, _ = boosting_machines.read("binary.json")
    fast = unkernel.compile(machine)
    record = {"age": 37.0, "income": None, "job": "pilot", "grade": 1, "flag": True, "unused": 0.0}
    explanation = fast.explain_one(record, top=None)
    text = str(explanation)
    assert "job = pilot" in text
    assert "income is missing" in text
    assert " and " in text
    names = list(fast.plan.feature_names)
    assert "age 34–38" in names or any(name.startswith("age ") and "–" in name for name in names)
    assert {"job = (other)", "job is missing", "grade = 2"} <= set(names)
    assert fast.plan.example["job"] in machine.bins_[2][0]
    assert isinstance(fast.plan.example["age"], float)
    assert fast.classes_.tolist() == ["no", "yes"]


def test_records():
    machine, X, answers = boosting_machines.read("binary.json")
    fast = unkernel.compile(machine, unknown_keys="error")
    record = X.iloc[0].to_dict()
    np.testing.assert_allclose(fast.score_one(list(record.values())), answers["decision_function"][0])
    with pytest.raises(ValueError, match="colour"):
        fast.score_one(record | {"colour": "red"})
    with pytest.raises(ValueError, match="column 'age': expected a number, got the string '37'"):
        fast.score_one(record | {"age": "37"})
    with pytest.raises(ValueError, match="column 'age': the number is infinite"):
        fast.score_one(record | {"age": float("inf")})
    del record["job"]
    with pytest.raises(ValueError, match="job"):
        fast.score_one(record)


def test_pipelines():
    machine, _, _ = boosting_machines.read("binary.json")
    X = np.random.default_rng(0).normal(size=(40, 1)) * 20
    numbers = {
        "bins_": [machine.bins_[0]],
        "term_features_": [(0,)],
        "term_scores_": [machine.term_scores_[machine.term_features_.index((0,))]],
        "feature_names_in_": ["x0"],
    }
    alone = boosting_machines.ExplainableBoostingClassifier(machine.attributes | numbers)
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), "passthrough")
    pipeline[:-1].fit(X)
    pipeline.steps[-1] = ("machine", alone)
    fast = unkernel.compile(pipeline)
    np.testing.assert_allclose(fast.decision_function(X), pipeline.decision_function(X), rtol=CLOSE)
    encoder = OneHotEncoder().fit([["a"], ["b"]])
    names = {"bins_": [{"a": 1}], "term_features_": [(0,)], "term_scores_": [np.ones(3)]}
    nominal = boosting_machines.ExplainableBoostingClassifier(
        machine.attributes | {**names, "bins_": [[names["bins_"][0]]], "feature_names_in_": ["x0"]}
    )
    for first in (encoder, SimpleImputer(strategy="most_frequent").fit(np.array([["a"]], dtype=object))):
        behind = make_pipeline(first, "passthrough")
        behind.steps[-1] = ("machine", nominal)
        with pytest.raises(ValueError, match="has a column of categories, and"):
            unkernel.compile(behind)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"link_": "log"}, "has the link 'log', and only 'logit', 'mlogit' and 'identity'"),
        ({"link_": "monoclassification"}, "was trained on one class"),
        ({"term_features_": [(0, 1, 2, 3)]}, "a term of 4 columns"),
        ({"term_features_": [], "term_scores_": []}, "has no terms"),
        ({"term_features_": [(0,)], "term_scores_": [np.zeros(3)]}, "of another version of interpret"),
        ({"term_features_": [(4,)], "term_scores_": [np.full(4, np.inf)]}, "scores that are not finite"),
    ],
)
def test_refused_machines(changes, message):
    machine, _, _ = boosting_machines.read("binary.json")
    changed = boosting_machines.ExplainableBoostingClassifier(machine.attributes | changes)
    with pytest.raises(ValueError, match=message):
        unkernel.compile(changed)


def test_unfitted_machines():
    with warnings.catch_warnings(), pytest.raises(NotFittedError):
        unkernel.compile(boosting_machines.ExplainableBoostingClassifier())
