"""``unkernel compile``: its files, its output, and its errors."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys

import numpy as np
import pytest

from reference.selection import slow_after
from unkernel import compile, load, read_model, read_svmlight
from unkernel.cli.options import shared_options as _options
from unkernel.engines.search.options import ENGINES

MODELS = [
    "libsvm-poly2",
    "libsvm-poly3-multi",
    "libsvm-rbf",
    "libsvm-nu-svr",
    "libsvm-one-class",
    "libsvm-nu-sigmoid-prob-multi",
    "liblinear-multi",
    "svmlight-poly2",
    "svmlight-linear",
    "tinysvm-poly3",
]


@pytest.mark.parametrize("name", MODELS)
def test_compiled_scores_equal_the_models(run, golden, tmp_path, name):
    source, path = golden / f"{name}.model", tmp_path / "m.uk"
    result = run("compile", source, "-o", path, "--json")
    assert (result.code, result.err) == (0, "")
    X, _ = read_svmlight(golden / "multi.test.svm")
    model = read_model(source)
    scores = load(path).decision_function(X)
    np.testing.assert_allclose(scores, model.decision.decide(model.scores(X)), rtol=1e-9, atol=1e-12)


def test_the_json_output_has_all_fields(run, golden, tmp_path):
    output = run("compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", "--json").json
    assert set(output) == {
        "source", "model", "read", "engine", "exact", "model_bytes", "compiled_bytes", "trie",
        "candidates", "seconds", "plot", "trie_asked_for", "threshold",
    }  # fmt: skip
    assert output["read"]["format"] == "libsvm"
    assert output["read"]["kernel"] == "polynomial"
    assert output["read"]["support_vectors"] == 107
    assert output["read"]["classes"] == [1, -1]
    assert output["model_bytes"] == (tmp_path / "m.uk").stat().st_size
    (chosen,) = (candidate for candidate in output["candidates"] if candidate["chosen"])
    assert chosen["engine"] == output["engine"] == load(tmp_path / "m.uk").engine
    assert {"inverted", "bitsliced", "expanded"} <= {entry["engine"] for entry in output["candidates"]}
    assert all(entry["microseconds"] > 0 and entry["exact"] for entry in output["candidates"])


def test_the_text_output_is_as_expected(run, golden, tmp_path):
    result = run("compile", golden / "libsvm-poly3-multi.model", "-o", tmp_path / "m.uk")
    assert (result.code, result.err) == (0, "")
    for words in ("read from LIBSVM", "polynomial (0.5 ⟨x, z⟩ + 2)^3", "146", "4: 4, 1, 7, 9", "µs/row"):
        assert words in result.out
    (chosen,) = (line for line in result.out.splitlines() if "←" in line)
    assert chosen.split()[0] == load(tmp_path / "m.uk").engine
    assert "rare < " in result.out
    assert re.search(r"dense \d+ MB", result.out)


def test_quiet_prints_nothing(run, golden, tmp_path):
    result = run("compile", golden / "libsvm-rbf.model", "-o", tmp_path / "m.uk", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("engine", ["inverted", "bitsliced", "expanded", "split"])
def test_only_the_requested_engine_is_compiled(run, golden, tmp_path, engine):
    result = run(
        "compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", "--engine", engine, "--json"
    )
    assert result.json["engine"] == engine
    assert [candidate["engine"] for candidate in result.json["candidates"]] == [engine]


def test_pruned_engines_are_called_approximate(run, golden, tmp_path):
    options = ["--engine", "pruned", "--threshold", "0.02"]
    result = run("compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", *options)
    assert "pruned, APPROXIMATE" in result.out
    assert "sample labels are the exact model's" in result.out
    assert load(tmp_path / "m.uk").exact is False


def test_candidates_are_measured_on_the_sample(run, golden, tmp_path):
    source, sample = golden / "liblinear-multi.model", golden / "multi.test.svm"
    unmeasured = run("compile", source, "-o", tmp_path / "m.uk", "--json").json["candidates"]
    measured = run("compile", source, "-o", tmp_path / "m.uk", "--sample", sample, "--json").json[
        "candidates"
    ]
    assert unmeasured[0]["microseconds"] is None
    assert measured[0]["microseconds"] > 0


def test_trained_and_compiled_models_can_be_compiled(run, model_file, test_file, tmp_path):
    first, second = tmp_path / "first.uk", tmp_path / "second.uk"
    assert (
        run("compile", model_file, "-o", first, "--sample", test_file, "--json").json["read"]["degree"] == 2
    )
    assert run("compile", first, "-o", second, "--quiet").code == 0
    X, _ = read_svmlight(test_file, n_features=12)
    np.testing.assert_allclose(
        load(second).decision_function(X), load(model_file).decision_function(X), rtol=1e-12
    )
    (tmp_path / "rows").write_text("1 1:1\n")
    assert run("predict", second, tmp_path / "rows", "--json").json["accuracy"] == 1.0


def test_engines_beyond_the_memory_limit_are_refused(run, golden, tmp_path):
    result = run(
        "compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", "--memory", "5k", "--json"
    )
    assert result.json["engine"] == "bitsliced"
    refused = [entry for entry in result.json["candidates"] if entry["note"]]
    assert refused
    assert all("memory" in entry["note"] for entry in refused)
    message = run("compile", golden / "libsvm-poly2.model", "-o", tmp_path / "n.uk", "--memory", "10").error()
    assert message.endswith("raise --memory")
    assert not (tmp_path / "n.uk").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--memory much", "--memory must be bytes, such as 200M"),
        ("--memory -1", "--memory must be bytes"),
        ("--engine fast", "--engine"),
        ("--engine pruned", "--engine pruned needs a --threshold"),
        ("--engine pruned --threshold 0", "--threshold must be above 0"),
        ("--engine pruned --threshold nan", "--threshold must be above 0"),
        ("--threshold 1", "--threshold is for --engine pruned"),
        ("--rare -1", "--rare"),
        ("--rare inf", "--rare must be"),
        ("--jobs 0", "--jobs"),
        ("--plot plot.gif", r"plot.gif: a plot is a file that ends in .png, .svg or .pdf"),
        ("--plot nowhere/plot.png", "there is no folder"),
    ],
)
def test_bad_options_are_refused(run, golden, tmp_path, options, reason):
    message = run("compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", *options.split()).error()
    assert re.search(reason, message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (
            "libsvm-rbf expanded",
            "--engine expanded needs a polynomial kernel.* use --engine inverted or bits",
        ),
        ("libsvm-rbf split", "--engine split needs a polynomial kernel"),
        ("liblinear-multi inverted", "--engine inverted needs support vectors.* use --engine auto"),
    ],
)
def test_engines_that_do_not_support_the_model_are_refused(run, golden, tmp_path, choice, reason):
    name, engine = choice.split()
    message = run("compile", golden / f"{name}.model", "-o", tmp_path / "m.uk", "--engine", engine).error()
    assert re.search(reason, message)


def test_an_existing_model_is_replaced_only_by_a_complete_one(run, golden, compiled_file, tmp_path):
    old_content = compiled_file.read_bytes()
    (tmp_path / "bad").write_text("svm_type c_svc\nkernel_type rbf\n")
    run("compile", tmp_path / "bad", "-o", compiled_file).error()
    assert compiled_file.read_bytes() == old_content


def test_every_parameter_of_compile_is_an_option(run, monkeypatch):
    assert {name.value for name in _options.EngineName} == set(ENGINES)
    monkeypatch.setenv("COLUMNS", "200")
    text = run("compile", "--help").out
    renamed = {"n_jobs": "jobs"}
    only_python = {
        "source",
        "on_progress",
        "classes",
        "unknown_keys",
        "cache",
    }  # "cache" is not stored in files
    for name in set(inspect.signature(compile).parameters) - only_python:
        assert f"--{renamed.get(name, name).replace('_', '-')}" in text


def test_a_plot_without_matplotlib(run, golden, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = [golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", "--plot", tmp_path / "p.png"]
    assert run("compile", *arguments).error() == "--plot needs matplotlib: pip install 'unkernel[plot]'"
    assert not list(tmp_path.iterdir())


needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


@needs_matplotlib
@pytest.mark.parametrize(
    ("suffix", "begin"), slow_after(1, [("PDF", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml")])
)
def test_a_plot(run, golden, tmp_path, suffix, begin):
    plot = tmp_path / f"$tried_{suffix}$.{suffix}"
    result = run("compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m.uk", "--plot", plot, "--json")
    assert (result.code, result.json["plot"]) == (0, str(plot))
    assert plot.read_bytes().startswith(begin)


@needs_matplotlib
def test_a_plot_without_measurements_is_a_warning(run, golden, tmp_path):
    plot = tmp_path / "p.svg"
    result = run(
        "compile", golden / "liblinear-multi.model", "-o", tmp_path / "m.uk", "--plot", plot, "--json"
    )
    assert (result.code, result.json["plot"]) == (0, None)
    assert "--sample" in result.err
    assert not plot.exists()


def test_compiling_without_measuring_gives_identical_files(run, golden, test_file, tmp_path):
    source = golden / "libsvm-poly2.model"
    for name in ("one.uk", "two.uk"):
        assert run("compile", source, "-o", tmp_path / name, "--no-measure", "--memory", "20M").code == 0
    assert (tmp_path / "one.uk").read_bytes() == (tmp_path / "two.uk").read_bytes()
    message = run("compile", source, "-o", tmp_path / "x.uk", "--no-measure", "--trie", test_file).error()
    assert message.startswith("--no-measure needs --trie-nodes")
