"""The data sets that tests and benchmarks measure on: where they are, and what they should be.

Nothing here reaches for the network. A reader who has one finds the public address in
:func:`describe`; those who have the files set the environment variable ``UNKERNEL_DATA`` to their
folder. Without it, the folder ``../shared/data`` beside the project is looked at.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from unkernel.data.rows.svmlight import SvmlightData, read_svmlight

_VARIABLE = "UNKERNEL_DATA"
_PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class DatasetFile:
    """A file, relative to the data folder, and its sum."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A data set: what it is, where the original is published, and the files of its parts."""

    name: str
    format: str
    description: str
    address: str
    parts: dict[str, DatasetFile]
    n_features: int | None = None


def names(format: str | None = None) -> list[str]:
    """The names of all data sets, or of those in one format, such as ``"svmlight"``."""
    return [name for name, dataset in _catalogue().items() if format in (None, dataset.format)]


def describe(name: str) -> Dataset:
    """What is known about a data set."""
    try:
        return _catalogue()[name]
    except KeyError:
        raise ValueError(f"no data set is called {name!r}; there are {', '.join(names())}") from None


def folder() -> Path | None:
    """The folder with the data, or None where there is none."""
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    beside = (Path("../shared/data"), *(root / "../shared/data" for root in _project_root()))
    return next((path for path in beside if path.is_dir()), None)


def path(name: str, part: str = "train") -> Path:
    """Where a part of a data set is; FileNotFoundError says how to come by it."""
    dataset = describe(name)
    file = _part(dataset, part).file
    base = folder()
    if base is not None and (base / file).is_file():
        return base / file
    where = f"is not in {base}" if base is not None else "cannot be found, as there is no data folder"
    raise FileNotFoundError(
        f"{file} {where}: set {_VARIABLE} to the folder that has it; "
        f"the original ({dataset.description}) is at {dataset.address}"
    )


def load(name: str, part: str = "train", *, n_jobs: int | None = None) -> SvmlightData:
    """Read a part of a data set in the svmlight format; all its parts get the same columns."""
    dataset = describe(name)
    if dataset.format != "svmlight":
        raise ValueError(f"{name} is in the format {dataset.format!r}, not svmlight; use path({name!r})")
    return read_svmlight(path(name, part), n_features=dataset.n_features, zero_based=False, n_jobs=n_jobs)


def verify(name: str) -> None:
    """Compare the files of a data set with their sums; ValueError names the one that differs."""
    for part, expected in describe(name).parts.items():
        with path(name, part).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected.sha256:
            raise ValueError(f"{expected.file} has the sha256 {found}, not {expected.sha256}; get it anew")


def _part(dataset: Dataset, part: str) -> DatasetFile:
    try:
        return dataset.parts[part]
    except KeyError:
        raise ValueError(f"{dataset.name} has no part {part!r}; it has {', '.join(dataset.parts)}") from None


def _project_root() -> list[Path]:
    """The folder of the project where the package runs from its sources, else nothing."""
    root = Path(__file__).resolve().parents[3]
    return [root] if (root / "pyproject.toml").is_file() else []


@cache
def _catalogue() -> dict[str, Dataset]:
    text = resources.files("unkernel.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: _dataset(name, entry) for name, entry in tomllib.loads(text).items()}


def _dataset(name: str, entry: dict[str, Any]) -> Dataset:
    parts = {part: DatasetFile(**entry.pop(part)) for part in _PARTS if part in entry}
    return Dataset(name=name, parts=parts, **entry)
