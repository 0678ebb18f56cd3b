"""``unkernel update``."""

from __future__ import annotations

import csv
import random

import pytest

import unkernel


def write_people(path, count, jobs, *, seed, answers=("low", "high")):
    generator = random.Random(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["job", "age", "income"])
        for _ in range(count):
            job, age = generator.choice(jobs), generator.randint(18, 70)
            is_right = generator.random() < 0.9
            writer.writerow([job, age, answers[((job in ("pilot", "nurse")) == (30 < age < 60)) == is_right]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    write_people(folder / "old.csv", 600, ["clerk", "pilot"], seed=0)
    write_people(folder / "new.csv", 200, ["clerk", "pilot", "nurse"], seed=1)
    write_people(folder / "later.csv", 200, ["clerk", "pilot", "nurse"], seed=2)
    write_people(folder / "other.csv", 50, ["clerk"], seed=3, answers=("small", "large"))
    assert (
        unkernel.cli.main(
            ["train", str(folder / "old.csv"), "--target", "income", "-o", str(folder / "old.uk"), "-q"]
        )
        == 0
    )
    return folder


def test_updates_a_model_with_new_records(run, folder, tmp_path):
    result = run("update", folder / "old.uk", folder / "new.csv", "-o", tmp_path / "new.uk", "--json").json
    assert result["new_features"] == ["job = nurse"]
    assert (result["rows"], result["updates"], result["gap"] <= 1e-3) == (200, 1, True)
    evaluated = run("evaluate", folder / "old.uk", folder / "new.csv", "--json").json
    assert result["before"] == {name: evaluated[name] for name in ("accuracy", "log_loss")}
    later = run("evaluate", tmp_path / "new.uk", folder / "later.csv", "--json").json["accuracy"]
    assert later > run("evaluate", folder / "old.uk", folder / "later.csv", "--json").json["accuracy"] + 0.05
    printed = run(
        "update", tmp_path / "new.uk", folder / "later.csv", "-o", tmp_path / "new.uk", "--forget", 0.5
    )
    assert "old model on them  accuracy" in printed.out
    assert unkernel.load(tmp_path / "new.uk").classifier.model.origin["updates"] == 2
    assert "job" in run("inspect", tmp_path / "new.uk").out


def test_regressions_and_several_files(run, folder, tmp_path):
    run("train", folder / "old.csv", "--target", "age", "-o", tmp_path / "age.uk", "-q")
    files = folder / "new.csv", folder / "later.csv"
    result = run("update", tmp_path / "age.uk", *files, "-o", tmp_path / "age.uk", "--json").json
    assert result["rows"] == 400
    assert result["before"]["root_mean_squared_error"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old.uk", "other.csv"), "class"),
        (("old.uk", "missing.csv"), "missing.csv"),
        (("old.csv", "new.csv"), "not a model of records"),
        (("old.uk", "new.csv", "--forget", "2"), "forget"),
        (("old.uk", "none.csv"), "no record"),
        (("old.uk", "unlabelled.csv"), "income"),
        (("poly.uk", "new.csv"), "keeps nothing"),
    ],
)
def test_refuses_what_cannot_be_updated_and_writes_nothing(run, folder, tmp_path, arguments, message):
    (folder / "none.csv").write_text("job,age,income\n")
    (folder / "unlabelled.csv").write_text("job,age,income\nclerk,30,\n")
    if arguments[0] == "poly.uk":
        run(
            "train",
            "poly",
            folder / "old.csv",
            "--target",
            "income",
            "-o",
            folder / "poly.uk",
            "-q",
            "--force",
        )
    model, data, *options = arguments
    result = run("update", folder / model, folder / data, "-o", tmp_path / "new.uk", *options)
    assert message in result.error()
    assert not (tmp_path / "new.uk").exists()
