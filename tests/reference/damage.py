"""Damage compiled files in many ways, load them and predict: a separate program, because it may crash.

``python damage.py FOLDER SEED COUNT FILE...`` damages each FILE COUNT times and prints, as JSON, how many
were refused and how many answered, file by file. The current trial is in FOLDER/trying and
FOLDER/damaged.uk. An exception other than ValueError ends the program, and so does a crash. Programs for
other kinds of files define their own damage and questions, and call :func:`main` with these.
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


def parts(content):
    """Return the header's table, without digests, and the bytes of each array, by name."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for digest in ("digest", "digests", "sha256"):
        header["__metadata__"].pop(digest, None)
    body = content[8 + length :]
    places = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return header, {name: body[begin:end] for name, (begin, end) in places.items()}


def joined(header, arrays):
    """Return a file of this header and these arrays; recomputes their places, keeps shapes that fit."""
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


def without_digests(content):
    """Return the file as an earlier version wrote it: damage is noticed by its effect, or not at all."""
    return joined(*parts(content))


def settings_of(header):
    return json.loads(header["__metadata__"]["settings"])


def with_settings(header, settings):
    return header | {"__metadata__": header["__metadata__"] | {"settings": json.dumps(settings)}}


def rewrite(path, change):
    """Let `change` alter the settings and the arrays of a file."""
    header, arrays = parts(path.read_bytes())
    settings = settings_of(header)
    change(settings, arrays)
    path.unlink()  # the old one may still be mapped
    path.write_bytes(joined(with_settings(header, settings), arrays))


def flip_a_byte(content, rng):
    place = int(rng.integers(len(content)))
    changed = bytearray(content)
    changed[place] = int(rng.integers(256))
    return f"byte {place}", bytes(changed)


def flip_a_byte_of_an_array(content, rng):
    header, arrays = parts(content)
    name = str(rng.choice([name for name, array in arrays.items() if array]))
    what, arrays[name] = flip_a_byte(arrays[name], rng)
    return f"{name}: {what}", joined(header, arrays)


def reorder(numbers, rng):
    return rng.permutation(numbers)


def other_numbers(numbers, rng):
    return rng.integers(0, 50, len(numbers)).astype(numbers.dtype)


def larger(numbers, rng):
    changed = numbers.copy()
    changed[rng.integers(len(numbers)) :] += numbers.dtype.type(rng.integers(1, 9))
    return changed


def _largest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def enormous(numbers, rng):
    changed = numbers.copy()
    changed[rng.integers(len(numbers))] = min(rng.choice([2**16 - 1, 2**15, 1000]), _largest(numbers.dtype))
    return changed


CHANGES = {
    "zeros": lambda numbers, rng: numbers * 0,
    "all bits": lambda numbers, rng: np.frombuffer(b"\xff" * numbers.nbytes, numbers.dtype),
    "noise": lambda numbers, rng: np.frombuffer(rng.bytes(numbers.nbytes), numbers.dtype),
    "reversed": lambda numbers, rng: numbers[::-1],
    "shuffled": reorder,
    "small numbers": other_numbers,
    "larger": larger,
    "one enormous": enormous,
    "one less": lambda numbers, rng: numbers[:-1],
    "one more": lambda numbers, rng: np.append(numbers, numbers[-1]),
    "doubled": lambda numbers, rng: np.append(numbers, numbers),
    "nothing": lambda numbers, rng: numbers[:0],
    "begins at once": lambda numbers, rng: np.append(numbers[:1], [numbers[-1]] * (len(numbers) - 1)),
}


def change_an_array(content, rng):
    header, arrays = parts(content)
    name = str(rng.choice([name for name, array in arrays.items() if array]))
    how = str(rng.choice(list(CHANGES)))
    numbers = np.frombuffer(arrays[name], TYPES[header[name]["dtype"]])
    arrays[name] = CHANGES[how](numbers, rng).astype(numbers.dtype).tobytes()
    return f"{name}: {how}", joined(header, arrays)


def change_a_number(content, rng):
    """Change begins of zones, counts or degrees of conjunctions."""
    header, arrays = parts(content)
    settings = settings_of(header)
    tables = settings["tables"]
    table = tables["numbers"] if tables["numbers"] and rng.random() < 0.6 else tables["parameters"]
    name = str(rng.choice(list(table)))
    if isinstance(table[name], bool):
        table[name] = not table[name]
    elif isinstance(table[name], int):
        table[name] = int(
            rng.choice([0, 1, 2, 3, 4, 5, table[name] + 1, table[name] - 1, 11, 12, 40, 2**32 - 1])
        )
    return f"{name}: {table[name]}", joined(with_settings(header, settings), arrays)


def change_several(content, rng):
    """Change several numbers, which may be wrong alone but consistent together."""
    message = []
    for _ in range(rng.integers(2, 4)):
        what, content = rng.choice([change_a_number, change_an_array])(content, rng)
        message.append(what)
    return ", ".join(message), content


def retype_an_array(content, rng):
    header, arrays = parts(content)
    name = str(rng.choice(list(arrays)))
    header[name] = header[name] | {"dtype": str(rng.choice(list(TYPES)))}
    size = np.dtype(TYPES[header[name]["dtype"]]).itemsize
    arrays[name] = arrays[name][: len(arrays[name]) // 8 * 8 or size * 0]
    return f"{name}: {header[name]['dtype']}", joined(header, arrays)


KINDS = [
    flip_a_byte,
    flip_a_byte_of_an_array,
    change_an_array,
    change_a_number,
    change_several,
    retype_an_array,
]


def classifier_questions(rng):
    """Return all questions to a classifier; a ValueError is an answer."""
    ones = (rng.random((6, 12)) < 0.6).astype(float)
    rows = [ones, ones * rng.normal(size=ones.shape), np.ones((1, 12))]
    return lambda fast: ask(fast, rows)


def ask(fast, rows):
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


class Way(NamedTuple):
    """How to damage files of one kind, the error that refuses them, and how to use files that load."""

    kinds: list
    refusal: type
    questions: Callable  # maps a random generator to a function that uses the loaded object


def damage_one(path, folder, rng, count, way):
    """Return how many damaged files were refused, and how many loaded models gave predictions."""
    content, ask = without_digests(Path(path).read_bytes()), way.questions(rng)
    damaged, trying = Path(folder) / "damaged.uk", Path(folder) / "trying"
    refused = answered = 0
    for trial in range(count):
        kind = way.kinds[trial % len(way.kinds)]
        what, changed = kind(content, rng)
        trying.write_text(f"{path}: {kind.__name__}: {what}")
        damaged.unlink(missing_ok=True)  # the old one may still be mapped
        damaged.write_bytes(changed)
        try:
            loaded = unkernel.load(damaged)
        except way.refusal:
            refused += 1
            continue
        ask(loaded)
        answered += 1
    return [refused, answered]


def main(way, folder, seed, count, *paths):
    rng = np.random.default_rng(int(seed))
    print(json.dumps([damage_one(path, folder, rng, int(count), way) for path in paths]))


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
    main(Way(KINDS, ValueError, classifier_questions), *sys.argv[1:])
