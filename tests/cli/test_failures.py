"""Every mistake of a user gives a message of one line, exit code 2, and no new file."""

from __future__ import annotations

import json
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from reference import damage


@dataclass(frozen=True)
class Files:
    """Three valid files, in a folder that a failing command must not change."""

    folder: Path
    train: Path
    test: Path
    model: Path

    def contents(self) -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.is_file() else None for path in self.folder.rglob("*")}


@pytest.fixture
def files(tmp_path, train_file, test_file, model_file):
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked").mkdir(mode=0o500)
    (tmp_path / "link").symlink_to(train_file)
    files_ = Files(tmp_path, train_file, test_file, model_file)
    original_contents = files_.contents()
    yield files_
    assert files_.contents() == original_contents


BAD_FILES = {
    "empty": ("", "there are no rows in it"),
    "blank": ("\n\n# remark\n", "there are no rows in it"),
    "not rows": ("this is a letter\n", ":1:"),
    "malformed line": ("1 1:1\n-1 2:x\n", ":2:"),
    "no value": ("1 1:1\n-1 2\n", ":2:"),
    "nan": ("1 1:1\n-1 2:nan\n", ":2:"),
    "infinite label": ("inf 1:1\n-1 2:1\n", ":1:"),
    "an index that no number holds": ("1 1:1\n-1 99999999999999999999:1\n", ":2:"),
    "negative index": ("1 1:1\n-1 -5:1\n", ":2:"),
    "one class": ("1 1:1\n1 2:1\n", "only one class"),
    "a target that is no class": ("0.1 1:1\n0.7 2:1\n1.3 1:2\n", "[Cc]ontinuous|has fractions"),
}


@pytest.mark.parametrize(("text", "reason"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_training_data_is_refused(run, tmp_path, text, reason):
    (tmp_path / "rows.svm").write_text(text)
    assert re.search(reason, run("train", "poly", tmp_path / "rows.svm", "-o", tmp_path / "m.uk").error())
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--C 0", r"--C must be a float in the range \(0.0, 1e\+20\], got 0.0"),
        ("--C -1", "--C must be"),
        ("--C nan", "--C must be"),
        ("--C inf", "--C must be"),
        ("--C many", "--C"),
        ("--degree 0", r"--degree must be an int in the range \[1, 3\], got 0"),
        ("--degree 9", "--degree must be"),
        ("--degree 1.5", "--degree"),
        ("--gamma 0", "--gamma must be a str among .* or a float in the range .0.0, inf., got 0.0"),
        ("--gamma nan", "--gamma must be"),
        ("--gamma large", "--gamma must be"),
        ("--coef0 -1", "--coef0 must be"),
        ("--tol 0", "--tol must be"),
        ("--max-iter 0", "--max-iter must be"),
        ("--loss zero_one", "--loss"),
        ("--storage disk", "--storage"),
        ("--class-weight heavy", "--class-weight must be 'balanced' or a list such as"),
        ("--class-weight 1=a", "--class-weight must be"),
        ("--class-weight 1=1,1=2", "each class once"),
        ("--class-weight 1=0", "positive weights"),
        ("--class-weight 5=1", "5"),
        ("--jobs 0", "--jobs"),
        ("--jobs 1000000", "--jobs"),
        ("--seed -1", "--seed"),
        ("--n-features 0", "--n-features"),
        ("--n-features 3", "beyond 3"),
        ("--no-such-option", "--no-such-option.*see unkernel train poly --help"),
        ("--test missing.svm", "missing.svm: No such file"),
    ],
)
def test_bad_options_are_refused(run, files, options, reason):
    assert re.search(
        reason, run("train", "poly", files.train, "-o", files.folder / "m.uk", *options.split()).error()
    )


def test_bad_options_are_refused_before_the_file_is_read(run, tmp_path):
    assert (
        "--C" in run("train", "poly", tmp_path / "missing.svm", "-o", tmp_path / "m.uk", "--C", "0").error()
    )
    assert (
        "there is no folder"
        in run("train", "poly", tmp_path / "missing.svm", "-o", tmp_path / "nowhere/m.uk").error()
    )


@pytest.mark.parametrize(
    "command",
    [
        ["train"],
        ["train", "poly"],
        ["train", "forest"],
        ["tune"],
        ["tune", "parser"],
        ["evaluate", "m.uk"],
        ["parse"],
        ["predict", "m.uk"],
        ["inspect"],
        ["explain", "m.uk"],
        ["bench", "m.uk"],
        ["fly"],
        ["--flag"],
    ],
)
def test_usage_errors_name_the_help(run, command):
    assert "--help)" in run(*command).error()


