"""Successful runs of ``unkernel predict``."""

from __future__ import annotations

import lzma
import re

import numpy as np
import pytest

from unkernel import PolySVC, load, read_model, read_svmlight, write_svmlight


def test_predictions_equal_the_predictions_of_polysvc(run, train_file, test_file, model_file, tmp_path):
    X, y = read_svmlight(train_file)
    test = read_svmlight(test_file, n_features=X.shape[1])
    expected = PolySVC(C=10, random_state=0).fit(X, y.astype(int))
    result = run("predict", model_file, test_file, "--output", tmp_path / "p.txt", "--json")
    assert result.code == 0
    lines = (tmp_path / "p.txt").read_text().splitlines()
    assert lines == [str(label) for label in expected.predict(test.X)]
    assert result.json["accuracy"] == expected.score(test.X, test.y)
    assert result.json["correct"] == sum(expected.predict(test.X) == test.y)


def test_scores_read_back_to_the_last_bit(run, test_file, model_file, tmp_path):
    run("predict", model_file, test_file, "-o", tmp_path / "p.txt", "--scores")
    file_content = np.loadtxt(tmp_path / "p.txt")
    X, _ = read_svmlight(test_file, n_features=12)
    np.testing.assert_array_equal(file_content[:, 1], load(model_file).decision_function(X))
    np.testing.assert_array_equal(file_content[:, 0], load(model_file).predict(X))


def test_each_class_has_a_column_of_scores(run, tmp_path):
    X = np.random.default_rng(0).random((90, 5))
    write_svmlight(tmp_path / "rows", X, np.arange(90) % 3)
    run("train", "poly", tmp_path / "rows", "-o", tmp_path / "m.uk", "--quiet")
    run("predict", tmp_path / "m.uk", tmp_path / "rows", "-o", tmp_path / "p.txt", "--scores")
    file_content = np.loadtxt(tmp_path / "p.txt")
    np.testing.assert_array_equal(file_content[:, 1:], load(tmp_path / "m.uk").decision_function(X))
    np.testing.assert_array_equal(file_content[:, 0], file_content[:, 1:].argmax(axis=1))


def test_predictions_are_written_in_blocks(run, model_file, tmp_path, monkeypatch):
    monkeypatch.setattr("unkernel.cli.commands.predict._ROWS_PER_WRITE", 7)
    (tmp_path / "rows").write_text("1 1:1\n-1 3:1\n" * 25)
    run("predict", model_file, tmp_path / "rows", "-o", tmp_path / "p.txt")
    assert (tmp_path / "p.txt").read_text() == "1\n-1\n" * 25


def test_stdout_has_the_labels_and_stderr_the_rest(run, test_file, model_file):
    result = run("predict", model_file, test_file, "--output", "-")
    assert set(result.out.splitlines()) == {"1", "-1"}
    assert len(result.out.splitlines()) == 200
    assert "accuracy" in result.err
    assert run("predict", model_file, test_file, "--output", "-", "--quiet").err == ""


def test_labels_cannot_break_lines_or_move_the_cursor(run, tmp_path):
    rows = np.eye(3)
    PolySVC().fit(rows, ["two\nlines", "\x1b[31mred", "plain \u00e9\u3000"]).save(tmp_path / "m.uk")
    write_svmlight(tmp_path / "rows", rows, np.zeros(3))
    result = run("predict", tmp_path / "m.uk", tmp_path / "rows", "-o", tmp_path / "p.txt")
    assert result.code == 0
    file_content = (tmp_path / "p.txt").read_text(encoding="utf-8").split("\n")
    assert file_content == ["two\\nlines", "\\x1b[31mred", "plain \u00e9\u3000", ""]


def test_a_name_that_ends_in_xz_is_compressed(run, test_file, model_file, tmp_path):
    run("predict", model_file, test_file, "--output", tmp_path / "p.xz")
    assert len(lzma.decompress((tmp_path / "p.xz").read_bytes()).split()) == 200


def test_the_text_output_is_as_expected(run, test_file, model_file, tmp_path):
    result = run("predict", model_file, test_file, "-o", tmp_path / "p.txt")
    assert result.err == ""
    assert re.search(r"accuracy +100.00 % \(200 of 200 rows\)", result.out)
    assert result.out.count("rows/s") == 2


def test_without_an_output_the_labels_go_to_stdout(run, test_file, model_file, tmp_path):
    run("predict", model_file, test_file, "-o", tmp_path / "p.txt", "--scores")
    result = run("predict", model_file, test_file, "--scores")
    assert result.out == (tmp_path / "p.txt").read_text()
    assert result.err.count("rows/s") == 2
    quiet = run("predict", model_file, test_file, "--scores", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, result.out, "")
    assert "name a file with --output" in run("predict", model_file, test_file, "--scores", "--json").error()


