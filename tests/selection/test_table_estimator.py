"""``TableEstimator``: what it decides, what it compares, and that it keeps the best."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import unkernel
from reference.selection import slow_after
from unkernel import PolyLogisticRegression, PolyRegressor, RecordEncoder, TableEstimator
from unkernel.selection.search import (
    Deadline,
    EncodedTable,
    can_improve,
    make_folds,
    measure_majority,
    scale_cost,
)
from unkernel.selection.targets import find_task


def make_people(count: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return people, and a class that depends on a pair of columns."""
    generator = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "job": generator.choice(["clerk", "pilot", "smith"], count),
            "age": generator.integers(20, 70, count),
            "size": generator.normal(size=count),
        }
    )
    rich = (people["age"] > 45) == (people["job"] == "pilot")
    return people, np.where(rich ^ (generator.random(count) < 0.05), "high", "low")


@pytest.fixture(scope="module")
def people() -> Any:
    return make_people(400)


@pytest.fixture(scope="module")
def fitted(people: Any) -> TableEstimator:
    return TableEstimator().fit(*people)


def test_the_model_with_the_smallest_loss_is_kept(fitted: TableEstimator) -> None:
    losses = [trial.loss for trial in fitted.trials_]
    assert fitted.best_.loss == min(losses)
    assert fitted.best_.name.startswith("pairs")  # no sum over columns tells the classes apart
    assert [trial.name for trial in fitted.trials_[:2]] == ["majority", "linear"]
    for name in {trial.name for trial in fitted.trials_} - {"majority"}:
        path = [trial.C for trial in fitted.trials_ if trial.name == name]
        assert path == sorted(path)


def test_answers_equal_the_pipeline_and_the_loaded_file(
    fitted: TableEstimator, people: Any, tmp_path: Any
) -> None:
    X, y = people
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities, fitted.pipeline_.predict_proba(X), rtol=0, atol=1e-12)
    fitted.save(tmp_path / "people.uk")
    for classifier in (unkernel.load(tmp_path / "people.uk"), unkernel.compile(fitted)):
        np.testing.assert_array_equal(classifier.predict_proba(X), probabilities)
    assert fitted.predict(X).tolist() == fitted.pipeline_.predict(X).tolist()
    assert fitted.score(X, y) == np.mean(fitted.predict(X) == y) > 0.9


def test_the_best_model_is_fitted_to_all_records(fitted: TableEstimator, people: Any) -> None:
    X, y = people
    rows = RecordEncoder().fit_transform(X)
    penalty = fitted.best_.name.removeprefix("pairs, ")
    expected = PolyLogisticRegression(2, C=fitted.best_.C, penalty=penalty, random_state=0).fit(rows, y)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(rows), rtol=0, atol=1e-9)


def test_results_depend_on_data_and_seed_alone(people: Any) -> None:
    X, y = people[0][:200], people[1][:200]
    one, two, other = (
        TableEstimator(n_jobs=n_jobs, random_state=seed).fit(X, y)
        for n_jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    assert [trial.loss for trial in one.trials_] == [trial.loss for trial in two.trials_]
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert [trial.loss for trial in one.trials_] != [trial.loss for trial in other.trials_]


def test_numbers_are_predicted_around_their_mean() -> None:
    generator = np.random.default_rng(1)
    X = pd.DataFrame({"a": generator.normal(size=200), "b": generator.choice(list("xyz"), 200)})
    y = 1000 + 3 * X["a"] + 2 * (X["b"] == "x")
    estimator = TableEstimator().fit(X, y)
    assert estimator.task_ == "numbers"
    assert not hasattr(estimator, "classes_")
    assert not hasattr(estimator, "predict_proba")
    assert estimator.score(X, y) > 0.99
    assert isinstance(estimator.pipeline_[-1], PolyRegressor)
    np.testing.assert_allclose(estimator.predict(X), estimator.pipeline_.predict(X), rtol=1e-12)
    shifted = TableEstimator().fit(X, y + 2**20)
    np.testing.assert_allclose(shifted.predict(X) - 2**20, estimator.predict(X), rtol=0, atol=0.05)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"], "classes"),
        ([True, False], "classes"),
        ([1, 2, 3], "classes"),
        ([1.0, 2.0], "classes"),
        ([0.5, 1.0], "numbers"),
        (range(20), "classes"),
        (range(21), "numbers"),
    ],
)
def test_the_task_follows_from_the_target(y: Any, task: str) -> None:
    assert find_task(np.array(list(y))) == task


