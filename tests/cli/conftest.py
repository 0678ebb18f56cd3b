"""Small training files, and a fixture that runs commands and returns their output."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unkernel.cli import main
from unkernel.data import write_svmlight

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        (line,) = self.out.splitlines()
        return json.loads(line)

    def error(self) -> str:
        """Return the message of a command that failed; it is one line."""
        assert self.code == 2, (self.out, self.err)
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("unkernel: error: ")
        return line.removeprefix("unkernel: error: ")


@pytest.fixture
def run(capfd) -> Callable[..., CommandResult]:
    def run_command(*arguments: object) -> CommandResult:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return CommandResult(code, out, err)

    return run_command


@pytest.fixture
def stdin(tmp_path_factory, monkeypatch) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that sets the stdin of the next command."""
    original_fd = os.dup(0)

    def set_stdin(data: bytes) -> None:
        path = tmp_path_factory.mktemp("stdin") / "data"
        path.write_bytes(data)
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.FileIO(0, closefd=False)))

    yield set_stdin
    os.dup2(original_fd, 0)
    os.close(original_fd)


def make_exclusive_or(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return binary rows whose labels no linear model can learn."""
    X = (np.random.default_rng(seed).random((rows, 12)) < 0.4).astype(float)
    return X, np.where(X[:, 0] != X[:, 1], 1, -1)


def make_linear_data(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and their targets, which are a linear function plus noise."""
    X = np.random.default_rng(seed).random((rows, 8)).round(3)
    return X, X @ np.arange(-3.5, 4.5) + 0.1 * np.random.default_rng(seed + 1).normal(size=rows)


@pytest.fixture
def linear_files(tmp_path) -> tuple[Path, Path]:
    """Return a training and a test file with two linearly separable classes."""
    paths = tmp_path / "lin.svm.gz", tmp_path / "lin.t.svm"
    for path, (X, targets) in zip(paths, (make_linear_data(300, 0), make_linear_data(100, 9)), strict=True):
        write_svmlight(path, X, np.where(targets > 0, 1, -1))
    return paths


@pytest.fixture
def rank_files(tmp_path) -> tuple[Path, Path]:
    """Return a training and a test file of queries of ten rows, with labels from 0 to 3."""
    paths = tmp_path / "rank.txt", tmp_path / "rank.t.txt"
    for path, (X, targets) in zip(paths, (make_linear_data(300, 0), make_linear_data(100, 9)), strict=True):
        labels = np.digitize(targets, [-1, 0, 1])
        write_svmlight(path, X, labels, qid=np.arange(len(X)) // 10)
    return paths


@pytest.fixture(scope="session")
def golden() -> Path:
    """Return the folder of models written by other programs."""
    return GOLDEN


@pytest.fixture(scope="session")
def shared_files(tmp_path_factory, golden) -> Path:
    """Return a folder of training files and models that are made once; tests use copies of them."""
    folder = tmp_path_factory.mktemp("made")
    write_svmlight(folder / "train.svm.xz", *make_exclusive_or(300, seed=0))
    write_svmlight(folder / "test.svm", *make_exclusive_or(200, seed=1))
    train = ["train", "poly", folder / "train.svm.xz", "-o", folder / "model.uk", "--C", "10"]
    compile = ["compile", golden / "libsvm-poly3-multi.model", "-o", folder / "compiled.uk"]
    for command in (train, [*compile, "--engine", "expanded"]):
        assert main([*map(str, command), "--quiet"]) == 0
    return folder


@pytest.fixture
def train_file(tmp_path, shared_files) -> Path:
    return Path(shutil.copy(shared_files / "train.svm.xz", tmp_path))


@pytest.fixture
def test_file(tmp_path, shared_files) -> Path:
    return Path(shutil.copy(shared_files / "test.svm", tmp_path))


@pytest.fixture
def model_file(tmp_path, shared_files, train_file) -> Path:
    """Return a model learnt from the training file."""
    return Path(shutil.copy(shared_files / "model.uk", tmp_path))


@pytest.fixture
def compiled_file(tmp_path, shared_files) -> Path:
    """Return a model of LIBSVM with four classes, compiled to a table of conjunctions."""
    return Path(shutil.copy(shared_files / "compiled.uk", tmp_path))


@pytest.fixture(scope="session")
def people_records() -> list[dict[str, Any]]:
    """Return records whose label does not depend on any single column."""
    generator = np.random.default_rng(0)
    result = []
    for _ in range(300):
        age, job = int(generator.integers(18, 80)), str(generator.choice(["clerk", "pilot", "smith"]))
        member = bool(generator.random() < 0.5)
        rich = "yes" if (age > 45) == (job != "clerk") else "no"
        result.append({"age": age, "job": job, "member": member, "rich": rich})
    return result


@pytest.fixture(scope="session")
def people_file(tmp_path_factory, people_records) -> Path:
    """Return the path of `people_records` as CSV."""
    path = tmp_path_factory.mktemp("records") / "people.csv"
    lines = [
        f"{record['age']},{record['job']},{str(record['member']).lower()},{record['rich']}"
        for record in people_records
    ]
    path.write_text("\n".join(["age,job,member,rich", *lines]) + "\n")
    return path


@pytest.fixture(scope="session")
def people_model(people_file) -> Path:
    """Return a model trained on `people_file`."""
    path = people_file.with_name("rich.uk")
    assert main(["train", "poly", str(people_file), "--target", "rich", "-o", str(path), "--quiet"]) == 0
    return path
