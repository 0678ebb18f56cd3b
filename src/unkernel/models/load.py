"""Reading ``.uk`` files."""

from __future__ import annotations

import os

from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel

KINDS: dict[str, type[ConjunctionModel] | type[KernelModel] | type[LinearModel]] = {
    model.kind: model for model in (ConjunctionModel, KernelModel, LinearModel)
}


def load_model(path: str | os.PathLike[str]) -> ConjunctionModel | KernelModel | LinearModel:
    """Read a ``.uk`` file. Its arrays stay on disk until they are used."""
    kind, arrays, settings = container.read(path)
    name = os.fspath(path)
    if kind not in KINDS:
        raise FormatError(
            name, 0, 0, f"a model of kind {kind!r}, which this unkernel does not know: upgrade unkernel"
        )
    return KINDS[kind].from_container(name, arrays, settings)
