"""The examples, and the demo that is made of them, on little data."""

from __future__ import annotations

import ast
import shlex
import xml.etree.ElementTree as ET
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import classify_code
import classify_text
import demo
import dense_rows
import few_weights
import linear_and_ranking
import parse_sentences
import sparse_rows
import unkernel
from example_chart import Chart, Dot, Line
from example_data import binary_rows
from unkernel import cli
from unkernel.data.trees.ast_trees import from_ast

SVG = "{http://www.w3.org/2000/svg}"
SCREEN_LINES, SCREEN_COLUMNS = 24, 80
SMALL = binary_rows(train=400, test=200)


def texts(path: Path) -> list[str]:
    """The words in an SVG file, which is proper XML."""
    return ["".join(text.itertext()) for text in ET.parse(path).getroot().iter(f"{SVG}text")]


def test_generated_rows_are_binary_and_always_the_same():
    again = binary_rows(train=400, test=200)
    assert SMALL.train.shape == (400, 300) and SMALL.test.shape == (200, 300)
    assert set(SMALL.train.data) == {1.0} and set(SMALL.train_labels) == {-1, 1}
    assert (again.train != SMALL.train).nnz == 0
    np.testing.assert_array_equal(again.test_labels, SMALL.test_labels)
    assert SMALL.first(50).train.shape[0] == 50 and SMALL.first(50).test is SMALL.test


# --- Sparse rows -------------------------------------------------------------------------------------


def test_everything_is_measured():
    svc, compiled, poly, products = sparse_rows.fits(SMALL)
    assert [each.ours for each in (svc, compiled, poly, products)] == [False, True, True, False]
    assert svc.accuracy == compiled.accuracy
    for each in (svc, compiled, poly, products):
        assert 0.5 < each.accuracy <= 1.0
        assert min(each.training_seconds, each.one_row_seconds, each.rows_per_second) > 0


def test_only_few_rows_are_given_to_the_svc():
    seconds = sparse_rows.growth(SMALL, (100, 200, 400), svc_below=200)
    assert list(seconds["PolySVC"]) == [100, 200, 400]
    assert list(seconds["SVC"]) == [100]
    assert min(time for times in seconds.values() for time in times.values()) > 0


def test_the_picture_says_what_was_measured(tmp_path):
    measured = [sparse_rows.Measured("SVC", False, 0.9, 1.0, 1e-3, 2000.0)]
    measured.append(sparse_rows.Measured("PolySVC", True, 0.9, 0.1, 1e-6, 3_000_000.0))
    seconds = {"PolySVC": {1000: 0.02, 8000: 0.2}, "SVC": {1000: 0.5}}
    sparse_rows.draw(tmp_path / "picture.svg", seconds, measured)
    words = texts(tmp_path / "picture.svg")
    assert {"SVC: 2,000", "PolySVC: 3,000,000", "SVC", "PolySVC", "1k", "8k", "0.1", "10k", "1M"} <= set(
        words
    )
    assert any("seconds" in word for word in words) and any("rows per second" in word for word in words)


def test_places_in_charts_follow_the_values(tmp_path):
    chart = Chart("a < b & c")
    chart.add_lines("lines", "x", "y", [Line("one", "red", [1, 10, 100], [1.0, 10.0, 100.0])])
    chart.add_dots("dots", "x", [Dot("a", "red", 3.0), Dot("b", "blue", 3.0)])
    chart.save(tmp_path / "chart.svg")
    root = ET.parse(tmp_path / "chart.svg").getroot()
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    (x1, y1), (x2, y2), (x3, y3), (left, _), (also_left, _) = places
    assert x2 - x1 == pytest.approx(x3 - x2) and x1 < x2
    assert y1 - y2 == pytest.approx(y2 - y3) and y1 > y2  # up is more
    assert left == also_left
    assert "a < b & c" in texts(tmp_path / "chart.svg")
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places)


# --- The other examples ------------------------------------------------------------------------------


