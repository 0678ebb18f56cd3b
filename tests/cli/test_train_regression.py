"""``unkernel train regression``: numbers from rows and records, by every command."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from sklearn import metrics

import unkernel
from unkernel import PolyRegressor, read_svmlight


@pytest.fixture
def flats(tmp_path):
    """Return a table of flats, whose rent depends on the product of area and town."""
    draw = random.Random(0)
    prices = {"Oslo": 20, "Bonn": 12, "Lyon": 14}
    lines = ["area,town,rent"]
    for _ in range(300):
        area, town = draw.randint(20, 120), draw.choice(list(prices))
        lines.append(f"{area},{town},{area * prices[town] + draw.gauss(0, 50):.2f}")
    path = tmp_path / "flats.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).round(3)
    y = (5 + 2 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=80)).round(4)
    path = tmp_path / "rows.svm"
    lines = (f"{t} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(x)) for x, t in zip(X, y, strict=True))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_records_are_priced(run, flats, tmp_path):
    result = run("train", "regression", flats, "--target", "rent", "-o", tmp_path / "m.uk", "--test", flats)
    assert result.code == 0, result.err
    assert "R squared" in result.out
    assert "calibrat" not in result.out
    output = run("evaluate", tmp_path / "m.uk", flats, "--json").json
    assert output["r_squared"] > 0.95
    fast = unkernel.load(tmp_path / "m.uk")
    predicted = [float(line) for line in run("predict", tmp_path / "m.uk", flats).out.splitlines()[1:]]
    records = [
        dict(zip(("area", "town"), (int(a), t), strict=True))
        for a, t, _ in (line.split(",") for line in flats.read_text().splitlines()[1:])
    ]
    assert predicted == fast.predict(records).tolist()


def test_rows_are_learned_as_by_the_estimator(run, rows, tmp_path):
    options = {"C": 10.0, "loss": "epsilon_insensitive", "epsilon": 0.05}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    output = run("train", "regression", rows, "-o", tmp_path / "m.uk", *arguments, "--json").json
    X, y = read_svmlight(rows).X, read_svmlight(rows).y
    reg = PolyRegressor(**options, random_state=0).fit(X, y)
    assert output["objective"] == reg.objective_
    assert output["training_r_squared"] == pytest.approx(metrics.r2_score(y, reg.predict(X)))
    evaluated = run("evaluate", tmp_path / "m.uk", rows, "--json").json
    predictions = reg.predict(X)
    assert evaluated["root_mean_squared_error"] == pytest.approx(
        metrics.root_mean_squared_error(y, predictions)
    )
    assert evaluated["mean_absolute_error"] == pytest.approx(metrics.mean_absolute_error(y, predictions))
    assert evaluated["mean_squared_error"] == pytest.approx(metrics.mean_squared_error(y, predictions))


def test_parameters_are_chosen(run, flats, tmp_path):
    result = run(
        *("tune", "regression", flats, "--target", "rent", "--C", "0.001:10:3"),
        *("--by", "mean_absolute_error", "-o", tmp_path / "m.uk", "--json"),
    )
    output = result.json
    errors = [setting["measures"]["mean_absolute_error"]["mean"] for setting in output["settings"]]
    assert output["best"] == int(np.argmin(errors))
    assert unkernel.load(tmp_path / "m.uk").decision.scheme == "regression"


def test_large_and_whole_targets_are_values(run, tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps({"x": k, "y": 10**17 + k}) + "\n" for k in range(20)))
    assert run("train", "regression", path, "--target", "y", "-o", tmp_path / "m.uk").code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,a\n2,b\n", "'y' is not a column of numbers"),
        ("x,y\n1,1\n2,\n", "d.csv:3: column 'y': a record to learn from needs a label"),
        ("x,y\n1,1\n2,inf\n", "d.csv:3: column 'y': a label cannot be infinite"),
        ("x,y\n1,true\n2,false\n", "'y' is not a column of numbers"),
    ],
)
def test_targets_that_are_no_numbers_are_refused(run, tmp_path, text, words):
    (tmp_path / "d.csv").write_text(text)
    arguments = ("train", "regression", tmp_path / "d.csv", "--target", "y", "-o", tmp_path / "m.uk")
    assert words in run(*arguments).error()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epsilon", "1"], "--epsilon is for --loss epsilon_insensitive"),
        (["--quantile", "0.9"], "--quantile is for --loss quantile"),
        (["--calibrate", "3"], "--calibrate"),
        (["--loss", "huber"], "huber"),
    ],
)
def test_options_of_other_models_are_refused(run, flats, tmp_path, options, words):
    arguments = ("train", "regression", flats, "--target", "rent", "-o", tmp_path / "m.uk", *options)
    assert words in run(*arguments).error()


def test_classifiers_point_to_regressions(run, flats, tmp_path):
    line = run("train", "poly", flats, "--target", "rent", "-o", tmp_path / "m.uk").error()
    assert "unkernel train regression" in line
