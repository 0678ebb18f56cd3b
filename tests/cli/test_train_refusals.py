"""Options that do not go together, and rows that no learner of weights can use: one line, and no model."""

from __future__ import annotations

import re

import pytest


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--model linear --degree 2", "--degree is not for --model linear, but for poly and logistic"),
        ("--model rank --gamma 1", "--gamma is not for --model rank, but for poly and logistic"),
        ("--model linear --storage auto", "--storage is not for --model linear"),
        ("--model rank --loss hinge", "--loss is not for --model rank, but for poly and linear"),
        ("--model rank --seed 1", "--seed is not for --model rank"),
        ("--model rank --no-intercept", "--intercept is not for --model rank, but for linear"),
        ("--model linear --thresholds", "--thresholds is not for --model linear, but for rank"),
        ("--objective f1", "--objective is not for --model poly, but for linear"),
        ("--out-of-core", "--out-of-core is not for --model poly, but for linear and rank"),
        ("--checkpoint x", "--checkpoint is not for --model poly"),
        ("--model forest", "--model"),
        ("--model linear --C 0", "--C must be"),
        ("--model linear --max-cuts 1", r"--max-cuts must be an int in the range \[4, 4096\], got 1"),
        ("--model linear --k 3", "--k and --objective precision_at_k need each other"),
        ("--model linear --objective precision_at_k", "need each other"),
        ("--model linear --objective precision_at_k --k 0", "--k must be"),
        (
            "--model linear --objective f1 --loss squared_hinge",
            "--loss squared_hinge is for --objective error",
        ),
        ("--model linear --objective f1 --solver dual", "--solver dual is for --objective error_rate"),
        ("--model linear --objective f1 --class-weight balanced", "--class-weight balanced is for"),
        ("--model linear --solver dual --out-of-core", "--out-of-core is for cutting planes"),
        ("--model linear --solver dual --checkpoint x", "--checkpoint is for cutting planes"),
        ("--model rank --thresholds --out-of-core", "--thresholds needs rows in memory"),
        ("--model linear --memory 1G", "--memory is for --out-of-core"),
        ("--model linear --cache x", "--cache is for --out-of-core"),
        ("--model linear --out-of-core --dask local", "choose one"),
        ("--model linear --out-of-core --memory much", "--memory must be bytes, such as"),
        ("--model linear --out-of-core --n-features 9", "--n-features does not go with --out-of-core"),
        ("--model linear --dask nowhere", "--dask must be local or the address of a scheduler"),
        ("--model linear --checkpoint no/such", "there is no folder no"),
        ("--model linear --out-of-core --cache no/such", "no/such: .*--cache"),
    ],
)
def test_options_that_are_refused(run, linear_files, tmp_path, options, reason):
    before = set(tmp_path.iterdir())
    assert re.search(reason, run("train", linear_files[0], tmp_path / "m.uk", *options.split()).error())
    assert set(tmp_path.iterdir()) == before


def test_places_for_what_is_kept(run, linear_files, tmp_path):
    data, test = linear_files
    command = ["train", data, tmp_path / "m.uk", "--model", "linear", "--out-of-core"]
    assert "is a folder, and this is a file" in run(*command, "--checkpoint", test).error()
    assert "one of the sources" in run(*command, "--cache", data).error()
    before = test.read_bytes()
    assert "not a file of rows" in run(*command, "--cache", test).error()
    assert test.read_bytes() == before


def test_several_files_only_out_of_core(run, linear_files, tmp_path):
    data, test = linear_files
    message = run("train", data, test, tmp_path / "m.uk", "--model", "linear").error()
    assert message == f"{data} and 1 other file: several files need --out-of-core or --dask"
    message = run("train", tmp_path / "lin*", tmp_path / "m.uk").error()
    assert "patterns need --out-of-core or --dask" in message
    command = ["train", tmp_path / "none-*", tmp_path / "m.uk", "--model", "linear", "--out-of-core"]
    assert run(*command).error() == f"{tmp_path / 'none-*'}: No file matches the pattern"
    assert "- is stdin" in run("train", "-", *command[2:]).error()


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
def test_training_data_that_is_bad(run, tmp_path, options, text, reason):
    path = tmp_path / "lignes-é.svm"
    path.write_text(text, encoding="utf-8")
    message = run("train", path, tmp_path / "m.uk", "--model", *options.split()).error()
    assert re.search(reason, message)
    assert {found.name for found in tmp_path.iterdir()} <= {path.name, f"{path.name}.rows"}


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
        reason, run("train", tmp_path / "rows", tmp_path / "m.uk", "--model", "rank", *options).error()
    )
