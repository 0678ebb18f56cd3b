"""``unkernel explain`` and ``unkernel inspect --top`` for parsers."""

from __future__ import annotations

import re

import pytest

import unkernel
from reference.parse_corpora import MAKERS, chunks

KIND_OF = {"trees": "parser", "chunks": "chunker", "bunsetsu": "bunsetsu"}
KINDS = {"trees": {"moves", "labels"}, "chunks": {"tags"}, "bunsetsu": {"depends"}}
NAMES = {
    "trees": r"(stack|input|head|dependent)\S*=|distance=|direction=",
    "chunks": r"\w+\[-?\d+\]=",
    "bunsetsu": r"(before|modifier|candidate|after|same|between)\.\S*=",
}


@pytest.fixture(params=MAKERS)
def trained_parser(request, run, tmp_path):
    """Return the task, a parser, and its training data."""
    train = tmp_path / "train"
    train.write_text(MAKERS[request.param](60, 0))
    assert run("train", KIND_OF[request.param], train, "-o", tmp_path / "m.uk", "-q").code == 0
    return request.param, tmp_path / "m.uk", train


def test_the_heaviest_conjunctions_are_listed(run, trained_parser):
    task, path, _ = trained_parser
    output = run("inspect", path, "--top", "4", "--json").json["top"]
    assert set(output) == KINDS[task]
    parser = unkernel.load(path)
    for kind, entries in output.items():
        assert len(entries) == 4
        magnitudes = [abs(entry["weight"]) for entry in entries]
        assert magnitudes == sorted(magnitudes, reverse=True) and magnitudes[-1] > 0
        for entry in entries:
            assert entry["part"].split(".")[0] == kind
            assert entry["class"] in parser.class_names(entry["part"])
            assert all(re.match(NAMES[task], name) for name in entry["features"])
    listed = [entry for entries in output.values() for entry in entries]
    for entry, conjunction in zip(listed, parser.heaviest(4), strict=True):
        assert entry == {
            "features": list(conjunction.features),
            "class": conjunction.for_class,
            "weight": conjunction.weight,
            "part": conjunction.part,
        }
    text = run("inspect", path, "--top", "4").out
    for kind in KINDS[task]:
        assert f"heaviest conjunctions of {kind}" in text
    assert ("tables do not contain" in text) == (task == "chunks")
    assert "heaviest conjunctions" not in run("inspect", path).out
    assert "top" not in run("inspect", path, "--json").json


def test_the_heaviest_conjunctions_of_engines_without_conjunctions_are_listed(run, tmp_path):
    (tmp_path / "train").write_text(MAKERS["bunsetsu"](40, 0))
    tops = []
    for engine in ("inverted", "expanded"):
        arguments = ("train", "bunsetsu", tmp_path / "train", "-o", tmp_path / "m.uk", "--tol", "1e-6")
        assert run(*arguments, "--engine", engine, "-q").code == 0
        tops.append(run("inspect", tmp_path / "m.uk", "--top", "1", "--json").json["top"]["depends"][0])
    assert tops[0]["weight"] == pytest.approx(tops[1]["weight"], rel=1e-2)


def test_a_sentence_is_explained(run, trained_parser):
    _, path, train = trained_parser
    result = run("explain", path, train, "--row", "2", "--top", "2", "--json")
    assert (result.code, result.err) == (0, "")
    parser = unkernel.load(path)
    corpus = parser.parse(train)[2:3]
    expected = parser.explain(corpus, top=2)
    assert [decision["chosen"] for decision in result.json["decisions"]] == [one.chosen for one in expected]
    for entry, decision in zip(result.json["decisions"], expected, strict=True):
        assert entry["scores"] == decision.scores
        assert len(entry["evidence"]) <= 2
        total = entry["intercept"]["chosen"] + entry["rest"]["chosen"]
        total += sum(part["chosen"] for part in entry["evidence"])
        assert total == pytest.approx(entry["scores"][entry["chosen"]])
    text = run("explain", path, train, "--row", "2", "--top", "2").out
    assert "sentence 2" in text
    for decision in expected:
        assert f"{decision.question}: {decision.chosen}" in text
        assert decision.runner_up in text
    assert len(run("explain", path, train, "--json").json["decisions"][0]["evidence"]) == 3


def test_text_without_tags_is_explained(run, tmp_path):
    (tmp_path / "train").write_text(chunks(40, 0))
    (tmp_path / "raw").write_text(chunks(3, 1, tags=False))
    (tmp_path / "tagged").write_text(chunks(3, 1))
    assert run("train", "chunker", tmp_path / "train", "-o", tmp_path / "m.uk", "-q").code == 0
    result = [run("explain", tmp_path / "m.uk", tmp_path / name, "--json").json for name in ("raw", "tagged")]
    assert result[0]["decisions"] == result[1]["decisions"] != []


def test_options_of_models_of_rows_and_missing_sentences_are_refused(run, trained_parser, tmp_path):
    _, path, train = trained_parser
    assert "so there is no sentence 60" in run("explain", path, train, "--row", "60").error()
    for options in (("--of", "NP"), ("--features", "names.txt"), ("--zero-based",)):
        assert f"{options[0]} is for models of rows" in run("explain", path, train, *options).error()
    assert "nowhere" in run("explain", path, tmp_path / "nowhere").error()


def test_pruned_parsers_are_not_explained(run, tmp_path):
    (tmp_path / "train").write_text(MAKERS["bunsetsu"](40, 0))
    options = ("--engine", "pruned", "--threshold", "1e-4", "-q")
    assert run("train", "bunsetsu", tmp_path / "train", "-o", tmp_path / "m.uk", *options).code == 0
    assert "m.uk: a pruned parser" in run("explain", tmp_path / "m.uk", tmp_path / "train").error()
