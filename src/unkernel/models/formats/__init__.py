"""Models in the formats of other programs; docs/formats/models.md describes what is read and written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from unkernel.data.files import writing
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.formats import liblinear, libsvm, opal, svmlight, tinysvm
from unkernel.models.formats._text import TextLines, shown
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.load import load_model
from unkernel.models.tree import TreeModel

Model = KernelModel | LinearModel | ConjunctionModel | TreeModel

_READERS: dict[bytes, Callable[[TextLines], KernelModel | LinearModel]] = {
    b"svm_type": libsvm.read,
    b"kernel_type": libsvm.read,
    b"solver_type": liblinear.read,
    b"SVM-light Version": svmlight.read,
    b"TinySVM Version": tinysvm.read,
    b"opal #": opal.read,
}
_WRITERS: dict[str, Callable[[KernelModel, Callable[[bytes], object]], None]] = {
    "libsvm": libsvm.write,
    "svmlight": svmlight.write,
}


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model of LIBSVM, LIBLINEAR, SVMlight, TinySVM, opal or unkernel; its first line tells.

    Parameters
    ----------
    path : path
        Plain, or (but for ``.uk`` files) compressed by gzip, xz, bzip2 or Zstandard, whatever its name is.

    Returns
    -------
    KernelModel, LinearModel or ConjunctionModel

    Raises
    ------
    FormatError
        If the file is not such a model, or damaged; line and column are named.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> model = read_model("a9a.model")  # doctest: +SKIP
    >>> model.decision.choose(model.scores(X))  # doctest: +SKIP
    """
    with TextLines(os.fspath(path)) as text:
        begin = text.peek()
        for first, read in _READERS.items():
            if begin.startswith(first):
                return read(text)
    if begin[8:9] == b"{":  # the JSON of a .uk file's header, after its length
        return load_model(path)
    if not begin:
        raise text.error("the file is empty", line=0)
    raise text.error(
        f"not a model that is known here: it begins with {shown(begin)}. LIBSVM's begin with 'svm_type', "
        "LIBLINEAR's with 'solver_type', SVMlight's and TinySVM's with their names and versions",
        line=0,
    )


def write_model(model: Model, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a model for another program, every number so that it reads back as itself.

    Parameters
    ----------
    model : KernelModel
        For LIBSVM: any but one against the rest, with integers as labels. For SVMlight: of the classes -1
        and 1, without probabilities, its features counted from 1. For ``.uk``: any model.
    path : path
        Compressed as its suffix says (.gz, .xz, .bz2, .zst), and replaced only when all is written.
    format : {"libsvm", "svmlight", "uk"}, default=None
        None is ``"uk"`` where the path ends in that, else the format that the model was read from.

    Raises
    ------
    ValueError
        If the format cannot express the model.

    Examples
    --------
    >>> write_model(read_model("svmlight.model"), "libsvm.model", format="libsvm")  # doctest: +SKIP
    """
    chosen = format or _usual_format(model, path)
    if chosen == "uk":
        model.save(path)
        return
    if chosen not in _WRITERS:
        raise ValueError(f"format must be one of {', '.join([*_WRITERS, 'uk'])}, got {chosen!r}")
    if not isinstance(model, KernelModel):
        raise ValueError(
            f"the format {chosen!r} is for models of support vectors, and this is a {type(model).__name__}; "
            "save it as a .uk file"
        )
    with writing(path) as write:
        _WRITERS[chosen](model, write)


def _usual_format(model: Model, path: str | os.PathLike[str]) -> str:
    if Path(path).suffix == ".uk":
        return "uk"
    origin = model.origin.get("format")
    if origin not in _WRITERS:
        raise ValueError(f"say which format to write: one of {', '.join([*_WRITERS, 'uk'])}")
    return str(origin)
