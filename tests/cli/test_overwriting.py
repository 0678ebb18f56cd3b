"""Without --force, no command replaces a file that it does not recognise as its own kind of output."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from reference.command_data import DATA, ROWS
from unkernel.cli.removed_commands import describe_new_spelling

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def users_file(tmp_path) -> Path:
    """Return a user's file that unkernel did not write."""
    path = tmp_path / "mine.svm"
    path.write_text(ROWS.replace("1:1", "4:1"))
    return path


@pytest.fixture
def data(tmp_path) -> dict[str, Path]:
    paths = {}
    for kind, text in DATA.items():
        paths[kind] = tmp_path / f"{kind}.data"
        paths[kind].write_text(text)
    return paths


@pytest.mark.parametrize("kind", DATA)
def test_training_replaces_only_models(run, tmp_path, data, users_file, kind):
    original_contents = contents(tmp_path)
    refused = run("train", kind, data[kind], "-o", users_file).error()
    assert refused == (
        f"{users_file}: exists and is not a model of unkernel; name another file, or replace it with --force"
    )
    # Without -o, no order of the files is accepted.
    for arguments in itertools.permutations([str(data[kind]), str(users_file)]):
        message = run("train", kind, *arguments).error()
        assert f"unkernel train {kind} {arguments[0]} -o {arguments[1]}" in message
        assert "outputs are options" in run("train", *arguments).error()
    assert contents(tmp_path) == original_contents
    assert run("train", kind, data[kind], "-o", tmp_path / "m.uk", "-q").code == 0
    assert run("train", kind, "-o", tmp_path / "m.uk", "-q", data[kind]).code == 0  # a model may be replaced
    assert run("train", kind, data[kind], "-o", users_file, "-q", "--force").code == 0
    assert users_file.read_bytes() == (tmp_path / "m.uk").read_bytes()


@pytest.mark.parametrize("kind", ["poly", "logistic", "linear", "rank", "tree"])
def test_tuning_replaces_none_of_the_users_files(run, tmp_path, data, users_file, kind):
    original_contents = contents(tmp_path)
    command = ["tune", kind, data[kind], "--cv", "2", "--C", "1", "-q"]
    assert "is not a model of unkernel" in run(*command, "-o", users_file).error()
    assert "a plot is a file that ends in" in run(*command, "--plot", users_file).error()
    (tmp_path / "old.svg").write_text("a drawing of mine")
    assert "old.svg: exists; name another file" in run(*command, "--plot", tmp_path / "old.svg").error()
    (tmp_path / "old.svg").unlink()
    assert "is also an input" in run(*command, "-o", data[kind], "--force").error()
    assert contents(tmp_path) == original_contents


def test_other_commands_replace_none_of_the_users_files(run, tmp_path, data, users_file, model_file):
    assert run("train", "parser", data["parser"], "-o", tmp_path / "en.uk", "-q").code == 0
    original_contents = contents(tmp_path)
    source = GOLDEN / "libsvm-poly2.model"
    (tmp_path / "old.png").write_text("a drawing of mine")
    original_contents = contents(tmp_path)
    for command, reason in (
        (["predict", model_file, data["poly"], "-o", users_file], "mine.svm: exists; name another file"),
        (["predict", model_file, data["poly"], "-o", tmp_path / "en.uk"], "en.uk: exists"),
        (
            ["parse", tmp_path / "en.uk", data["parser"], "-o", users_file],
            "mine.svm: exists; name another file",
        ),
        (["compile", source, "-o", users_file], "mine.svm: exists and is not a model of unkernel"),
        (["compile", source, "-o", tmp_path / "x.uk", "--plot", tmp_path / "old.png"], "old.png: exists"),
        (["compile", source, users_file], f"unkernel compile {source} -o {users_file}"),
        (["compile", users_file, source], f"unkernel compile {users_file} -o {source}"),
        (
            [
                "train",
                "linear",
                data["linear"],
                "-o",
                tmp_path / "x.uk",
                "--out-of-core",
                "--cache",
                users_file,
            ],
            "mine",
        ),
    ):
        assert reason in run(*command).error()
    # Commands that write nothing take no output.
    for command in ("inspect", "explain", "bench", "evaluate"):
        run(command, model_file, data["poly"], users_file).error()
        run(command, model_file, data["poly"], "-o", users_file).error()
    assert contents(tmp_path) == original_contents


