"""Reading the models in ``.uk`` files."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from unkernel.errors import FormatError
from unkernel.models import container, registry
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.tree import TreeModel

Model = ConjunctionModel | KernelModel | LinearModel | TreeModel
KINDS: dict[str, type[ConjunctionModel] | type[KernelModel] | type[LinearModel] | type[TreeModel]] = {
    model.kind: model for model in (ConjunctionModel, KernelModel, LinearModel, TreeModel)
}
COMPILED = "compiled"  # a model with the tables of an engine beside it
_MODEL = "model."


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read the model in a ``.uk`` file. Its arrays stay on disk until they are used."""
    kind, arrays, settings = container.read(path)
    return model_from(os.fspath(path), kind, arrays, settings)


def model_from(name: str, kind: Any, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Model:
    """Check what the file `name` holds and make a model of it; of a compiled one, the model inside."""
    if kind == COMPILED:
        kind, arrays, settings = _inside(name, arrays, settings)
    if not isinstance(kind, str) or kind not in KINDS:
        other = registry.kind_of(name, kind)
        raise FormatError(
            name, 0, 0, f"{other.description}, and not a model of rows or trees: unkernel.load reads it"
        )
    return KINDS[kind].from_container(name, arrays, settings)


def _inside(
    name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
) -> tuple[Any, dict[str, NDArray[Any]], dict[str, Any]]:
    source = settings.get("model")
    if not isinstance(source, dict) or not isinstance(source.get("settings"), dict):
        raise FormatError(name, 0, 0, "the compiled model does not say what it was compiled from")
    own = {key.removeprefix(_MODEL): array for key, array in arrays.items() if key.startswith(_MODEL)}
    return source.get("kind"), own, source["settings"]


def model_part(model: Model) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """What a compiled file holds of its model: arrays, and the setting ``"model"``."""
    arrays, settings = model.to_container()
    named = {_MODEL + key: array for key, array in arrays.items()}
    return named, {"model": {"kind": model.kind, "settings": settings}}


def is_compiled(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a ``.uk`` file with the tables of an engine in it."""
    try:
        return container.read(path)[0] == COMPILED
    except FormatError:
        return False
