"""`.uk` files with changes and matching digests, as an attacker would write them: `verify` accepts the files.

:class:`Parts` takes a file apart and reassembles it with matching digests. :func:`change` makes a few random
changes to its arrays and settings; :func:`change_nothing` makes changes that must have no effect.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.numbering import conjunctions_in_order
from unkernel.models import container

_TYPES = ["<f8", "<i8", "<u8", "<f4", "<i4", "<u4", "<u2", "<i2", "u1"]
_SETTINGS: list[Any] = [0, 1, 2, -1, 3, 0.0, 0.5, -0.5, 1e308, -1e308, 5e-324, 2**31 - 1, 2**31, 2**32, 2**53]
_SETTINGS += [2**63 - 1, 2**63, 2**64, 10**400, float("nan"), float("inf"), True, False, None, "", "x", "é\n"]
_SETTINGS += [
    "\ud800",
    "a" * 300,
    [],
    {},
    [0],
    [[]],
    [1, 2, 3],
    {"a": 1},
    ["a", "a"],
    [None],
    "\0",
    "∞",
    255,
    256,
]
UNUSED_COLUMN = 5  # the last column of the models of rows in the zoo
_MAX_NUMBERS = 1 << 15  # limit of a growing array


@dataclass(frozen=True)
class Parts:
    """The content of a file.

    Attributes
    ----------
    kind : str
    arrays : dict
    settings : dict
    """

    kind: str
    arrays: dict[str, NDArray[Any]]
    settings: dict[str, Any]

    @classmethod
    def from_bytes(cls, content: bytes) -> Parts:
        """Take a valid file apart."""
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        metadata = header.pop("__metadata__")
        arrays = {}
        for name, entry in header.items():
            begin, end = (8 + length + place for place in entry["data_offsets"])
            numbers = np.frombuffer(content[begin:end], container._DTYPES[entry["dtype"]])
            arrays[name] = numbers.reshape(entry["shape"])
        return cls(metadata["kind"], arrays, json.loads(metadata["settings"]))

    def content(self) -> bytes:
        """Return the file with matching digests."""
        return b"".join(container._encode("changed", self.kind, self.arrays, self.settings))

    def in_order(self, names: list[str], extra: dict[str, str]) -> bytes:
        """Return the file with its arrays in another order and with additional metadata, also signed."""
        signed_file = self.content()
        length = int.from_bytes(signed_file[:8], "little")
        header = json.loads(signed_file[8 : 8 + length])
        metadata = header["__metadata__"] | extra
        digests = json.loads(metadata["digests"])
        table: dict[str, Any] = {"__metadata__": metadata}
        offset = 0
        for name in names:
            size = self.arrays[name].nbytes
            table[name] = header[name] | {"data_offsets": [offset, offset + size]}
            offset += size
        metadata["digests"] = json.dumps({name: digests[name] for name in names})
        metadata["sha256"] = container._sha256(self.arrays[name] for name in names)
        metadata["digest"] = container._NO_DIGEST
        text = container._encode_header(table)
        digest = container.hexadecimal_checksum(text)
        text = text.replace(container._NO_DIGEST.encode(), digest.encode(), 1)
        body = b"".join(self.arrays[name].tobytes() for name in names)
        return len(text).to_bytes(8, "little") + text + body


# --- Changes of numbers -------------------------------------------------------------------------------


def _extreme(numbers: NDArray[Any], rng: Random) -> Any:
    """Return a number at an end of its type's range, near a number of the array, or near its length."""
    old = numbers[rng.randrange(len(numbers))]
    if numbers.dtype.kind == "f":
        value = rng.choice(
            [
                0.0,
                -0.0,
                1.0,
                -1.0,
                np.inf,
                -np.inf,
                np.nan,
                1e300,
                -1e300,
                5e-324,
                float(old) + 1,
                -float(old),
            ]
        )
        with np.errstate(over="ignore"):
            return numbers.dtype.type(value)
    limits = np.iinfo(numbers.dtype)
    near_values = [int(old) + 1, int(old) - 1, len(numbers), len(numbers) - 1, len(numbers) + 1, -1, -2]
    value = rng.choice(
        [limits.min, limits.max, 0, 1, 2, 255, 1 << 15, 1 << 16, 1 << 31, 1 << 32, *near_values]
    )
    return numbers.dtype.type(min(max(value, int(limits.min)), int(limits.max)))


