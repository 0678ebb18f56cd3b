"""``unkernel train poly --penalty l1`` and ``unkernel train logistic``."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.metrics import log_loss

from unkernel import PolyLogisticRegression, PolySVC, load, read_svmlight, write_svmlight
from unkernel.cli.options.estimator_options import derive_options


@pytest.fixture
def three_classes(tmp_path):
    """Return three classes that pairs of features separate."""
    rng = np.random.default_rng(3)
    X = (rng.random((240, 8)) < 0.5).astype(float)
    path = tmp_path / "three.svm"
    write_svmlight(path, X, (X[:, 0] * X[:, 1] + 2 * X[:, 2] * (1 - X[:, 0])).astype(int))
    return path


def test_the_sparse_svm_equals_the_model_of_polysvc(run, train_file, tmp_path):
    path = tmp_path / "model.uk"
    options = ["--penalty", "l1", "--loss", "squared_hinge", "--C", "0.5", "--gamma", "1"]
    output = run("train", "poly", train_file, "-o", path, *options, "--json").json
    X, y = read_svmlight(train_file)
    expected = PolySVC(C=0.5, gamma=1, penalty="l1", loss="squared_hinge", random_state=0).fit(X, y)
    assert (output["objective"], output["gap"]) == (expected.objective_, expected.gap_)
    assert (output["penalty"], output["epochs"], output["newton_steps"]) == ("l1", None, expected.n_iter_)
    np.testing.assert_array_equal(load(path).decision_function(X), expected.decision_function(X))
    assert 0 < output["conjunctions"] == output["weights"] < 12 + 66  # of all there are


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
def test_the_log_linear_model_equals_the_model_of_the_estimator(run, three_classes, tmp_path, penalty):
    path = tmp_path / "model.uk"
    options = ["--degree", "3", "--penalty", penalty, "--C", "0.3"]
    options += ["--l1-ratio", "0.7"] if penalty == "elasticnet" else []
    result = run("train", "logistic", three_classes, "-o", path, *options, "--test", three_classes, "--json")
    assert (result.code, result.err) == (0, "")
    X, y = read_svmlight(three_classes)
    expected = PolyLogisticRegression(3, C=0.3, penalty=penalty, l1_ratio=0.7, random_state=0).fit(X, y)
    assert (result.json["learner"], result.json["loss"]) == ("PolyLogisticRegression", "logistic")
    assert (result.json["objective"], result.json["newton_steps"]) == (expected.objective_, expected.n_iter_)
    assert result.json["l1_ratio"] == (0.7 if penalty == "elasticnet" else None)
    assert result.json["training_log_loss"] == pytest.approx(log_loss(y, expected.predict_proba(X)))
    assert result.json["test"]["log_loss"] == result.json["training_log_loss"]
    assert result.json["weights"] == np.count_nonzero(expected.to_model().weights)
    np.testing.assert_array_equal(load(path).predict_proba(X), expected.predict_proba(X))


def test_the_penalty_defaults_to_the_penalty_of_the_estimator(run, train_file, tmp_path):
    output = run("train", "logistic", train_file, "-o", tmp_path / "m.uk", "--json").json
    assert output["penalty"] == "l1"
    assert run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--json").json["penalty"] == "l2"


def test_the_text_output_is_as_expected(run, train_file, test_file, tmp_path):
    options = ["--C", "10", "--test", test_file]
    result = run("train", "logistic", train_file, "-o", tmp_path / "m.uk", *options)
    assert (result.code, result.err) == (0, "")
    for words in (
        r"model +\d+ conjunctions of at most 2 features",
        r"objective +[\d.]+ \(logistic, l1\)",
        r"after \d+ Newton step",
        r"training log loss +0.\d+ per row",
        r"test accuracy +100.00 % \(200 of 200 rows\)",
    ):
        assert re.search(words, result.out)


def test_labels_that_training_did_not_know_have_no_loss(run, train_file, tmp_path):
    (tmp_path / "test").write_text("7 1:1\n")
    options = ["--test", tmp_path / "test"]
    output = run("train", "logistic", train_file, "-o", tmp_path / "m.uk", *options, "--json").json
    assert output["test"]["log_loss"] is None
    assert "not known" in run("train", "logistic", train_file, "-o", tmp_path / "m.uk", *options).out


def test_probabilities_are_predicted(run, three_classes, tmp_path):
    path, out = tmp_path / "m.uk", tmp_path / "p.txt"
    assert run("train", "logistic", three_classes, "-o", path, "--C", "5", "-q").code == 0
    X, _ = read_svmlight(three_classes)
    fast = tmp_path / "fast.uk"
    assert run("compile", path, "-o", fast, "--sample", three_classes, "-q").code == 0
    for model in (path, fast):
        assert run("predict", model, three_classes, "-o", out, "--probability", "-q", "--force").code == 0
        predictions = np.loadtxt(out)
        np.testing.assert_allclose(predictions[:, 1:], load(path).predict_proba(X), rtol=1e-12)
        np.testing.assert_array_equal(predictions[:, 0], load(path).predict(X))
    assert run("inspect", fast, "--json").json["probability"] is True


def test_inspect_counts_nonzero_weights(run, train_file, tmp_path):
    path = tmp_path / "m.uk"
    options = ["--degree", "3", "--gamma", "1", "--json"]
    trained = run("train", "logistic", train_file, "-o", path, *options).json
    output = run("inspect", path, "--json").json
    assert output["conjunctions"] == sum(output["conjunctions_by_order"]) == trained["conjunctions"]
    assert len(output["conjunctions_by_order"]) == 3
    assert output["origin"]["penalty"] == "l1"
    assert re.search(r"conjunctions +\d+: \d+ of 1 feature, \d+ of 2 features", run("inspect", path).out)


def test_verbose_prints_the_steps(run, train_file, tmp_path):
    result = run("train", "logistic", train_file, "-o", tmp_path / "m.uk", "--verbose", "--quiet")
    assert result.err.splitlines() == [f"reading {train_file}", "training", "measuring"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("poly --penalty l1", "--penalty l1 needs --loss squared_hinge"),
        ("poly --penalty l1 --loss hinge", "--penalty l1 needs --loss squared_hinge"),
        ("poly --penalty elasticnet", "'--penalty': .*'elasticnet' is not one of 'l2', 'l1'"),
        ("poly --penalty l3", "--penalty"),
        (
            "poly --penalty l1 --loss squared_hinge --storage auto",
            "--storage is for --penalty l2, not for l1",
        ),
        ("poly --l1-ratio 0.5", "No such option: --l1-ratio"),
        ("logistic --l1-ratio 0.5", "--l1-ratio is for --penalty elasticnet, not for l1"),
        ("logistic --penalty elasticnet --l1-ratio 0", "--l1-ratio must be"),
        ("logistic --penalty elasticnet --l1-ratio 1.1", "--l1-ratio must be"),
        ("logistic --penalty elasticnet --l1-ratio nan", "--l1-ratio must be"),
        ("logistic --storage condensed", "--storage is for --penalty l2"),
        ("logistic --loss hinge", "No such option: --loss"),
        ("logistic --C 0", "--C must be"),
        ("logistic --C inf", "--C must be|C"),
        ("logistic --degree 4", r"--degree must be an int in the range \[1, 3\], got 4"),
        ("linear --penalty l1", "No such option: --penalty"),
        ("logistic --out-of-core", "No such option: --out-of-core"),
        ("logistic --gamma 0", "--gamma must be a str among .* or a float in the range"),
        ("logistic --class-weight 9=1", "9"),
    ],
)
def test_options_that_are_refused(run, train_file, tmp_path, options, reason):
    kind, *options_of_kind = options.split()
    message = run("train", kind, train_file, "-o", tmp_path / "m.uk", *options_of_kind).error()
    assert re.search(reason, message)
    assert {path.name for path in tmp_path.iterdir()} == {train_file.name}


@pytest.mark.parametrize("model", ["logistic", "poly --penalty l1 --loss squared_hinge"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [("1 1:1\n1 2:1\n", "only one class"), ("0.1 1:1\n0.7 2:1\n1.3 1:2\n", "ontinuous|has fractions")],
)
def test_labels_that_are_no_classes(run, tmp_path, model, text, reason):
    (tmp_path / "rows").write_text(text)
    message = run("train", *model.split(), tmp_path / "rows", "-o", tmp_path / "m.uk").error()
    assert re.search(reason, message)


@pytest.mark.parametrize("estimator", [PolySVC, PolyLogisticRegression])
def test_options_offer_the_choices_of_the_estimators(estimator):
    (penalty,) = (option for option in derive_options(estimator) if option.name == "penalty")
    assert {choice.value for choice in penalty.kind} == estimator._parameter_constraints["penalty"][0].options
