"""Damage compiled files in many ways, load them and predict: a separate program, because it may crash.

``python damage.py FOLDER SEED COUNT FILE...`` damages each FILE COUNT times. It prints, as JSON, the numbers
of refused and of loaded copies of each file. FOLDER/trying describes the current trial, and
FOLDER/damaged.uk is its file. An exception other than ValueError or a crash ends the program. Programs for
other kinds of files call :func:`main` with their own :class:`DamagePlan`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import unkernel

TYPES = {
    "F64": "<f8",
    "I64": "<i8",
    "U64": "<u8",
    "F32": "<f4",
    "I32": "<i4",
    "U32": "<u4",
    "U16": "<u2",
    "I16": "<i2",
    "U8": "u1",
}


def split_file(content):
    """Return the header as a dict, without digests, and a dict of the bytes of each array."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for digest in ("digest", "digests", "sha256"):
        header["__metadata__"].pop(digest, None)
    body = content[8 + length :]
    places = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return header, {name: body[begin:end] for name, (begin, end) in places.items()}


def join_file(header, arrays):
    """Return a file of this header and these arrays. Offsets are recomputed, and shapes that do not fit."""
    table = {"__metadata__": header["__metadata__"]}
    offset = 0
    for name, array in arrays.items():
        entry = dict(header[name])
        size = np.dtype(TYPES[entry["dtype"]]).itemsize
        if int(np.prod(entry["shape"])) * size != len(array):
            entry["shape"] = [len(array) // size]
        table[name] = entry | {"data_offsets": [offset, offset + len(array)]}
        offset += len(array)
    text = json.dumps(table).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text + b"".join(arrays.values())


def remove_digests(content):
    """Return the file in the form of earlier versions, which had no digests that reveal damage."""
    return join_file(*split_file(content))


def read_settings(header):
    return json.loads(header["__metadata__"]["settings"])


def replace_settings(header, settings):
    return header | {"__metadata__": header["__metadata__"] | {"settings": json.dumps(settings)}}


def rewrite(path, change):
    """Let `change` alter the settings and the arrays of a file."""
    header, arrays = split_file(path.read_bytes())
    settings = read_settings(header)
    change(settings, arrays)
    path.unlink()  # the old file may still be memory-mapped
    path.write_bytes(join_file(replace_settings(header, settings), arrays))


def flip_a_byte(content, rng):
    position = int(rng.integers(len(content)))
    changed = bytearray(content)
    changed[position] = int(rng.integers(256))
    return f"byte {position}", bytes(changed)


def flip_a_byte_of_an_array(content, rng):
    header, arrays = split_file(content)
    name = str(rng.choice([name for name, array in arrays.items() if array]))
    description, arrays[name] = flip_a_byte(arrays[name], rng)
    return f"{name}: {description}", join_file(header, arrays)


def reorder(numbers, rng):
    return rng.permutation(numbers)


def small_numbers(numbers, rng):
    return rng.integers(0, 50, len(numbers)).astype(numbers.dtype)


def increase_tail(numbers, rng):
    changed = numbers.copy()
    changed[rng.integers(len(numbers)) :] += numbers.dtype.type(rng.integers(1, 9))
    return changed


def _largest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def one_large_number(numbers, rng):
    changed = numbers.copy()
    changed[rng.integers(len(numbers))] = min(rng.choice([2**16 - 1, 2**15, 1000]), _largest(numbers.dtype))
    return changed


CHANGES = {
    "zeros": lambda numbers, rng: numbers * 0,
    "all bits": lambda numbers, rng: np.frombuffer(b"\xff" * numbers.nbytes, numbers.dtype),
    "noise": lambda numbers, rng: np.frombuffer(rng.bytes(numbers.nbytes), numbers.dtype),
    "reversed": lambda numbers, rng: numbers[::-1],
    "shuffled": reorder,
    "small numbers": small_numbers,
    "larger": increase_tail,
    "one enormous": one_large_number,
    "one less": lambda numbers, rng: numbers[:-1],
    "one more": lambda numbers, rng: np.append(numbers, numbers[-1]),
    "doubled": lambda numbers, rng: np.append(numbers, numbers),
    "nothing": lambda numbers, rng: numbers[:0],
    "begins at once": lambda numbers, rng: np.append(numbers[:1], [numbers[-1]] * (len(numbers) - 1)),
}


def change_an_array(content, rng):
    header, arrays = split_file(content)
    name = str(rng.choice([name for name, array in arrays.items() if array]))
    change = str(rng.choice(list(CHANGES)))
    numbers = np.frombuffer(arrays[name], TYPES[header[name]["dtype"]])
    arrays[name] = CHANGES[change](numbers, rng).astype(numbers.dtype).tobytes()
    return f"{name}: {change}", join_file(header, arrays)


def change_a_number(content, rng):
    """Change a number in the settings of tables, such as the begin of a zone or the degree."""
    header, arrays = split_file(content)
    settings = read_settings(header)
    tables = settings["tables"]
    table = tables["numbers"] if tables["numbers"] and rng.random() < 0.6 else tables["parameters"]
    name = str(rng.choice(list(table)))
    if isinstance(table[name], bool):
        table[name] = not table[name]
    elif isinstance(table[name], int):
        table[name] = int(
            rng.choice([0, 1, 2, 3, 4, 5, table[name] + 1, table[name] - 1, 11, 12, 40, 2**32 - 1])
        )
    return f"{name}: {table[name]}", join_file(replace_settings(header, settings), arrays)


def change_several(content, rng):
    """Change several numbers or arrays, which may be consistent with each other."""
    descriptions = []
    for _ in range(rng.integers(2, 4)):
        description, content = rng.choice([change_a_number, change_an_array])(content, rng)
        descriptions.append(description)
    return ", ".join(descriptions), content


def retype_an_array(content, rng):
    header, arrays = split_file(content)
    name = str(rng.choice(list(arrays)))
    header[name] = header[name] | {"dtype": str(rng.choice(list(TYPES)))}
    size = np.dtype(TYPES[header[name]["dtype"]]).itemsize
    arrays[name] = arrays[name][: len(arrays[name]) // 8 * 8 or size * 0]
    return f"{name}: {header[name]['dtype']}", join_file(header, arrays)


CHANGES_OF_FILES = [
    flip_a_byte,
    flip_a_byte_of_an_array,
    change_an_array,
    change_a_number,
    change_several,
    retype_an_array,
]


def make_use_of_classifier(rng):
    """Return a function that calls all methods of a classifier, which may raise ValueError."""
    ones = (rng.random((6, 12)) < 0.6).astype(float)
    rows = [ones, ones * rng.normal(size=ones.shape), np.ones((1, 12))]
    return lambda fast: use_classifier(fast, rows)


def use_classifier(fast, rows):
    for question in (
        *(lambda X=X: fast.predict(X, n_jobs=1) for X in rows),
        lambda: fast.score_one([11, 3, 0, 7, 999]),
        lambda: fast.explain([0, 3, 5], top=3),
        lambda: fast.heaviest(5),
        *(lambda X=X: fast.trie and fast.trie.grow(X, n_jobs=1) for X in rows),
        lambda: fast.predict(rows[0], n_jobs=1),
    ):
        with contextlib.suppress(ValueError):
            question()


class DamagePlan(NamedTuple):
    """Functions that damage files of one kind, the error of refused files, and a use of loaded models."""

    changes: list
    refusal: type
    make_use: Callable  # returns, for a random generator, a function that uses the loaded model


def damage_one(path, folder, rng, count, plan):
    """Return how many damaged files were refused, and how many loaded models gave predictions."""
    content, use_model = remove_digests(Path(path).read_bytes()), plan.make_use(rng)
    damaged, trying = Path(folder) / "damaged.uk", Path(folder) / "trying"
    refused = answered = 0
    for trial in range(count):
        change = plan.changes[trial % len(plan.changes)]
        description, changed = change(content, rng)
        trying.write_text(f"{path}: {change.__name__}: {description}")
        damaged.unlink(missing_ok=True)  # the old file may still be memory-mapped
        damaged.write_bytes(changed)
        try:
            loaded = unkernel.load(damaged)
        except plan.refusal:
            refused += 1
            continue
        use_model(loaded)
        answered += 1
    return [refused, answered]


def main(plan, folder, seed, count, *paths):
    rng = np.random.default_rng(int(seed))
    print(json.dumps([damage_one(path, folder, rng, int(count), plan) for path in paths]))


def environment():
    """Return an environment in which programs find the same modules as this one."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(program, paths, folder, seed, count):
    """Run the module `program` (this one, or one that calls this one) and return its counts."""
    folder.mkdir()
    command = [sys.executable, program.__file__, str(folder), str(seed), str(count), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    trying = folder / "trying"
    tried = trying.read_text() if trying.exists() else "nothing"
    assert done.returncode == 0, (
        f"ended with {done.returncode} at {tried!r}, seed {seed}\n{done.stderr[-1500:]}"
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(DamagePlan(CHANGES_OF_FILES, ValueError, make_use_of_classifier), *sys.argv[1:])
