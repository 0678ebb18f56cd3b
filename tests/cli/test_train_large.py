"""Rows larger than memory: ``--out-of-core``, ``--checkpoint`` and ``--dask``."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.patience import PATIENCE, wait_for
from unkernel import load, write_svmlight
from unkernel.cutplane.checkpoints import Checkpoint

COMMAND = [sys.executable, "-m", "unkernel", "train"]


@pytest.mark.parametrize("kind", ["linear", "rank"])
def test_training_out_of_core_equals_training_in_memory(run, rank_files, tmp_path, kind):
    data, test = rank_files
    command = ["train", kind, data, "-o", tmp_path / "m.uk", "--test", test, "--tol", "1e-6", "--json"]
    in_memory, out_of_core = run(*command).json, run(*command, "--out-of-core", "--memory", "1G").json
    assert out_of_core["packed_rows"] == f"{data}.rows"
    assert out_of_core["objective"] == pytest.approx(in_memory["objective"], rel=1e-5)
    measure = "accuracy" if kind == "linear" else "ordered_pairs"
    assert out_of_core[f"training_{measure}"] == pytest.approx(in_memory[f"training_{measure}"], abs=0.02)
    assert out_of_core["test"][measure] == pytest.approx(in_memory["test"][measure], abs=0.02)
    for name in ("rows", "features"):
        assert out_of_core[name] == in_memory[name]
    assert out_of_core["model_bytes"] == pytest.approx(
        in_memory["model_bytes"], abs=128
    )  # the number of digits may differ


def test_packed_rows_are_used_again(run, linear_files, tmp_path):
    command = ["train", "linear", linear_files[0], "-o", tmp_path / "m.uk", "--out-of-core"]
    assert run(*command, "--cache", tmp_path / "kept", "--quiet").code == 0
    old_stat = (tmp_path / "kept").stat()
    result = run(*command, "--cache", tmp_path / "kept")
    assert f"{tmp_path / 'kept'}, " in result.out
    assert (tmp_path / "kept").stat().st_mtime_ns == old_stat.st_mtime_ns
    assert not Path(f"{linear_files[0]}.rows").exists()


def parts(folder: Path) -> list[Path]:
    generator = np.random.default_rng(0)
    names = [folder / f"part-{number}.svm.gz" for number in range(3)]
    for name in names:
        X = generator.random((100, 5))
        write_svmlight(name, X, np.where(X[:, 0] > X[:, 1], 1, -1))
    return names


@pytest.mark.parametrize("how", ["pattern", "names"])
def test_several_files(run, tmp_path, how):
    names = parts(tmp_path)
    data = [tmp_path / "part-*.svm.gz"] if how == "pattern" else names
    for _ in range(2):  # the packed copy, which lies beside the files, does not match the pattern
        output = run("train", "linear", *data, "-o", tmp_path / "m.uk", "--out-of-core", "--json").json
        assert output["rows"] == 300
        assert load(tmp_path / "m.uk").model.origin["rows"] == 300


def test_too_little_memory_is_reported_before_training(run, linear_files, tmp_path):
    command = ["train", "linear", linear_files[0], "-o", tmp_path / "m.uk", "--out-of-core", "--memory"]
    message = run(*command, "30K").error()
    assert "300 rows, 8 features and 200 cuts need about 40.1 kB, and --memory allows 30.0 kB" in message
    assert not (tmp_path / "m.uk").exists()
    assert run(*command, "30K", "--max-cuts", "20", "--quiet").code == 0


@pytest.fixture
def hard_training(tmp_path) -> list[str]:
    """Return arguments of a training with random labels, which takes some hundred passes."""
    generator = np.random.default_rng(0)
    write_svmlight(tmp_path / "rows.svm", generator.random((2000, 30)), generator.integers(0, 2, 2000))
    places = ["linear", str(tmp_path / "rows.svm"), "-o", str(tmp_path / "m.uk")]
    options = ["--out-of-core", "--checkpoint", str(tmp_path / "kept"), "--C", "10", "--tol", "1e-6"]
    return [*places, *options]


def start_training(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a training that would never end, and wait until it has made progress."""
    command = [*COMMAND, *arguments, "--tol", "1e-15", "--max-iter", "1000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: process.poll() is not None or len(list(folder.glob("problem-0/cut-*.uk"))) >= 30)
    assert process.poll() is None, process.communicate()
    return process


@pytest.fixture
def pass_counts(monkeypatch) -> list[int]:
    """Return a list that receives the number of passes of each training in this process."""
    passes: list[int] = []
    make_observer = Checkpoint.make_observer

    def make_counting_observer(checkpoint: Checkpoint, *arguments: Any) -> Any:
        observe = make_observer(checkpoint, *arguments)
        return lambda *state: (passes.append(state[-1]), observe(*state))

    monkeypatch.setattr(Checkpoint, "make_observer", make_counting_observer)
    return passes


@pytest.mark.hostile
def test_a_killed_training_resumes_from_its_checkpoint(run, hard_training, tmp_path, pass_counts):
    uninterrupted = run("train", *hard_training, "--json").json
    assert len(pass_counts) == uninterrupted["passes"] > 60
    pass_counts.clear()
    process = start_training(hard_training, tmp_path / "kept")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    resumed = run("train", *hard_training, "--json").json
    assert 0 < len(pass_counts) <= uninterrupted["passes"] - 10
    assert resumed["objective"] == pytest.approx(uninterrupted["objective"], rel=1e-6)
    assert not (tmp_path / "kept").exists()


@pytest.mark.hostile
def test_interrupted_trainings_say_how_to_resume(hard_training, tmp_path):
    process = start_training(hard_training, tmp_path / "kept")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines() == [
        f"unkernel: {tmp_path / 'kept'} has the progress so far: run the same command to resume",
        "unkernel: interrupted",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"rows.svm", "rows.svm.rows", "kept"}


@pytest.mark.hostile
def test_a_checkpoint_of_other_rows_is_refused(run, hard_training, linear_files, tmp_path):
    process = start_training(hard_training, tmp_path / "kept")
    process.kill()
    process.communicate()
    command = ["train", "linear", linear_files[0], "-o", tmp_path / "m.uk"]
    message = run(*command, "--checkpoint", tmp_path / "kept").error()
    assert "the checkpoint is of other rows, labels or another loss" in message


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="Dask is not installed")
def test_workers_on_this_machine(run, tmp_path):
    parts(tmp_path)
    command = ["train", "linear", tmp_path / "part-*.svm.gz", "-o", tmp_path / "m.uk", "--json"]
    on_one_machine, on_workers = (
        run(*command, "--out-of-core").json,
        run(*command, "--dask", "local", "--jobs", "2").json,
    )
    assert on_workers["objective"] == pytest.approx(on_one_machine["objective"], rel=2e-3)
    assert (on_workers["features"], on_workers["classes"], on_workers["training_accuracy"]) == (
        5,
        [-1, 1],
        None,
    )
    output = run("predict", tmp_path / "m.uk", tmp_path / "part-0.svm.gz", "--json").json
    assert output["accuracy"] > 0.9


def test_without_dask(run, linear_files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.delitem(sys.modules, "unkernel.distributed", raising=False)
    command = ["train", "linear", linear_files[0], "-o", tmp_path / "m.uk", "--dask", "local"]
    assert 'pip install "unkernel[dask]"' in run(*command).error()
