"""The ``.uk`` container: a safetensors file with our own metadata.

Files contain no code. The header is checked against the size of the file before the file is mapped into
memory; a header with wrong sizes therefore allocates no memory. The model checks the values of the arrays.
The metadata contain a digest of the header and of each array (XXH64, which detects damage but not
manipulation), and the SHA-256 of all arrays. Files of earlier versions have no digests.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.data.atomic_write import replace_file
from unkernel.data.checksums import hexadecimal_checksum
from unkernel.data.files import name_of
from unkernel.errors import FormatError

MAGIC = "unkernel"
VERSION = 3
THRESHOLD, LINK = "decision_threshold", "decision_link"
OUTPUTS = "outputs"  # the decisions of several outputs
_VERSIONS = {THRESHOLD: 2, OUTPUTS: 2, LINK: 3}  # settings that readers of earlier versions would ignore
_NEEDED_VERSION = "needed_version"  # the setting of a part of a model that earlier readers do not know
_MAX_HEADER_BYTES = 1 << 24
_MAX_RANK = 3
_HEADER_ALIGNMENT = 64
_PREFIX_BYTES = 256  # this many bytes of a file suffice to recognise a model
# Whenever a file is read, its smallest arrays are compared with their digests, up to this size in total.
_MAX_LAZY_BYTES = 1 << 26
_DIGESTS = frozenset({"digest", "digests", "sha256"})  # a file has either all of them or none
_NO_DIGEST = "0" * 16  # stands in the header for its own digest while this is computed
_REMEDY = "copy or train it again"
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

Arrays = Mapping[str, NDArray[Any]]
Verify = Literal["lazy"] | bool


def write(path: str | os.PathLike[str], kind: str, arrays: Arrays, settings: Mapping[str, Any]) -> None:
    """Write a model file in one step; the same model always gives the same bytes."""
    pieces = _encode(name_of(path), kind, arrays, settings)
    with replace_file(path) as file:
        for piece in pieces:
            file.write(piece)


def encode_nested(kind: str, arrays: Arrays, settings: Mapping[str, Any]) -> tuple[NDArray[np.uint64], int]:
    """Return a file as an array padded with zeros, for embedding in another file, and its size in bytes."""
    content = b"".join(_encode(kind, kind, arrays, settings))
    return np.frombuffer(content + bytes(-len(content) % 8), np.dtype("<u8")), len(content)


def _encode(
    name: str, kind: str, arrays: Arrays, settings: Mapping[str, Any]
) -> list[bytes | memoryview[int]]:
    """Return the bytes of a file.

    Arrays are sorted by item size, largest first. Each array then begins at a multiple of its item size
    without gaps before it; safetensors does not allow gaps.
    """
    arrays = {
        name: np.ascontiguousarray(array)
        for name, array in sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    }
    metadata = {
        "format": MAGIC,
        "version": str(_find_version(settings)),
        "digest": _NO_DIGEST,
        "kind": kind,
        "settings": json.dumps(dict(settings), ensure_ascii=True),
        "digests": json.dumps({name: hexadecimal_checksum(array) for name, array in arrays.items()}),
        "sha256": _sha256(arrays.values()),
    }
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for key, array in arrays.items():
        end = offset + array.nbytes
        header[key] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = _encode_header(header)
    if len(text) > _MAX_HEADER_BYTES:
        raise ValueError(
            f"{name}: cannot be written: names and settings take {len(text):,} bytes, and a file has room "
            f"for {_MAX_HEADER_BYTES:,}; fit with fewer features that have names"
        )
    text = text.replace(_NO_DIGEST.encode(), hexadecimal_checksum(text).encode(), 1)
    return [len(text).to_bytes(8, "little") + text, *(array.data for array in arrays.values())]


def _find_version(settings: Mapping[str, Any]) -> int:
    """Return the first version whose readers know all settings."""
    parts = ("classifier", "model", "settings", "decision", "ranking", "plan")
    nested = [settings.get(name) for name in parts]
    versions = [_find_version(inner) for inner in nested if isinstance(inner, Mapping)]
    versions += [version for name, version in _VERSIONS.items() if name in settings]
    return max([2 if settings.get(_NEEDED_VERSION) == 2 else 1, *versions])


def _encode_header(header: Mapping[str, Any]) -> bytes:
    """Return the header as JSON; padding makes the arrays begin at a cache line."""
    text = json.dumps(header, ensure_ascii=True).encode()
    return text + b" " * (-(8 + len(text)) % _HEADER_ALIGNMENT)


class MappedFile(NamedTuple):
    """A file that is mapped into memory.

    Attributes
    ----------
    path : str
        The absolute path.
    digest : str
        Digest of the header. It identifies the file, because the header contains all other digests.
    """

    path: str
    digest: str


class Contents(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    kind : str
    arrays : dict
        Read-only arrays. Arrays of mapped files are read into memory when they are used.
    settings : dict
    digests : dict or None
        The digest of each array as stored in the file; None for files without digests.
    sha256 : str or None
        The SHA-256 of all arrays as stored in the file.
    file : MappedFile or None
        The mapped file. None if the file was read completely, is embedded in another file, or has no digests.
    """

    kind: str
    arrays: dict[str, NDArray[Any]]
    settings: dict[str, Any]
    digests: dict[str, str] | None
    sha256: str | None
    file: MappedFile | None = None


