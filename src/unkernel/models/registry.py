"""The kinds of ``.uk`` files and their loaders.

Each room registers its kinds of files (``unkernel._loading``). This module therefore imports none of the
rooms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unkernel._lazy import import_object
from unkernel.errors import FormatError

Loader = Callable[[str, dict[str, Any], dict[str, Any]], Any]


@dataclass(frozen=True)
class FileKind:
    """A kind of ``.uk`` files.

    Attributes
    ----------
    name : str
        Name of the kind in the metadata of files.
    description : str
        What such a file contains, for messages, such as ``"a parser of dependencies"``.
    loader : str or callable
        A function that takes the name, the arrays and the settings of a file. It may be given by name,
        ``"module:function"``, and is then imported when the first file of this kind is read.
    """

    name: str
    description: str
    loader: str | Loader

    def load(self, file: str, arrays: dict[str, Any], settings: dict[str, Any]) -> Any:
        """Return the object in the file, ready for use."""
        return self._import_loader()(file, arrays, settings)

    def _import_loader(self) -> Loader:
        if not isinstance(self.loader, str):
            return self.loader
        loader: Loader = import_object(self.loader)
        return loader


_kinds: dict[str, FileKind] = {}


def register(name: str, description: str, loader: str | Loader) -> None:
    """Register a kind of file, replacing an earlier registration of the same kind."""
    _kinds[name] = FileKind(name, description, loader)


def list_kinds() -> dict[str, FileKind]:
    """Return all kinds, by name."""
    return dict(_kinds)


def kind_of(file: str, name: Any) -> FileKind:
    """Return the registered kind `name`; raise a ``FormatError`` for `file` if there is none."""
    kind = _kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise FormatError(
            file, 0, 0, f"a model of kind {name!r}, which this unkernel does not know: upgrade unkernel"
        )
    return kind
