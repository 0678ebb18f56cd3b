"""Models in the formats of other programs; docs/formats/models.md describes what is read and written."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from unkernel.data import allowance
from unkernel.data.files import writing
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.formats import liblinear, libsvm, opal, svmlight, svmlight_tk, tinysvm
from unkernel.models.formats._text import TextLines, shown
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.load import load_model
from unkernel.models.tree import TreeModel

Model = KernelModel | LinearModel | ConjunctionModel | TreeModel


def _read_svmlight(text: TextLines) -> KernelModel | TreeModel:
    """The version tells SVM-light-TK's models from SVMlight's."""
    first = text.peek().partition(b"\n")[0]
    return svmlight_tk.read(text) if b"TK" in first else svmlight.read(text)


_READERS: dict[bytes, Callable[[TextLines], KernelModel | LinearModel | TreeModel]] = {
    b"svm_type": libsvm.read,
    b"kernel_type": libsvm.read,
    b"solver_type": liblinear.read,
    svmlight.FIRST_LINE.strip(): _read_svmlight,
    b"TinySVM Version": tinysvm.read,
    b"opal #": opal.read,
}
_WRITERS: dict[str, Callable[[KernelModel, Callable[[bytes], object]], None]] = {
    "libsvm": libsvm.write,
    "svmlight": svmlight.write,
}
_TREE_WRITERS: dict[str, Callable[[TreeModel, Callable[[bytes], object]], None]] = {
    "svmlight-tk": svmlight_tk.write,
}
_FORMATS = (*_WRITERS, *_TREE_WRITERS, "uk")


def read_model(path: str | os.PathLike[str], *, limit: float | str | None = None) -> Model:
    """Read a model of LIBSVM, LIBLINEAR, SVMlight, SVM-light-TK, TinySVM, opal or unkernel.

    The first line tells which.

    Parameters
    ----------
    path : path
        Plain, or (but for ``.uk`` files) compressed by gzip, xz, bzip2 or Zstandard, whatever its name is.
    limit : int or str, default=None
        Bytes of memory that may be taken, such as ``"8G"``. None allows 64 MB and 128 times the file's size,
        or what the environment variable ``UNKERNEL_LIMIT`` says.

    Returns
    -------
    KernelModel, LinearModel, ConjunctionModel or TreeModel

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
    with allowance.reading(path, limit):
        return _read_model(path)


def _read_model(path: str | os.PathLike[str]) -> Model:
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
    model : KernelModel, or TreeModel
        For LIBSVM: any but one against the rest, with integers as labels. For SVMlight: of the classes -1
        and 1, without probabilities, its features counted from 1. For SVM-light-TK: models of trees, of the
        classes -1 and 1, no label of a tree with blanks or brackets in it. For ``.uk``: any model.
    path : path
        Compressed as its suffix says (.gz, .xz, .bz2, .zst), and replaced only when all is written.
    format : {"libsvm", "svmlight", "svmlight-tk", "uk"}, default=None
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
    if chosen not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(_FORMATS)}, got {chosen!r}")
    write_to = _writer(model, chosen)
    with writing(path) as write:
        write_to(write)


def _writer(model: Model, chosen: str) -> Callable[[Callable[[bytes], object]], None]:
    if isinstance(model, KernelModel) and chosen in _WRITERS:
        return partial(_WRITERS[chosen], model)
    if isinstance(model, TreeModel) and chosen in _TREE_WRITERS:
        return partial(_TREE_WRITERS[chosen], model)
    whose = "trees" if chosen in _TREE_WRITERS else "support vectors"
    raise ValueError(
        f"the format {chosen!r} is for models of {whose}, and this is a {type(model).__name__}; "
        "save it as a .uk file"
    )


def _usual_format(model: Model, path: str | os.PathLike[str]) -> str:
    if Path(path).suffix == ".uk":
        return "uk"
    origin = model.origin.get("format")
    if origin not in (*_WRITERS, *_TREE_WRITERS):
        raise ValueError(f"say which format to write: one of {', '.join(_FORMATS)}")
    return str(origin)
