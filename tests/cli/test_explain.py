"""``unkernel explain``: parts that add up to the score that ``predict`` gives."""

from __future__ import annotations

import numpy as np
import pytest


def scores_of(run, model, rows) -> list[list[float]]:
    lines = run("predict", model, rows, "-o", "-", "--scores", "-q").out.splitlines()
    return [[float(word) for word in line.split()] for line in lines]


@pytest.mark.parametrize(
    "name", ["libsvm-poly2", "libsvm-poly3-multi", "tinysvm-poly3", "liblinear-svr", "liblinear-multi"]
)
def test_parts_add_up(run, golden, name):
    model, rows = golden / f"{name}.model", golden / "multi.test.svm"
    answers = scores_of(run, model, rows)
    for row in (0, 6, 59):
        found = run("explain", model, rows, "--row", row, "--top", 5, "--json").json
        assert len(found["contributions"]) == 5
        parts = [found["constant"], found["rest"], *(part["value"] for part in found["contributions"])]
        total = np.sum([np.atleast_1d(part) for part in parts], axis=0)
        np.testing.assert_allclose(total, np.atleast_1d(found["score"]), rtol=1e-9, atol=1e-12)
        answer, *scores = answers[row]
        np.testing.assert_allclose(total, scores, rtol=1e-9, atol=1e-12)
        assert found["prediction"] == pytest.approx(answer)
        assert len(found["scores"]) == len(scores)


def test_what_a_user_reads(run, model_file, test_file, tmp_path):
    (tmp_path / "rows").write_text("1 1:1 3:1\n-1 1:1 2:1\n")
    ran = run("explain", model_file, tmp_path / "rows", "--row", 1, "--top", 2)
    assert (ran.code, ran.err) == (0, "")
    for words in ("row 1", "1 ∧ 2", "(constant)", "(1 other)", "(score)", "prediction"):
        assert words in ran.out
    (tmp_path / "names").write_text("first\nsecond\n")
    ran = run("explain", model_file, tmp_path / "rows", "--row", 1, "--features", tmp_path / "names")
    assert "first ∧ second" in ran.out
    found = run("explain", model_file, tmp_path / "rows", "--row", 1, "--json").json
    assert [1, 2] in [part["features"] for part in found["contributions"]]


def test_real_values_are_monomials(run, golden, tmp_path):
    (tmp_path / "rows").write_text("1 20:0.5 36:2 43:1.5\n")
    found = run("explain", golden / "libsvm-poly2.model", tmp_path / "rows", "--json").json
    assert found["basis"] == "monomials"
    assert any(len(set(part["features"])) < len(part["features"]) for part in found["contributions"])
    assert " · " in run("explain", golden / "libsvm-poly2.model", tmp_path / "rows").out


def test_pairs_of_classes_show_the_winner_against_the_runner_up(run, golden):
    asked = ["explain", golden / "libsvm-poly3-multi.model", golden / "multi.test.svm", "--top", 2]
    found = run(*asked, "--json").json
    assert found["for_class"] == found["prediction"] != found["against"]
    assert len(found["shown"]["score"]) == 1 and found["shown"]["score"][0] > 0
    assert f"for {found['for_class']}, not {found['against']}" in run(*asked).out


def test_many_classes_show_the_winner_and_the_runner_up(run, tmp_path):
    generator = np.random.default_rng(0)
    X, y = generator.integers(0, 2, (120, 8)), np.arange(120) % 8
    lines = [
        f"{label} " + " ".join(f"{i + 1}:1" for i in np.flatnonzero(x)) for x, label in zip(X, y, strict=True)
    ]
    (tmp_path / "rows").write_text("\n".join(lines) + "\n")
    assert run("train", "poly", tmp_path / "rows", "-o", tmp_path / "m.uk", "--quiet").code == 0
    found = run("explain", tmp_path / "m.uk", tmp_path / "rows", "--json").json
    best = np.argsort(-np.array(found["score"]), kind="stable")[:2].tolist()
    assert [found["for_class"], found["against"]] == best
    assert found["shown"]["score"] == [found["score"][place] for place in best]
    shown = np.array([part["shown"] for part in found["contributions"]])
    whole = shown.sum(axis=0) + found["shown"]["constant"] + found["shown"]["rest"]
    np.testing.assert_allclose(whole, found["shown"]["score"])
    sizes = np.abs(shown[:, 0] - shown[:, 1]).tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert len(run("explain", tmp_path / "m.uk", tmp_path / "rows").out.splitlines()[-1].split()) == 3


def test_a_pruned_file_explains_the_exact_model(run, golden, tmp_path):
    source, rows = golden / "libsvm-poly2.model", golden / "binary.test.svm"
    options = ["--engine", "pruned", "--threshold", "0.02", "-q"]
    assert run("compile", source, "-o", tmp_path / "m.uk", *options).code == 0
    given, expected = (run("explain", path, rows, "--json").json for path in (tmp_path / "m.uk", source))
    assert given["exact"] is False
    assert given["score"] == expected["score"]
    assert "answers approximately" in run("explain", tmp_path / "m.uk", rows).out


def test_rows_with_no_or_unknown_features(run, golden, model_file, tmp_path):
    (tmp_path / "rows").write_text("1\n1 999:1\n")
    for model in (model_file, golden / "libsvm-poly2.model", golden / "liblinear-multi.model"):
        for row in (0, 1):
            found = run("explain", model, tmp_path / "rows", "--row", row, "--json").json
            assert found["contributions"] == []
            assert found["score"] == pytest.approx(found["constant"])
            assert run("explain", model, tmp_path / "rows", "--row", row).code == 0


def test_what_cannot_be_explained(run, golden, model_file, test_file):
    message = run("explain", golden / "libsvm-rbf.model", test_file).error()
    assert message.startswith(f"{golden / 'libsvm-rbf.model'}: ")
    assert "rbf" in message
    assert (
        "has 200 rows, so there is no row 200" in run("explain", model_file, test_file, "--row", 200).error()
    )
    assert "--row" in run("explain", model_file, test_file, "--row", -1).error()
    assert "--top" in run("explain", model_file, test_file, "--top", -1).error()
