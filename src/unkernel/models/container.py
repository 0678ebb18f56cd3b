"""The ``.uk`` container: a safetensors file with our own metadata.

There is no code in such a file. It is read by mapping it into memory, after its header has been
checked against the file's size; nothing is allocated that the header only claims. What the arrays
mean is checked by the model that is made of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from unkernel.errors import FormatError

MAGIC = "unkernel"
VERSION = 1
_LARGEST_HEADER = 1 << 24
_DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "U64": np.dtype("<u8")}

Arrays = Mapping[str, NDArray[Any]]


def write(path: str | os.PathLike[str], kind: str, arrays: Arrays, settings: Mapping[str, Any]) -> None:
    """Write a model file whole or not at all: beside its place first, then into it."""
    target = Path(path)
    metadata = {
        "format": MAGIC,
        "version": str(VERSION),
        "kind": kind,
        "settings": json.dumps(dict(settings), ensure_ascii=True),
    }
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent or None)
    os.close(handle)
    try:
        save_file({key: np.ascontiguousarray(value) for key, value in arrays.items()}, name, metadata)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except SafetensorError as error:
        raise OSError(f"{target}: cannot write the model: {error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
    """Map a model file: its kind, its arrays (read-only, not yet in memory) and its settings."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, start = _read_header(name, file.read(8), file, size)
    metadata = header.pop("__metadata__", None)
    kind, settings = _read_metadata(name, metadata)
    arrays = {}
    for key, entry in header.items():
        dtype, shape, offset = _place(name, key, entry, size - start)
        arrays[key] = _map(path, dtype, shape, start + offset)
    return kind, arrays, settings


def _refuse(name: str, reason: str) -> FormatError:
    return FormatError(name, 0, 0, reason)


def _read_header(name: str, prefix: bytes, file: Any, size: int) -> tuple[dict[str, Any], int]:
    if len(prefix) < 8:
        raise _refuse(name, "not a model file: it is shorter than a header")
    length = int.from_bytes(prefix, "little")
    if length > min(_LARGEST_HEADER, size - 8):
        raise _refuse(name, "not a model file, or one that has been cut short")
    try:
        header = json.loads(file.read(length).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _refuse(name, "not a model file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise _refuse(name, "not a model file: its header is not a table")
    return header, 8 + length


def _read_metadata(name: str, metadata: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(metadata, dict) or metadata.get("format") != MAGIC:
        raise _refuse(name, "a safetensors file, but not one of unkernel's models")
    version = metadata.get("version")
    if not isinstance(version, str) or not version.isdecimal() or not 0 < len(version) < 9:
        raise _refuse(name, "the model has no format version")
    if int(version) > VERSION:
        raise _refuse(
            name,
            f"a model of format version {version}, and this unkernel reads up to {VERSION}: upgrade unkernel",
        )
    try:
        settings = json.loads(metadata.get("settings", ""))
    except (TypeError, ValueError, RecursionError) as error:
        raise _refuse(name, "the model's settings are not JSON") from error
    if not isinstance(settings, dict):
        raise _refuse(name, "the model's settings are not a table")
    return str(metadata.get("kind")), settings


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _place(name: str, key: str, entry: Any, room: int) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Where an array lies, after the header, and what it is; refused unless it lies inside the file."""
    problem = _refuse(name, f"array {key!r} does not lie inside the file: it has been cut short or damaged")
    if not isinstance(entry, dict) or entry.get("dtype") not in _DTYPES:
        raise _refuse(name, f"array {key!r} is of a type that models do not have")
    dtype = _DTYPES[entry["dtype"]]
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2 or len(shape) > 2:
        raise problem
    if not all(_is_count(number) for number in [*shape, *offsets]):
        raise problem
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    begin, end = offsets
    if end > room or end - begin != size or begin % dtype.itemsize:
        raise problem
    return dtype, tuple(shape), begin


def _map(
    path: str | os.PathLike[str], dtype: np.dtype[Any], shape: tuple[int, ...], offset: int
) -> NDArray[Any]:
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)
