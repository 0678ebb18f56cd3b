"""``unkernel inspect`` reports the actual content."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from unkernel import PolySVC, load, read_svmlight, write_svmlight


def test_the_text_output_is_as_expected(run, model_file):
    result = run("inspect", model_file, "--top", "3")
    assert (result.code, result.err) == (0, "")
    for words in ("sets of features", "2: -1, 1", "of 1 feature", "of 2 features", "hinge", "heaviest"):
        assert words in result.out
    assert "1 and 2" in result.out


def test_the_planted_conjunction_is_listed_first(run, model_file):
    output = run("inspect", model_file, "--top", "1", "--json").json
    (heaviest,) = output["top"]
    assert heaviest["features"] == [1, 2]
    assert heaviest["weights"][0] < 0
    assert sum(output["conjunctions_by_order"]) == output["conjunctions"]
    assert output["file_bytes"] == model_file.stat().st_size
    assert output["origin"]["C"] == 10


def test_weights_of_a_row_add_up_to_its_score(run, model_file):
    """Keys must be decoded into the same conjunctions as in the engine."""
    output = run("inspect", model_file, "--top", "1000", "--json").json
    rows = (np.random.default_rng(5).random((20, 12)) < 0.5).astype(float)
    scores = load(model_file).decision_function(rows)
    for row, score in zip(rows, scores, strict=True):
        present_features = set(np.flatnonzero(row) + 1)
        total = sum(
            entry["weights"][0] for entry in output["top"] if present_features.issuperset(entry["features"])
        )
        np.testing.assert_allclose(output["intercept"][0] + total, score, rtol=1e-12, atol=1e-12)


def test_monomials_of_several_classes_are_listed(run, tmp_path):
    X = np.random.default_rng(0).random((60, 4))
    clf = PolySVC(degree=3, random_state=0).fit(X, np.arange(60) % 3)
    clf.save(tmp_path / "m.uk")
    output = run("inspect", tmp_path / "m.uk", "--top", "100", "--json").json
    assert output["basis"] == "monomials"
    assert output["conjunctions_by_order"] == [4, 10, 20]
    scores = np.array(output["intercept"]) + sum(
        np.prod(X[:1, np.array(entry["features"])]) * np.array(entry["weights"]) for entry in output["top"]
    )
    np.testing.assert_allclose(scores, clf.decision_function(X[:1])[0], rtol=1e-10)
    assert "not " in run("inspect", tmp_path / "m.uk", "--top", "100").out


def test_ids_are_counted_from_0_unless_the_file_counts_from_1(run, tmp_path):
    X = np.eye(3)[[0, 1, 2, 1] * 5]
    y = [1, -1, 1, -1] * 5
    PolySVC(degree=1, random_state=0).fit(X, y).save(tmp_path / "python.uk")
    for name, zero_based in (("zero", True), ("one", False)):
        write_svmlight(tmp_path / name, X, y, zero_based=zero_based)
        options = ["-o", tmp_path / f"{name}.uk", "--degree", "1", "-q"]
        assert run("train", "poly", tmp_path / name, *options).code == 0

    def ids(model: str, *command: object) -> set[int]:
        output = run(*command, "--top", "9", "--json").json
        parts = output["top"] if model == "inspect" else output["contributions"]
        return {feature for part in parts for feature in part["features"]}

    for name, expected in (("python", {0, 1, 2}), ("zero", {0, 1, 2}), ("one", {1, 2, 3})):
        assert ids("inspect", "inspect", tmp_path / f"{name}.uk") == expected
    for name, rows, expected in (("zero", "zero", {0}), ("one", "one", {1}), ("python", "one", {1})):
        assert ids("explain", "explain", tmp_path / f"{name}.uk", tmp_path / rows, "--row", "0") == expected
    assert ids("explain", "explain", tmp_path / "python.uk", tmp_path / "zero") == {0}


def test_models_without_conjunctions(run, model_file, tmp_path):
    model = load(model_file).model
    empty = dataclasses.replace(model, keys=model.keys[:0], weights=model.weights[:0], origin={})
    empty.save(tmp_path / "empty.uk")
    output = run("inspect", tmp_path / "empty.uk", "--top", "5", "--json").json
    assert (output["conjunctions"], output["top"]) == (0, [])
    assert run("inspect", tmp_path / "empty.uk", "--top", "5").code == 0


def test_infinities_and_nan_become_null_in_json(run, model_file, tmp_path):
    model = load(model_file).model
    dataclasses.replace(model, origin={"gap": float("nan"), "note": [float("inf")]}).save(tmp_path / "odd.uk")
    assert run("inspect", tmp_path / "odd.uk", "--json").json["origin"] == {"gap": None, "note": [None]}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("libsvm-poly2", ("read from LIBSVM", "polynomial (1 ⟨x, z⟩ + 1)^2", "2: 1, -1", "probabilities  ")),
        ("libsvm-rbf", ("rbf exp(-0.05 |x - z|²)", "support vectors")),
        ("libsvm-nu-sigmoid-prob-multi", ("sigmoid tanh(0.02 ⟨x, z⟩ + -0.5)", "yes", "one vote per pair")),
        ("libsvm-nu-svr", ("numbers (regression)",)),
        ("libsvm-one-class", ("one class", "2: -1, 1")),
        ("libsvm-linear-multi", ("linear ⟨x, z⟩",)),
        ("liblinear-multi", ("read from LIBLINEAR", "one score per class", "52 of 1 feature")),
        ("svmlight-poly2", ("read from SVMlight",)),
        ("tinysvm-poly3", ("read from TinySVM", "^3")),
    ],
)
def test_models_of_other_programs(run, golden, name, words):
    result = run("inspect", golden / f"{name}.model")
    assert (result.code, result.err) == (0, "")
    for word in words:
        assert word in result.out
    output = run("inspect", golden / f"{name}.model", "--json").json
    assert output["format"] == name.partition("-")[0]
    assert output["kind"] == ("linear" if output["format"] == "liblinear" else "kernel")
    assert output["probability"] is ("prob" in name)


def test_compiled_models_are_described(run, compiled_file):
    result = run("inspect", compiled_file)
    for words in ("expanded, exact", "in the dense table", "candidates", "µs/row", "←", "146"):
        assert words in result.out
    output = run("inspect", compiled_file, "--json").json
    assert (output["engine"], output["exact"], output["support_vectors"]) == ("expanded", True, 146)
    assert output["zones"]["used"] == output["used_features"] == 52
    assert [candidate["chosen"] for candidate in output["candidates"]] == [True]
    assert len(output["conjunctions_by_order"]) == 3


def test_approximate_models_are_marked(run, golden, tmp_path):
    options = ["--engine", "pruned", "--threshold", "0.02", "-q"]
    assert run("compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", *options).code == 0
    out = run("inspect", tmp_path / "m.uk", "--top", "1").out
    assert "pruned, APPROXIMATE" in out
    assert "dropped" in out


def test_the_list_mentions_missing_rare_features(run, golden, tmp_path):
    options = ["--engine", "split", "--rare", "20", "-q"]
    assert run("compile", golden / "tinysvm-poly3.model", "-o", tmp_path / "m.uk", *options).code == 0
    output = run("inspect", tmp_path / "m.uk", "--top", "1", "--json").json
    assert output["zones"]["rare"] > 0
    assert "rare" in output["top_note"]


@pytest.mark.parametrize("name", ["libsvm-poly2", "svmlight-linear", "liblinear-binary"])
def test_conjunctions_of_uncompiled_models_are_listed(run, golden, name):
    """The sum of the listed weights of a row's conjunctions is its score, up to a constant."""
    path, rows = golden / f"{name}.model", golden / "binary.test.svm"
    output = run("inspect", path, "--top", "100000", "--json").json
    X, _ = read_svmlight(rows)
    scores = run("predict", path, rows, "-o", "-", "--scores", "-q").out.splitlines()
    present_features = [set(X[row].indices + 1) for row in range(2)]
    total = [
        sum(entry["weights"][0] for entry in output["top"] if columns.issuperset(entry["features"]))
        for columns in present_features
    ]
    # The constant of a kernel model depends on all support vectors. It cancels in differences of scores.
    difference = float(scores[0].split()[1]) - float(scores[1].split()[1])
    assert total[0] - total[1] == pytest.approx(difference, rel=1e-9)


