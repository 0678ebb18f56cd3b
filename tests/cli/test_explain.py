"""``unkernel explain``: contributions add up to the score of ``predict``."""

from __future__ import annotations

import numpy as np
import pytest

from unkernel import PolySVC


def print_scores(run, model, rows) -> list[list[float]]:
    lines = run("predict", model, rows, "-o", "-", "--scores", "-q").out.splitlines()
    return [[float(word) for word in line.split()] for line in lines]


@pytest.mark.parametrize(
    "name", ["libsvm-poly2", "libsvm-poly3-multi", "tinysvm-poly3", "liblinear-svr", "liblinear-multi"]
)
def test_contributions_add_up_to_the_score(run, golden, name):
    model, rows = golden / f"{name}.model", golden / "multi.test.svm"
    answers = print_scores(run, model, rows)
    for row in (0, 6, 59):
        output = run("explain", model, rows, "--row", row, "--top", 5, "--json").json
        assert len(output["contributions"]) == 5
        parts = [output["intercept"], output["rest"], *(part["value"] for part in output["contributions"])]
        total = np.sum([np.atleast_1d(part) for part in parts], axis=0)
        np.testing.assert_allclose(total, np.atleast_1d(output["score"]), rtol=1e-9, atol=1e-12)
        answer, *scores = answers[row]
        np.testing.assert_allclose(total, scores, rtol=1e-9, atol=1e-12)
        assert output["prediction"] == pytest.approx(answer)
        assert len(output["scores"]) == len(scores)


def test_the_text_output_is_as_expected(run, model_file, test_file, tmp_path):
    (tmp_path / "rows").write_text("1 1:1 3:1\n-1 1:1 2:1\n")
    result = run("explain", model_file, tmp_path / "rows", "--row", 1, "--top", 2)
    assert (result.code, result.err) == (0, "")
    for words in ("row 1", "1 and 2", "(intercept)", "(1 other)", "(score)", "prediction"):
        assert words in result.out
    (tmp_path / "names").write_text("first\nsecond\n")
    result = run("explain", model_file, tmp_path / "rows", "--row", 1, "--features", tmp_path / "names")
    assert "first and second" in result.out
    output = run("explain", model_file, tmp_path / "rows", "--row", 1, "--json").json
    assert [1, 2] in [part["features"] for part in output["contributions"]]


def test_rows_of_real_values_are_explained_by_monomials(run, golden, tmp_path):
    (tmp_path / "rows").write_text("1 20:0.5 36:2 43:1.5\n")
    output = run("explain", golden / "libsvm-poly2.model", tmp_path / "rows", "--json").json
    assert output["basis"] == "monomials"
    assert any(len(set(part["features"])) < len(part["features"]) for part in output["contributions"])
    assert " · " in run("explain", golden / "libsvm-poly2.model", tmp_path / "rows").out


def test_models_of_pairs_explain_the_winner_against_the_runner_up(run, golden):
    command = ["explain", golden / "libsvm-poly3-multi.model", golden / "multi.test.svm", "--top", 2]
    output = run(*command, "--json").json
    assert output["scores"] == ["4 : 1", "4 : 7", "4 : 9", "1 : 7", "1 : 9", "7 : 9"]
    assert output["prediction"] == output["for_class"] != output["against"]
    assert len(output["shown"]["score"]) == 1
    shown = [*output["shown"]["intercept"], *output["shown"]["rest"]]
    shown += [number for part in output["contributions"] for number in part["shown"]]
    assert sum(shown) == pytest.approx(output["shown"]["score"][0])
    assert f"for {output['for_class']} against {output['against']}" in run(*command).out


def test_models_of_many_classes_explain_the_two_highest_scores(run, tmp_path):
    generator = np.random.default_rng(0)
    X, y = generator.integers(0, 2, (120, 8)), np.arange(120) % 8
    lines = [
        f"{label} " + " ".join(f"{i + 1}:1" for i in np.flatnonzero(x)) for x, label in zip(X, y, strict=True)
    ]
    (tmp_path / "rows").write_text("\n".join(lines) + "\n")
    assert run("train", "poly", tmp_path / "rows", "-o", tmp_path / "m.uk", "--quiet").code == 0
    command = ["explain", tmp_path / "m.uk", tmp_path / "rows"]
    output = run(*command, "--json").json
    first, second = np.argsort(output["score"])[:-3:-1].tolist()
    assert (output["prediction"], output["for_class"], output["against"]) == (first, first, second)
    assert output["shown"]["score"] == [output["score"][first], output["score"][second]]
    message = run(*command).out
    assert f"for {first}" in message and f"for {second}" in message
    explained_class = run(*command, "--of", "3", "--json").json
    assert (explained_class["for_class"], explained_class["shown"]["score"]) == (
        3,
        [explained_class["score"][3]],
    )
    assert "--of must be one of 0, 1" in run(*command, "--of", "8").error()


def test_features_are_named_by_the_model(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"height": [0, 0, 1, 1] * 5, "width": [0, 1, 0, 1] * 5})
    PolySVC(C=10, gamma=1, random_state=0).fit(X, X["height"] ^ X["width"]).save(tmp_path / "m.uk")
    (tmp_path / "rows").write_text("0 1:1 2:1\n")
    assert "height and width" in run("explain", tmp_path / "m.uk", tmp_path / "rows").out
    assert "height and width" in run("inspect", tmp_path / "m.uk", "--top", "3").out
    (tmp_path / "names").write_text("tall\nwide\n")
    message = run("explain", tmp_path / "m.uk", tmp_path / "rows", "--features", tmp_path / "names").out
    assert "tall and wide" in message


def test_a_pruned_file_explains_the_exact_model(run, golden, tmp_path):
    source, rows = golden / "libsvm-poly2.model", golden / "binary.test.svm"
    options = ["--engine", "pruned", "--threshold", "0.02", "-q"]
    assert run("compile", source, "-o", tmp_path / "m.uk", *options).code == 0
    pruned, expected = (run("explain", path, rows, "--json").json for path in (tmp_path / "m.uk", source))
    assert pruned["exact"] is False
    assert pruned["score"] == expected["score"]
    assert "approximates it" in run("explain", tmp_path / "m.uk", rows).out


def test_rows_with_no_or_unknown_features(run, golden, model_file, tmp_path):
    (tmp_path / "rows").write_text("1\n1 999:1\n")
    for model in (model_file, golden / "libsvm-poly2.model", golden / "liblinear-multi.model"):
        for row in (0, 1):
            output = run("explain", model, tmp_path / "rows", "--row", row, "--json").json
            assert output["contributions"] == []
            assert output["score"] == pytest.approx(output["intercept"])
            assert run("explain", model, tmp_path / "rows", "--row", row).code == 0


def test_models_and_rows_that_cannot_be_explained_are_refused(run, golden, model_file, test_file):
    message = run("explain", golden / "libsvm-rbf.model", test_file).error()
    assert message.startswith(f"{golden / 'libsvm-rbf.model'}: ")
    assert "rbf" in message
    assert (
        "has 200 rows, so there is no row 200" in run("explain", model_file, test_file, "--row", 200).error()
    )
    assert "--row" in run("explain", model_file, test_file, "--row", -1).error()
    assert "--top" in run("explain", model_file, test_file, "--top", -1).error()
