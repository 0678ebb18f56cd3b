"""Incompatible options, and rows that no learner of weights can use: one line, and no model."""

from __future__ import annotations

import re

import pytest


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("linear --degree 2", "No such option: --degree"),
        ("linear --gamma 1", "No such option: --gamma"),
        ("linear --storage auto", "No such option: --storage"),
        ("rank --loss hinge", "No such option: --loss"),
        ("rank --seed 1", "No such option: --seed"),
        ("rank --no-intercept", "No such option: --no-intercept"),
        ("linear --thresholds", "No such option: --thresholds"),
        ("poly --objective f1", "No such option: --objective"),
        ("poly --out-of-core", "No such option: --out-of-core"),
        ("poly --checkpoint x", "No such option: --checkpoint"),
        ("forest", "No such command 'forest'"),
        ("linear --C 0", "--C must be"),
        ("linear --max-cuts 1", r"--max-cuts must be an int in the range \[4, 4096\], got 1"),
        ("linear --k 3", "--k and --objective precision_at_k need each other"),
        ("linear --objective precision_at_k", "need each other"),
        ("linear --objective precision_at_k --k 0", "--k must be"),
        (
            "linear --objective f1 --loss squared_hinge",
            "--loss squared_hinge is for --objective error",
        ),
        ("linear --objective f1 --solver dual", "--solver dual is for --objective error_rate"),
        ("linear --objective f1 --class-weight balanced", "--class-weight balanced is for"),
        ("linear --solver dual --out-of-core", "--out-of-core is for cutting planes"),
        ("linear --solver dual --checkpoint x", "--checkpoint is for cutting planes"),
        ("rank --thresholds --out-of-core", "--thresholds needs rows in memory"),
        ("linear --memory 1G", "--memory is for --out-of-core"),
        ("linear --cache x", "--cache is for --out-of-core"),
        ("linear --out-of-core --dask local", "choose one"),
        ("linear --out-of-core --memory much", "--memory must be bytes, such as"),
        ("linear --out-of-core --n-features 9", "--n-features does not go with --out-of-core"),
        ("linear --dask nowhere", "--dask must be local or the address of a scheduler"),
        ("linear --checkpoint no/such", "there is no folder no"),
        ("linear --out-of-core --cache no/such", "no/such: there is no folder no to write to"),
    ],
)
def test_options_that_are_refused(run, linear_files, tmp_path, options, reason):
    old_files = set(tmp_path.iterdir())
    kind, *options_of_kind = options.split()
    assert re.search(
        reason, run("train", kind, linear_files[0], "-o", tmp_path / "m.uk", *options_of_kind).error()
    )
    assert set(tmp_path.iterdir()) == old_files


def test_bad_places_of_checkpoints_and_caches_are_refused(run, linear_files, tmp_path):
    data, test = linear_files
    command = ["train", "linear", data, "-o", tmp_path / "m.uk", "--out-of-core"]
    assert "must name a folder, and this is a file" in run(*command, "--checkpoint", test).error()
    assert "is also an input" in run(*command, "--cache", data).error()
    old_bytes = test.read_bytes()
    assert "not a file of rows" in run(*command, "--cache", test).error()
    assert test.read_bytes() == old_bytes


def test_several_files_only_out_of_core(run, linear_files, tmp_path):
    data, test = linear_files
    message = run("train", "linear", data, test, "-o", tmp_path / "m.uk").error()
    assert message == f"{data} and 1 other file: several files need --out-of-core or --dask"
    message = run("train", "linear", tmp_path / "lin*", "-o", tmp_path / "m.uk").error()
    assert "patterns need --out-of-core or --dask" in message
    command = ["train", "linear", tmp_path / "none-*", "-o", tmp_path / "m.uk", "--out-of-core"]
    assert run(*command).error() == f"{tmp_path / 'none-*'}: No file matches the pattern"
    assert "- is stdin" in run("train", "linear", "-", *command[3:]).error()
    message = run("train", "poly", data, test, "-o", tmp_path / "m.uk").error()
    assert message == f"{data} and 1 other file: this kind of model is trained on one file; join them first"


BAD_FILES = {
    "empty": ("", "there are no rows in it"),
    "nan": ("1 1:1\n-1 2:nan\n", ":2:"),
    "malformed": ("1 1:1\n-1 2:x\n", ":2:"),
    "not ASCII": ("1 1:1\n-1 é:1\n", ":2:"),
    "an index that no number holds": ("1 1:1\n-1 99999999999999999999:1\n", ":2:"),
    "one class": ("1 1:1\n1 2:1\n", "only one class|no pair to order"),
}


@pytest.mark.parametrize("options", ["linear", "rank", "linear --out-of-core", "rank --out-of-core"])
@pytest.mark.parametrize(("text", "reason"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_training_data_is_refused(run, tmp_path, options, text, reason):
    path = tmp_path / "lignes-é.svm"
    path.write_text(text, encoding="utf-8")
    message = run("train", *options.split(), path, "-o", tmp_path / "m.uk").error()
    assert re.search(reason, message)
    assert {file.name for file in tmp_path.iterdir()} <= {path.name, f"{path.name}.rows"}


@pytest.mark.parametrize("options", [[], ["--out-of-core"]], ids=["memory", "out of core"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 qid:1 1:1\n2 qid:2 1:2\n", "no pair to order"),
        ("1 qid:1 1:1\n2 1:2\n", "qid"),
        ("1 qid:x 1:1\n2 qid:1 1:2\n", ":1:"),
    ],
)
def test_groups_that_are_bad(run, tmp_path, options, text, reason):
    (tmp_path / "rows").write_text(text)
    assert re.search(
        reason, run("train", "rank", tmp_path / "rows", "-o", tmp_path / "m.uk", *options).error()
    )