def test_engines_without_conjunctions_are_expanded_to_list_them(run, golden, tmp_path):
    source = golden / "libsvm-poly2.model"
    assert run("compile", source, "-o", tmp_path / "m.uk", "--engine", "bitsliced", "-q").code == 0
    assert "as bits" in run("inspect", tmp_path / "m.uk").out
    given, expected = (
        run("inspect", path, "--top", "4", "--json").json["top"] for path in (tmp_path / "m.uk", source)
    )
    assert given == expected
    assert len(given) == 4


def test_listing_conjunctions_of_an_rbf_kernel_is_refused(run, golden):
    message = run("inspect", golden / "libsvm-rbf.model", "--top", "3").error()
    assert "rbf kernel has no conjunctions to list" in message


def test_weights_of_pairs_of_classes_name_the_class_that_they_support(run, compiled_file):
    assert " over " in run("inspect", compiled_file, "--top", "3").out


def test_positive_scores_of_libsvm_mean_its_first_class(run, golden):
    """LIBSVM's positive scores mean the first label of its file, which is 1 here."""
    output = run("inspect", golden / "libsvm-poly2.model", "--top", "30", "--json").json
    lines = run("inspect", golden / "libsvm-poly2.model", "--top", "30").out.splitlines()[-30:]
    for entry, line in zip(output["top"], lines, strict=True):
        assert line.split()[-1] == ("1" if entry["weights"][0] > 0 else "-1")


