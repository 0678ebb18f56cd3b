"""``unkernel train rank``, and other commands on its models."""

from __future__ import annotations

import re

import numpy as np
import pytest

from unkernel import RankSVM, read_svmlight, write_svmlight


@pytest.fixture(params=[False, True], ids=["scores", "ordinal"])
def trained(request, run, rank_files, tmp_path):
    """Return a model of either kind, and the output of its training."""
    options = ["--thresholds"] if request.param else []
    command = ["train", "rank", rank_files[0], "-o", tmp_path / "m.uk", "--test", rank_files[1]]
    return run(*command, *options, "--json").json


def fit_same_estimator(trained, rank_files) -> RankSVM:
    data = read_svmlight(rank_files[0])
    learner = RankSVM().fit(data.X, data.y, data.qid)
    return learner.fit_thresholds(data.X, data.y) if trained["thresholds"] else learner


def test_the_model_equals_the_model_of_the_estimator(trained, rank_files):
    expected = fit_same_estimator(trained, rank_files)
    data, tests = map(read_svmlight, rank_files)
    assert trained["objective"] == expected.objective_
    assert trained["training_ordered_pairs"] == expected.score(data.X, data.y, data.qid)
    assert trained["test"]["ordered_pairs"] == expected.score(tests.X, tests.y, tests.qid)
    if trained["thresholds"]:
        assert trained["thresholds"] == expected.thresholds_.tolist()
        answers = expected.predict(tests.X)
        assert trained["test"]["accuracy"] == np.mean(answers == tests.y)
        assert trained["test"]["mean_absolute_error"] == np.mean(np.abs(answers - tests.y))


def test_the_fields_of_json_are_complete(trained):
    assert set(trained) == {
        *(
            "learner",
            "data",
            "rows",
            "features",
            "ranks",
            "degree",
            "thresholds",
            "C",
            "objective",
            "gap",
            "tol",
        ),
        *("passes", "training_pairs", "training_ordered_pairs", "training_groups", "training_accuracy"),
        *("training_mean_absolute_error", "test", "packed_rows", "model", "model_bytes", "warnings"),
        *("seconds", "peak_memory_bytes", "packed_bytes", "cross_validation", "training_ndcg"),
    }
    assert set(trained["test"]) == {
        *("file", "rows", "pairs", "ordered_pairs", "groups", "accuracy", "accuracy_note"),
        *("mean_absolute_error", "ndcg"),
    }
    assert (trained["learner"], trained["ranks"], trained["training_groups"]) == ("RankSVM", 4, 30)


def test_the_text_output_is_as_expected(run, rank_files, tmp_path):
    command = ["train", "rank", rank_files[0], "-o", tmp_path / "m.uk", "--test", rank_files[1]]
    result = run(*command, "--thresholds")
    assert (result.code, result.err) == (0, "")
    assert "300 rows, 8 features, 4 ranks" in result.out
    assert re.search(r"training ordered pairs +[\d.]+ % of [\d,]+ within 30 groups\n", result.out)
    assert re.search(r"test ordered pairs +[\d.]+ % of \d+ within 10 groups\n", result.out)
    assert re.search(r"test mean absolute error +0\.\d+ ranks\n", result.out)
    assert "accuracy" not in run(*command).out


def test_predict_writes_scores_or_labels(run, trained, rank_files, tmp_path):
    expected, tests = fit_same_estimator(trained, rank_files), read_svmlight(rank_files[1])
    scores = expected.decision_function(tests.X)
    answers = expected.predict(tests.X) if trained["thresholds"] else scores
    output = run("predict", tmp_path / "m.uk", rank_files[1], "-o", tmp_path / "p", "--scores", "--json").json
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "p"), np.column_stack([answers, scores]))
    for name in ("pairs", "ordered_pairs", "groups", "ndcg", "accuracy", "mean_absolute_error"):
        assert output[name] == trained["test"][name]
    assert output["mean_squared_error"] is None