def test_features_that_the_model_does_not_know_are_ignored_and_counted(run, model_file, tmp_path):
    (tmp_path / "rows").write_text(f"1 1:1 13:5\n-1 3:1\n1 1:1 99:1 {2**40}:1\n")
    result = run("predict", model_file, tmp_path / "rows", "--json")
    assert result.code == 0
    assert result.json["accuracy"] == 1.0
    (line,) = result.err.splitlines()
    assert "warning" in line
    assert "ignored 3 values in 2 rows of features that the model does not know; it has 12" in line


def test_rows_may_have_fewer_features(run, model_file, tmp_path):
    (tmp_path / "rows").write_text("1 1:1\n-1\n")
    result = run("predict", model_file, tmp_path / "rows", "--json")
    assert (result.err, result.json["accuracy"]) == ("", 1.0)


@pytest.mark.parametrize(("label", "shown_label"), [("0", "0"), ("0.25", "0.25"), ("7", "7")])
def test_missing_accuracies_are_explained(run, model_file, tmp_path, label, shown_label):
    (tmp_path / "rows").write_text(f"{label} 1:1\n1 3:1\n")
    note = f"not known: 1 row of 2 have labels that the model does not know ({shown_label})"
    output = run("predict", model_file, tmp_path / "rows", "--json").json
    assert output["accuracy"] is None
    assert output["accuracy_note"].startswith(note)
    assert note in run("predict", model_file, tmp_path / "rows").err


def test_classes_that_are_words(run, tmp_path):
    PolySVC().fit([[0.0], [1.0]] * 5, ["no", "yes"] * 5).save(tmp_path / "m.uk")
    (tmp_path / "rows").write_text("0\n0 1:1\n")
    result = run("predict", tmp_path / "m.uk", tmp_path / "rows", "-o", tmp_path / "p.txt", "--json")
    assert (tmp_path / "p.txt").read_text() == "no\nyes\n"
    assert "not numbers" in result.json["accuracy_note"]


@pytest.mark.parametrize(
    "name",
    [
        "libsvm-poly2",
        "libsvm-rbf",
        "libsvm-poly3-multi",
        "libsvm-linear-multi",
        "libsvm-one-class",
        "libsvm-nu-svr",
        "liblinear-multi",
        "liblinear-multi-cs",
        "liblinear-svr",
    ],
)
def test_predictions_equal_the_golden_margins(run, golden, tmp_path, name):
    kind = "multi" if "multi" in name or "svr" in name else "binary"
    rows, out = golden / f"{kind}.test.svm", tmp_path / "p.txt"
    expected = np.loadtxt(golden / f"{name}.margins")
    assert run("predict", golden / f"{name}.model", rows, "-o", out, "--scores", "-q").err == ""
    np.testing.assert_allclose(np.loadtxt(out), expected, rtol=1e-9, atol=1e-12)
    assert run("compile", golden / f"{name}.model", "-o", tmp_path / "m.uk", "-q").code == 0
    assert run("predict", tmp_path / "m.uk", rows, "-o", out, "--scores", "-q", "--force").err == ""
    np.testing.assert_allclose(np.loadtxt(out), expected, rtol=1e-9, atol=1e-12)


def test_predict_reports_that_it_compiled_the_model(run, golden, tmp_path):
    rows = golden / "binary.test.svm"
    result = run("predict", golden / "libsvm-rbf.model", rows, "--json")
    (line,) = result.err.splitlines()
    assert "compiled for this run" in line
    assert result.json["compiled_now"] is True
    result = run("predict", golden / "liblinear-binary.model", rows, "--json")
    assert (result.err, result.json["compiled_now"]) == ("", False)
    read_model(golden / "libsvm-rbf.model").save(tmp_path / "plain.uk")
    assert run("predict", tmp_path / "plain.uk", rows, "--json").json["compiled_now"] is True


def test_a_compressed_model(run, golden, tmp_path):
    compressed_model = tmp_path / "model"
    compressed_model.write_bytes(lzma.compress((golden / "libsvm-poly2.model").read_bytes()))
    rows = golden / "binary.test.svm"
    compressed, expected = (
        run("predict", path, rows, "-o", "-", "-q").out
        for path in (compressed_model, golden / "libsvm-poly2.model")
    )
    assert compressed == expected != ""


@pytest.mark.parametrize("name", ["libsvm-poly2-prob", "libsvm-nu-sigmoid-prob-multi"])
def test_probabilities(run, golden, tmp_path, name):
    rows = golden / ("multi.test.svm" if "multi" in name else "binary.test.svm")
    out = tmp_path / "p.txt"
    expected = np.loadtxt(golden / f"{name}.margins")[:, 1:]
    assert run("predict", golden / f"{name}.model", rows, "-o", out, "--probability", "-q").code == 0
    np.testing.assert_allclose(np.loadtxt(out)[:, 1:], expected, atol=1e-9)
    run("predict", golden / f"{name}.model", rows, "-o", out, "--probability", "--scores", "-q", "--force")
    columns = np.loadtxt(out)
    np.testing.assert_allclose(columns[:, -expected.shape[1] :], expected, atol=1e-9)
    pairs = expected.shape[1] * (expected.shape[1] - 1) // 2
    assert columns.shape[1] == 1 + pairs + expected.shape[1]


