"""Read and write models in the formats of other programs; docs/formats/models.md describes the formats."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from unkernel.data import file_memory_limit
from unkernel.data.files import open_writer
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.formats import liblinear, libsvm, opal, svmlight, svmlight_tk, tinysvm
from unkernel.models.formats._text import TextLines, quote
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.model_files import load_model
from unkernel.models.tree import TreeModel

Model = KernelModel | LinearModel | ConjunctionModel | TreeModel


def _read_svmlight(text: TextLines) -> KernelModel | TreeModel:
    """Read a model of SVM-light-TK or SVMlight, depending on its version."""
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
    r"""Read a model file of LIBSVM, LIBLINEAR, SVMlight, SVM-light-TK, TinySVM, opal or unkernel.

    The first line of the file determines the format.

    Parameters
    ----------
    path : str or path-like
        A plain file or, except for ``.uk`` files, a file compressed by gzip, xz, bzip2 or Zstandard. The
        compression is detected from the content, not from the name.
    limit : int or str, default=None
        Largest amount of memory in bytes that the model may take, such as ``"8G"``. None allows 64 MB plus
        128 times the size of the file, or the value of the environment variable ``UNKERNEL_LIMIT``.

    Returns
    -------
    KernelModel, LinearModel, ConjunctionModel or TreeModel
        The model.

    Raises
    ------
    FormatError
        If the file is damaged or not a model. The message names the line and the column.
    OSError
        If the file cannot be read.

    See Also
    --------
    write_model : Write a model for another program.
    compile : Compile a model for fast inference.
    unkernel.models.from_estimator : Take the model of a fitted scikit-learn estimator.

    Examples
    --------
    >>> from pathlib import Path
    >>> from unkernel import read_model
    >>> header = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\n"
    >>> Path("libsvm.model").write_text(header + "SV\n1 1:1\n-1 2:1\n") and None
    >>> model = read_model("libsvm.model")
    >>> model
    KernelModel(2 support vectors, linear kernel, 2 classes)
    >>> model.decision.choose(model.scores([[3.0, 1.0], [0.0, 1.0]]))
    array([ 1, -1])
    """
    with file_memory_limit.limit_file(path, limit):
        return _read_model(path)


def _read_model(path: str | os.PathLike[str]) -> Model:
    with TextLines(os.fspath(path)) as text:
        begin = text.peek()
        for first, read in _READERS.items():
            if begin.startswith(first):
                return read(text)
    if begin[8:9] == b"{":  # the JSON header of a .uk file, after its length
        return load_model(path)
    if not begin:
        raise text.error("the file is empty", line=0)
    raise text.error(
        f"not a model that is known here: it begins with {quote(begin)}; LIBSVM's begin with 'svm_type', "
        "LIBLINEAR's with 'solver_type', SVMlight's and TinySVM's with their names and versions",
        line=0,
    )


def write_model(model: Model, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a model for another program.

    Numbers are written with enough digits: reading the file gives exactly the same values.

    Parameters
    ----------
    model : KernelModel, LinearModel, ConjunctionModel or TreeModel
        The model. LIBSVM's format represents kernel models with integer labels, except one-versus-rest
        models. SVMlight's format represents kernel models of the classes -1 and 1 without probabilities.
        SVM-light-TK's format represents tree models of the classes -1 and 1, if labels in trees contain no
        blanks or brackets. ``.uk`` represents any model.
    path : str or path-like
        The file to write. The suffix selects the compression: .gz, .xz, .bz2 or .zst. An existing file is
        replaced in one step, or left unchanged if writing fails.
    format : {"libsvm", "svmlight", "svmlight-tk", "uk"}, default=None
        Format of the file. None means "uk" if the path ends in ``.uk``, otherwise the format that the model
        was read from.

    Raises
    ------
    ValueError
        If the format cannot represent the model.

    See Also
    --------
    read_model : Read a model of another program.

    Examples
    --------
    Convert a classifier of scikit-learn to a model file of LIBSVM:

    >>> from sklearn.svm import SVC
    >>> from unkernel import read_model, write_model
    >>> from unkernel.models import from_estimator
    >>> svc = SVC(kernel="poly", degree=2, coef0=1).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> write_model(from_estimator(svc), "xor.model", format="libsvm")
    >>> read_model("xor.model").n_support
    4
    """
    chosen = format or _choose_format(model, path)
    if chosen == "uk":
        model.save(path)
        return
    if chosen not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(_FORMATS)}, got {chosen!r}")
    if model.decision.threshold is not None:
        raise ValueError(
            f"the format {chosen!r} has no threshold: save the model as a .uk file, or write "
            "model.with_threshold(None)"
        )
    if model.decision.link != "identity":
        raise ValueError(f"the format {chosen!r} has no link of counts: save the model as a .uk file")
    write_to = _find_writer(model, chosen)
    with open_writer(path) as write:
        write_to(write)


def _find_writer(model: Model, chosen: str) -> Callable[[Callable[[bytes], object]], None]:
    """Return the function that writes this model in the chosen format."""
    if isinstance(model, KernelModel) and chosen in _WRITERS:
        return partial(_WRITERS[chosen], model)
    if isinstance(model, TreeModel) and chosen in _TREE_WRITERS:
        return partial(_TREE_WRITERS[chosen], model)
    whose = "trees" if chosen in _TREE_WRITERS else "support vectors"
    raise ValueError(
        f"the format {chosen!r} is for models of {whose}, and this is a {type(model).__name__}; "
        "save it as a .uk file"
    )


def _choose_format(model: Model, path: str | os.PathLike[str]) -> str:
    if Path(path).suffix == ".uk":
        return "uk"
    origin = model.origin.get("format")
    if origin not in (*_WRITERS, *_TREE_WRITERS):
        raise ValueError(f"say which format to write: one of {', '.join(_FORMATS)}")
    return str(origin)
