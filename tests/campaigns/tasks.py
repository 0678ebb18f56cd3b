"""Tasks that the campaigns interrupt: each replaces files of its own kind in a folder."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaigns.children import Work
from unkernel import CuttingPlaneSVC, PolySVC, compile, load, write_svmlight
from unkernel.cli import main
from unkernel.data.rows.row_files import open_rows

# Modules that the commands would otherwise import in every child.
for module in (
    "sklearn.model_selection",
    "unkernel.cli.commands.predict",
    "unkernel.cli.commands.tune",
    "unkernel.cli.learners.linear",
    "unkernel.cli.learners.parameter_search",
    "unkernel.models.formats.libsvm",
    "unkernel.cli.render.training_summary",
):
    importlib.import_module(module)


@dataclass(frozen=True)
class Task:
    """A task, and the files that it replaces.

    Attributes
    ----------
    prepare : function of a folder
        Makes the task's inputs, and an older version of each output.
    work : function of a folder
    outputs : tuple of str
    alike : function of two paths
        Return whether two outputs are equivalent.
    passing : tuple of str
        Folders that a killed run may leave for the next run to continue from.
    slow : bool
        Whether the task takes seconds. Slow tasks are killed less often, and not in the tests.
    """

    prepare: Work
    work: Work
    outputs: tuple[str, ...]
    alike: Callable[[Path, Path], bool] = lambda a, b: a.read_bytes() == b.read_bytes()
    passing: tuple[str, ...] = ()
    slow: bool = False


def make_rows(seed: int, rows: int = 400, features: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.5), 3)
    return X, np.where(X @ rng.normal(size=features) + 2 * rng.normal(size=rows) > 0, 1, -1)


def _command(*arguments: str) -> Work:
    """Return a command of ``unkernel``, run in the folder."""

    def work(folder: Path) -> int:
        with contextlib.chdir(folder):
            return main([*arguments, "--quiet"] if arguments[0] != "predict" else list(arguments))

    return work


def _rows_and_model(folder: Path) -> None:
    write_svmlight(folder / "rows.svm", *make_rows(1))
    CuttingPlaneSVC(C=0.1).fit(*make_rows(2)).save(folder / "model.uk")


def _save(folder: Path) -> None:
    # A thousand weights per class, so that writing takes more than one call.
    compile(PolySVC(degree=2).fit(*make_rows(3, rows=200))).save(folder / "model.uk")


def _pack(folder: Path) -> None:
    with contextlib.chdir(folder):  # the file contains the name of the source as given
        open_rows("rows.svm")


def _older_packed_rows(folder: Path) -> None:
    write_svmlight(folder / "rows.svm", *make_rows(1, rows=3000))
    _pack(folder)
    write_svmlight(folder / "rows.svm", *make_rows(2, rows=3000))
    os.utime(folder / "rows.svm", ns=(10**18, 10**18))  # not the original time


def _older_predictions(folder: Path) -> None:
    _rows_and_model(folder)
    (folder / "labels.txt").write_text("1\n" * 400)


def _weights_alike(a: Path, b: Path) -> bool:
    """Return whether weights agree to 1 %: resumed runs reach the same objective, not the same bits."""
    first_model, second_model = (load(path, verify=True).model for path in (a, b))
    scale = np.abs(first_model.weights).max()
    return bool(np.abs(first_model.weights - second_model.weights).max() < 1e-2 * scale)


TASKS = {
    "save": Task(_rows_and_model, _save, ("model.uk",)),
    "pack": Task(_older_packed_rows, _pack, ("rows.svm.rows",)),
    "predict": Task(
        _older_predictions,
        _command("predict", "model.uk", "rows.svm", "-o", "labels.txt", "--force"),
        ("labels.txt",),
    ),
    "checkpoint": Task(
        _rows_and_model,
        _command(
            *("train", "linear", "rows.svm", "-o", "model.uk", "--out-of-core", "--checkpoint", "kept"),
            *("--C", "0.03", "--tol", "1e-6"),
        ),
        ("model.uk",),
        alike=_weights_alike,
        passing=("kept",),
    ),
    "tune": Task(
        _rows_and_model,
        _command("tune", "linear", "rows.svm", "-o", "model.uk", "--C", "0.01,0.1", "--cv", "2"),
        ("model.uk",),
    ),
    "dask": Task(
        _rows_and_model,
        _command(
            *("train", "linear", "rows.svm", "-o", "model.uk", "--dask", "local", "--jobs", "2"),
            *("--C", "0.03", "--tol", "1e-6"),
        ),
        ("model.uk",),
        alike=_weights_alike,
        slow=True,
    ),
}


def copy_folder(folder: Path, target: Path) -> Path:
    """Copy a folder with the times of its files, which decide whether packed rows match their sources."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target))


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