def test_the_digits_are_scaled():
    rows = dense_rows.digits()
    assert (rows.train.min(), rows.train.max()) == (0.0, 1.0)
    assert rows.train.shape[0] + rows.test.shape[0] == 1797


def test_dense_rows_are_learned_alike():
    rows = dense_rows.digits().first(300)
    poly, svc = dense_rows.fits(rows, degrees=(2,))
    assert (poly.name, poly.ours, svc.name, svc.ours) == ("PolySVC, degree 2", True, "SVC, degree 2", False)
    assert min(poly.accuracy, svc.accuracy) > 0.9
    assert min(poly.training_seconds, svc.training_seconds, poly.rows_per_second, svc.rows_per_second) > 0


def test_sparse_models_grow_with_the_weight_of_losses():
    dense, *sparse = few_weights.sparse_fits(SMALL)
    assert len({fit.name for fit in sparse}) == 2
    for name in {fit.name for fit in sparse}:
        path = [fit for fit in sparse if fit.name == name]
        assert [fit.conjunctions for fit in path] == sorted(fit.conjunctions for fit in path)
        assert 0 <= path[0].conjunctions < path[-1].conjunctions < dense.conjunctions
        assert max(fit.accuracy for fit in path) > 0.6


def test_linear_learners_reach_the_same_objective():
    cuts, dual, theirs, ranker = linear_and_ranking.linear_fits(SMALL)
    assert max(fit.gap for fit in (cuts, dual, theirs, ranker)) <= 1e-3
    assert cuts.objective == pytest.approx(dual.objective, rel=1e-3)
    assert cuts.objective == pytest.approx(theirs.objective, rel=1e-3)
    assert min(fit.roc_area for fit in (cuts, dual, theirs, ranker)) > 0.6


def test_ranking_orders_most_pairs():
    pairs, ours, theirs = linear_and_ranking.diabetes_order()
    assert pairs > 40_000
    assert min(ours, theirs) > 0.7


def test_trees_of_raw_text_tell_who_acted():
    (words, trees), nlp = classify_text.text_fits(treebank=300, train=200, test=60)
    assert (words.ours, trees.ours) == (False, True)
    assert words.accuracy < 0.7
    assert trees.accuracy > 0.95
    assert nlp.parse("The dog saw the man.")[0].deprels[1] == "nsubj"


LOOPS = """
def count_{0}(things, least):
    found = []
    for thing in things:
        if thing.size > least:
            found.append(thing.name)
    return found
"""
HANDLERS = """
def open_{0}(place, mode):
    try:
        with place.open(mode) as file:
            return file.read()
    except OSError:
        return None
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Two packages of three modules each, and what is to be passed over."""
    for package, text in (("asyncio", LOOPS), ("zebra", HANDLERS)):
        for module in ("__init__", "first", "second"):
            path = tmp_path / package / f"{module}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text("def short(): pass\n" + "".join(text.format(f"{module}_{i}") for i in range(30)))
    (tmp_path / "zebra" / "broken.py").write_text("def (")
    (tmp_path / "zebra" / "tests").mkdir()
    (tmp_path / "zebra" / "tests" / "test_zebra.py").write_text(LOOPS.format("tests"))
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "__init__.py").write_text(LOOPS.format("small"))
    return tmp_path


def test_whole_modules_are_held_out(library):
    functions = classify_code.standard_library(library)
    names = [node.name for node in functions.nodes]
    assert sorted(set(functions.packages)) == ["asyncio", "zebra"]
    assert len(names) == 2 * 3 * 30
    assert functions.held_out.sum() == 60
    assert not any("first" in name for name, held in zip(names, functions.held_out, strict=True) if not held)
    again = classify_code.standard_library(library)
    assert [node.name for node in again.nodes] == names
    assert classify_code.standard_library(library, count=2).packages.tolist() == functions.packages.tolist()


def test_no_sources_no_functions(tmp_path, capsys, monkeypatch):
    assert classify_code.standard_library(tmp_path) is None
    monkeypatch.setattr(classify_code, "standard_library", lambda: None)
    classify_code.show(Console(width=120))
    assert "left out" in capsys.readouterr().out


