"""--threshold and --costs: stored by ``train`` and ``compile``, followed by all other commands."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

import unkernel
from reference.thresholds import choose_labels
from unkernel.cli.options.report_options import parse_costs
from unkernel.models import Threshold


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    """Return two files of loans, of which few default, and a file of rows."""
    folder = tmp_path_factory.mktemp("loans")
    rng = np.random.default_rng(0)
    for name in ("loans.csv", "later.csv"):
        with (folder / name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["age", "job", "late", "default"])
            for _ in range(200):
                late, job = int(rng.integers(6)), str(rng.choice(["clerk", "pilot", "baker"]))
                risk = 0.05 + 0.1 * late + 0.1 * (job == "baker")
                table.writerow([int(rng.integers(18, 70)), job, late, "yes" if rng.random() < risk else "no"])
    rows = [f"{1 if k % 3 else -1} {k % 5 + 1}:1 {k % 7 + 6}:1" for k in range(100)]
    (folder / "rows.svm").write_text("\n".join(rows) + "\n")
    return folder


def read_records(path):
    with path.open(newline="") as file:
        return [
            {name: cell for name, cell in row.items() if name != "default"} for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("kind", [(), ("poly",), ("logistic",), ("linear",)], ids=str)
def test_all_commands_follow_the_threshold_of_training(run, loans, tmp_path, kind):
    model, later = tmp_path / "loans.uk", loans / "later.csv"
    options = ("--target", "default", "-o", model, "--costs", "1,5", "--test", later, "--json")
    trained = run("train", *kind, loans / "loans.csv", *options).json
    expected = {"class": "yes", "of": "probability", "value": 1 / 6}
    assert trained["threshold"] == expected
    assert run("inspect", model, "--json").json["threshold"] == expected
    assert "yes from a probability of 0.166667 on" in run("inspect", model).out
    fast = unkernel.load(model)
    assert fast.decision.threshold == Threshold(1 / 6)
    printed = run("predict", model, later, "-o", "-", "--probability").out.splitlines()
    answers = list(csv.DictReader(printed))
    assert [one["prediction"] for one in answers] == [
        "yes" if float(one["probability yes"]) >= 1 / 6 else "no" for one in answers
    ]
    labels = [row["default"] for row in csv.DictReader(later.open(newline=""))]
    accuracy = np.mean([one["prediction"] == label for one, label in zip(answers, labels, strict=True)])
    evaluated = run("evaluate", model, later, "--json").json
    assert evaluated["accuracy"] == pytest.approx(accuracy)
    assert trained["test"]["accuracy"] == pytest.approx(accuracy)
    plain = fast.with_threshold(None)
    records = read_records(later)
    assert choose_labels(plain, _convert_numbers(records), 1 / 6) == [one["prediction"] for one in answers]
    assert plain.predict(_convert_numbers(records)).tolist() != [one["prediction"] for one in answers]


def _convert_numbers(records):
    return [record | {"age": int(record["age"]), "late": int(record["late"])} for record in records]


def test_compile_replaces_the_threshold(run, loans, tmp_path):
    first, second = tmp_path / "first.uk", tmp_path / "second.uk"
    run(
        "train",
        "logistic",
        loans / "loans.csv",
        "--target",
        "default",
        "-o",
        first,
        "--threshold",
        "0.31",
        "-q",
    )
    assert unkernel.load(first).decision.threshold == Threshold(0.31)
    assert "yes from a probability of 0.31 on" in run("compile", first, "-o", second, "--no-measure").out
    assert unkernel.load(second).decision.threshold == Threshold(0.31)
    changed = run(
        "compile", first, "-o", second, "--decision-threshold", "0.4", "--no-measure", "--json"
    ).json
    assert changed["read"]["threshold"]["value"] == 0.31
    assert changed["threshold"]["value"] == 0.4
    assert unkernel.load(second).decision.threshold == Threshold(0.4)
    run("compile", first, "-o", second, "--costs", "1,4", "--no-measure")
    assert unkernel.load(second).decision.threshold == Threshold(0.2)


def test_models_of_rows_have_a_threshold_like_models_of_records(run, loans, tmp_path):
    model = tmp_path / "rows.uk"
    trained = run(
        "train", "logistic", loans / "rows.svm", "-o", model, "--threshold", "0.8", "--cv", "2", "--json"
    )
    assert trained.json["threshold"] == {"class": 1, "of": "probability", "value": 0.8}
    fast = unkernel.load(model)
    rows = unkernel.read_svmlight(loans / "rows.svm", n_features=fast.n_features_in_)
    expected = choose_labels(fast.with_threshold(None), rows.X, 0.8)
    assert trained.json["training_accuracy"] == np.mean(expected == rows.y)
    out = tmp_path / "labels.txt"
    run("predict", model, loans / "rows.svm", "-o", out)
    assert [float(line) for line in out.read_text().split()] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("logistic loans.csv --target default --threshold 1", "--threshold: .*between 0 and 1"),
        ("logistic loans.csv --target default --threshold nan", "--threshold: .*finite"),
        ("logistic loans.csv --target default --costs 1", "--costs must be two numbers"),
        ("logistic loans.csv --target default --costs 1,0", "--costs: the cost false_negative"),
        ("logistic loans.csv --target default --costs miss=1,false_positive=2", "--costs must name both"),
        ("logistic loans.csv --target default --costs 1,2 --threshold 0.5", "give one of them"),
        ("logistic loans.csv --target job --threshold 0.5", "is for two classes, and there are 3"),
        ("loans.csv --target job --threshold 0.5", "is for two classes, and there are 3"),
        ("loans.csv --target age --costs 1,2", "--costs is for two classes.*numbers"),
        ("poly loans.csv --target default --threshold 0.5 --cv 2", "before its calibration"),
        ("poly loans.csv --target default --costs 1,2 --calibrate 0", "--calibrate 0 is for none"),
        ("linear rows.svm --threshold 0.5", "for records only.*train logistic"),
    ],
)
def test_refusals_before_training(run, loans, monkeypatch, arguments, message):
    monkeypatch.chdir(loans)
    found = run("train", *arguments.split(), "-o", "refused.uk").error()
    assert re.search(message, found), found
    assert not (loans / "refused.uk").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--decision-threshold", "2"), "--decision-threshold: .*between 0 and 1"),
        (("--decision-threshold", "0.2", "--costs", "1,2"), "--decision-threshold and --costs"),
        (("--costs", "1,2"), "--costs: .*needs probabilities"),
        (("--decision-threshold", "0.2"), "--decision-threshold: .*needs probabilities"),
    ],
)
def test_compile_refuses_impossible_thresholds(run, loans, tmp_path, arguments, message):
    run("train", "poly", loans / "rows.svm", "-o", tmp_path / "poly.uk", "-q")
    found = run("compile", tmp_path / "poly.uk", "-o", tmp_path / "new.uk", *arguments).error()
    assert re.search(message, found), found


def test_costs_have_two_forms():
    assert parse_costs("1,5") == parse_costs("false_negative=5,false_positive=1") == (1.0, 5.0)
    for text in ("false_positive=1", "false_positive=1,false_positive=2", "a=1,b=2", "false_positive=x,b=1"):
        with pytest.raises(ValueError, match="name both costs once"):
            parse_costs(text)
