"""Successful runs of ``unkernel train``: models and output."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest

from unkernel import (
    CuttingPlaneSVC,
    PolyLogisticRegression,
    PolySVC,
    RankSVM,
    TreeSVC,
    __version__,
    load,
    read_svmlight,
    write_svmlight,
)
from unkernel.cli.options.estimator_options import derive_options, flag
from unkernel.cli.quality import CLASS_MEASURES
from unkernel.cli.terminal.progress import share_done


def test_the_model_equals_the_model_of_polysvc(run, train_file, tmp_path):
    path = tmp_path / "model.uk"
    result = run(
        "train",
        "poly",
        train_file,
        "-o",
        path,
        "--degree",
        "3",
        "--C",
        "2",
        "--gamma",
        "0.5",
        "--json",
        "--jobs",
        "2",
    )
    X, y = read_svmlight(train_file)
    expected = PolySVC(degree=3, C=2, gamma=0.5, random_state=0).fit(X, y.astype(int))
    assert result.code == 0
    assert result.err == ""
    assert result.json["objective"] == expected.objective_
    assert result.json["gap"] == expected.gap_
    assert result.json["training_accuracy"] == expected.score(X, y)
    assert result.json["classes"] == [-1, 1]
    model = load(path)
    assert model.classes_.dtype.kind == "i"
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_a_model_of_support_vectors_is_ready_to_load(run, tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((300, 40)) < 0.2).astype(float)
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.5, 1, -1)
    rows, path = tmp_path / "rows.svm", tmp_path / "model.uk"
    write_svmlight(rows, X, y)
    options = ("--storage", "split", "--gamma", "0.5")
    result = run("train", "poly", rows, "-o", path, *options, "--json").json
    expected = PolySVC(storage="split", gamma=0.5, random_state=0).fit(X, y)
    assert result["support_vectors"] == expected.to_model().n_support
    np.testing.assert_array_equal(load(path).decision_function(X), expected.decision_function(X))
    assert run("predict", path, rows).code == 0
    output = run("train", "poly", rows, "-o", path, *options).out
    assert re.search(r"model +\d+ support vectors, kernel of degree 2", output)


def test_the_text_output_is_as_expected(run, train_file, test_file, tmp_path):
    result = run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--C", "10", "--test", test_file)
    assert result.code == 0
    assert result.err == ""  # no terminal, no bar
    for words in ("300 rows, 12 features, 2 classes: -1, 1", "objective", "gap", "time", "memory"):
        assert words in result.out
    assert re.search(r"training accuracy +100.00 %", result.out)
    assert re.search(r"test accuracy +100.00 % \(200 of 200 rows\)", result.out)


def test_quiet_prints_nothing(run, train_file, tmp_path):
    result = run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_json_has_the_fields_of_the_summary(run, train_file, test_file, tmp_path):
    output = run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--test", test_file, "--json").json
    assert set(output["test"]) == {"file", "rows", *CLASS_MEASURES}
    assert (output["test"]["file"], output["test"]["rows"]) == (str(test_file), 200)
    assert output["test"]["accuracy_note"] is None
    assert output["test"]["positive_class"] == 1
    for name in ("accuracy", "precision", "recall", "f1", "roc_area"):
        assert 0.9 < output["test"][name] <= 1.0
        assert 0.9 < output[f"training_{name}"] <= 1.0
    assert output["rows"] == 300
    assert output["features"] == 12
    assert output["model_bytes"] == (tmp_path / "m.uk").stat().st_size
    assert output["peak_memory_bytes"] > 10_000_000
    assert set(output["seconds"]) == {"reading", "training", "total"}
    assert output["warnings"] == []


def test_verbose_prints_the_steps(run, train_file, tmp_path):
    result = run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--verbose", "--quiet")
    assert result.code == 0
    assert result.err.splitlines() == [f"reading {train_file}", "training", "measuring"]


def test_a_training_that_stopped_early_is_a_warning(run, train_file, tmp_path):
    result = run(
        "train", "poly", train_file, "-o", tmp_path / "m.uk", "--max-iter", "1", "--tol", "1e-9", "--json"
    )
    assert result.code == 0
    (line,) = result.err.splitlines()
    assert line.startswith("unkernel: warning: PolySVC stopped after max_iter=1")
    assert result.json["warnings"] == [line.removeprefix("unkernel: warning: ")]


@pytest.mark.parametrize("labels", [[0, 1], [3, 7], [-1, 1], [1, 2**53]])
def test_integer_labels_stay_integers(run, tmp_path, labels):
    lines = "".join(f"{labels[i % 2]}.0 {1 + i % 2}:1\n" for i in range(10))
    (tmp_path / "rows").write_text(lines)
    result = run("train", "poly", tmp_path / "rows", "-o", tmp_path / "m.uk", "--json")
    assert f"{result.json['classes']}" == f"{labels}"


def test_more_than_two_classes(run, tmp_path):
    X = np.random.default_rng(0).random((90, 5))
    write_svmlight(tmp_path / "rows.svm.zst", X, np.arange(90) % 3)
    result = run("train", "poly", tmp_path / "rows.svm.zst", "-o", tmp_path / "m.uk", "--json")
    assert result.json["classes"] == [0, 1, 2]


@pytest.mark.parametrize("weights", ["balanced", "1=2.5,-1=0.5", "1=2"])
def test_class_weights(run, train_file, tmp_path, weights):
    result = run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--class-weight", weights, "--json")
    X, y = read_svmlight(train_file)
    as_parameter = {"balanced": "balanced", "1=2": {1: 2.0}}.get(weights, {1: 2.5, -1: 0.5})
    expected = PolySVC(class_weight=as_parameter, random_state=0).fit(X, y)
    assert result.json["objective"] == expected.objective_


def test_the_first_index_of_the_training_file_is_remembered(run, tmp_path):
    """The second file has no feature 0; the model stores that indices start at 0."""
    (tmp_path / "train").write_text("1 0:1\n-1 1:1\n1 2:1\n-1 1:1 2:1\n")
    (tmp_path / "test").write_text("-1 1:1\n-1 1:1 2:1\n")
    result = run(
        "train",
        "poly",
        tmp_path / "train",
        "-o",
        tmp_path / "m.uk",
        "--test",
        tmp_path / "test",
        "--C",
        10,
        "--json",
    )
    assert result.json["test"]["accuracy"] == 1.0
    result = run("predict", tmp_path / "m.uk", tmp_path / "test", "--json")
    assert result.json["accuracy"] == 1.0
    result = run("predict", tmp_path / "m.uk", tmp_path / "test", "--json", "--one-based")
    assert result.json["accuracy"] < 1.0
    top = run("inspect", tmp_path / "m.uk", "--top", 100, "--json").json["top"]
    assert {index for entry in top for index in entry["features"]} == {0, 1, 2}


def test_an_existing_model_is_replaced_only_by_a_complete_one(run, train_file, model_file, tmp_path):
    old_bytes = model_file.read_bytes()
    (tmp_path / "bad").write_text("1 1:1\n")
    run("train", "poly", tmp_path / "bad", "-o", model_file).error()
    assert model_file.read_bytes() == old_bytes
    assert run("train", "poly", train_file, "-o", model_file, "--degree", "1", "--quiet").code == 0
    assert load(model_file).model.degree == 1


ESTIMATORS = {
    "poly": (PolySVC, {"warm_start"}),
    "logistic": (PolyLogisticRegression, {"warm_start"}),
    "linear": (CuttingPlaneSVC, {"warm_start"}),
    "rank": (RankSVM, {"pair_weight", "warm_start"}),
    "tree": (TreeSVC, {"warm_start"}),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_of_an_estimator_is_an_option_or_left_out_on_purpose(run, monkeypatch, kind):
    """Names, choices, defaults and help of options come from the estimator."""
    estimator, left_out = ESTIMATORS[kind]
    monkeypatch.setenv("COLUMNS", "250")
    text = run("train", kind, "--help").out
    options = {option.parameter: option for option in derive_options(estimator)}
    parameters = inspect.signature(estimator).parameters
    assert set(parameters) - set(options) <= left_out | {"n_jobs", "verbose"}
    for name, option in options.items():
        assert option.help, f"{estimator.__name__} does not describe {name}"
        line = re.search(rf"│ +{flag(option.name)}[ /].*", text)
        assert line is not None
        for rule in estimator._parameter_constraints[name]:
            if hasattr(rule, "options") and name != "class_weight":
                assert all(choice in line[0] for choice in rule.options)
    renamed = {"n_jobs": "jobs", "random_state": "seed", "fit_intercept": "intercept"}
    for name in set(parameters) - left_out:
        assert f"--{renamed.get(name, name).replace('_', '-')}" in text


def test_help_has_the_defaults_of_the_estimators(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    for kind, name in (("poly", "degree"), ("linear", "max_cuts"), ("rank", "tol"), ("tree", "decay")):
        default = inspect.signature(ESTIMATORS[kind][0]).parameters[name].default
        text = run("train", kind, "--help").out
        assert re.search(rf"--{name.replace('_', '-')} .*\[default: \({default}\)\]", text)


def test_the_bar_follows_the_logarithm_of_the_gap():
    def share_done_at(gap: float, finished: int = 0, problems: int = 1, stage: str = "training") -> float:
        progress = SimpleNamespace(relative_gap=gap, finished=finished, problems=problems, stage=stage)
        return share_done(progress, tol=1e-4)

    assert share_done_at(1.0) == 0.0
    assert share_done_at(1e-2) == pytest.approx(0.5)
    assert share_done_at(1e-4) == share_done_at(1e-9) == 1.0
    assert share_done_at(1e-2, finished=3, problems=5) == pytest.approx(0.7)
    assert share_done_at(1e-2, finished=5, problems=5) == 1.0
    assert share_done_at(0.5, stage="expanding") == 0.0


@pytest.mark.parametrize(
    "command", [[], ["train"], ["compile"], ["predict"], ["inspect"], ["explain"], ["bench"]]
)
def test_help_has_examples(run, command):
    result = run(*command, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"$ unkernel {command[0] if command else 'train'} " in result.out


def test_version_and_no_command_at_all(run):
    assert run("--version").out == f"unkernel {__version__}\n"
    result = run()
    assert result.code == 0
    assert "$ unkernel train" in result.out
