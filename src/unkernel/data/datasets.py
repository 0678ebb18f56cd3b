"""Find the data sets of the tests and benchmarks in a folder, and check them against checksums.

This module does not use the network. :func:`describe` returns the public address of a data set. The
environment variable ``UNKERNEL_DATA`` names the folder of the files. The default is ``../shared/data`` next
to the project.
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
    """A file of a data set and its checksum.

    Attributes
    ----------
    file : str
        Path relative to the data folder.
    sha256 : str
        SHA-256 checksum of the file.

    See Also
    --------
    Dataset : The data set that the file belongs to.

    Examples
    --------
    >>> from unkernel import datasets
    >>> datasets.describe("a9a").parts["train"].file
    'classification/a9a.svm.xz'
    """

    file: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """Description of a data set: its content, its publication and its files.

    Attributes
    ----------
    name : str
        Name of the data set.
    format : str
        Format of its files, such as "svmlight".
    description : str
        Content of the data set.
    address : str
        Web address of the original data set.
    parts : dict of str to DatasetFile
        The files, by part: "train", "dev" or "test".
    n_features : int or None, default=None
        Number of features, for data sets in the svmlight format.

    See Also
    --------
    describe : Look up a data set.

    Examples
    --------
    >>> from unkernel import datasets
    >>> datasets.describe("a9a").n_features
    123
    """

    name: str
    format: str
    description: str
    address: str
    parts: dict[str, DatasetFile]
    n_features: int | None = None


def names(format: str | None = None) -> list[str]:
    """List the names of the known data sets.

    Parameters
    ----------
    format : str, default=None
        Format of the data sets to list, such as ``"svmlight"``; None lists all data sets.

    Returns
    -------
    list of str
        The names.

    See Also
    --------
    describe : Describe a data set.

    Examples
    --------
    >>> from unkernel import datasets
    >>> "a9a" in datasets.names("svmlight")
    True
    """
    return [name for name, dataset in _read_catalogue().items() if format in (None, dataset.format)]


def describe(name: str) -> Dataset:
    """Describe a data set.

    Parameters
    ----------
    name : str
        Name of the data set.

    Returns
    -------
    Dataset
        The description.

    Raises
    ------
    ValueError
        If there is no such data set. The message lists all data sets.

    See Also
    --------
    names : List all data sets.

    Examples
    --------
    >>> from unkernel import datasets
    >>> datasets.describe("a9a").format
    'svmlight'
    """
    try:
        return _read_catalogue()[name]
    except KeyError:
        raise ValueError(f"no data set is called {name!r}; there are {', '.join(names())}") from None


def folder() -> Path | None:
    """Find the folder that contains the data sets.

    Returns
    -------
    Path or None
        The folder named by the environment variable ``UNKERNEL_DATA`` or, if it is not set, the folder
        ``../shared/data`` next to the project; None if there is no such folder.

    See Also
    --------
    path : Find a file of a data set.

    Examples
    --------
    >>> import os
    >>> from unkernel import datasets
    >>> os.environ["UNKERNEL_DATA"] = "my-data"
    >>> datasets.folder().name
    'my-data'
    >>> del os.environ["UNKERNEL_DATA"]
    """
    configured = os.environ.get(_VARIABLE)
    if configured:
        return Path(configured)
    candidates = (Path("../shared/data"), *(root / "../shared/data" for root in _find_project_root()))
    return next((path for path in candidates if path.is_dir()), None)


def path(name: str, part: str = "train") -> Path:
    """Find a file of a data set.

    Parameters
    ----------
    name : str
        Name of the data set.
    part : str, default="train"
        The part: "train", "dev" or "test".

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileNotFoundError
        If the file is missing. The message describes how to get it.

    See Also
    --------
    load : Read the file.

    Examples
    --------
    >>> from unkernel import datasets
    >>> datasets.path("a9a", "test")  # doctest: +SKIP
    PosixPath('my-data/classification/a9a.t.svm.xz')
    """
    dataset = describe(name)
    file = _find_part(dataset, part).file
    base = folder()
    if base is not None and (base / file).is_file():
        return base / file
    reason = f"is not in {base}" if base is not None else "cannot be found, as there is no data folder"
    raise FileNotFoundError(
        f"{file} {reason}: set {_VARIABLE} to the folder that has it; "
        f"the original ({dataset.description}) is at {dataset.address}"
    )


def load(name: str, part: str = "train", *, n_jobs: int | None = None) -> SvmlightData:
    """Read a part of a data set in the svmlight format.

    All parts of a data set have the same columns.

    Parameters
    ----------
    name : str
        Name of the data set.
    part : str, default="train"
        The part: "train", "dev" or "test".
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors.

    Returns
    -------
    SvmlightData
        The rows and labels.

    See Also
    --------
    unkernel.read_svmlight : Read a file of your own.

    Examples
    --------
    >>> from unkernel import datasets
    >>> X, y = datasets.load("a9a")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (32561, 123)
    """
    dataset = describe(name)
    if dataset.format != "svmlight":
        raise ValueError(f"{name} is in the format {dataset.format!r}, not svmlight; use path({name!r})")
    return read_svmlight(path(name, part), n_features=dataset.n_features, zero_based=False, n_jobs=n_jobs)


def verify(name: str) -> None:
    """Check the files of a data set against their checksums.

    Parameters
    ----------
    name : str
        Name of the data set.

    Raises
    ------
    ValueError
        If a file differs from its checksum. The message names the file.

    See Also
    --------
    path : Find a file of a data set.

    Examples
    --------
    >>> from unkernel import datasets
    >>> datasets.verify("a9a")  # doctest: +SKIP
    """
    for part, expected in describe(name).parts.items():
        with path(name, part).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected.sha256:
            raise ValueError(f"{expected.file} has the sha256 {actual}, not {expected.sha256}; get it again")


def _find_part(dataset: Dataset, part: str) -> DatasetFile:
    try:
        return dataset.parts[part]
    except KeyError:
        raise ValueError(f"{dataset.name} has no part {part!r}; it has {', '.join(dataset.parts)}") from None


def _find_project_root() -> list[Path]:
    """Return the folder of the project if the package runs from its sources, else an empty list."""
    root = Path(__file__).resolve().parents[3]
    return [root] if (root / "pyproject.toml").is_file() else []


@cache
def _read_catalogue() -> dict[str, Dataset]:
    text = resources.files("unkernel.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: _make_dataset(name, entry) for name, entry in tomllib.loads(text).items()}


def _make_dataset(name: str, entry: dict[str, Any]) -> Dataset:
    parts = {part: DatasetFile(**entry.pop(part)) for part in _PARTS if part in entry}
    return Dataset(name=name, parts=parts, **entry)
