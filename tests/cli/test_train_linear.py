"""``unkernel train linear``, and other commands on its models."""

from __future__ import annotations

import re

import numpy as np
import pytest

from unkernel import CuttingPlaneSVC, __version__, load, read_svmlight, write_svmlight

OF_TWO_CLASSES = ("positive_class", "precision", "recall", "f1", "roc_area")


def test_the_model_equals_the_model_of_the_estimator(run, linear_files, tmp_path):
    data, test = linear_files
    options = ["--C", "0.5", "--loss", "squared_hinge", "--no-intercept", "--test", test]
    output = run("train", "linear", data, "-o", tmp_path / "m.uk", *options, "--json").json
    (X, y), (tests, answers) = read_svmlight(data), read_svmlight(test)
    expected = CuttingPlaneSVC(C=0.5, loss="squared_hinge", fit_intercept=False).fit(X, y.astype(int))
    assert output["objective"] == expected.objective_
    assert output["passes"] == expected.n_iter_
    assert output["training_accuracy"] == expected.score(X, y)
    assert output["test"]["accuracy"] == expected.score(tests, answers)
    np.testing.assert_array_equal(load(tmp_path / "m.uk").decision_function(X), expected.decision_function(X))


def test_the_fields_of_json_are_complete(run, linear_files, tmp_path):
    data, test = linear_files
    output = run("train", "linear", data, "-o", tmp_path / "m.uk", "--test", test, "--json").json
    assert set(output) == {
        *("learner", "data", "rows", "features", "classes", "C", "loss", "objective_name", "k", "solver"),
        *(
            "objective",
            "gap",
            "tol",
            "passes",
            "training_measure",
            "test",
            "packed_rows",
            "packed_bytes",
            "cross_validation",
            "threshold",
        ),
        *(f"training_{name}" for name in ("accuracy", *OF_TWO_CLASSES)),
        *("model", "model_bytes", "warnings", "seconds", "peak_memory_bytes"),
    }
    of_tests = {"file", "rows", "correct", "accuracy", "accuracy_note", "measure", *OF_TWO_CLASSES}
    assert set(output["test"]) == of_tests
    assert (output["learner"], output["rows"], output["features"]) == ("CuttingPlaneSVC", 300, 8)
    assert (output["classes"], output["packed_rows"], output["training_measure"]) == ([-1, 1], None, None)


def test_the_text_output_is_as_expected(run, linear_files, tmp_path):
    data, test = linear_files
    result = run("train", "linear", data, "-o", tmp_path / "m.uk", "--test", test)
    assert (result.code, result.err) == (0, "")
    for words in ("300 rows, 8 features, 2 classes: -1, 1", "one weight per feature", "error rate, hinge"):
        assert words in result.out
    assert re.search(r"gap .* passes of solver cutting_plane", result.out)
    assert re.search(r"training accuracy +9\d.\d\d %\n", result.out)
    assert re.search(r"test accuracy +9\d.\d\d % \(9\d of 100 rows\)\n", result.out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["f1"], "F1 score"),
        (["roc_area"], "ROC area"),
        (["break_even"], "precision = recall"),
        (["precision_at_k", "--k", "30"], "precision at k"),
    ],
)
def test_other_objectives_are_measured(run, linear_files, tmp_path, options, words):
    data, test = linear_files
    command = ["train", "linear", data, "-o", tmp_path / "m.uk", "--test", test, "--C", "5"]
    output = run(*command, "--objective", *options, "--json").json
    for measured in (output["training_measure"], output["test"]["measure"]):
        assert measured["name"] == output["objective_name"] == options[0]
        assert 0.5 < measured["value"] <= 1.0
    result = run(*command, "--objective", *options)
    assert f"training {words} " in result.out
    assert f"test {words} " in result.out


def test_both_solvers_agree(run, linear_files, tmp_path):
    summaries = [
        run("train", "linear", linear_files[0], "-o", tmp_path / "m.uk", "--solver", solver, "--json").json
        for solver in ("dual", "cutting_plane")
    ]
    assert [summary["solver"] for summary in summaries] == ["dual", "cutting_plane"]
    assert summaries[0]["objective"] == pytest.approx(summaries[1]["objective"], rel=2e-3)


def test_many_classes_and_weights(run, rank_files, tmp_path):
    command = ["train", "linear", rank_files[0], "-o", tmp_path / "m.uk", "--class-weight", "balanced"]
    result = run(*command)
    assert "4 classes: 0, 1, 2, 3" in result.out
    assert "one weight per feature and class" in result.out
    assert run("predict", tmp_path / "m.uk", rank_files[1], "--json").json["accuracy"] > 0.4
    listed = run("inspect", tmp_path / "m.uk", "--top", 3, "--json").json["top"]
    assert [len(entry["weights"]) for entry in listed] == [4, 4, 4]


def test_the_model_goes_through_all_commands(run, linear_files, tmp_path):
    data, test = linear_files
    model, compiled = tmp_path / "m.uk", tmp_path / "c.uk"
    trained = run("train", "linear", data, "-o", model, "--test", test, "--json").json
    origin = run("inspect", model, "--json").json["origin"]
    assert origin["learner"] == "CuttingPlaneSVC"
    assert (origin["zero_based"], origin["rows"], origin["tol"]) == (False, 300, 1e-3)
    assert origin["unkernel"] == __version__
    assert run("compile", model, "-o", compiled, "--sample", test, "--quiet").code == 0
    for path in (model, compiled):
        assert run("predict", path, test, "--json").json["accuracy"] == trained["test"]["accuracy"]
        listed = run("inspect", path, "--top", 2, "--json").json["top"]
        assert {tuple(entry["features"]) for entry in listed} == {(1,), (8,)}
        parts = run("explain", path, test, "--json").json
        values = [part["value"] for part in parts["contributions"]]
        assert sum(values) + parts["intercept"] + parts["rest"] == pytest.approx(parts["score"])
        assert run("bench", path, test, "--seconds", 0.01, "--json").json["rows"] == 100


def test_the_first_index_of_the_training_file_is_remembered(run, tmp_path):
    X = np.eye(3)[[0, 1, 2, 1] * 5]
    write_svmlight(tmp_path / "train", X, [1, -1, 1, -1] * 5, zero_based=True)
    write_svmlight(tmp_path / "test", X[1:2], [-1], zero_based=True)
    for options in ([], ["--out-of-core"]):
        assert run("train", "linear", tmp_path / "train", "-o", tmp_path / "m.uk", *options).code == 0
        assert run("predict", tmp_path / "m.uk", tmp_path / "test", "--json").json["accuracy"] == 1.0


def test_verbose_prints_the_steps(run, linear_files, tmp_path):
    result = run("train", "linear", linear_files[0], "-o", tmp_path / "m.uk", "-v", "-q", "--out-of-core")
    assert result.err.splitlines() == [f"packing {linear_files[0]}", "training", "measuring"]
