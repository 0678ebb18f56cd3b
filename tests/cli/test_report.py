"""``unkernel report``: pages about models, and errors."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from reference.pages import Page
from unkernel.data import write_svmlight

PARSERS = Path(__file__).parents[1] / "parsing" / "golden"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


@pytest.mark.slow
def test_a_page_about_a_model_of_rows(run, model_file, test_file, tmp_path):
    page = tmp_path / "report.html"
    outcome = run("report", model_file, "--test", test_file, "-o", page, "--json").json
    evaluated = run("evaluate", model_file, test_file, "--json").json
    result = outcome["measures"]["model.uk"]
    for title, measure in (("accuracy", "accuracy"), ("F1", "f1"), ("ROC area", "roc_area")):
        assert result[title]["value"] == pytest.approx(evaluated[measure])
        assert result[title]["low"] <= result[title]["value"] <= result[title]["high"]
    assert Page(page.read_text()).texts["h1"] == ["model.uk on test.svm"]
    assert outcome["bytes"] == page.stat().st_size


def test_a_page_about_a_model_of_records(run, people_model, people_file, tmp_path):
    page = tmp_path / "report.html"
    result = run(
        "report", people_model, "--test", people_file, "-o", page, "--costs", "1,5", "--title", "<&>"
    )
    assert result.code == 0, result.err
    assert "accuracy" in result.out
    texts = Page(page.read_text()).texts
    assert texts["h1"] == ["<&>"]
    assert "The 3 columns that the model reads" in texts["summary"]
    assert any("a false negative 5" in words for words in texts["p"])


@pytest.mark.slow
def test_models_side_by_side(run, model_file, train_file, test_file, tmp_path):
    other_model, page = tmp_path / "odds.uk", tmp_path / "compare.html"
    assert run("train", "logistic", train_file, "-o", other_model, "-q").code == 0
    result = run(
        "report", model_file, other_model, "--test", test_file, "-o", page, "--mistakes", "1", "--json"
    ).json
    assert list(result["measures"]) == ["model.uk", "odds.uk"]
    assert "Agreement" in Page(page.read_text()).texts["h2"]


def test_a_linear_baseline_and_no_records(run, model_file, train_file, test_file, tmp_path):
    page = tmp_path / "report.html"
    options = ("--test", test_file, "-o", page, "--train", train_file, "--no-records", "-q")
    assert run("report", model_file, *options).code == 0
    texts = Page(page.read_text()).texts
    assert any("A linear model of the same features" in line for line in texts["li"])
    assert "Mistakes" not in texts["h2"]


def test_existing_files_are_replaced_only_by_force(run, model_file, test_file, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("my own words")
    message = ("report", model_file, "--test", test_file, "-o", page, "--top", "0", "--mistakes", "0")
    assert run(*message).error() == f"{page}: exists; name another file, or replace it with --force"
    assert page.read_text() == "my own words"
    assert run(*message, "--force", "--quiet").out == ""
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("", "name the examples to test on: unkernel report {model} --test FILE -o report.html"),
        ("--test {test}", "name the page to write: unkernel report {model} --test {test} -o report.html"),
        ("--test {test} -o {page} --costs 1", "--costs must be two numbers, such as 1,5, got '1'"),
        (
            "--test {test} -o {page} --costs 1,-2",
            "the cost of a false negative must be a number from 0 on, got -2.0",
        ),
        ("{model} --test {test} -o {page}", "{model} is given twice; a report compares different models"),
        ("odds.uk --test - -o {page}", "stdin can be read only once: give --test a file"),
    ],
)
def test_bad_options_and_inputs_are_refused_without_a_page(run, model_file, test_file, options, reason):
    page = model_file.with_name("x.html")
    places = {"model": model_file, "test": test_file, "page": page}
    message = run("report", model_file, *options.format(**places).split()).error()
    assert message.startswith(reason.format(**places))
    assert not page.exists()


def test_labels_that_the_model_does_not_know(run, model_file, tmp_path):
    unknown_labels = tmp_path / "strange.svm"
    write_svmlight(unknown_labels, [[1.0, 0.0], [0.0, 1.0]], [1, 9])
    message = run("report", model_file, "--test", unknown_labels, "-o", tmp_path / "x.html").error()
    assert "1 row of 2 have labels that the model model.uk does not know (9)" in message


def test_measures_undefined_for_one_class_are_shown_as_dashes(run, model_file, test_file, tmp_path):
    page, one_class = tmp_path / "report.html", tmp_path / "one.svm"
    lines = test_file.read_text().splitlines(keepends=True)
    one_class.write_text("".join(line for line in lines if line.startswith("-1")))
    result = run("report", model_file, "--test", one_class, "-o", page)
    assert result.code == 0, result.err
    assert "\n  ROC area              –\n" in result.out
    assert "nan" not in result.out
    note = "he test set has one class only: precision, recall, F1, ROC area, average precision are undefined"
    assert f"unkernel: t{note}\n" in result.err
    assert f"T{note}." in Page(page.read_text()).texts["p"]
    assert "nan" not in page.read_text()


def test_costs_are_for_two_classes(run, tmp_path):
    rows, model, page = tmp_path / "three.svm", tmp_path / "three.uk", tmp_path / "x.html"
    write_svmlight(rows, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] * 3, [1, 2, 3] * 3)
    assert run("train", "poly", rows, "-o", model, "-q").code == 0
    options = ("--costs", "1,5", "-o", page)
    assert (
        run("report", model, "--test", rows, *options).error()
        == "--costs is for two classes; the model has 3"
    )
    parser, data = PARSERS / "trees-online.uk", PARSERS / "trees.conllu"
    message = run("report", parser, "--test", data, *options).error()
    assert message == "--costs is for two classes; this is a parser"
    assert not page.exists()


def test_records_without_labels(run, people_model, tmp_path):
    bare = tmp_path / "bare.csv"
    bare.write_text("age,job,member\n30,clerk,true\n")
    message = run("report", people_model, "--test", bare, "-o", tmp_path / "x.html").error()
    assert message == f"{bare}: not all records have a label in column 'rich'"


def test_a_page_about_a_parser(run, tmp_path):
    model, data = PARSERS / "trees-online.uk", PARSERS / "trees.conllu"
    page = tmp_path / "report.html"
    result = run("report", model, "--test", data, "-o", page, "--json").json["measures"]["trees-online.uk"]
    evaluated = run("evaluate", model, data, "--json").json
    assert 100 * result["LAS"]["value"] == pytest.approx(evaluated["las"])
    assert "Relations" in Page(page.read_text()).texts["h2"]
    message = run("report", model, "--test", data, "-o", tmp_path / "x.html", "--zero-based").error()
    assert "--zero-based is for models of rows or trees, and this is a parser" in message


def test_options_of_parsers_are_refused_for_models_of_rows(run, model_file, test_file, tmp_path):
    message = ("report", model_file, "--test", test_file, "-o", tmp_path / "x.html", "--from", "text")
    assert "--from is for parsers, and this is a model of rows, records or trees" in run(*message).error()


def test_parsers_and_models_of_rows_are_not_compared(run, model_file, test_file, tmp_path):
    parser, page = PARSERS / "trees-online.uk", tmp_path / "x.html"
    data = PARSERS / "trees.conllu"
    assert "not a parser" in run("report", parser, model_file, "--test", data, "-o", page).error()
    assert "not a model of rows" in run("report", model_file, parser, "--test", test_file, "-o", page).error()
