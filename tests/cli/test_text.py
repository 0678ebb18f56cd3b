"""Raw text on the command line: training, parsing, evaluation; files of taggers and tokenizers."""

from __future__ import annotations

import gzip
import io
import json

import pytest

import unkernel
from reference.text_treebanks import treebank_with_text
from unkernel.data import read_conllu
from unkernel.parsing import ArcEagerParser, Tagger, TextParser, TextParserModel, Tokenizer, WordClusters

BANK = treebank_with_text()
TEXT = "They didn't see it.  Why not?\n\nDogs saw Mr. Smith!"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a treebank, a text, and models."""
    folder_ = tmp_path_factory.mktemp("text")
    BANK.write(folder_ / "train.conllu")
    (folder_ / "notes.txt").write_text(TEXT, encoding="utf-8")
    nlp = TextParser(
        tokenizer=Tokenizer(epochs=4),
        tagger=Tagger(epochs=3, min_count=1, min_updates=1),
        parser=ArcEagerParser(epochs=3, runs=1, min_count=1, min_updates=1),
    ).fit(BANK)
    nlp.save(folder_ / "en.uk")
    nlp.model_.tokenizer.save(folder_ / "tokens.uk")
    nlp.model_.tagger.save(folder_ / "tags.uk")
    nlp.model_.parser.save(folder_ / "trees.uk")
    return folder_


@pytest.fixture(scope="module")
def model(folder):
    return unkernel.load(folder / "en.uk")


# --- Training ---------------------------------------------------------------------------------------------


def test_trains_like_the_estimator(run, folder, tmp_path):
    out = tmp_path / "en.uk"
    train = folder / "train.conllu"
    result = run("train", "text", train, "-o", out, "--dev", train, "--folds", 2, "--json")
    assert result.code == 0, result.err
    assert isinstance(unkernel.load(out), TextParserModel)
    TextParser(folds=2).fit(train, dev=train).save(tmp_path / "same.uk")
    assert out.read_bytes() == (tmp_path / "same.uk").read_bytes()
    assert result.json["dev"]["las"]["f1"] == 100.0
    assert result.json["kind"] == "text_parser"
    assert result.json["words"] == BANK.n_words


@pytest.mark.slow
def test_trains_with_clusters_and_a_beam(run, folder, tmp_path):
    """Clusters come from a text and the treebank, or from a file."""
    train, out = folder / "train.conllu", tmp_path / "wide.uk"
    text = tmp_path / "web.txt"
    text.write_text("They saw cats .\nDogs see cats .\nCats bark .\n", encoding="utf-8")
    clusters = WordClusters.learn(text, BANK)
    clusters.save(tmp_path / "clusters.uk")
    parser = ArcEagerParser(beam=3, templates="rich", epochs=4, runs=1)
    TextParser(clusters=clusters, parser=parser, folds=2).fit(train).save(tmp_path / "same.uk")
    for text_or_clusters in (text, tmp_path / "clusters.uk"):
        options = (
            "--clusters",
            text_or_clusters,
            "--beam",
            3,
            "--templates",
            "rich",
            "--epochs",
            4,
            "--runs",
            1,
        )
        assert run("train", "text", train, "-o", out, *options, "--folds", 2, "-q", "--force").code == 0
        assert out.read_bytes() == (tmp_path / "same.uk").read_bytes()
    wide = unkernel.load(out)
    assert wide.parser.beam == 3
    assert wide.tagger.clusters["cats"] == wide.parser.clusters["cats"] == clusters["cats"]
    assert run("parse", out, folder / "notes.txt", "-q").out == wide.parse(TEXT).to_conllu()
    narrow = wide.with_beam(2)
    assert (narrow.parser.beam, wide.parser.beam) == (2, 3)
    assert run("parse", out, folder / "notes.txt", "-q", "--beam", 2).out == narrow.parse(TEXT).to_conllu()
    measured = run("evaluate", out, train, "--beam", 2, "--json").json
    assert measured["las"]["f1"] == narrow.evaluate(BANK).las.f1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--clusters en.uk", "a file of kind 'text_parser', not a file of clusters"),
        ("--clusters missing.txt", "missing.txt"),
        ("--clusters folder", "folder"),
        (
            "--clusters empty.txt --dev train.conllu",
            "empty.txt: the text has no words",
        ),
        ("--beam 0", "--beam must be an int in the range [1, 64], got 0"),
        ("--templates missing", "missing"),
    ],
)
def test_refuses_parts_that_are_bad(*, run, folder, tmp_path, monkeypatch, options, reason):
    monkeypatch.chdir(folder)
    treebank = read_conllu(folder / "train.conllu")[:1]
    treebank.write(tmp_path / "few.conllu")
    (folder / "folder").mkdir(exist_ok=True)
    (folder / "empty.txt").write_text("")
    assert (
        reason
        in run("train", "text", tmp_path / "few.conllu", "-o", tmp_path / "x.uk", *options.split()).error()
    )
    assert not (tmp_path / "x.uk").exists()


def test_a_beam_needs_a_parser_that_was_trained_with_one(run, folder):
    for command, data in (("parse", "notes.txt"), ("evaluate", "train.conllu")):
        message = run(command, folder / "en.uk", folder / data, "--beam", 4).error()
        assert "--beam 4 needs a parser that was trained with a beam" in message
        assert "give its training --beam 8" in message
        message = run(command, folder / "en.uk", folder / data, "--beam", 65).error()
        assert "beam must be a number from 1 to 64" in message
        assert run(command, folder / "en.uk", folder / data, "--beam", 1).code == 0
    message = run("parse", folder / "tags.uk", folder / "train.conllu", "--beam", 4).error()
    assert "--beam is for parsers of dependency trees and raw text, and this is a tagger" in message


def test_the_output_describes_the_trained_parser(run, folder, tmp_path):
    train = folder / "train.conllu"
    result = run("train", "text", train, "-o", tmp_path / "a.uk", "--dev", train, "--folds", 1)
    assert result.code == 0
    for words in ("a parser of raw text (TextParser)", "tokenizer", "tagger", "Sentences", "LAS", "words/s"):
        assert words in result.out + result.err
    message = run("train", "text", train, "-o", train).error()
    assert "train.conllu" in message


def test_files_that_are_not_treebanks_are_refused(run, folder, tmp_path):
    for name, words in {"notes.txt": "notes.txt", "en.uk": "model of unkernel"}.items():
        assert words in run("train", "text", folder / name, "-o", tmp_path / "x.uk").error()
    assert not (tmp_path / "x.uk").exists()
    assert "No such option" in run("train", "text", folder / "train.conllu", "--tagger", "x").err


def test_a_single_sentence_is_too_few(run, tmp_path):
    treebank = tmp_path / "few.conllu"
    treebank.write_text("1\tHi\t_\tINTJ\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    message = run("train", "text", treebank, "-o", tmp_path / "x.uk").error()
    assert f"{treebank}: no feature occurs 2 times in 1 sentence: give more sentences" in message
    assert not (tmp_path / "x.uk").exists()


# --- Parsing ----------------------------------------------------------------------------------------------


def test_parses_a_file(run, folder, model):
    result = run("parse", folder / "en.uk", folder / "notes.txt")
    assert (result.code, result.out) == (0, model.parse(TEXT).to_conllu())
    assert "3 sentences" in result.err
    assert run("parse", folder / "en.uk", folder / "notes.txt", "--format", "conllu").out == result.out


@pytest.mark.parametrize("jobs", [1, 3])
def test_parses_stdin(run, folder, model, stdin, jobs):
    stdin(TEXT.encode())
    result = run("parse", folder / "en.uk", "-q", "--jobs", jobs)
    assert (result.out, result.err) == (model.parse(TEXT).to_conllu(), "")


def test_writes_a_file(run, folder, model, tmp_path):
    out = tmp_path / "notes.conllu"
    assert run("parse", folder / "en.uk", folder / "notes.txt", "-o", out, "-q").code == 0
    assert out.read_text(encoding="utf-8") == model.parse(TEXT).to_conllu()
    assert "--force" in run("parse", folder / "en.uk", folder / "notes.txt", "-o", out).error()
    assert (
        "notes.txt"
        in run("parse", folder / "en.uk", folder / "notes.txt", "-o", folder / "notes.txt").error()
    )
    assert (folder / "notes.txt").read_text(encoding="utf-8") == TEXT


def test_writes_objects(run, folder, model):
    outcome = run("parse", folder / "en.uk", folder / "notes.txt", "-q", "--format", "json")
    objects = [json.loads(line) for line in outcome.out.splitlines()]
    assert [entry["text"] for entry in objects] == [sentence.text for sentence in model.parse(TEXT)]
    words = objects[0]["words"]
    assert words[0] == {
        "id": 1, "form": "They", "lemma": "they", "upos": "PRON", "xpos": "PRP", "head": 4, "deprel": "nsubj"
    }  # fmt: skip
    assert [word["id"] for word in words] == list(range(1, len(words) + 1))
    assert objects[0]["multiwords"] == [{"id": "2-3", "form": "didn't"}]
    assert words[-1]["misc"] == "SpacesAfter=\\s\\s"
    assert objects[0]["newpar"] == ""


def test_draws(run, folder, model, tmp_path):
    parse = ("parse", folder / "en.uk", folder / "notes.txt", "-q", "--format")
    assert run(*parse, "text").out == "".join(f"{sentence.draw()}\n" for sentence in model.parse(TEXT))
    page = run(*parse, "svg").out
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") == 3
    assert run(*parse, "svg", "-o", tmp_path / "trees.html").out == ""
    assert (tmp_path / "trees.html").read_text(encoding="utf-8").count("<svg") == 3
    assert "more than one sentence" in run(*parse, "svg", "-o", tmp_path / "one.svg").error()
    assert "--format text and --draw exclude" in run(*parse, "text", "--draw").error()
    assert "--format json and --svg exclude" in run(*parse, "json", "--svg", tmp_path / "a.svg").error()


def test_starts_from_words_and_tags(run, folder, model):
    train = folder / "train.conllu"
    result = run("parse", folder / "en.uk", train, "--from", "tokens", "-q")
    assert result.out.encode() == model._annotate(BANK, 1).to_bytes()
    result = run("parse", folder / "en.uk", train, "--from", "tags", "-q")
    assert result.out.encode() == model.parser.parse(BANK).to_bytes()
    assert "give --from tokens" in run("parse", folder / "en.uk", train).error()
    message = run("parse", folder / "en.uk", folder / "notes.txt", "--from", "tags").error()
    assert message == f"{folder / 'notes.txt'} holds plain text, not words in columns: leave out --from"


def test_bytes_that_are_not_text_stop_the_run_or_are_skipped(run, folder, model, tmp_path):
    latin1_file = tmp_path / "bad.txt"
    latin1_file.write_bytes(b"Why not?\n\nDogs \xff\n\nWhy not?\n")
    result = run("parse", folder / "en.uk", latin1_file)
    assert result.code == 2
    assert result.out == model.parse("Why not?\n\n").to_conllu()
    assert f"{latin1_file}:3:6: byte 0xFF is not UTF-8" in result.err
    result = run("parse", folder / "en.uk", latin1_file, "--on-error", "skip")
    assert (result.code, result.out) == (0, model.parse("Why not?\n\nWhy not?\n").to_conllu())
    assert "1 paragraph left out" in result.err
    assert run("parse", folder / "en.uk", latin1_file, "-o", tmp_path / "out").code == 2
    assert not (tmp_path / "out").exists()


def test_parses_several_files_in_their_order(run, folder, model, stdin, tmp_path):
    for name, text in {"b.txt": "Why not?", "a.txt": TEXT, "none.txt": " \n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / name for name in ("b.txt", "none.txt", "a.txt")]
    expected = "".join(
        f"# newdoc id = {file}\n{model.parse(file.read_text(encoding='utf-8')).to_conllu()}"
        for file in files
        if file.name != "none.txt"
    )
    outcome = run("parse", folder / "en.uk", *files, "--jobs", 2)
    assert (outcome.code, outcome.out) == (0, expected)
    assert "4 sentences" in outcome.err
    assert run("parse", folder / "en.uk", *files, "-o", tmp_path / "all.conllu", "-q").code == 0
    assert (tmp_path / "all.conllu").read_text(encoding="utf-8") == expected
    result = run("parse", folder / "en.uk", *files, "-q", "--format", "json").out.splitlines()
    assert [json.loads(line).get("newdoc id") for line in result] == [
        str(files[0]),
        str(files[2]),
        None,
        None,
    ]
    stdin(b"Why not?")
    outcome = run("parse", folder / "en.uk", "-", files[0], "-q")
    assert [line for line in outcome.out.splitlines() if "newdoc" in line] == [
        "# newdoc id = -",
        f"# newdoc id = {files[0]}",
    ]
    assert "stdin can be read only once" in run("parse", folder / "en.uk", "-", "-").error()
    assert "b.txt" in run("parse", folder / "en.uk", *files, "-o", tmp_path / "b.txt", "--force").error()


def test_sentences_of_several_files_are_not_joined(run, folder, model, tmp_path):
    for end in ("", "\n", "\r\n", "\n\n"):
        (tmp_path / "a.conllu").write_bytes(("1\tWhy" + "\t_" * 8 + end).encode())
        result = run("parse", folder / "tags.uk", *[tmp_path / "a.conllu"] * 3, "-q")
        assert len(read_conllu(io.StringIO(result.out))) == 3


def test_files_that_cannot_be_read_stop_the_run_or_are_left_out(run, folder, model, tmp_path):
    valid, truncated, missing = tmp_path / "good.txt", tmp_path / "bad.txt.gz", tmp_path / "missing.txt"
    valid.write_text("Why not?", encoding="utf-8")
    truncated.write_bytes(gzip.compress(b"Why not?\n\nDogs saw it.\n\n" * 9)[:-9])
    result = run("parse", folder / "en.uk", valid, missing)
    assert (result.code, result.out) == (2, "")  # no text is parsed before the options are checked
    assert f"{missing}: No such file" in result.err
    result = run("parse", folder / "en.uk", valid, truncated)
    assert (result.code, result.out.count("newdoc")) == (2, 1)
    assert str(truncated) in result.err
    result = run("parse", folder / "en.uk", missing, truncated, valid, "--on-error", "skip")
    assert result.code == 0
    assert f"# newdoc id = {valid}\n{model.parse('Why not?').to_conllu()}" in result.out
    assert f"{missing}: No such file or directory; the rest of the file is left out" in result.err
    assert run("parse", folder / "en.uk", missing, "--on-error", "skip").code == 2


def test_a_tokenizer_or_a_tagger_can_be_used_alone(run, folder, model):
    tokens = run("parse", folder / "tokens.uk", folder / "notes.txt", "-q")
    assert tokens.out == model.tokenizer.tokenize(TEXT).to_bytes().decode()
    tagged = run("parse", folder / "tags.uk", folder / "train.conllu", "-q")
    assert tagged.out.encode() == model.tagger.tag(BANK).to_bytes()
    assert "a tokenizer takes raw text" in run("parse", folder / "tokens.uk", folder / "train.conllu").error()
    message = run("parse", folder / "tags.uk", folder / "train.conllu", "--from", "tokens").error()
    assert "--from is for parsers of raw text, and this is a tagger" in message


@pytest.mark.parametrize("name", ["en.uk", "tokens.uk"])
def test_conllx_is_no_text(run, folder, name):
    message = run("parse", folder / name, folder / "notes.txt", "--format", "conllx").error()
    assert "--format is for dependency trees" in message


# --- Evaluation and inspection ----------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["text", "tokens", "tags"])
def test_measures(run, folder, model, start):
    result = run("evaluate", folder / "en.uk", folder / "train.conllu", "--from", start, "--json")
    expected = model.evaluate(folder / "train.conllu", given=start)
    assert {name: result.json[name]["f1"] for name in expected.scores()} == {
        name: score.f1 for name, score in expected.scores().items()
    }
    assert result.json["given"] == start


@pytest.mark.parametrize("name", ["en.uk", "trees.uk"])
def test_gold_trees_must_be_trees(run, folder, tmp_path, name):
    """Two words that depend on each other, without a root: no comparison with them is possible."""
    lines = ["1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_", "2\tbark\tbark\tVERB\tVBP\t_\t1\tdep\t_\t_"]
    treebank = tmp_path / "bad.conllu"
    treebank.write_text("# text = Dogs bark\n" + "\n".join(lines) + "\n\n")
    for command in (
        ("evaluate", folder / name, treebank),
        ("report", folder / name, "--test", treebank, "-o", tmp_path / "r"),
    ):
        message = run(*command).error()
        assert message.startswith(f"{treebank}:2:23: the heads ")
        assert message.endswith(", 1 → 2 → 1")


def test_gold_text_without_trees_is_measured_without_them(run, folder, tmp_path):
    words = tmp_path / "words.conllu"
    words.write_text("# text = Dogs\n1\tDogs\tdog\tNOUN\tNNS\t_\t_\t_\t_\t_\n\n")
    result = run("evaluate", folder / "en.uk", words)
    assert result.code == 0 and "Words" in result.out and "LAS" not in result.out


def test_shows_the_measures(run, folder):
    table = run("evaluate", folder / "en.uk", folder / "train.conllu").out
    for title in ("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "Lemmas", "UAS", "LAS"):
        assert title in table
    table = run("evaluate", folder / "tokens.uk", folder / "train.conllu").out
    assert "Words" in table
    assert "LAS" not in table
    assert "upos" in run("evaluate", folder / "tags.uk", folder / "train.conllu").out
    message = run("evaluate", folder / "trees.uk", folder / "train.conllu", "--from", "text").error()
    assert "--from is for parsers of raw text" in message


@pytest.mark.parametrize("name", ["en.uk", "tokens.uk", "tags.uk"])
def test_inspects(run, folder, name):
    result = run("inspect", folder / name)
    assert result.code == 0
    assert unkernel.load(folder / name).estimator in result.out
    assert run("inspect", folder / name, "--json").json["features"] > 0


def test_decisions_of_tokenizers_are_not_shown(run, folder):
    for command in (
        ("explain", folder / "tokens.uk", folder / "train.conllu"),
        ("inspect", folder / "tokens.uk", "--top", 3),
    ):
        assert "a tokenizer, whose decisions cannot be explained" in run(*command).error()


def test_explains_the_heads_of_a_text(run, folder, model):
    result = run("explain", folder / "en.uk", folder / "notes.txt", "--row", 2, "--json")
    assert result.json["text"] == "Dogs saw Mr. Smith!"
    decided = [
        (decision["part"].rpartition(".")[0], decision["chosen"]) for decision in result.json["decisions"]
    ]
    assert decided == [
        (explanation.part.rpartition(".")[0], explanation.chosen)
        for explanation in model.explain("Dogs saw Mr. Smith!")
    ]
    assert {"parser.moves"} <= {part for part, _ in decided}
    assert run("explain", folder / "en.uk", folder / "train.conllu", "--row", 2, "--json").json["text"]
    of_first_sentence = run("explain", folder / "en.uk", folder / "notes.txt")
    assert "They didn't see it." in of_first_sentence.out
    (folder / "latin1.txt").write_bytes(b"Why not?\nd\xe9j\xe0 vu\n")
    assert (
        "latin1.txt:2: byte 0xE9 is not UTF-8"
        in run("explain", folder / "en.uk", folder / "latin1.txt").error()
    )


def test_inspect_lists_conjunctions_of_each_part_of_a_text_parser(run, folder):
    output = run("inspect", folder / "en.uk", "--top", 3, "--json").json["top"]
    assert {"tagger.upos", "parser.moves"} <= set(output)
    assert all(
        conjunction["part"].startswith(kind)
        for kind, conjunctions in output.items()
        for conjunction in conjunctions
    )
    assert "heaviest conjunctions of parser.moves" in run("inspect", folder / "en.uk", "--top", 3).out


def test_explains_tags(run, folder, tmp_path):
    unseen_words = tmp_path / "new.conllu"  # words unseen in training, so classifiers decide
    unseen_words.write_text("1\tZzyx\t" + "\t".join(["_"] * 8) + "\n\n", encoding="utf-8")
    result = run("explain", folder / "tags.uk", unseen_words, "--json")
    assert result.code == 0
    assert isinstance(result.json["decisions"], list)  # certain words need no decision


def test_rows_are_not_for_parsers(run, folder, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n", encoding="utf-8")
    assert "a parser of raw text" in run("predict", folder / "en.uk", tmp_path / "rows.svm").error()


@pytest.mark.parametrize("command", ["parse", "evaluate", "inspect", "explain"])
def test_clusters_are_no_parser(run, folder, tmp_path, command):
    WordClusters.learn([["dogs", "bark"], ["cats", "bark"]], n_clusters=2, min_count=1).save(
        tmp_path / "words.uk"
    )
    data = [] if command == "inspect" else [folder / "train.conllu"]
    message = run(command, tmp_path / "words.uk", *data).error()
    assert "a clustering of words, not a parser: unkernel train text --clusters takes it" in message


def test_written_trees_are_read_as_a_treebank(run, folder, model):
    out = run("parse", folder / "en.uk", folder / "notes.txt", "-q").out
    assert read_conllu(io.StringIO(out), trees=True).n_words == model.parse(TEXT).n_words
