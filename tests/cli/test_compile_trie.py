"""``unkernel compile --trie``: the trie, the output, the plot, and errors."""

from __future__ import annotations

import importlib.util
import re
import sys

import numpy as np
import pytest

from unkernel import load, read_svmlight
from unkernel.cli.options import shared_options as _options

MODEL, ROWS = "libsvm-poly2.model", "multi.test.svm"


@pytest.fixture
def rows_file(golden):
    return golden / ROWS


def compile_with_trie(run, golden, tmp_path, nodes, *options):
    """Compile with a trie of at most this number of nodes."""
    path = tmp_path / "fast.uk"
    result = run(
        "compile", golden / MODEL, "-o", path, "--trie", golden / ROWS, "--trie-nodes", nodes, *options
    )
    assert (result.code, result.err) == (0, "")
    return path, result


@pytest.mark.parametrize(("nodes", "limit"), [("50", 50), ("1k", 1000), (" 0.3 M", 300_000)])
def test_tries_stay_within_their_limit(run, golden, tmp_path, nodes, limit):
    path, outcome = compile_with_trie(run, golden, tmp_path, nodes, "--json")
    trie = outcome.json["trie"]
    assert trie["limit"] == limit
    assert 0 < trie["nodes"] <= limit + 1  # the root is not a prefix
    assert trie["bytes"] > 12 * trie["nodes"]
    (chosen,) = (candidate for candidate in outcome.json["candidates"] if candidate["chosen"])
    assert chosen["trie_nodes"] == trie["nodes"]
    classifier = load(path)
    assert (classifier.trie.nodes, classifier.trie.limit) == (trie["nodes"], limit)
    X, _ = read_svmlight(golden / ROWS)
    without_trie = tmp_path / "plain.uk"
    assert run("compile", golden / MODEL, "-o", without_trie, "--quiet").code == 0
    np.testing.assert_allclose(
        classifier.decision_function(X), load(without_trie).decision_function(X), rtol=1e-10
    )


@pytest.mark.parametrize("engine", ["expanded", "split", "pruned"])
def test_every_engine_with_conjunctions_can_have_a_trie(run, golden, tmp_path, engine):
    threshold = ["--threshold", "0.02"] if engine == "pruned" else []
    path, outcome = compile_with_trie(run, golden, tmp_path, "1k", "--engine", engine, *threshold)
    assert (load(path).engine, load(path).exact) == (engine, engine != "pruned")
    if engine == "pruned":
        assert "sample labels are the exact model's" in outcome.out


def test_trained_models_can_have_a_trie(run, train_file, model_file, test_file, tmp_path):
    path = tmp_path / "fast.uk"
    command = ["compile", model_file, "-o", path, "--trie", train_file, "--trie-nodes", "1k", "--json"]
    assert run(*command).json["trie"]["nodes"] > 0
    assert run("predict", path, test_file, "--json").json["accuracy"] == 1.0


def test_the_text_output_is_as_expected(run, golden, rows_file, tmp_path):
    path, outcome = compile_with_trie(run, golden, tmp_path, "200")
    (chosen,) = (line for line in outcome.out.splitlines() if "←" in line)
    nodes = load(path).trie.nodes
    assert f"trie of {nodes:,}" in chosen
    assert re.search(rf"trie +{nodes:,} nodes of at most 200, [\d.]+ kB", outcome.out)
    assert f"{nodes:,} nodes of at most 200" in run("inspect", path).out
    assert run("inspect", path, "--json").json["trie"]["limit"] == 200
    assert f"{nodes:,} nodes" in run("bench", path, rows_file, "--seconds", "0.01").out
    assert run("bench", path, rows_file, "--seconds", "0.01", "--json").json["trie"]["nodes"] == nodes


def test_without_a_limit_tries_are_measured(run, golden, rows_file, tmp_path):
    path = tmp_path / "fast.uk"
    output = run("compile", golden / MODEL, "-o", path, "--trie", rows_file, "--json").json
    assert any(candidate["trie_nodes"] for candidate in output["candidates"])
    assert any(not candidate["trie_nodes"] for candidate in output["candidates"])
    (chosen,) = (candidate for candidate in output["candidates"] if candidate["chosen"])
    assert (output["trie"] is not None) == (chosen["trie_nodes"] > 0) == (load(path).trie is not None)


def test_a_trie_that_is_not_faster_is_reported(run, golden, rows_file, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["unkernel.cli.commands.compile"], "describe_trie", lambda _: None)
    result = run("compile", golden / MODEL, "-o", tmp_path / "m.uk", "--trie", rows_file)
    assert re.search(r"trie +none: it is not faster", result.out)


def test_reports_of_models_without_a_trie(run, compiled_file, test_file):
    assert run("inspect", compiled_file, "--json").json["trie"] is None
    assert " trie " not in run("inspect", compiled_file).out
    assert run("bench", compiled_file, test_file, "--seconds", "0.01", "--json").json["trie"] is None