def test_force_replaces_existing_files(run, tmp_path, data, users_file, model_file):
    assert run("predict", model_file, data["poly"], "-o", users_file, "--force", "-q").code == 0
    assert set(users_file.read_text().split()) <= {"-1", "1"}
    assert run("compile", GOLDEN / "libsvm-poly2.model", "-o", users_file, "--force", "-q").code == 0
    assert run("inspect", users_file).code == 0
    assert run("train", "parser", data["parser"], "-o", users_file, "--force", "-q").code == 0
    (tmp_path / "parsed").write_text("mine")
    assert run("parse", users_file, data["parser"], "-o", tmp_path / "parsed", "--force", "-q").code == 0
    assert (tmp_path / "parsed").read_text().count("\n") == data["parser"].read_text().count("\n")


def test_empty_files_are_replaced(run, tmp_path, data, model_file):
    for name in ("m", "p"):
        (tmp_path / name).touch()
    assert run("train", "poly", data["poly"], "-o", tmp_path / "m", "-q").code == 0
    assert run("predict", tmp_path / "m", data["poly"], "-o", tmp_path / "p", "-q").code == 0
    assert run("predict", model_file, data["poly"], "-o", "/dev/null", "-q").code == 0


@pytest.mark.parametrize(
    ("old_command", "new_command"),
    [
        ("train a.svm model.uk", "train poly a.svm -o model.uk"),
        ("train a.svm t2.svm", "train poly a.svm -o t2.svm"),
        ("train a.svm model.uk --C 3", "train poly a.svm -o model.uk --C 3"),
        ("train a.svm model.uk --model linear --C 3", "train linear a.svm -o model.uk --C 3"),
        ("train a.svm model.uk --model=rank", "train rank a.svm -o model.uk"),
        ("train --model rank a.txt model.uk", "train rank a.txt -o model.uk"),
        ("train q.dat model.uk --kernel sst", "train tree q.dat -o model.uk --kernel sst"),
        ("train q.klp model.uk", "train tree q.klp -o model.uk"),
        ("train - model.uk -q", "train poly - -o model.uk -q"),
        ("train 'a-*.svm' b.svm m.uk --model linear", "train linear 'a-*.svm' b.svm -o m.uk"),
        ("parse train en.uk train.conllu --dev d", "train parser train.conllu -o en.uk --dev d"),
        ("parse train m.uk a.knp --task bunsetsu", "train bunsetsu a.knp -o m.uk"),
        ("parse train m.uk a.txt --task chunks", "train chunker a.txt -o m.uk"),
        ("parse run en.uk raw.conllu -o out", "parse en.uk raw.conllu -o out"),
        ("parse eval en.uk test.conllu --labels", "evaluate en.uk test.conllu --labels"),
    ],
)
def test_former_spellings_name_the_new_one(run, tmp_path, monkeypatch, old_command, new_command):
    monkeypatch.chdir(tmp_path)
    words = [word.strip("'") for word in old_command.split()]
    message = run(*words).error()
    assert message.endswith(f"unkernel {new_command}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "train poly a.svm -o m.uk",
        "train --help",
        "train forest",
        "tune poly a.svm",
        "parse en.uk run",
        "parse",
        "predict train a.svm",
    ],
)
def test_current_commands_are_not_taken_for_former_spellings(command):
    assert describe_new_spelling(command.split()) is None


def test_files_named_like_a_former_command_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run").touch()
    assert describe_new_spelling(["parse", "run", "a.conllu"]) is None


def test_the_rule_of_replacing_files_is_documented():
    docs = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
    assert re.search("--force", docs)
    assert re.search("exit code", docs, re.IGNORECASE)


def test_an_input_named_by_a_pattern_is_not_replaced_even_by_force(run, tmp_path, train_file):
    content = train_file.read_bytes()
    for name in ("part-1.svm.xz", "part-2.svm.xz"):
        (tmp_path / name).write_bytes(content)
    arguments = ("train", "linear", tmp_path / "part-*.svm.xz", "--out-of-core", "--force")
    assert "is also an input" in run(*arguments, "-o", tmp_path / "part-2.svm.xz").error()
    assert (tmp_path / "part-2.svm.xz").read_bytes() == content
