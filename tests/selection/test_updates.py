"""Updates of models of records."""

from __future__ import annotations

import random

import numpy as np
import pytest

import unkernel
from unkernel import PolySVC, RecordEncoder, TableEstimator
from unkernel.records.plan_extension import extend_plan
from unkernel.selection import update_classifier


def make_people(count, jobs, seed):
    generator = random.Random(seed)
    people, income = [], []
    for _ in range(count):
        job, age = generator.choice(jobs), generator.randint(18, 70)
        people.append({"job": job, "age": age, "tags": generator.sample(["a", "b", "c"], 2)})
        is_right = generator.random() < 0.9
        income.append("high" if ((job in ("pilot", "nurse")) == (30 < age < 60)) == is_right else "low")
    return people, income


OLD = make_people(600, ["clerk", "pilot"], 0)
NEW = make_people(200, ["clerk", "pilot", "nurse"], 1)


def test_updated_models_know_new_categories():
    estimator = TableEstimator().fit(*OLD)
    before = estimator.classifier_
    estimator.update(*NEW)
    assert estimator.score(*NEW) > np.mean(before.predict(NEW[0]) == np.array(NEW[1])) + 0.05
    assert "job = nurse" in list(estimator.pipeline_[0].plan_.feature_names)
    assert estimator.score(*OLD) > 0.8


def test_updates_give_the_same_bits_by_all_paths(tmp_path):
    estimator = TableEstimator().fit(*OLD)
    estimator.save(tmp_path / "old.uk")
    loaded = unkernel.load(tmp_path / "old.uk")
    updated = update_classifier(loaded, *NEW, forget=0.2, n_jobs=2)
    scores = estimator.update(*NEW, forget=0.2).classifier_.decision_function(NEW[0])
    np.testing.assert_array_equal(updated.decision_function(NEW[0]), scores)
    updated.save(tmp_path / "new.uk")
    np.testing.assert_array_equal(unkernel.load(tmp_path / "new.uk").decision_function(NEW[0]), scores)
    one = [updated.decision_function([person])[0] for person in NEW[0][:20]]
    np.testing.assert_array_equal(one, scores[:20])


def test_regressions_are_updated():
    people, _ = OLD
    rent = [person["age"] * (2.0 if person["job"] == "pilot" else 1.0) for person in people]
    newer, _ = NEW
    new_rent = [person["age"] * {"pilot": 2.0, "clerk": 1.0, "nurse": 3.0}[person["job"]] for person in newer]
    estimator = TableEstimator(task="numbers").fit(people, rent)
    before = estimator.score(newer, new_rent)
    assert estimator.update(newer, new_rent).score(newer, new_rent) > max(0.9, before)


def test_plans_keep_the_meaning_of_old_features():
    people = [
        {"job": "a", "city": "x", "n": 1, "tags": ["a"], "on": False},
        {"job": "b", "city": "y", "n": 4, "tags": ["b"], "on": True},
    ]
    plan = RecordEncoder(min_count=1, kinds={"tags": "strings"}).fit(people * 30).plan_
    newer = [{"job": "c", "city": "x", "n": 9, "tags": ["q", "a"], "on": None}, {"job": 7, "city": None}]
    extended, indices = extend_plan(plan, newer)
    old_names, names = list(plan.feature_names), list(extended.feature_names)
    assert [names[index] for index in indices] == old_names
    assert sorted(set(names) - set(old_names)) == ["job = 7", "job = c", "tags has 'q'"]
    for person in people:
        old_ids, _ = plan.encode_one(person)
        ids, _ = extended.encode_one(person)
        assert [names[k] for k in ids] == [old_names[k] for k in old_ids]
    assert "job = c" in [names[k] for k in extended.encode_one(newer[0])[0]]
    once, _ = extend_plan(plan, newer, min_count=2)
    assert list(once.feature_names) == old_names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda people, income: (people, ["other"] * len(income)), "class"),
        (lambda people, income: (people, income[:-1]), "inconsistent|different"),
        (lambda people, income: ([person | {"job": [1]} for person in people], income), "job"),
    ],
)
def test_bad_records_are_refused(change, message):
    estimator = TableEstimator().fit(*OLD)
    model = estimator.classifier_
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.update(*change(*NEW))
    assert estimator.classifier_ is model


def test_models_that_cannot_be_updated_say_so():
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(RecordEncoder(), PolySVC()).fit(*OLD)
    with pytest.raises(ValueError, match="updatable"):
        update_classifier(unkernel.compile(pipeline), *NEW)
    with pytest.raises(ValueError, match="updatable"):
        TableEstimator(updatable=False).fit(*OLD).update(*NEW)


@pytest.mark.parametrize("min_count", [0, -1, 1.5, None])
def test_min_count_is_checked(min_count):
    model = TableEstimator().fit(*OLD).classifier_
    with pytest.raises(ValueError, match="min_count"):
        update_classifier(model, *NEW, min_count=min_count)


@pytest.mark.parametrize("targets", [[None, "high"], [float("nan"), "low"], "high", ["low"]])
def test_bad_targets_are_refused(targets):
    model = TableEstimator().fit(*OLD).classifier_
    with pytest.raises(ValueError, match=r"y|inconsistent"):
        update_classifier(model, NEW[0][:2], targets)


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_training_counts_include_the_new_records(task):
    (people, income), (newer, new_income) = OLD, NEW
    newer = [person | {"job": None} if k % 4 == 0 else person for k, person in enumerate(newer)]
    if task == "numbers":
        income, new_income = [float(p["age"]) for p in people], [float(p["age"]) + 0.5 for p in newer]
    estimator = TableEstimator(task=task).fit(people, income)
    before = estimator.pipeline_[0].plan_.training
    counts = estimator.update(newer, new_income).pipeline_[0].plan_.training
    assert counts.n_records == before.n_records + len(newer)
    assert counts.missing["job"] == before.missing["job"] + 50
    if task == "classes":
        assert counts.classes["high"] == before.classes["high"] + new_income.count("high")
    else:
        expected = np.histogram(income + new_income, [-np.inf, *np.nextafter(counts.bounds, np.inf), np.inf])[
            0
        ]
        assert list(counts.interval_counts) == expected.tolist()
