"""``unkernel train regression --loss poisson``: counts from rows and records, by every command."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

import unkernel
from unkernel import PolyRegressor, read_svmlight

RATES = {"city": 4.0, "village": 0.5}


@pytest.fixture
def visits(tmp_path):
    """Return a table of people, whose visits to a doctor depend on the product of age and place."""
    rng = np.random.default_rng(0)
    lines = ["age,place,visits"]
    for _ in range(400):
        age, place = int(rng.integers(20, 80)), str(rng.choice(list(RATES)))
        lines.append(f"{age},{place},{rng.poisson(RATES[place] * age / 40)}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(3)
    y = rng.poisson(np.exp(1 + 0.5 * X[:, 0] * X[:, 1]))
    path = tmp_path / "rows.svm"
    lines = (f"{t} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(x)) for x, t in zip(X, y, strict=True))
    path.write_text("\n".join(lines) + "\n")
    return path


def read_records(path):
    header, *lines = path.read_text().splitlines()
    columns = header.split(",")[:2]
    records = [dict(zip(columns, line.split(","), strict=False)) for line in lines]
    counts = np.array([int(line.split(",")[2]) for line in lines])
    return [record | {"age": int(record["age"])} for record in records], counts


def train(run, data, model, *options):
    result = run("train", "regression", data, "-o", model, "--loss", "poisson", *options)
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_rows_are_learned_as_by_the_estimator(run, rows, tmp_path, penalty):
    output = train(run, rows, tmp_path / "m.uk", "--C", "0.5", "--penalty", penalty, "--json").json
    X, y = read_svmlight(rows).X, read_svmlight(rows).y
    reg = PolyRegressor(C=0.5, loss="poisson", penalty=penalty, random_state=0).fit(X, y)
    assert output["objective"] == reg.objective_
    predictions = reg.predict(X)
    evaluated = run("evaluate", tmp_path / "m.uk", rows, "--json").json
    for measures, prefix in ((output, "training_"), (evaluated, "")):
        deviance = metrics.mean_poisson_deviance(y, predictions)
        assert measures[f"{prefix}poisson_deviance"] == pytest.approx(deviance)
        assert measures[f"{prefix}r_squared"] == pytest.approx(metrics.r2_score(y, predictions))
        error = metrics.mean_absolute_error(y, predictions)
        assert measures[f"{prefix}mean_absolute_error"] == pytest.approx(error)
    text = run("evaluate", tmp_path / "m.uk", rows).out
    assert f"Poisson deviance  {evaluated['poisson_deviance']:.6g}" in text
    assert "means of counts: exp(score)" in run("inspect", tmp_path / "m.uk").out


def test_records_are_counted(run, visits, tmp_path):
    result = train(run, visits, tmp_path / "m.uk", "--target", "visits", "--C", "0.1", "--test", visits)
    assert "test Poisson deviance" in result.out
    fast = unkernel.load(tmp_path / "m.uk")
    records, counts = read_records(visits)
    means = fast.predict(records)
    predicted = [float(line) for line in run("predict", tmp_path / "m.uk", visits).out.splitlines()[1:]]
    assert predicted == means.tolist()
    lines = run("predict", tmp_path / "m.uk", visits, "--scores").out.splitlines()
    assert lines[0] == "prediction,score"
    numbers = np.array([line.split(",") for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(numbers, np.column_stack([means, np.log(means)]), rtol=1e-12, atol=1e-12)
    output = run("evaluate", tmp_path / "m.uk", visits, "--json").json
    assert output["poisson_deviance"] == pytest.approx(metrics.mean_poisson_deviance(counts, means))


def test_other_losses_have_no_deviance(run, rows, tmp_path):
    assert run("train", "regression", rows, "-o", tmp_path / "m.uk").code == 0
    assert run("evaluate", tmp_path / "m.uk", rows, "--json").json["poisson_deviance"] is None
    assert "deviance" not in run("evaluate", tmp_path / "m.uk", rows).out


def test_parameters_are_chosen_by_the_deviance(run, visits, tmp_path):
    output = run(
        *("tune", "regression", visits, "--target", "visits", "--loss", "poisson", "--C", "0.001:10:3"),
        *("--by", "poisson_deviance", "-o", tmp_path / "m.uk", "--json"),
    ).json
    deviances = [setting["measures"]["poisson_deviance"]["mean"] for setting in output["settings"]]
    assert output["best"] == int(np.argmin(deviances))
    assert unkernel.load(tmp_path / "m.uk").decision.link == "log"
    arguments = ("tune", "regression", visits, "--target", "visits", "--C", "0.1,1")
    assert "poisson_deviance is not known" in run(*arguments, "--by", "poisson_deviance").error()


def test_explanations_and_reports_are_made(run, visits, tmp_path):
    train(run, visits, tmp_path / "m.uk", "--target", "visits")
    records, _ = read_records(visits)
    explained = run("explain", tmp_path / "m.uk", visits, "--json").json
    fast = unkernel.load(tmp_path / "m.uk")
    mean = fast.predict_one(records[0])
    assert explained["prediction"] == mean
    assert explained["score"] == pytest.approx(np.log(mean))
    pytest.importorskip("matplotlib")
    assert run("report", tmp_path / "m.uk", "--test", visits, "-o", tmp_path / "report.html").code == 0
    assert "Poisson deviance" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,1\n2,-2\n", "y[1] is -2: loss='poisson' needs counts of at least 0"),
        ("x,y\n1,0\n2,0\n", "Input y is 0 for all rows: loss='poisson' needs at least one count above 0"),
    ],
)
def test_targets_that_are_no_counts_are_refused(run, tmp_path, text, words):
    (tmp_path / "d.csv").write_text(text)
    arguments = ("train", "regression", tmp_path / "d.csv", "--target", "y", "-o", tmp_path / "m.uk")
    assert words in run(*arguments, "--loss", "poisson").error()


def test_storages_of_other_losses_are_refused(run, rows, tmp_path):
    arguments = ("train", "regression", rows, "-o", tmp_path / "m.uk", "--loss", "poisson")
    assert "set storage='auto'" in run(*arguments, "--storage", "kernel").error()
