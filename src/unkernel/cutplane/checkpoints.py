"""Checkpoints of cutting-plane training: after a run was killed, training continues from its folder.

Each cut is written once, to a file of its own. A small state file lists the cuts in use and contains the best
weights. A round therefore writes only two vectors of the length of the weights, whatever the number of cuts.
Files are replaced in one step. The name of a cut's file is the checksum of its content, which reveals
exchanged files. A folder is locked while a run uses it, and only files of checkpoints are removed from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Bundle
from unkernel.data.checksums import hexadecimal_checksum
from unkernel.errors import FormatError
from unkernel.models import container

_KIND = "checkpoint"
_STATE = "state.uk"
# How checksums are computed and cuts are named; checkpoints of earlier versions have another value.
_CHECKSUMS = "xxh64, cuts by content"
_CUT = re.compile(r"cut-[0-9a-f]{16}\.uk")

Observer = Callable[[NDArray[np.float64], float, float, int], None]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The cuts of one problem.

    Attributes
    ----------
    folder : Path
    identity : dict
        Identifies the rows, the labels and the loss; a checkpoint with another identity is rejected.
    """

    folder: Path
    identity: dict[str, Any]

    @staticmethod
    @contextlib.contextmanager
    def open(
        folder: str | os.PathLike[str] | None, problem: int, identity: dict[str, Any]
    ) -> Iterator[Checkpoint | None]:
        """Return the checkpoint of a problem, locked against other runs; None if `folder` is None.

        Raises
        ------
        ValueError
            If another run uses the checkpoint.
        """
        if folder is None:
            yield None
            return
        problem_folder = _find_folder(folder, problem)
        problem_folder.mkdir(parents=True, exist_ok=True)
        with _lock(problem_folder):
            yield Checkpoint(problem_folder, json.loads(json.dumps(identity)))

    def restore(self, bundle: Bundle) -> tuple[NDArray[np.float64], int] | None:
        """Add the stored cuts and their dual variables (masses) to a bundle.

        Return the best weights and the number of rounds so far; None if there is no checkpoint yet.

        Raises
        ------
        ValueError
            If the checkpoint has other rows, labels or losses, or is from an earlier version.
        FormatError
            If the checkpoint is damaged.
        """
        path = self.folder / _STATE
        if not path.exists():
            return None
        arrays, settings = _read(path)
        if settings.get("checksums") != _CHECKSUMS:
            raise ValueError(
                f"{self.folder}: the checkpoint is from an earlier version and cannot be compared with "
                "the rows; delete the folder, or give another one"
            )
        if settings.get("identity") != self.identity:
            raise ValueError(
                f"{self.folder}: the checkpoint is of other rows, labels or another loss; delete the folder, "
                "or give another one"
            )
        name = os.fspath(path)
        weights = container.read_finite_array(name, arrays, "weights", 1)
        masses = container.read_finite_array(name, arrays, "masses", 1)
        offsets = container.read_finite_array(name, arrays, "offsets", 1)
        files = container.read_setting(name, settings, "cuts", list, lambda v: len(v) == len(masses))
        rounds = container.read_setting(name, settings, "rounds", int, lambda v: 0 <= v < 1 << 62)
        if len(weights) != bundle.dimension or len(offsets) != len(masses) or (masses < 0).any():
            raise FormatError(name, 0, 0, "the checkpoint is damaged; delete its folder")
        for file, offset in zip(files, offsets.tolist(), strict=True):
            bundle.add(self._read_gradient(str(file), bundle.dimension, offset), offset)
        if len(bundle) == len(masses):  # otherwise the bundle dropped cuts; the solver computes new masses
            bundle.set_masses(np.array(masses))
        return np.array(weights), rounds

    def _read_gradient(self, file: str, dimension: int, offset: float) -> NDArray[np.float64]:
        """Return the gradient of a cut, after checking that its file is the one that the state names."""
        path = self.folder / Path(file).name
        if not path.is_file():
            raise FormatError(os.fspath(path), 0, 0, "the cut is missing; delete the checkpoint's folder")
        arrays, _ = _read(path)
        gradient = container.read_finite_array(os.fspath(path), arrays, "gradient", 1)
        if len(gradient) != dimension or _name_cut(gradient, offset) != file:
            reason = "this is not the cut that the checkpoint names; delete the folder"
            raise FormatError(os.fspath(path), 0, 0, reason)
        return np.array(gradient)

    def make_observer(self, bundle: Bundle, rounds_before: int) -> Observer:
        """Return a function that stores new cuts after each round."""
        names: dict[int, str] = {}  # file names of written cuts, by the numbers of the cuts in the bundle

        def observe(weights: NDArray[np.float64], objective: float, bound: float, rounds: int) -> None:
            offsets = np.asarray(bundle.offsets)
            for index, number in enumerate(bundle.numbers):
                if number not in names:
                    names[number] = self._write_cut(np.asarray(bundle.gradient(index)), float(offsets[index]))
            files = [names[number] for number in bundle.numbers]
            arrays = {"weights": weights, "masses": bundle.masses, "offsets": offsets}
            settings = {
                "identity": self.identity,
                "checksums": _CHECKSUMS,
                "cuts": files,
                "rounds": rounds_before + rounds,
                "objective": objective,
                "bound": bound,
            }
            container.write(self.folder / _STATE, _KIND, arrays, settings)
            _remove_cuts(self.folder, kept=files)

        return observe

    def _write_cut(self, gradient: NDArray[np.float64], offset: float) -> str:
        """Write a cut; return the name of its file."""
        name = _name_cut(gradient, offset)
        container.write(self.folder / name, _KIND, {"gradient": gradient}, {})
        return name


def remove_checkpoints(folder: str | os.PathLike[str], problems: int) -> None:
    """Remove checkpoints after a run that converged."""
    for problem in range(problems):
        problem_folder = _find_folder(folder, problem)
        # Remove the state first: if the process is killed afterwards, the next run ignores the other cuts.
        (problem_folder / _STATE).unlink(missing_ok=True)
        _remove_cuts(problem_folder)
        _remove_if_empty(problem_folder)
    _remove_if_empty(Path(folder))


def _remove_cuts(problem_folder: Path, kept: Collection[str] = ()) -> None:
    """Remove the cuts except `kept`; other files in the folder may belong to the user."""
    for path in problem_folder.glob("cut-*.uk"):
        if _CUT.fullmatch(path.name) and path.name not in kept:
            path.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the folder may contain other files
        folder.rmdir()


def _name_cut(gradient: NDArray[np.float64], offset: float) -> str:
    return f"cut-{hexadecimal_checksum(np.append(gradient, offset))}.uk"


@contextlib.contextmanager
def _lock(problem_folder: Path) -> Iterator[None]:
    """Lock a folder until the context or the process ends; do nothing on systems without locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(problem_folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"{problem_folder.parent}: another training uses this checkpoint; wait until it ends, or "
                "give each training its own folder"
            ) from error
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def _find_folder(folder: str | os.PathLike[str], problem: int) -> Path:
    return Path(folder) / f"problem-{problem}"


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and settings of a file of a checkpoint."""
    try:
        kind, arrays, settings = container.read(path, verify=True)
    except FormatError as error:
        reason = f"the checkpoint is damaged ({error.reason}); delete its folder to begin training anew"
        raise FormatError(error.file, error.line, error.column, reason) from error
    if kind != _KIND:
        raise FormatError(os.fspath(path), 0, 0, "the file is not a checkpoint of training")
    return arrays, settings
