"""``unkernel parse`` of several files: the output of one command for each; runs can be interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from reference.parse_corpora import MAKERS
from unkernel.cli import main

KIND_OF = {"trees": "parser", "chunks": "chunker"}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder, paths = tmp_path_factory.mktemp("models"), {}
    for task, kind in KIND_OF.items():
        paths[task] = folder / f"{task}.uk"
        (folder / task).write_text(MAKERS[task](60, 0))
        assert main(["train", kind, str(folder / task), "-o", str(paths[task]), "--quiet"]) == 0
    return paths


@pytest.fixture
def texts(tmp_path) -> Path:
    """Return a folder of three files of dependency trees, and three of chunks."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.conllu").write_text(MAKERS["trees"](5 + number, number))
        (folder / f"{number}.chunks").write_text(MAKERS["chunks"](5 + number, number))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".journal"}


@pytest.mark.parametrize(
    ("task", "options", "suffix"),
    [
        ("trees", [], ".conllu"),
        ("trees", ["--format", "json"], ".jsonl"),
        ("trees", ["--format", "text"], ".txt"),
        ("trees", ["--format", "svg"], ".html"),
        ("chunks", [], ".txt"),
        ("chunks", ["--draw"], ".txt"),
    ],
)
def test_each_file_gets_the_output_of_a_separate_command(
    run, models, texts, tmp_path, *, task, options, suffix
) -> None:
    ending = "conllu" if task == "trees" else "chunks"
    result = run("parse", models[task], texts / f"*.{ending}", "-o", tmp_path / "out", *options)
    assert result.code == 0
    assert "3 files: 18 sentences" in result.err
    (tmp_path / "alone").mkdir()
    for path in texts.glob(f"*.{ending}"):
        output = tmp_path / "alone" / (path.stem + suffix)
        assert run("parse", models[task], path, "-o", output, *options).code == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_output_does_not_depend_on_the_workers(run, models, texts, tmp_path) -> None:
    pytest.importorskip("distributed")
    command = ["parse", models["trees"], texts / "*.conllu", "-q"]
    assert run(*command, "-o", tmp_path / "out", "--dask", "local", "--jobs", 2).code == 0
    assert run(*command, "-o", tmp_path / "here").code == 0
    assert len(contents(tmp_path / "out")) == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_a_failed_run_resumes_at_the_first_unfinished_file(run, models, texts, tmp_path) -> None:
    out, command = tmp_path / "out", ["parse", models["trees"], texts / "*.conllu", "-o", tmp_path / "out"]
    original = (texts / "1.conllu").read_bytes()
    (texts / "1.conllu").write_text("1\tbad\n\n")
    assert "1.conllu" in run(*command).error()
    assert set(contents(out)) == {"0.conllu"}
    (out / "0.conllu").write_text("kept as it is")
    (texts / "1.conllu").write_bytes(original)
    assert "3 files, 1 answered before: 13 sentences" in run(*command).err
    assert (out / "0.conllu").read_text() == "kept as it is"
    assert "3 files, 3 answered before: 0 sentences" in run(*command).err


def test_skipped_sentences_are_reported_for_each_file(run, models, texts, tmp_path) -> None:
    text = (texts / "1.conllu").read_text()
    (texts / "1.conllu").write_text("1\tbad\n\n" * 30 + text)
    result = run("parse", models["trees"], texts / "*.conllu", "-o", tmp_path / "out", "--on-error", "skip")
    assert result.code == 0
    assert result.err.count("1.conllu:") == 21  # lines with their total number
    assert "1.conllu: 30 sentences passed through" in " ".join(result.err.split())


def test_unusable_inputs_and_options_are_refused(run, models, texts, tmp_path) -> None:
    command = ["parse", models["trees"], texts / "*.conllu"]
    assert "name it with --output" in run(*command).error()
    assert "--format svg writes a page" in run(*command, "-o", tmp_path / "o", "--svg", "x.html").error()
    single_file = ["parse", models["trees"], texts / "1.conllu", "--dask", "local"]
    assert "a pattern in quotes" in run(*single_file).error()
    assert "a pattern in quotes" in run(*single_file, texts / "2.conllu").error()
    assert "--dask must be local" in run(*command, "-o", tmp_path / "o", "--dask", "nowhere").error()
    assert run(*command, "-o", tmp_path / "out", "-q").code == 0
    assert "other options" in run(*command, "-o", tmp_path / "out", "--format", "json").error()
    assert "other options" in run(*command, "-o", tmp_path / "out", "--on-error", "skip").error()