def read(
    path: str | os.PathLike[str], *, verify: Verify = "lazy", mmap: bool = True
) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the kind of a model file, its arrays and its settings; see :func:`open_file`."""
    return open_file(path, verify=verify, mmap=mmap)[:3]


def open_file(path: str | os.PathLike[str], *, verify: Verify = "lazy", mmap: bool = True) -> Contents:
    """Open a model file, and compare it with its digests.

    Parameters
    ----------
    path : path
    verify : "lazy" or bool, default="lazy"
        Which arrays to compare with their digests. "lazy" means the smallest arrays, up to 64 MB in total.
        True means all arrays, which are also compared with the SHA-256. False means none. The header is
        always compared. Files of earlier versions have no digests.
    mmap : bool, default=True
        Whether to map the file into memory. All processes that map a file share the memory. A mapped file
        must not be changed in place while it is in use. If False, the file is read completely and may be
        changed afterwards.
    """
    if isinstance(verify, np.bool_):
        verify = bool(verify)
    if verify != "lazy" and not isinstance(verify, bool):
        raise ValueError(f"verify must be 'lazy', True or False, got {verify!r}")
    name = name_of(path)
    with open(path, "rb") as file:  # noqa: PTH123 (any PathLike, not only Path)
        size = os.fstat(file.fileno()).st_size
        read_body = partial(_read_body, name, file, size, mmap=mmap)
        contents, digest = _decode(name, file, size, read_body)
    if verify is not False:
        _verify(name, contents, everything=verify is True)
    if mmap and digest is not None:
        contents = contents._replace(file=MappedFile(os.path.abspath(path), digest))  # noqa: PTH100 (any PathLike)
    return contents


def read_nested(
    name: str, content: NDArray[np.uint64], size: int
) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
    """Read a file of `size` bytes that was embedded in the file `name` by :func:`encode_nested`."""
    if not 0 <= content.nbytes - size < content.itemsize:
        raise _new_error(name, f"a file inside it is damaged: its size is wrong; {_REMEDY}")
    inner = content.view(np.uint8)[:size]
    begin = io.BytesIO(inner[: 8 + _MAX_HEADER_BYTES].tobytes())
    return _decode(name, begin, size, lambda start: inner[start:])[0][:3]


def _decode(
    name: str, file: IO[bytes], size: int, read_body: Callable[[int], NDArray[np.uint8]]
) -> tuple[Contents, str | None]:
    """Read a file of `size` bytes; return its contents and the digest of the header.

    `read_body` is a function that returns the bytes after the header.
    """
    header, start = _read_header(name, file.read(8), file, size)
    metadata = header.pop("__metadata__", None)
    kind, settings = _read_metadata(name, metadata)
    digests = _read_digests(name, metadata, header)
    locations = {key: _locate_array(name, key, entry, size - start) for key, entry in header.items()}
    _check_gaps(name, locations.values(), size - start)
    body = read_body(start)
    arrays = {key: _view_array(body, location) for key, location in locations.items()}
    sha256 = metadata.get("sha256") if digests is not None else None
    return Contents(kind, arrays, settings, digests, sha256), metadata.get("digest")


def _read_body(name: str, file: IO[bytes], size: int, start: int, *, mmap: bool) -> NDArray[np.uint8]:
    """Return the bytes after the header."""
    if mmap:
        return np.memmap(file, dtype=np.uint8, mode="r", shape=size)[start:]
    content = file.read()
    if len(content) != size - start:
        raise _new_error(name, f"the file was changed while it was read; {_REMEDY}")
    return np.frombuffer(content, np.uint8)


# --- Digests ------------------------------------------------------------------------------------------


def _sha256(arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _verify(name: str, contents: Contents, *, everything: bool) -> None:
    """Compare arrays with their digests: all arrays if `everything`, else only small ones."""
    if contents.digests is None:
        return
    bytes_left = sum(array.nbytes for array in contents.arrays.values()) if everything else _MAX_LAZY_BYTES
    for key, array in sorted(contents.arrays.items(), key=lambda item: item[1].nbytes):
        bytes_left -= array.nbytes
        if bytes_left < 0:
            break
        if hexadecimal_checksum(array) != contents.digests[key]:
            raise _new_error(name, f"array {key!r} is damaged: its digest does not match; {_REMEDY}")
    if everything and _sha256(contents.arrays.values()) != contents.sha256:
        raise _new_error(name, f"the SHA-256 of the arrays does not match; {_REMEDY}")


def _check_canonical(name: str, text: bytes, header: dict[str, Any], digest: Any) -> None:
    """Check that a header has exactly the bytes that `write` would make: all readers then agree on it."""
    if not isinstance(digest, str) or len(digest) != len(_NO_DIGEST):
        raise _new_error(name, f"the header is damaged: its digest is malformed; {_REMEDY}")
    if _encode_header(header) != text:
        raise _new_error(name, f"the header is damaged: unkernel does not write it like this; {_REMEDY}")
    if hexadecimal_checksum(text.replace(digest.encode(), _NO_DIGEST.encode(), 1)) != digest:
        raise _new_error(name, f"the header is damaged: its digest does not match; {_REMEDY}")


def _read_digests(name: str, metadata: Any, header: dict[str, Any]) -> dict[str, str] | None:
    """Return the digests of arrays; None for files of earlier versions."""
    if "digest" not in metadata:
        return None
    try:
        digests = json.loads(metadata["digests"])
        is_complete = isinstance(digests, dict) and list(digests) == list(header)
    except (LookupError, TypeError, ValueError, RecursionError):
        is_complete = False
    if not is_complete or not all(isinstance(digest, str) for digest in digests.values()):
        raise _new_error(name, f"the digests of the arrays are damaged; {_REMEDY}")
    return dict(digests)


def has_digests(path: str | os.PathLike[str]) -> bool | None:
    """Return whether a ``.uk`` file has digests; None for other files."""
    try:
        return open_file(path, verify=False).digests is not None
    except FormatError:
        return None


def begins_as_model(begin: bytes) -> bool:
    """Return whether a file with these first bytes is a model of unkernel, even if it is incomplete."""
    metadata = begin[8:_PREFIX_BYTES]
    return metadata.startswith(b'{"__metadata__"') and f'"{MAGIC}"'.encode() in metadata


def _new_error(name: str, reason: str) -> FormatError:
    return FormatError(name, 0, 0, reason)


def _read_header(name: str, prefix: bytes, file: Any, size: int) -> tuple[dict[str, Any], int]:
    """Return the header, and the offset at which it ends; `prefix` is its length, read from the file."""
    if len(prefix) < 8:
        raise _new_error(name, f"not a model file: it is shorter than a header; {_REMEDY}")
    length = int.from_bytes(prefix, "little")
    if length > min(_MAX_HEADER_BYTES, size - 8):
        is_cut = begins_as_model(prefix + file.read(_PREFIX_BYTES))
        raise _new_error(name, f"the model has been cut short; {_REMEDY}" if is_cut else "not a model file")
    text = file.read(length)
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError) as error:
        raise _new_error(name, "not a model file: its header is not JSON, or has a name twice") from error
    if not isinstance(header, dict):
        raise _new_error(name, "not a model file: its header is not a table")
    if length % 8:
        raise _new_error(name, "the header is not padded to a multiple of 8 bytes")
    metadata = header.get("__metadata__")
    if isinstance(metadata, dict) and not _DIGESTS.isdisjoint(metadata):
        _check_canonical(name, text, header, metadata.get("digest"))
    return header, 8 + length


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name comes twice")
    return table


def _read_metadata(name: str, metadata: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind and the settings that the metadata contain."""
    if not isinstance(metadata, dict) or metadata.get("format") != MAGIC:
        raise _new_error(name, "a safetensors file, but not one of unkernel's models")
    version = metadata.get("version")
    if not isinstance(version, str) or not version.isdecimal() or not 0 < len(version) < 9:
        raise _new_error(name, "the model has no format version")
    if int(version) > VERSION:
        raise _new_error(
            name,
            f"a model of format version {version}, and this unkernel reads up to {VERSION}: upgrade unkernel",
        )
    try:
        settings = json.loads(metadata.get("settings", ""), object_pairs_hook=_refuse_duplicates)
    except (TypeError, ValueError, RecursionError) as error:
        raise _new_error(name, "the model's settings are not JSON") from error
    if not isinstance(settings, dict):
        raise _new_error(name, "the model's settings are not a table")
    return str(metadata.get("kind")), settings


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class _ArrayLocation(NamedTuple):
    """The type and shape of an array, and its begin and end as byte offsets from the end of the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def _locate_array(name: str, key: str, entry: Any, body_bytes: int) -> _ArrayLocation:
    """Return the location of an array, after checking that it is inside the file."""
    error = _new_error(
        name, f"array {key!r} is not inside the file: it has been cut short or damaged; {_REMEDY}"
    )
    kind = entry.get("dtype") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise _new_error(name, f"array {key!r} is of a type that models do not have")
    dtype = _DTYPES[kind]
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise error
    if len(shape) > _MAX_RANK:
        raise error
    # Limit every dimension by the file size, even if another dimension is 0.
    if not all(_is_count(number) and number <= body_bytes for number in [*shape, *offsets]):
        raise error
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    begin, end = offsets
    if end - begin != size or begin % dtype.itemsize:
        raise error
    return _ArrayLocation(dtype, tuple(shape), begin, end)


def _check_gaps(name: str, locations: Iterable[_ArrayLocation], body_bytes: int) -> None:
    """Check that the arrays fill the body of the file without gaps or overlaps."""
    position = 0
    for begin, end in sorted((location.begin, location.end) for location in locations):
        if begin != position:
            raise _new_error(name, "the arrays overlap, or there is something between them")
        position = end
    if position != body_bytes:
        raise _new_error(name, "there is something after the arrays")


def _view_array(mapped: NDArray[np.uint8], location: _ArrayLocation) -> NDArray[Any]:
    if location.begin == location.end:
        return np.zeros(location.shape, location.dtype)
    return mapped[location.begin : location.end].view(location.dtype).reshape(location.shape)


def read_setting(
    name: str,
    settings: Mapping[str, Any],
    key: str,
    kind: type,
    is_valid: Callable[[Any], bool] = lambda _: True,
) -> Any:
    """Return a setting of the file `name`, after checking its type and value."""
    value = settings.get(key)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)) or not is_valid(value):
        raise _new_error(name, f"the model's setting {key!r} is missing or out of range")
    return value


def read_number(
    name: str, settings: Mapping[str, Any], key: str, is_valid: Callable[[float], bool] = lambda _: True
) -> float:
    """Return a setting that is a finite number."""
    value = settings.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise _new_error(name, f"the model's setting {key!r} is missing or not a number")
    if not is_valid(value):
        raise _new_error(name, f"the model's setting {key!r} is out of range")
    return float(value)


def read_array(name: str, arrays: Arrays, key: str, dtypes: Sequence[Any], rank: int) -> NDArray[Any]:
    """Return an array of the file `name`, after checking its type and rank."""
    array = arrays.get(key)
    if array is None or array.dtype not in dtypes or array.ndim != rank:
        raise _new_error(name, f"the model has no proper array {key!r}")
    return array


def read_finite_array(name: str, arrays: Arrays, key: str, rank: int) -> NDArray[np.float64]:
    """Return an array of float64, after checking that it has neither NaN nor infinity."""
    array = read_array(name, arrays, key, [np.dtype(np.float64)], rank)
    if not np.isfinite(array).all():
        raise _new_error(name, f"array {key!r} has a number that is not finite")
    return array