def test_missing_files_are_named(run, files):
    missing, output = files.folder / "missing", files.folder / "output"
    for arguments in (
        ("train", "poly", missing, "-o", output),
        ("predict", missing, files.test, "-o", output),
        ("predict", files.model, missing, "-o", output),
        ("inspect", missing),
        ("compile", missing, "-o", output),
        ("compile", files.model, "-o", output, "--sample", missing),
        ("explain", missing, files.test),
        ("explain", files.model, missing),
        ("explain", files.model, files.test, "--features", missing),
        ("bench", missing, files.test),
        ("bench", files.model, missing),
    ):
        assert run(*arguments).error() == f"{missing}: No such file or directory"
    assert "is a folder; name a file in it" in run("train", "poly", files.folder, "-o", output).error()
    assert "is a folder; name a file in it" in run("inspect", files.folder).error()
    assert "is a folder; name a file in it" in run("compile", files.folder, "-o", output).error()
    assert "is a folder; name a file in it" in run("explain", files.model, files.folder).error()
    assert "is a folder; name a file in it" in run("inspect", files.model, "--features", files.folder).error()


def list_commands_with_output(files: Files) -> list[list[object]]:
    return [
        ["train", "poly", files.train, "-o"],
        ["tune", "poly", files.train, "-o"],
        ["predict", files.model, files.test, "--output"],
        ["compile", files.model, "--output"],
    ]


def test_outputs_that_cannot_be_written_are_refused(run, files):
    for command in list_commands_with_output(files):
        assert "there is no folder" in run(*command, files.folder / "nowhere" / "x").error()
        assert "there is no folder" in run(*command, files.train / "x").error()
        assert "is a folder" in run(*command, files.folder / "folder").error()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folders_without_permission_are_named(run, files):
    for command in list_commands_with_output(files):
        assert "does not allow writing" in run(*command, files.folder / "locked" / "x").error()


def test_inputs_are_not_overwritten(run, files):
    for arguments in (
        ("train", "poly", files.train, "-o", files.train),
        ("train", "poly", files.folder / "link", "-o", files.train),
        ("train", "poly", files.train, "-o", files.test, "--test", files.test),
        ("predict", files.model, files.test, "-o", files.test),
        ("predict", files.model, files.test, "-o", files.model),
        ("compile", files.model, "-o", files.model),
        ("compile", files.model, "-o", files.test, "--sample", files.test),
    ):
        assert "is also an input" in run(*arguments).error()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_full_devices_are_reported(run, files):
    assert "No space left" in run("predict", files.model, files.test, "-o", "/dev/full").error()
    assert "not a regular file" in run("train", "poly", files.train, "-o", "/dev/full").error()
    assert "not a regular file" in run("compile", files.model, "-o", "/dev/full").error()
    assert Path("/dev/full").is_char_device()


def test_incompatible_options_of_predict_are_refused(run, files):
    assert "stdout" in run("predict", files.model, files.test, "--json", "--output", "-").error()
    assert "--output" in run("predict", files.model, files.test, "--scores", "--json").error()
    assert "--output" in run("predict", files.model, files.test, "--probability", "--json").error()


def test_a_huge_index_needs_no_huge_memory(run, tmp_path):
    """Memory depends on the number of used columns, and not on the largest index, which is 2^40."""
    (tmp_path / "rows.svm").write_text(f"1 1:1\n-1 {2**40}:1\n" * 5)
    result = run(
        "train", "poly", tmp_path / "rows.svm", "-o", tmp_path / "m.uk", "--gamma", "1", "--C", "10", "--json"
    )
    assert result.code == 0
    assert (result.json["features"], result.json["training_accuracy"]) == (2**40, 1.0)
    assert run("predict", tmp_path / "m.uk", tmp_path / "rows.svm", "--json").json["accuracy"] == 1.0
    top = run("inspect", tmp_path / "m.uk", "--top", "10", "--json").json["top"]
    assert {tuple(entry["features"]) for entry in top} <= {(1,), (2**40,), (1, 2**40)}


def test_index_zero_is_refused_by_one_based(run, tmp_path):
    (tmp_path / "rows.svm").write_text("1 0:1\n-1 1:1\n" * 5)
    assert (
        run("train", "poly", tmp_path / "rows.svm", "-o", tmp_path / "m.uk", "--json").json["features"] == 2
    )
    (tmp_path / "m.uk").unlink()
    assert (
        ":1:" in run("train", "poly", tmp_path / "rows.svm", "-o", tmp_path / "m.uk", "--one-based").error()
    )
    assert not (tmp_path / "m.uk").exists()


