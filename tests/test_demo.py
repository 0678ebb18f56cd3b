"""The parts of the demo, on little data."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sklearn.svm import LinearSVC

import classify_code
import demo
import few_weights
import parse_sentences
from unkernel import PolySVC
from unkernel.data.trees.ast_trees import from_ast


@pytest.mark.parametrize("kind", [PolySVC, LinearSVC])
def test_everything_is_measured(kind):
    measured = demo.measure(kind(C=1.0, random_state=0), demo.binary_rows(count=300))
    assert 0.4 < measured.accuracy <= 1.0
    assert min(measured.training_seconds, measured.latency_seconds, measured.rows_per_second) > 0
    assert measured.pickle_bytes > 100
    assert (measured.file_bytes is not None) == (kind is PolySVC)


def test_the_digits_are_scaled():
    rows = demo.digits()
    assert (rows.train.min(), rows.train.max()) == (0.0, 1.0)
    assert rows.train.shape[0] + rows.test.shape[0] == 1797


def test_sparse_models_grow_with_the_weight_of_losses():
    dense, *sparse = few_weights.sparse_fits(demo.binary_rows(count=600), gamma=0.1)
    assert len({fit.name for fit in sparse}) == 2
    for name in {fit.name for fit in sparse}:
        path = [fit for fit in sparse if fit.name == name]
        assert [fit.conjunctions for fit in path] == sorted(fit.conjunctions for fit in path)
        assert 0 <= path[0].conjunctions < path[-1].conjunctions < dense.conjunctions
        assert max(fit.accuracy for fit in path) > 0.6


def test_linear_learners_reach_the_same_objective():
    cuts, dual, theirs, ranker = demo.linear_fits(demo.binary_rows(count=600))
    assert max(fit.gap for fit in (cuts, dual, theirs, ranker)) <= 1e-3
    assert cuts.objective == pytest.approx(dual.objective, rel=1e-3)
    assert cuts.objective == pytest.approx(theirs.objective, rel=1e-3)
    assert min(fit.roc_area for fit in (cuts, dual, theirs, ranker)) > 0.6


def test_ranking_orders_most_pairs():
    pairs, ours, theirs = demo.diabetes_order()
    assert pairs > 40_000
    assert min(ours, theirs) > 0.7


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
    classify_code.show(demo.Console(width=120))
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


def test_what_would_take_too_long_is_left_out(capsys, monkeypatch, library):
    functions = classify_code.standard_library(library)
    monkeypatch.setattr(classify_code, "standard_library", lambda: functions)
    rows = demo.binary_rows(count=60)
    contestants = [
        demo.Contestant("PolySVC", PolySVC),
        demo.Contestant("slow", PolySVC, lambda before: before["PolySVC"].training_seconds + 1e6),
    ]
    monkeypatch.setattr(demo, "_tables", lambda: [("title", rows, contestants, ["a remark"])])
    monkeypatch.setenv("COLUMNS", "120")
    demo.main()
    shown = capsys.readouterr().out
    assert "left out" in shown
    assert "a remark" in shown
    assert "of this machine and this run" in shown
    assert "ROC area" in shown
    assert "diabetes" in shown
    assert "which package" in shown
    assert "zebra" in shown


def test_pairs_of_words_decide_where_a_phrase_belongs():
    (linear, quadratic), parsed = parse_sentences.parser_fits(
        parse_sentences.grammar(1500, seed=0), parse_sentences.grammar(100, seed=1)
    )
    assert (linear.degree, quadratic.degree) == (1, 2)
    assert linear.uas < 99.5 < quadratic.uas
    assert len(parsed) == 100
