"""Read the models in ``.uk`` files."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from unkernel.data import file_memory_limit
from unkernel.data.files import name_of
from unkernel.errors import FormatError
from unkernel.models import container, registry

if TYPE_CHECKING:
    from unkernel.models.conjunction import ConjunctionModel
    from unkernel.models.kernel import KernelModel
    from unkernel.models.linear import LinearModel
    from unkernel.models.tree import TreeModel

    Model: TypeAlias = ConjunctionModel | KernelModel | LinearModel | TreeModel

# The module and class of each kind of model. They are imported when such a model is read.
KINDS = {
    "conjunctions": ("unkernel.models.conjunction", "ConjunctionModel"),
    "kernel": ("unkernel.models.kernel", "KernelModel"),
    "linear": ("unkernel.models.linear", "LinearModel"),
    "tree": ("unkernel.models.tree", "TreeModel"),
}
COMPILED = "compiled"  # a model with the tables of an engine
_MODEL = "model."  # in compiled files, the names of the model's arrays begin with this prefix


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read the model in a ``.uk`` file as plain data.

    Arrays stay on disk until they are used. For a compiled classifier, the result is the model inside it.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    ConjunctionModel, KernelModel, LinearModel or TreeModel
        The model.

    Raises
    ------
    FormatError
        If the file is damaged, or contains something other than a model of rows or trees.

    See Also
    --------
    unkernel.load : Read a file of any kind, ready for predictions.
    unkernel.read_model : Read a model of another program.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> from unkernel.models import load_model
    >>> PolySVC(gamma=1).fit([[0, 1], [1, 0]], [0, 1]).save("model.uk")
    >>> load_model("model.uk")
    ConjunctionModel(2 conjunctions of degree 2, 2 classes)
    """
    with file_memory_limit.limit_file(path):
        kind, arrays, settings = container.read(path)
        return model_from(name_of(path), kind, arrays, settings)


def model_from(name: str, kind: Any, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Model:
    """Return the model in the content of the file `name`; of a compiled classifier, the model inside it."""
    if kind == COMPILED:
        kind, arrays, settings = _read_inner_model(name, arrays, settings)
    if not isinstance(kind, str) or kind not in KINDS:
        other = registry.kind_of(name, kind)
        raise FormatError(
            name, 0, 0, f"{other.description}, and not a model of rows or trees: unkernel.load reads it"
        )
    module, class_name = KINDS[kind]
    model: Model = getattr(importlib.import_module(module), class_name).from_container(name, arrays, settings)
    return model


def _read_inner_model(
    name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
) -> tuple[Any, dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the kind, the arrays and the settings of the model inside a compiled classifier."""
    source = settings.get("model")
    if not isinstance(source, dict) or not isinstance(source.get("settings"), dict):
        raise FormatError(name, 0, 0, "the compiled model does not say what it was compiled from")
    model_arrays = {
        key.removeprefix(_MODEL): array for key, array in arrays.items() if key.startswith(_MODEL)
    }
    return source.get("kind"), model_arrays, source["settings"]


def model_part(model: Model) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the model as stored in compiled files: arrays with prefixed names, and the setting "model"."""
    arrays, settings = model.to_container()
    named = {_MODEL + key: array for key, array in arrays.items()}
    return named, {"model": {"kind": model.kind, "settings": settings}}


def is_compiled(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a ``.uk`` file with the tables of an engine."""
    try:
        return container.read(path)[0] == COMPILED
    except FormatError:
        return False