def test_index_zero_is_refused_by_a_model_that_counts_from_one(run, model_file, tmp_path):
    (tmp_path / "rows.svm").write_text("1 0:1\n")
    assert ":1:" in run("predict", model_file, tmp_path / "rows.svm").error()


def edit_header(path: Path, edit) -> None:
    data = damage.remove_digests(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    edit(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def check_all_commands_refuse(run, model_file, test_file, tmp_path) -> str:
    first_message = run("inspect", model_file, "--top", "5").error()
    for command in (
        ("predict", model_file, test_file, "-o", tmp_path / "p.txt"),
        ("compile", model_file, "-o", tmp_path / "p.txt"),
        ("explain", model_file, test_file),
        ("bench", model_file, test_file),
    ):
        assert run(*command).error() == first_message
    assert first_message.startswith(f"{model_file}:")
    assert not (tmp_path / "p.txt").exists()
    return first_message


@pytest.mark.parametrize("fraction", [0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_truncated_models_are_refused(run, model_file, test_file, tmp_path, fraction):
    data = model_file.read_bytes()
    model_file.write_bytes(data[: int(fraction * len(data))])
    check_all_commands_refuse(run, model_file, test_file, tmp_path)


def test_models_of_newer_versions_are_refused(run, model_file, test_file, tmp_path):
    edit_header(model_file, lambda header: header["__metadata__"].update(version="99"))
    reason = check_all_commands_refuse(run, model_file, test_file, tmp_path)
    assert "upgrade unkernel" in reason


def test_models_of_unknown_kinds_are_refused(run, model_file, test_file, tmp_path):
    edit_header(model_file, lambda header: header["__metadata__"].update(kind="oracle"))
    assert "'oracle'" in check_all_commands_refuse(run, model_file, test_file, tmp_path)


def test_models_with_invalid_keys_are_refused(run, model_file, test_file, tmp_path):
    data = bytearray(model_file.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8 : 8 + length])["keys"]["data_offsets"]
    data[8 + length + begin : 8 + length + end] = b"\xff" * (end - begin)
    model_file.write_bytes(data)
    check_all_commands_refuse(run, model_file, test_file, tmp_path)


def test_swapped_rows_and_models_are_named(run, train_file, model_file, tmp_path):
    assert str(train_file) in run("predict", train_file, model_file).error()
    assert str(model_file) in run("train", "poly", model_file, "-o", tmp_path / "other.uk").error()


def test_control_characters_in_file_names_are_escaped(run, tmp_path):
    message = run("inspect", tmp_path / "evil\x1b[2J\nname").error()
    assert "\x1b" not in message
    assert "name" in message


def test_too_little_memory_is_reported_in_one_line(run, train_file, tmp_path, monkeypatch):
    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 1 PiB")

    monkeypatch.setattr("unkernel.cli.inputs.rows.read_svmlight", no_memory)
    assert (
        run("train", "poly", train_file, "-o", tmp_path / "m.uk").error()
        == "not enough memory. Unable to allocate 1 PiB"
    )


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_truncated_compiled_models_are_refused(run, compiled_file, test_file, tmp_path, fraction):
    data = compiled_file.read_bytes()
    compiled_file.write_bytes(data[: int(fraction * len(data))])
    check_all_commands_refuse(run, compiled_file, test_file, tmp_path)


def test_truncated_models_of_other_programs_are_refused(run, golden, test_file, tmp_path):
    path = tmp_path / "cut.model"
    path.write_bytes((golden / "libsvm-poly2.model").read_bytes()[:2000])
    check_all_commands_refuse(run, path, test_file, tmp_path)


def test_bytes_that_are_not_text_are_refused(run, test_file, tmp_path):
    path = tmp_path / "junk"
    path.write_bytes(bytes(range(255, 0, -1)) * 10)
    assert "not a model that is known" in check_all_commands_refuse(run, path, test_file, tmp_path)


def test_unknown_kernels_are_refused(run, golden, test_file, tmp_path):
    path = tmp_path / "precomputed.model"
    text = (golden / "libsvm-rbf.model").read_text().replace("kernel_type rbf", "kernel_type precomputed")
    text = re.sub(r"gamma .*\n", "", text)
    head, _, vectors = text.partition("SV\n")
    numbered = [f"{line.split()[0]} 0:{i}" for i, line in enumerate(vectors.splitlines(), 1)]
    path.write_text(head + "SV\n" + "\n".join(numbered) + "\n")
    for command in (("predict", path, test_file), ("compile", path, "-o", tmp_path / "m.uk")):
        assert "precomputed" in run(*command).error()
    assert not (tmp_path / "m.uk").exists()
    assert run("inspect", path).code == 0
    assert "no conjunctions to list" in run("inspect", path, "--top", "3").error()