def test_groups_are_shown(run, tmp_path):
    """Each row has one of eight features of each slot, so the features of a slot can be grouped."""
    rng = np.random.default_rng(0)
    node_count = rng.integers(0, 8, (400, 6)) + 8 * np.arange(6) + 1
    labels = np.where((node_count[:, 0] + node_count[:, 1]) % 3 == 0, 1, -1)
    lines = [
        f"{label} {' '.join(f'{word}:1' for word in row)}\n"
        for label, row in zip(labels, node_count.tolist(), strict=True)
    ]
    (tmp_path / "rows").write_text("".join(lines))
    assert run("train", "poly", tmp_path / "rows", "-o", tmp_path / "m.uk", "--gamma", "1", "-q").code == 0
    path = tmp_path / "fast.uk"
    output = run("compile", tmp_path / "m.uk", "-o", path, "--sample", tmp_path / "rows", "--json").json
    grouped = [candidate for candidate in output["candidates"] if candidate["grouped"]]
    assert grouped
    assert grouped[0]["details"].endswith(f"{grouped[0]['grouped']} grouped")
    zones = run("inspect", path, "--json").json["zones"]
    (chosen,) = (candidate for candidate in output["candidates"] if candidate["chosen"])
    assert (zones["grouped"] > 0) == (chosen["grouped"] > 0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--trie-nodes 1M", "--trie-nodes needs rows to grow a trie from: give them with --trie"),
        ("--trie ROWS --trie-nodes 0", "--trie-nodes must be a number of nodes, such as 1M, .*, got '0'"),
        ("--trie ROWS --trie-nodes -1", "got '-1'"),
        ("--trie ROWS --trie-nodes many", "got 'many'"),
        ("--trie ROWS --trie-nodes 1e6", "got '1e6'"),
        ("--trie ROWS --trie-nodes 1.5", "got '1.5'"),
        ("--trie ROWS --trie-nodes 0.0001k", "got '0.0001k'"),
        ("--trie ROWS --trie-nodes nan", "got 'nan'"),
        ("--trie ROWS --trie-nodes 1T", "got '1T'"),
        ("--trie ROWS --trie-nodes ١M", "got '١M'"),
        (
            "--trie ROWS --trie-nodes 3G",
            r"--trie-nodes must be a whole number from 1 to 2,147,483,647, got 3000000000",
        ),
        ("--trie ROWS --trie-nodes 999999999999999G", "--trie-nodes must be a whole number from 1 to"),
        (f"--trie ROWS --trie-nodes {'9' * 5000}", "--trie-nodes must be a number of nodes"),
        ("--trie ROWS --engine inverted", "--engine inverted has no conjunctions, .* leave out --trie"),
        ("--trie ROWS --engine bitsliced", "--engine bitsliced has no conjunctions"),
        ("--trie nowhere.svm", "nowhere.svm: No such file"),
    ],
)
def test_bad_options_are_refused(run, golden, tmp_path, options, reason):
    arguments = [str(golden / ROWS) if option == "ROWS" else option for option in options.split()]
    message = run("compile", golden / MODEL, "-o", tmp_path / "m.uk", *arguments).error()
    assert re.search(reason, message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there are no rows in it"),
        ("1 1:1\n", "--trie needs at least 2 rows"),
        ("1 1:1\n1 2:nan\n", ":2:"),
        ("1 |BT| (S a) |ET|\n", "answers for rows"),
    ],
)
def test_bad_rows_are_refused(run, golden, tmp_path, text, reason):
    (tmp_path / "rows").write_text(text)
    message = run("compile", golden / MODEL, "-o", tmp_path / "m.uk", "--trie", tmp_path / "rows").error()
    assert re.search(reason, message)
    assert not (tmp_path / "m.uk").exists()


@pytest.mark.parametrize("name", ["libsvm-rbf", "liblinear-multi"])
def test_models_without_conjunctions_are_refused(run, golden, rows_file, tmp_path, name):
    message = run("compile", golden / f"{name}.model", "-o", tmp_path / "m.uk", "--trie", rows_file).error()
    assert re.search("a prefix trie needs conjunctions of binary features.*; leave out --trie", message)
    assert not (tmp_path / "m.uk").exists()


def test_compiling_does_not_overwrite_the_rows(run, golden, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_bytes((golden / ROWS).read_bytes())
    run("compile", golden / MODEL, "-o", rows, "--trie", rows).error()
    assert rows.read_bytes() == (golden / ROWS).read_bytes()


@pytest.mark.parametrize(
    ("node_count", "nodes"),
    [("1M", 10**6), ("300k", 300_000), ("1000000", 10**6), ("1.5M", 1_500_000), ("2 K", 2000), ("1.0", 1)],
)
def test_numbers_of_nodes_are_parsed(node_count, nodes):
    assert _options.parse_nodes(node_count) == nodes


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_plots_show_the_tries(run, golden, rows_file, tmp_path):
    plot = tmp_path / "trade-off.svg"
    options = ["--trie", rows_file, "--plot", plot, "--json"]
    result = run("compile", golden / MODEL, "-o", tmp_path / "m.uk", *options)
    assert (result.code, result.json["plot"]) == (0, str(plot))
    text = plot.read_text()
    assert any(candidate["trie_nodes"] for candidate in result.json["candidates"])
    for node_count in (
        "size of the tables",
        "nodes of the trie",
        ", with tries",
        ", with a trie",
        "without: ",
    ):
        assert node_count in text