@pytest.mark.parametrize("form", ["{name}\n", "{number}\t{name}\n", "{name}\r\n"])
def test_names_of_features(run, model_file, tmp_path, form):
    lines = [form.format(number=i, name=f"feature {chr(96 + i)}") for i in range(1, 13)]
    (tmp_path / "names").write_bytes("".join(lines).encode())
    result = run("inspect", model_file, "--top", "1", "--features", tmp_path / "names")
    assert "feature a and feature b" in result.out
    output = run("inspect", model_file, "--top", "1", "--features", tmp_path / "names", "--json").json
    assert output["top"][0]["names"] == ["feature a", "feature b"]


def test_unnamed_features_are_shown_by_number(run, model_file, tmp_path):
    (tmp_path / "names").write_text("2\tsecond\n")
    result = run("inspect", model_file, "--top", "1", "--features", tmp_path / "names")
    assert "1 and second" in result.out


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"ok\n\xff\xfe\n", "names:2: the name of a feature is not UTF-8"),
        (b"1\tone\ntwo\n", "names:2: expected a feature's number, a tab and its name"),
        (b"1\tone\n1\tuno\n", "names:2: feature 1 has a name already"),
        (b"0\tzero\n", "names:1: there is no feature 0"),
    ],
)
def test_bad_files_of_names_are_refused(run, model_file, tmp_path, content, reason):
    (tmp_path / "names").write_bytes(content)
    assert reason in run("inspect", model_file, "--top", "1", "--features", tmp_path / "names").error()


def test_an_empty_file_of_names_is_refused(run, model_file, tmp_path):
    (tmp_path / "names").write_bytes(b"")
    assert "1 and 2" in run("inspect", model_file, "--top", "1", "--features", tmp_path / "names").out


def test_a_damaged_file_is_reported_before_options_that_do_not_apply(run, model_file, tmp_path):
    damaged = tmp_path / "damaged.uk"
    damaged.write_bytes(model_file.read_bytes()[:200])
    (tmp_path / "data.csv").write_text("a\n1\n")
    error = run("inspect", damaged, "--data", tmp_path / "data.csv").error()
    assert "damaged.uk" in error and "--data" not in error
    assert "--data is for" in run("inspect", model_file, "--data", tmp_path / "data.csv").error()