def test_the_task_can_be_chosen(people: Any) -> None:
    X, _ = people
    stars = np.arange(len(X)) % 5
    assert TableEstimator(task="numbers").fit(X, stars).task_ == "numbers"
    assert TableEstimator().fit(X, stars).classes_.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0] * 12, "all 12 targets are"),
        (["a"] * 11 + [None], r"y\[11\] is missing"),
        ([0.5] * 11 + [float("nan")], r"y\[11\] is nan"),
        ([0.5] * 11 + [float("inf")], r"y\[11\] is inf"),
        (np.array([["a", "b"]] * 12), "one dimension"),
        (["a", "b"], "X has 12 records, and y has 2 targets"),
        (np.arange(12).astype("datetime64[D]"), "y contains dates: convert them to numbers"),
    ],
)
def test_targets_that_nothing_can_be_learned_from_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableEstimator().fit({"x": list(range(12))}, y)


def test_a_table_of_one_column_and_exact_numbers_are_targets() -> None:
    X = {"x": list(range(40))}
    with pytest.warns(DataConversionWarning):
        assert TableEstimator().fit(X, np.arange(40).reshape(-1, 1)).task_ == "numbers"
    prices = [Decimal(k) / 4 for k in range(40)]
    assert TableEstimator().fit(X, prices).task_ == "numbers"


def test_texts_are_refused_as_numbers_and_few_records_at_all(people: Any) -> None:
    X, y = people
    with pytest.raises(ValueError, match="not a number"):
        TableEstimator(task="numbers").fit(X, y)
    with pytest.raises(ValueError, match="9 records are too few"):
        TableEstimator().fit(X[:9], y[:9])
    with pytest.raises(ValueError, match="task"):
        TableEstimator(task="ranks").fit(X, y)


def test_without_time_the_first_family_is_measured(people: Any) -> None:
    with pytest.warns(UserWarning, match="the time limit ended the search after 2 models"):
        estimator = TableEstimator(max_seconds=1e-9).fit(*people)
    assert [trial.name for trial in estimator.trials_] == ["majority", "linear"]
    assert not Deadline(1e-9).allows(1.0)
    assert Deadline(None).allows(1e9)


def test_identifiers_and_too_many_classes_are_refused() -> None:
    names = [f"n{k}" for k in range(2002)]
    with pytest.raises(ValueError, match="no class occurs twice"):
        TableEstimator().fit({"x": list(range(2002))}, names)
    with pytest.raises(ValueError, match="1001 classes are too many"):
        TableEstimator().fit({"x": list(range(2002))}, names[:1001] * 2)
    with pytest.raises(ValueError, match=r"all 12 targets are 3:"):
        TableEstimator().fit({"x": list(range(12))}, np.full(12, 3))


def test_scikit_learn_knows_what_is_predicted(fitted: TableEstimator, people: Any) -> None:
    assert is_classifier(fitted)
    assert is_classifier(TableEstimator(task="classes"))
    assert is_regressor(TableEstimator(task="numbers"))
    assert not is_classifier(TableEstimator())
    estimator = TableEstimator(task="classes", max_seconds=60)
    scores = cross_val_score(estimator, *people, cv=2, scoring="roc_auc", error_score="raise")
    assert scores.min() > 0.8


def test_a_constant_column_and_a_copy_of_the_target_are_learned_from() -> None:
    y = np.array(["a", "b"] * 20)
    estimator = TableEstimator().fit({"same": ["x"] * 40, "copy": y}, y)
    assert estimator.score({"same": ["x"] * 40, "copy": y}, y) == 1.0


def test_the_frame_has_one_row_per_trial(fitted: TableEstimator) -> None:
    frame = fitted.to_frame()
    assert frame["model"].tolist() == [trial.name for trial in fitted.trials_]
    assert list(frame.columns) == ["model", "C", "loss", "seconds"]


def test_trials_are_printed_when_verbose(people: Any, capsys: Any) -> None:
    estimator = TableEstimator(verbose=1).fit(*people)
    assert capsys.readouterr().out.splitlines() == [str(trial) for trial in estimator.trials_]


