"""``unkernel train FILE --target COLUMN``: the right model without a kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unkernel
from unkernel import TableEstimator


@pytest.fixture(scope="module")
def people(tmp_path_factory: Any) -> Path:
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {"job": generator.choice(["clerk", "pilot"], 200), "age": generator.integers(20, 70, 200)}
    )
    table["income"] = np.where((table["age"] > 45) == (table["job"] == "pilot"), "high", "low")
    table["rent"] = 5.5 * table["age"] + 40 * (table["job"] == "pilot")
    table["stars"] = table["age"] // 10
    file = tmp_path_factory.mktemp("table") / "people.csv"
    table.to_csv(file, index=False)
    return Path(file)


def test_classes_are_found_and_the_model_is_the_estimators(run: Any, people: Path, tmp_path: Path) -> None:
    model = tmp_path / "income.uk"
    options = ("--target", "income", "--drop", "rent", "--drop", "stars", "-o", model)
    printed = run("train", people, *options, "--test", people).out
    assert "income, predicted as classes (--as numbers changes that)" in printed
    assert "test accuracy" in printed
    assert printed.count("←") == 1
    table = pd.read_csv(people)
    records = table[["job", "age"]]
    expected = TableEstimator().fit(records, table["income"])
    np.testing.assert_array_equal(
        unkernel.load(model).predict_proba(records), expected.predict_proba(records)
    )
    found = json.loads(run("train", "table", people, *options, "--force", "--json").out)
    assert [trial["model"] for trial in found["trials"]] == [trial.name for trial in expected.trials_]
    assert (found["model_family"], found["C"]) == (expected.best_.name, expected.best_.C)
    assert "accuracy" in run("evaluate", model, people).out


def test_class_weights_equal_the_weights_of_the_estimator(run: Any, people: Path, tmp_path: Path) -> None:
    table = pd.read_csv(people)
    records = table[["job", "age"]]
    model = tmp_path / "weighted.uk"
    options = ("--target", "income", "--drop", "rent", "--drop", "stars", "-o", model)
    assert run("train", people, *options, "--class-weight", "high=4,low=1", "-q").code == 0
    expected = TableEstimator(class_weight={"high": 4.0, "low": 1.0}).fit(records, table["income"])
    np.testing.assert_array_equal(
        unkernel.load(model).predict_proba(records), expected.predict_proba(records)
    )
    refused = ("train", people, "-o", tmp_path / "refused.uk", "--target")
    assert "classes that do not occur" in run(*refused, "income", "--class-weight", "rich=2").error()
    assert "--class-weight must be" in run(*refused, "income", "--class-weight", "heavy").error()
    assert "class_weight is for classes" in run(*refused, "rent", "--class-weight", "balanced").error()


def test_numbers_are_found(run: Any, people: Path, tmp_path: Path) -> None:
    model = tmp_path / "rent.uk"
    printed = run("train", people, "--target", "rent", "-o", model, "--test", people).out
    assert "rent, predicted as numbers (--as classes changes that)" in printed
    assert "test R squared" in printed
    assert "RMSE" in printed
    assert "R squared" in run("evaluate", model, people).out


def test_the_task_the_time_and_the_seed_are_options(run: Any, people: Path, tmp_path: Path) -> None:
    train = ("train", people, "--target", "stars", "--drop", "age", "--json", "-o")
    assert json.loads(run(*train, tmp_path / "a.uk").out)["task"] == "classes"
    numbers = json.loads(run(*train, tmp_path / "b.uk", "--as", "numbers", "--seed", "3").out)
    assert numbers["task"] == "numbers"
    short = json.loads(run(*train, tmp_path / "c.uk", "--minutes", "0.01").out)
    assert len(short["trials"]) >= 2


def test_refusals_name_file_and_column(run: Any, people: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.uk"
    assert "name the column to predict with --target" in run("train", people, "-o", output).error()
    message = run("train", people, "--target", "income", "--as", "numbers", "-o", output).error()
    assert f"{people}: column 'income'" in message
    assert "is not a number" in message
    same = tmp_path / "same.csv"
    same.write_text("a,b\n" + "1,x\n" * 20)
    assert "column 'b': all 20 targets are" in run("train", same, "--target", "b", "-o", output).error()
    assert "say where the model goes" in run("train", people, "--target", "income").error()
    train = ("train", people, "--target", "income", "-o", output, "--minutes", "60")
    assert "there is no column" in run(*train, "--test", same).error()
    assert not output.exists()


def test_misspelled_kinds_are_still_named(run: Any) -> None:
    assert "polly" in run("train", "polly", "a.svm", "-o", "a.uk").error()


def test_numbers_of_intervals_are_one_or_several(run: Any, people: Path, tmp_path: Path) -> None:
    train = ("train", "poly", people, "--target", "income", "--drop", "rent", "--drop", "stars", "--json")
    features = {}
    for n_bins in ("4", "4,8", "8"):
        found = json.loads(run(*train, "-o", tmp_path / f"{n_bins}.uk", "--n-bins", n_bins).out)
        features[n_bins] = next(one["features"] for one in found["columns"] if one["column"] == "age")
    missing = 1
    assert features == {"4": 4 + missing, "8": 8 + missing, "4,8": 4 + 8 + missing}
    for wrong in ("4,,8", "four", "-4"):
        assert "--n-bins must be" in run(*train, "-o", tmp_path / "x.uk", f"--n-bins={wrong}").error()
    assert "from 2 to 1000" in run(*train, "-o", tmp_path / "x.uk", "--n-bins", "4,9999").error()
