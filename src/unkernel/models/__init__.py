"""Models: plain, portable data that learners make and engines compile."""

from __future__ import annotations

import os

from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.conjunction import ConjunctionModel

__all__ = ["ConjunctionModel", "load_model"]


def load_model(path: str | os.PathLike[str]) -> ConjunctionModel:
    """Read a ``.uk`` file. Its arrays stay on disk until they are used."""
    kind, arrays, settings = container.read(path)
    if kind != ConjunctionModel.kind:
        raise FormatError(
            os.fspath(path),
            0,
            0,
            f"a model of kind {kind!r}, which this unkernel does not know: upgrade unkernel",
        )
    return ConjunctionModel.from_container(os.fspath(path), arrays, settings)