def test_the_model_goes_through_all_commands(run, trained, rank_files, tmp_path):
    model, compiled = tmp_path / "m.uk", tmp_path / "c.uk"
    assert run("compile", model, "-o", compiled, "--sample", rank_files[1], "--quiet").code == 0
    about = run("inspect", model, "--json").json
    assert about["scheme"] == ("ordinal" if trained["thresholds"] else "regression")
    assert about.get("thresholds") == trained["thresholds"]
    for path in (model, compiled):
        text = run("inspect", path, "--top", 2).out
        assert ("a higher class" if trained["thresholds"] else "a larger value") in text
        assert ("thresholds" if trained["thresholds"] else "scores that order rows") in text
        output = run("predict", path, rank_files[1], "--json").json
        assert output["ordered_pairs"] == trained["test"]["ordered_pairs"]
        parts = run("explain", path, rank_files[1], "--row", 2, "--json").json
        assert parts["prediction"] in (range(4) if trained["thresholds"] else [parts["score"]])
        assert run("bench", path, rank_files[1], "--seconds", 0.01, "--json").json["rows"] == 100


def test_rows_without_groups_are_one(run, linear_files, tmp_path):
    output = run("train", "rank", linear_files[0], "-o", tmp_path / "m.uk", "--json").json
    y = read_svmlight(linear_files[0]).y
    assert output["training_groups"] is None
    assert output["training_pairs"] == np.sum(y > 0) * np.sum(y < 0)


def test_labels_that_an_ordinal_model_does_not_know(run, rank_files, tmp_path):
    assert run("train", "rank", rank_files[0], "-o", tmp_path / "m.uk", "--thresholds").code == 0
    X, y = read_svmlight(rank_files[1])
    write_svmlight(tmp_path / "other", X, y + 10)
    result = run("predict", tmp_path / "m.uk", tmp_path / "other")
    assert "have labels that the model does not know (10, 11, 12, 13)" in result.err
    assert "ordered pairs" in result.err


def test_rows_that_have_no_pair(run, rank_files, tmp_path):
    assert run("train", "rank", rank_files[0], "-o", tmp_path / "m.uk").code == 0
    (tmp_path / "same").write_text("1 qid:1 1:1\n2 qid:2 1:2\n")
    result = run("predict", tmp_path / "m.uk", tmp_path / "same")
    assert "not known: there is no pair to order" in result.err
    assert run("predict", tmp_path / "m.uk", tmp_path / "same", "--json").json["ordered_pairs"] is None


@pytest.mark.parametrize("degree", [2, 3])
def test_conjunctions_are_ranked_by(degree, run, rank_files, tmp_path):
    options = ["--degree", degree, "--gamma", 0.5, "--pair-weight", "ndcg"]
    command = ["train", "rank", rank_files[0], "-o", tmp_path / "m.uk", "--test", rank_files[1], *options]
    trained = run(*command, "--json").json
    data, tests = map(read_svmlight, rank_files)
    expected = RankSVM(degree=degree, gamma=0.5, pair_weight="ndcg").fit(data.X, data.y, data.qid)
    assert trained["objective"] == expected.objective_
    assert (trained["degree"], trained["gamma"]) == (degree, 0.5)
    assert trained["conjunctions"] == expected.to_model().n_conjunctions
    assert trained["test"]["ndcg"]["value"] == expected.ndcg(tests.X, tests.y, tests.qid)
    message = run(*command, "--force").out
    assert re.search(rf"conjunctions of at most {degree} features", message)
    predicted = run("predict", tmp_path / "m.uk", rank_files[1], "-o", tmp_path / "scores.txt")
    assert predicted.code == 0
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "scores.txt"), expected.decision_function(tests.X), rtol=1e-6
    )


@pytest.mark.parametrize("option", [["--out-of-core"], ["--dask", "local"]], ids=lambda option: option[0])
def test_conjunctions_need_rows_in_memory(option, run, rank_files, tmp_path):
    result = run("train", "rank", rank_files[0], "-o", tmp_path / "m.uk", "--degree", 2, *option)
    assert result.code != 0
    assert f"do not go with {option[0]}" in " ".join(result.err.split())


def test_degrees_are_tuned(run, rank_files):
    tuned = run("tune", "rank", rank_files[0], "--degree", "1,2", "--C", "0.1,1", "--cv", 3, "--json").json
    assert len(tuned["settings"]) == 4
