"""What a run of cutting planes has found so far, in a folder: a killed run goes on from there.

A file holds one cut, written when the cut is new; a small file beside them says which cuts count, and has the
best weights. So a round writes two weight vectors, however many cuts there are, and each file is whole or not
there at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Bundle
from unkernel.errors import FormatError
from unkernel.models import container

_KIND = "checkpoint"
_STATE = "state.uk"
_CHECKSUMS = "xxh64"  # of rows and labels in identities; earlier versions had others, and named none

Observer = Callable[[NDArray[np.float64], float, float, int], None]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The cuts of one problem.

    Attributes
    ----------
    folder : Path
    identity : dict
        What the cuts belong to: rows, labels, loss. Others are refused.
    """

    folder: Path
    identity: dict[str, Any]
    _written: set[str] = field(default_factory=set)

    @staticmethod
    def open(
        folder: str | os.PathLike[str] | None, problem: int, identity: dict[str, Any]
    ) -> Checkpoint | None:
        """The checkpoint of a problem; None where none is wanted."""
        if folder is None:
            return None
        place = _place(folder, problem)
        place.mkdir(parents=True, exist_ok=True)
        return Checkpoint(place, json.loads(json.dumps(identity)))

    def restore(self, bundle: Bundle) -> tuple[NDArray[np.float64], int] | None:
        """Fill the bundle; the best weights and the rounds so far, or None where nothing was stored.

        Raises
        ------
        ValueError
            If what is stored belongs to other rows, labels or losses, or was written by an earlier version.
        FormatError
            If it is damaged.
        """
        path = self.folder / _STATE
        if not path.exists():
            return None
        arrays, settings = _read(path)
        if settings.get("checksums") != _CHECKSUMS:
            raise ValueError(
                f"{self.folder}: the checkpoint is of an earlier version of unkernel, which this one cannot "
                "compare with the rows; delete the folder, or give another one"
            )
        if settings.get("identity") != self.identity:
            raise ValueError(
                f"{self.folder}: the checkpoint is of other rows, labels or another loss; delete the folder, "
                "or give another one"
            )
        name = os.fspath(path)
        weights = container.finite_array(name, arrays, "weights", 1)
        masses = container.finite_array(name, arrays, "masses", 1)
        offsets = container.finite_array(name, arrays, "offsets", 1)
        files = container.setting(name, settings, "cuts", list, lambda v: len(v) == len(masses))
        rounds = container.setting(name, settings, "rounds", int, lambda v: 0 <= v < 1 << 62)
        if len(weights) != bundle.dimension or len(offsets) != len(masses) or (masses < 0).any():
            raise FormatError(name, 0, 0, "the checkpoint is damaged; delete its folder")
        for file, offset in zip(files, offsets.tolist(), strict=True):
            bundle.add(self._gradient(str(file), bundle.dimension), offset)
        if len(bundle) == len(masses):  # else fewer cuts are kept now, and the masses are found anew
            bundle.set_masses(np.array(masses))
        return np.array(weights), rounds

    def _gradient(self, file: str, dimension: int) -> NDArray[np.float64]:
        path = self.folder / Path(file).name
        if not path.is_file():
            raise FormatError(os.fspath(path), 0, 0, "the cut is missing; delete the checkpoint's folder")
        arrays, _ = _read(path)
        gradient = container.finite_array(os.fspath(path), arrays, "gradient", 1)
        if len(gradient) != dimension:
            raise FormatError(os.fspath(path), 0, 0, "the cut is of another problem; delete the folder")
        return np.array(gradient)

    def observer(self, bundle: Bundle, rounds_before: int) -> Observer:
        """A function that stores what is new after each round."""
        # Numbers begin anew in every run, names must not: old cuts are still there until the state is new.
        run = f"{rounds_before}"

        def observe(weights: NDArray[np.float64], objective: float, bound: float, rounds: int) -> None:
            files = [f"cut-{run}-{number}.uk" for number in bundle.numbers]
            for place, file in enumerate(files):
                if file not in self._written:
                    container.write(self.folder / file, _KIND, {"gradient": bundle.gradient(place)}, {})
                    self._written.add(file)
            arrays = {"weights": weights, "masses": bundle.masses, "offsets": bundle.offsets}
            settings = {
                "identity": self.identity,
                "checksums": _CHECKSUMS,
                "cuts": files,
                "rounds": rounds_before + rounds,
                "objective": objective,
                "bound": bound,
            }
            container.write(self.folder / _STATE, _KIND, arrays, settings)
            self._forget_all_but(files)

        return observe

    def _forget_all_but(self, files: list[str]) -> None:
        kept = {*files, _STATE}
        for path in self.folder.glob("cut-*.uk"):
            if path.name not in kept:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
        self._written.intersection_update(kept)


def remove_checkpoints(folder: str | os.PathLike[str], problems: int) -> None:
    """The run has ended well: what was kept for another one is of no use any more."""
    for problem in range(problems):
        # The state first: without it, cuts that a killed process leaves are not missed by the next run.
        (_place(folder, problem) / _STATE).unlink(missing_ok=True)
        shutil.rmtree(_place(folder, problem), ignore_errors=True)
    with contextlib.suppress(OSError):  # something else may be in it
        Path(folder).rmdir()


def _place(folder: str | os.PathLike[str], problem: int) -> Path:
    return Path(folder) / f"problem-{problem}"


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    kind, arrays, settings = container.read(path, verify=True)
    if kind != _KIND:
        raise FormatError(os.fspath(path), 0, 0, "this is no checkpoint of a training")
    return arrays, settings
