"""Digests in model files: a change of any byte is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import unkernel
from reference import damage
from reference.small_grammar import grammar
from unkernel import FormatError, PolySVC, RecordEncoder, TreeSVC
from unkernel.data.checksums import hexadecimal_checksum
from unkernel.models import container
from unkernel.parsing import ArcEagerParser

pytestmark = pytest.mark.hostile

ROWS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
CLASSES = [1, 1, 0, 0]


def save_small_file(kind: str, folder: Path) -> Path:
    """Return a small file of a kind."""
    path = folder / f"{kind}.uk"
    if kind == "conjunctions":
        PolySVC().fit(ROWS, CLASSES).save(path)
    elif kind == "compiled":
        unkernel.compile(SVC(kernel="poly", degree=2).fit(ROWS, CLASSES), measure=False).save(path)
    elif kind == "linear":
        unkernel.models.from_estimator(LinearSVC().fit(ROWS, CLASSES)).save(path)
    elif kind == "tree":
        TreeSVC().fit(["(A b)", "(A c)", "(B b)", "(B c)"], CLASSES).save(path)
    elif kind == "records":
        records = [{"a": a, "b": b} for a, b in ROWS.tolist()]
        pipeline = make_pipeline(RecordEncoder(min_count=1), PolySVC()).fit(records, CLASSES)
        unkernel.compile(pipeline, measure=False).save(path)
    else:
        ArcEagerParser(epochs=1, min_count=1).fit(grammar(3, seed=0)).save(path)
    return path


KINDS = ["conjunctions", "compiled", "linear", "tree", "records", "arc_eager_parser"]


def is_refused(path: Path) -> bool:
    try:
        container.open_file(path, verify=True)
    except FormatError:
        return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_any_byte_changed_is_noticed(kind: str, tmp_path: Path) -> None:
    path = save_small_file(kind, tmp_path)
    content, rng = path.read_bytes(), random.Random(0)
    for place in rng.sample(range(len(content)), min(len(content), 600)):
        path.write_bytes(
            content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
        )
        assert is_refused(path), f"byte {place}"
    for length in rng.sample(range(len(content)), 50):
        path.write_bytes(content[:length])
        assert is_refused(path), f"{length} bytes"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_bit_changed_is_noticed(kind: str, tmp_path: Path) -> None:
    path = save_small_file(kind, tmp_path)
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
            assert is_refused(path), f"bit {bit} of byte {place}"


def flipped_in_the_last_array(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(bytes(content))


def test_loading_compares_small_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_small_file("linear", tmp_path)
    flipped_in_the_last_array(path)
    last_array = list(container.open_file(path, verify=False).arrays)[-1]
    for verify in ("lazy", True):
        with pytest.raises(FormatError, match=f"array '{last_array}' is damaged: its digest does not match"):
            unkernel.load(path, verify=verify)
    unkernel.load(path, verify=False)
    monkeypatch.setattr(container, "_MAX_LAZY_BYTES", 0)  # treats all arrays as large
    unkernel.load(path)
    with pytest.raises(ValueError, match="verify must be 'lazy', True or False, got 'never'"):
        unkernel.load(path, verify="never")  # type: ignore[arg-type]


def test_files_without_digests_load(tmp_path: Path) -> None:
    path = save_small_file("linear", tmp_path)
    expected = unkernel.load(path).predict(ROWS).tolist()
    without_digests = tmp_path / "old.uk"
    without_digests.write_bytes(damage.remove_digests(path.read_bytes()))
    opened = container.open_file(without_digests, verify=True)
    assert opened.digests is None and opened.sha256 is None
    assert unkernel.load(without_digests).predict(ROWS).tolist() == expected


def test_the_sha256_is_computed_from_the_arrays(tmp_path: Path) -> None:
    path = save_small_file("compiled", tmp_path)
    content = path.read_bytes()
    opened = container.open_file(path, verify=True)
    begin = 8 + int.from_bytes(content[:8], "little")
    assert opened.sha256 == hashlib.sha256(content[begin:]).hexdigest()


def rewrite_file(path: Path, change: Any) -> None:
    """Change the header of a file, with a matching digest."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    text = change(content[8:begin].rstrip(b" "))
    old_digest = json.loads(text)["__metadata__"].get("digest", "")
    text = text.replace(old_digest.encode(), b"0" * 16, 1) if old_digest else text
    text += b" " * (-(8 + len(text)) % 64)
    text = text.replace(b"0" * 16, hexadecimal_checksum(text).encode(), 1)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[begin:])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda text: text.replace(b'"kind": "linear"', b'"kind":  "linear"'),
            "unkernel does not write it like this",
        ),
        (lambda text: text.replace(b'"kind":', b'"kind": "tree", "kind":', 1), "or has a name twice"),
        (lambda text: text.replace(b'\\"', b"\\u0022", 1), "unkernel does not write it like this"),
        (lambda text: text.replace(b'"digests": "{', b'"digests": "[', 1), "the digests of the arrays"),
    ],
)
def test_no_file_can_be_read_in_two_ways(change: Any, reason: str, tmp_path: Path) -> None:
    path = save_small_file("linear", tmp_path)
    rewrite_file(path, lambda text: text)
    unkernel.load(path, verify=True)  # the test must change a single file
    rewrite_file(path, change)
    with pytest.raises(FormatError, match=reason):
        unkernel.load(path)


def test_files_read_into_memory_can_be_changed_afterwards(tmp_path: Path) -> None:
    path = save_small_file("compiled", tmp_path)
    model = unkernel.load(path, mmap=False)
    expected = model.decision_function(ROWS).tolist()
    os.truncate(path, 100)  # would crash the process if the file were mapped
    assert model.decision_function(ROWS).tolist() == expected


def test_header_and_arrays_are_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced during reading is read in its old version."""
    path, replacement = save_small_file("linear", tmp_path), tmp_path / "other.uk"
    expected = unkernel.load(path).decision_function(ROWS).tolist()
    unkernel.models.from_estimator(LinearSVC(C=1e-3).fit(ROWS, CLASSES)).save(replacement)
    read_metadata = container._read_metadata

    def replaced_meanwhile(*arguments: Any) -> Any:
        replacement.replace(path)
        return read_metadata(*arguments)

    monkeypatch.setattr(container, "_read_metadata", replaced_meanwhile)
    assert unkernel.load(path, verify=True).decision_function(ROWS).tolist() == expected


def test_arrays_need_no_file_descriptors_of_their_own(tmp_path):
    """All arrays share one mapping: a process with few file descriptors can read any number of arrays."""
    arrays = {f"array {number}": np.arange(number % 3, dtype=np.float64) for number in range(3000)}
    container.write(tmp_path / "many.uk", "test", arrays, {})
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = Path("/proc/self/fd")
    opened = len([*descriptors.iterdir()]) if descriptors.exists() else 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 5, limits[1]))
    try:
        _, loaded, _ = container.read(tmp_path / "many.uk", verify=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert {name: array.tolist() for name, array in loaded.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