# --- The search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "best", "expected"),
    [
        ([0.5], 0.1, True),
        ([0.5, 0.4], 0.1, True),
        ([0.5, 0.51], 0.6, False),  # rising
        ([0.5, 0.4999], 0.6, False),  # flat
        ([0.5, 0.4, 0.35], 0.32, True),  # the limit is 0.3
        ([0.5, 0.4, 0.35], 0.29, False),
        ([0.5, 0.48, 0.40], 0.1, True),  # falls faster and faster
    ],
)
def test_paths_end_when_they_cannot_improve(losses: list[float], best: float, expected: bool) -> None:
    assert can_improve(losses, best) is expected


def make_table(task: Any, y: Any) -> EncodedTable:
    return EncodedTable(task, None, None, np.asarray(y))


def test_each_of_few_records_is_held_out_once_and_a_quarter_of_many() -> None:
    folds = make_folds(make_table("classes", ["a", "b"] * 50), 0)
    assert sorted(np.concatenate([held_out for _, held_out in folds]).tolist()) == list(range(100))
    assert all(not set(train) & set(held_out) for train, held_out in folds)
    ((train, held_out),) = make_folds(make_table("numbers", np.arange(8000.0)), 0)
    assert (len(train), len(held_out)) == (6000, 2000)
    ((train, held_out),) = make_folds(make_table("numbers", np.arange(100_000.0)), 0)
    assert (len(train), len(held_out)) == (45_000, 15_000)
    assert len(make_folds(make_table("classes", ["a"] * 30 + ["b"]), 0)) == 5  # a class of a single record


def test_the_majority_predicts_shares_and_means() -> None:
    y = np.array(["a"] * 30 + ["b"] * 10)
    table = make_table("classes", y)
    folds = make_folds(table, 0)
    losses = [
        log_loss(y[held_out], np.tile([0.75, 0.25], (len(held_out), 1)), labels=["a", "b"])
        for _, held_out in folds
    ]
    assert measure_majority(table, folds).loss == pytest.approx(np.mean(losses))


def test_the_penalty_grows_with_the_square_root_of_the_records(fitted: TableEstimator) -> None:
    assert scale_cost(fitted.best_, 400) == fitted.best_.C
    assert scale_cost(fitted.best_, 240_000) == fitted.best_.C / 2


# --- Class weights --------------------------------------------------------------------------------------


def make_rare(count: int = 300) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return people of whom few have the class "yes"."""
    people, _ = make_people(count)
    risk = np.where(people["age"] > 55, 0.3, 0.05)
    return people, np.where(np.random.default_rng(1).random(count) < risk, "yes", "no")


@pytest.mark.parametrize("class_weight", slow_after(1, [{"yes": 6.0, "no": 0.5}, "balanced"]))
def test_class_weights_are_weights_of_records(class_weight: Any) -> None:
    people, y = make_rare()
    estimator = TableEstimator(class_weight=class_weight).fit(people, y)
    shares = {label: float(np.mean(y == label)) for label in ("no", "yes")}
    factors = {label: 0.5 / share for label, share in shares.items()}
    weight_of = factors if class_weight == "balanced" else class_weight
    weight = np.array([weight_of[label] for label in y])
    encoder, learner = estimator.pipeline_[0], estimator.pipeline_[-1]
    twin = PolyLogisticRegression(**learner.get_params() | {"class_weight": weight_of})
    twin.fit(encoder.transform(people), y)
    np.testing.assert_allclose(
        estimator.predict_proba(people), twin.predict_proba(encoder.transform(people)), atol=1e-3
    )
    # The loss of the majority is computed from weighted shares.
    total = {label: weight[y == label].sum() / weight.sum() for label in ("no", "yes")}
    expected = log_loss(y, [[total["no"], total["yes"]]] * len(y), sample_weight=weight)
    assert estimator.trials_[0].loss == pytest.approx(expected, rel=0.01)
    plain = TableEstimator().fit(people, y)
    assert (estimator.predict(people) == "yes").sum() > (plain.predict(people) == "yes").sum()


def test_impossible_class_weights_are_refused() -> None:
    people, y = make_rare()
    with pytest.raises(ValueError, match="classes that do not occur"):
        TableEstimator(class_weight={"perhaps": 2.0}).fit(people, y)
    with pytest.raises(ValueError, match="class_weight is for classes"):
        TableEstimator(class_weight="balanced").fit(people, people["size"])
    with pytest.raises(ValueError, match="class_weight"):
        TableEstimator(class_weight="heavy").fit(people, y)