def test_probabilities_that_a_model_does_not_have(run, golden, model_file, test_file, tmp_path):
    out = tmp_path / "p.txt"
    for model, words in (
        (model_file, "svm-train -b 1"),
        (golden / "libsvm-rbf.model", "svm-train -b 1"),
        (golden / "libsvm-svr-prob.model", "numbers"),
    ):
        message = run("predict", model, test_file, "-o", out, "--probability").error()
        assert message.startswith(f"{model}: ")
        assert words in message
    assert not out.exists()


def test_regression_has_an_error_and_no_accuracy(run, golden):
    model, rows = golden / "libsvm-nu-svr.model", golden / "multi.test.svm"
    output = run("predict", model, rows, "--json").json
    y = read_svmlight(rows).y
    expected = np.mean((np.loadtxt(golden / "libsvm-nu-svr.margins")[:, 0] - y) ** 2)
    assert output["mean_squared_error"] == pytest.approx(expected, rel=1e-9)
    assert output["accuracy"] is None
    message = run("predict", model, rows).err
    assert "root mean squared" in message
    assert "accuracy" not in message


def test_an_rbf_kernel_sees_columns_that_no_support_vector_has(run, golden, tmp_path):
    (tmp_path / "rows").write_text("1 3:1\n1 3:1 1000:2\n1\n")
    result = run("predict", golden / "libsvm-rbf.model", tmp_path / "rows", "-o", "-", "--scores", "-q")
    assert result.err == ""
    without_column, with_column, _ = (float(line.split()[1]) for line in result.out.splitlines())
    X, _ = read_svmlight(tmp_path / "rows")
    expected = read_model(golden / "libsvm-rbf.model").scores(X)[:, 0]
    np.testing.assert_allclose([without_column, with_column], expected[:2], rtol=1e-12)
    assert without_column != with_column


def test_predict_marks_approximate_models(run, golden, tmp_path):
    path = tmp_path / "m.uk"
    options = ["--engine", "pruned", "--threshold", "0.02", "-q"]
    assert run("compile", golden / "libsvm-poly2.model", "-o", path, *options).code == 0
    assert "APPROXIMATE" in run("predict", path, golden / "binary.test.svm").err
    assert run("predict", path, golden / "binary.test.svm", "--json").json["exact"] is False


LIBSVM_MODEL = """svm_type c_svc
kernel_type {kernel}
degree 2
gamma 0.5
coef0 1
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:1 2:1
-1 3:1
"""


@pytest.mark.parametrize("kernel", ["polynomial", "rbf"])
def test_index_0_is_a_feature_for_models_of_other_programs(run, kernel, tmp_path):
    """LIBSVM models may have an index 0. In a model without it, index 0 is an unknown feature."""
    lines = LIBSVM_MODEL.format(kernel=kernel)
    (tmp_path / "m").write_text(
        lines if kernel == "polynomial" else lines.replace("degree 2\n", "").replace("coef0 1\n", "")
    )
    (tmp_path / "rows.svm").write_text("1 0:1 1:1\n-1 3:1\n1 1:1 2:1\n")
    outcome = run("predict", tmp_path / "m", tmp_path / "rows.svm", "-o", tmp_path / "p.txt", "--scores")
    assert outcome.code == 0
    result = np.loadtxt(tmp_path / "p.txt")[:, 1]
    # Columns are the model's indices minus 1; index 0 becomes a fourth column.
    rows = np.array([[1, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]], float)
    np.testing.assert_allclose(result, read_model(tmp_path / "m").scores(rows)[:, 0], rtol=1e-12)


def test_cached_answers_equal_computed_answers(run, test_file, model_file, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_text(test_file.read_text() * 3)
    run("predict", model_file, rows, "-o", tmp_path / "plain.txt", "--scores")
    result = run(
        "predict", model_file, rows, "-o", tmp_path / "cached.txt", "--scores", "--cache-rows", 5000, "--json"
    )
    assert (tmp_path / "cached.txt").read_bytes() == (tmp_path / "plain.txt").read_bytes()
    cache = result.json["cache"]
    assert cache["maxsize"] == 5000 and cache["hits"] + cache["misses"] == 600 and cache["hits"] >= 400
    assert "cache" not in run("predict", model_file, rows, "--json").json
    result_ = run("predict", model_file, rows, "--cache-rows", 5000, "--jobs", 1)
    assert re.search(r"cache +[0-9]+ rows found, [0-9]+ scored", result_.err)
    assert "cache must be a whole number" in run("predict", model_file, rows, "--cache-rows", 1 << 40).error()
    assert run("predict", model_file, rows, "--cache-rows", 0).code == 2