def test_this_python_has_packages_of_its_own():
    functions = classify_code.standard_library(count=2)
    assert functions is None or len(functions.nodes) >= 2 * 60


def test_names_are_hidden_and_nothing_else():
    tree = from_ast(ast.parse("import os.path as p\nx = f('text', key=y.z + 1)"))
    hidden = classify_code.nameless(tree)
    assert hidden.arities == tree.arities
    assert not {"x", "y", "z", "f", "p", "key", "os.path", "'text'"} & set(hidden.labels)
    assert {"Assign", "targets:", "Add", "1", "_"} <= set(hidden.labels)


def test_trees_tell_packages_apart_without_names(library):
    fits = classify_code.tree_fits(classify_code.standard_library(library))
    assert len(fits) == 5
    assert min(fit.accuracy for fit in fits if fit.name.startswith("TreeSVC")) == 1.0
    assert min(fit.microseconds for fit in fits) > 0


def test_pairs_of_words_decide_where_a_phrase_belongs():
    (linear, quadratic), parser = parse_sentences.parser_fits(
        parse_sentences.grammar(1500, seed=0), parse_sentences.grammar(100, seed=1)
    )
    assert (linear.degree, quadratic.degree) == (1, 2)
    assert linear.uas < 99.5 < quadratic.uas
    assert min(linear.words_per_second, quadratic.words_per_second) > 0
    assert parser.degree == 2


# --- The demo ----------------------------------------------------------------------------------------


@pytest.fixture
def shown(tmp_path, monkeypatch, capsys, library) -> str:
    """The whole demo, of which every part has less to do."""
    functions = classify_code.standard_library(library)
    monkeypatch.setattr(classify_code, "standard_library", lambda: functions)
    for module, arguments in (
        (sparse_rows, {"sizes": (100, 200, 400), "largest_for_svc": 200}),
        (parse_sentences, {"train": 200, "test": 50}),
        (linear_and_ranking, {"rows": SMALL}),
        (dense_rows, {"rows": dense_rows.digits().first(200), "degrees": (2,)}),
    ):
        monkeypatch.setattr(module, "show", partial(module.show, **arguments))
    monkeypatch.setenv("COLUMNS", str(SCREEN_COLUMNS))
    monkeypatch.chdir(tmp_path)
    demo.main(Path("out"))
    return capsys.readouterr().out


def test_the_demo_leads_with_what_it_is_made_for_and_ends_with_what_to_try(shown, capsys):
    headings = [line for line in shown.splitlines() if line.endswith("─") and line[0].isdigit()]
    assert [heading[:2] for heading in headings] == [f"{number}." for number in range(1, len(headings) + 1)]
    assert "Sparse rows" in headings[0] and "Parsing" in headings[1] and "Where not" in headings[-2]
    lines = shown.splitlines()
    places = [*(lines.index(heading) for heading in headings), len(lines)]
    for begin, end in pairwise(places[:-1]):
        assert end - begin <= SCREEN_LINES
        assert max(len(line) for line in lines[begin:end]) <= SCREEN_COLUMNS
    for words in (
        "PolySVC",
        "compile(that SVC)",
        "ROC area",
        "diabetes",
        "zebra",
        "Use something else where",
    ):
        assert words in shown

    assert "out/sparse_rows.svg" in shown
    assert "Training: seconds against rows" in texts(Path("out/sparse_rows.svg"))

    commands = [line.strip() for line in lines[places[-2] + 2 :] if line.strip()]
    assert [shlex.split(command)[0].endswith("unkernel") for command in commands] == [True] * 3
    assert [shlex.split(command)[1] for command in commands] == ["train", "explain", "parse"]
    for command in commands:
        assert cli.main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
    answered = capsys.readouterr().out
    assert "accuracy" in answered  # of the trained model
    assert "nsubj" in answered  # in the drawn tree
    assert unkernel.load("out/model.uk").model.degree == 2