def _set_one_extreme(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    changed = numbers.copy()
    changed[rng.randrange(len(changed))] = _extreme(numbers, rng)
    return changed


def _move_by_one(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    changed = numbers.copy()
    with np.errstate(all="ignore"):
        changed[rng.randrange(len(changed))] += numbers.dtype.type(1)
        changed[rng.randrange(len(changed))] -= numbers.dtype.type(1)
    return changed


def _flip_bit(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    changed = bytearray(numbers.tobytes())
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return np.frombuffer(bytes(changed), numbers.dtype)


def _swap_two(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    changed = numbers.copy()
    one, other = rng.randrange(len(changed)), rng.randrange(len(changed))
    changed[[one, other]] = changed[[other, one]]
    return changed


def _copy_over_range(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    """Overwrite a range with one number of the array."""
    changed = numbers.copy()
    begin = rng.randrange(len(changed))
    changed[begin : begin + rng.choice((1, 1, 2, 5, len(changed)))] = numbers[rng.randrange(len(numbers))]
    return changed


def _shift_tail(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    """Add a small number to all offsets from some position on."""
    changed = numbers.copy()
    with np.errstate(all="ignore"):
        changed[rng.randrange(len(changed)) :] += np.array(rng.choice((1, 2, 8, -1, -2)), "i8").astype(
            numbers.dtype
        )
    return changed


def _shuffle(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    return np.random.default_rng(rng.getrandbits(32)).permutation(numbers)


def _replace_by_noise(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    return np.frombuffer(rng.randbytes(numbers.nbytes), numbers.dtype)


def _lengthen(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    more = numbers[: rng.choice((1, 2, 7))] if rng.random() < 0.5 else numbers[-1:]
    return np.append(numbers, more) if len(numbers) < _MAX_NUMBERS else numbers[:-1]


def _replace_by_small(numbers: NDArray[Any], rng: Random) -> NDArray[Any]:
    return np.array(
        [rng.randrange(7) for _ in range(min(len(numbers), 64))] * (len(numbers) // 64 + 1)
    ).astype(numbers.dtype)[: len(numbers)]


_CHANGES_OF_NUMBERS = {
    "one": _set_one_extreme,
    "off by one": _move_by_one,
    "bit": _flip_bit,
    "swapped": _swap_two,
    "copied": _copy_over_range,
    "shifted": _shift_tail,
    "shuffled": _shuffle,
    "noise": _replace_by_noise,
    "small": _replace_by_small,
    "reversed": lambda numbers, rng: numbers[::-1],
    "sorted": lambda numbers, rng: np.sort(numbers),
    "zeros": lambda numbers, rng: np.zeros_like(numbers),
    "all bits": lambda numbers, rng: np.frombuffer(b"\xff" * numbers.nbytes, numbers.dtype),
    "counted": lambda numbers, rng: np.arange(len(numbers)).astype(numbers.dtype),
    "longer": _lengthen,
    "doubled": lambda numbers, rng: np.append(numbers, numbers) if len(numbers) < _MAX_NUMBERS else numbers,
    "one less": lambda numbers, rng: np.delete(numbers, rng.randrange(len(numbers))),
    "half": lambda numbers, rng: numbers[: len(numbers) // 2],
    "nothing": lambda numbers, rng: numbers[:0],
}
_FREQUENT_CHANGES = ["one", "one", "one", "off by one", "bit", "swapped", "copied", "shifted"]
_NUMBER_CHANGES = [*_CHANGES_OF_NUMBERS, *_FREQUENT_CHANGES, *_FREQUENT_CHANGES]


# --- Changes of a file --------------------------------------------------------------------------------


def _change_numbers(parts: Parts, rng: Random) -> tuple[str, Parts]:
    name = rng.choice([name for name, array in parts.arrays.items() if array.size] or [""])
    if not name:
        return _change_setting(parts, rng)
    change_name = rng.choice(_NUMBER_CHANGES)
    array = parts.arrays[name]
    changed = _CHANGES_OF_NUMBERS[change_name](array.reshape(-1), rng)
    if changed.size == array.size:
        changed = changed.reshape(array.shape)
    elif array.ndim == 2 and changed.size % array.shape[1] == 0 and rng.random() < 0.7:
        changed = changed.reshape(-1, array.shape[1])
    return f"{name} {change_name}", _with_array(parts, name, changed)


def _with_array(parts: Parts, name: str, array: NDArray[Any]) -> Parts:
    return replace(parts, arrays=parts.arrays | {name: array})


def _change_shape(parts: Parts, rng: Random) -> tuple[str, Parts]:
    if not parts.arrays:
        return _change_setting(parts, rng)
    name = rng.choice(list(parts.arrays))
    array = parts.arrays[name]
    shapes: list[tuple[int, ...]] = [(array.size,), (1, array.size), (array.size, 1), array.shape[::-1]]
    shapes += [(array.size // 2, 2)] if array.size % 2 == 0 else [(array.size, 1, 1)]
    if array.size == 0:
        shapes = [(0,), (0, 5), (3, 0), (0, 1 << 40), (1 << 40, 0)]
    elif array.size == 1:
        shapes.append(())
    shape = rng.choice(shapes)
    return f"{name} {shape}", _with_array(parts, name, array.reshape(shape))


def _change_type(parts: Parts, rng: Random) -> tuple[str, Parts]:
    if not parts.arrays:
        return _change_setting(parts, rng)
    name, dtype = rng.choice(list(parts.arrays)), np.dtype(rng.choice(_TYPES))
    array = parts.arrays[name]
    if rng.random() < 0.5:
        with np.errstate(all="ignore"):
            changed = array.astype(dtype)
    else:
        content = array.tobytes()
        changed = np.frombuffer(content[: len(content) // dtype.itemsize * dtype.itemsize], dtype)
    return f"{name} {dtype}", _with_array(parts, name, changed)


def _change_arrays(parts: Parts, rng: Random) -> tuple[str, Parts]:
    """Remove, rename, add or exchange arrays."""
    if not parts.arrays:
        return _change_setting(parts, rng)
    arrays = dict(parts.arrays)
    first, second = rng.choice(list(arrays)), rng.choice(list(arrays))
    change_name = rng.choice(("missing", "renamed", "new", "exchanged", "copied"))
    if change_name == "missing":
        del arrays[first]
    elif change_name == "renamed":
        arrays[rng.choice((first + "x", first[:-1] or "x", "", "model." + first))] = arrays.pop(first)
    elif change_name == "new":
        arrays[rng.choice(("x", "model.x", "tables.x", first + ".0"))] = np.arange(rng.randrange(4))
    elif change_name == "exchanged":
        arrays[first], arrays[second] = arrays[second], arrays[first]
    else:
        arrays[first] = arrays[second]
    return f"{first} {change_name}", replace(parts, arrays=arrays)


def _change_setting(parts: Parts, rng: Random) -> tuple[str, Parts]:
    """Replace, remove or repeat a random value in the settings."""
    settings = json.loads(json.dumps(parts.settings))
    value: Any = settings
    holder: Any = None
    key: Any = None
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, rng.choice(keys)
        value = value[key]
        if rng.random() < 0.15:
            break
    if holder is None:
        settings["x"] = rng.choice(_SETTINGS)
        return "x new", replace(parts, settings=settings)
    _change_value(holder, key, value, rng)
    return f"setting {key}", replace(parts, settings=settings)


def _change_value(holder: Any, key: Any, value: Any, rng: Random) -> None:
    drawn = rng.random()
    if drawn < 0.1:
        del holder[key]
    elif drawn < 0.2 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), value)
    elif drawn < 0.3 and isinstance(holder, list):
        holder.reverse()
    elif drawn < 0.4 and len(holder) > 1:
        other = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int) and rng.random() < 0.6:
        holder[key] = value + rng.choice((-2, -1, 1, 2, value, -value))
    elif isinstance(value, float) and rng.random() < 0.6:
        holder[key] = rng.choice((-value, value * 2, value * 1e300, value * 1e-300, value // 1))
    elif isinstance(value, str) and value and rng.random() < 0.7:
        cut = rng.randrange(len(value) + 1)
        holder[key] = (
            value[:cut] + rng.choice(("", "\n", " ", "+", "[0]", "é", "x", value)) + value[cut + 1 :]
        )
    else:
        holder[key] = rng.choice(_SETTINGS)


def _change_kind(parts: Parts, rng: Random) -> tuple[str, Parts]:
    from unkernel.models import registry

    kind = rng.choice([*registry.list_kinds(), "checkpoint", ""])
    return f"kind {kind}", replace(parts, kind=kind)


_CHANGES = [*[_change_numbers] * 12, *[_change_setting] * 6, _change_shape, _change_type, _change_arrays]
_CHANGES_OF_ALL = [*_CHANGES * 10, _change_kind]


def change(parts: Parts, rng: Random) -> tuple[str, Parts]:
    """Make one to three changes. In a file that contains other files, change mostly one of these.

    Returns
    -------
    str
        The changes in words.
    Parts
        The changed file.
    """
    inner = _inner_files(parts)
    if inner and rng.random() < 0.9:
        name = rng.choice(inner)
        description, changed = change(_open_inner(parts, name), rng)
        return f"{name}: {description}", _replace_inner(parts, name, changed)
    words = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        description, parts = rng.choice(_CHANGES_OF_ALL)(parts, rng)
        words.append(description)
    return ", ".join(words), parts


def _inner_files(parts: Parts) -> list[str]:
    sizes = parts.settings.get("sizes")
    return [name for name in sizes if name in parts.arrays] if isinstance(sizes, dict) else []


def _open_inner(parts: Parts, name: str) -> Parts:
    return Parts.from_bytes(parts.arrays[name].tobytes()[: parts.settings["sizes"][name]])


def _replace_inner(parts: Parts, name: str, inner: Parts) -> Parts:
    array, size = container.encode_nested(inner.kind, inner.arrays, inner.settings)
    settings = parts.settings | {"sizes": parts.settings["sizes"] | {name: size}}
    return replace(parts, arrays=parts.arrays | {name: array}, settings=settings)


# --- Changes that must not matter ---------------------------------------------------------------------


def change_nothing(parts: Parts, rng: Random) -> tuple[str, bytes]:
    """Write the same model differently: arrays in another order, unused metadata, no digests.

    Returns
    -------
    str
        Description of the difference.
    bytes
        The file, which must give the same answers.
    """
    change_name = rng.choice(
        ("order", "metadata", "without digests", "as it was", "padding", "origin", "weights")
    )
    if change_name == "origin":
        return change_name, replace(parts, settings=_with_other_origin(parts.settings, rng)).content()
    if change_name == "weights":
        return change_name, _with_unused_weights(parts, rng).content()
    names = sorted(parts.arrays, key=lambda name: -parts.arrays[name].dtype.itemsize)
    if change_name in ("order", "metadata"):
        if change_name == "order":  # wide numbers first, so that all arrays are aligned
            names.sort(key=lambda name: (-parts.arrays[name].dtype.itemsize, rng.random()))
        extra = {"note": "x" * rng.randrange(90)} if change_name == "metadata" else {}
        return change_name, parts.in_order(names, extra)
    if change_name == "as it was":
        return change_name, parts.content()
    return change_name, _without_digests(
        parts, padding=8 * rng.randrange(20) if change_name == "padding" else 0
    )


def _with_other_origin(settings: dict[str, Any], rng: Random) -> dict[str, Any]:
    """Change notes on the origin of models, and measured times, at all levels of the settings."""
    changed = json.loads(json.dumps(settings))
    for candidate in changed.get("candidates", []):
        candidate["microseconds"] = rng.random()
    holders = [changed]
    while holders:
        holder = holders.pop()
        holders += [value for value in holder.values() if isinstance(value, dict)]
        if isinstance(holder.get("origin"), dict):
            holder["origin"] |= {"note": "x" * rng.randrange(9)}
    return changed


def _with_unused_weights(parts: Parts, rng: Random) -> Parts:
    """Change the weights of :data:`UNUSED_COLUMN`, which no question to models of rows uses."""
    weights = parts.arrays.get("weights")
    if parts.kind == "linear" and weights is not None and len(weights) == UNUSED_COLUMN + 1:
        places = np.array([UNUSED_COLUMN])
    elif parts.kind == "conjunctions" and len(parts.arrays["columns"]) == UNUSED_COLUMN + 1:
        places = _conjunctions_with(UNUSED_COLUMN, parts)
    else:
        return parts
    changed = np.array(weights)
    changed[places] = rng.uniform(-5, 5)
    return _with_array(parts, "weights", changed)


def _conjunctions_with(column: int, parts: Parts) -> NDArray[np.intp]:
    columns, settings = parts.arrays["columns"].tolist(), parts.settings
    conjunctions = conjunctions_in_order(len(columns), settings["degree"], settings["sets"])
    rank = columns.index(column)
    return np.flatnonzero([rank in conjunctions[key] for key in parts.arrays["keys"].tolist()])


def _without_digests(parts: Parts, padding: int) -> bytes:
    """Return the file in the form of the first version, with `padding` blanks after the header."""
    signed_file = parts.content()
    length = int.from_bytes(signed_file[:8], "little")
    header = json.loads(signed_file[8 : 8 + length])
    for name in ("digest", "digests", "sha256"):
        del header["__metadata__"][name]
    text = container._encode_header(header) + b" " * padding
    return len(text).to_bytes(8, "little") + text + signed_file[8 + length :]
