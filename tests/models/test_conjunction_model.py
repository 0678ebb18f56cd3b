"""ConjunctionModel: files, and errors while writing."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from reference.models import make_model, model_arrays, uk_bytes
from reference.selection import few_examples
from unkernel import ConjunctionModel, load
from unkernel.data import files
from unkernel.models import container, load_model

# Arrays of the file, and their names in the model.
ARRAYS = {"columns": "columns", "keys": "keys", "weights": "weights", "constants": "intercept"}
SETTINGS = ("degree", "sets", "feature_map", "gamma", "coef0", "n_features", "origin")


def assert_same(loaded, model):
    for name in ARRAYS.values():
        assert np.array_equal(getattr(loaded, name), getattr(model, name)), name
        assert getattr(loaded, name).dtype == getattr(model, name).dtype, name
    for name in SETTINGS:
        assert getattr(loaded, name) == getattr(model, name), name
    assert loaded.classes.tolist() == model.classes.tolist()
    assert loaded.classes.dtype == model.classes.dtype


CLASSES = {
    "int64": np.array([-3, 7]),
    "int8": np.array([-128, 0, 127], dtype=np.int8),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "big endian": np.array([1, 2], dtype=">i4"),
    "float64": np.array([-0.1, 1e300]),
    "float32": np.array([0.1, 2.5, 1e-40], dtype=np.float32),
    "float16": np.array([0.1, 3.0], dtype=np.float16),
    "bool": np.array([False, True]),
    "str": np.array(["no", "yes", "maybe"]),
    "empty str": np.array(["", " "]),
    "objects": np.array(["no", "a longer one"], dtype=object),
    "not ASCII": np.array(["für", "猫", "🐈", '"quoted"\n\\']),
    "many": np.arange(300),
}


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_labels_are_read_back_unchanged(classes, tmp_path):
    model = make_model(classes=classes)
    model.save(tmp_path / "model.uk")
    assert_same(load_model(tmp_path / "model.uk"), model)


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([b"no", b"yes"]),
        np.array([1j, 2j]),
        np.array(["no", 1], dtype=object),
        np.array([0, 1], dtype=object),
        np.array([0, 1], dtype=np.longdouble),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_labels_that_a_file_cannot_hold_are_refused(classes, tmp_path):
    if classes.dtype == np.float64:
        pytest.skip("long double is double here")
    with pytest.raises(ValueError, match="class labels of type"):
        make_model(classes=classes).save(tmp_path / "model.uk")
    assert not list(tmp_path.iterdir())


@given(
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    shape=st.fixed_dictionaries(
        {
            "degree": st.integers(1, 3),
            "sets": st.booleans(),
            "used": st.integers(0, 5),
            "classes": st.integers(2, 4).map(range),
            "feature_map": st.sampled_from(["kernel", "plain"]),
            "gamma": st.floats(1e-300, 1e300),
            "coef0": st.floats(0, 1e300),
        }
    ),
)
@few_examples(10)
def test_generated_models_are_read_back(tmp_path_factory, seed, share, shape):
    path = tmp_path_factory.mktemp("models") / "model.uk"
    model = make_model(seed, share=share, **shape)
    model.save(path)
    assert_same(load_model(path), model)
    load(path)


def test_extreme_numbers_are_read_back(tmp_path):
    model = make_model(share=1.0)
    weights = np.resize([5e-324, -1.7976931348623157e308, 0.1, -0.0], model.weights.shape)
    model = dataclasses.replace(model, weights=weights, n_features=2**61)
    model.save(tmp_path / "model.uk")
    loaded = load_model(tmp_path / "model.uk")
    assert loaded.weights.tobytes() == weights.tobytes()
    assert loaded.n_features == 2**61


def test_the_file_is_a_safetensors_file(tmp_path):
    model = make_model(classes=["a", "ü", "c"])
    model.save(tmp_path / "model.uk")
    with safe_open(tmp_path / "model.uk", framework="numpy") as file:
        assert set(file.keys()) == set(ARRAYS)
        for name, attribute in ARRAYS.items():
            assert np.array_equal(file.get_tensor(name), getattr(model, attribute))
        metadata = file.metadata()
    assert {key: metadata[key] for key in ("format", "version", "kind")} == {
        "format": "unkernel",
        "version": "1",
        "kind": "conjunctions",
    }
    described = json.loads(metadata["settings"])
    assert {name: described[name] for name in SETTINGS} == {name: getattr(model, name) for name in SETTINGS}


def test_a_model_without_conjunctions_is_a_safetensors_file_too(tmp_path):
    model = make_model(used=0, keys=[], classes=range(3))
    model.save(tmp_path / "model.uk")
    with safe_open(tmp_path / "model.uk", framework="numpy") as file:
        assert file.get_tensor("weights").shape == (0, 3)
    assert_same(load_model(tmp_path / "model.uk"), model)


def test_files_of_other_writers_are_read(tmp_path):
    """The file is composed by hand, following docs/formats/uk.md."""
    model = make_model(classes=range(3))
    (tmp_path / "model.uk").write_bytes(uk_bytes(model))
    assert_same(load_model(tmp_path / "model.uk"), model)
    extra = model_arrays(model) | {"a note to ourselves": np.arange(3)}
    (tmp_path / "model.uk").write_bytes(uk_bytes(model, arrays=extra))
    assert_same(load_model(tmp_path / "model.uk"), model)


def test_loaded_arrays_are_mapped_from_the_file(tmp_path):
    make_model().save(tmp_path / "model.uk")
    loaded = load_model(tmp_path / "model.uk")
    for name in ARRAYS.values():
        array = getattr(loaded, name)
        assert isinstance(array, np.memmap) and array.flags.aligned and array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = make_model()
    model.save(tmp_path / "one.uk")
    load_model(tmp_path / "one.uk").save(tmp_path / "two.uk")
    shuffled = dataclasses.replace(
        model, weights=np.asfortranarray(model.weights), keys=model.keys.astype(">u8")
    )
    shuffled.save(tmp_path / "three.uk")
    content = (tmp_path / "one.uk").read_bytes()
    assert (tmp_path / "two.uk").read_bytes() == content
    assert (tmp_path / "three.uk").read_bytes() == content


def test_loaded_models_can_replace_their_own_file(tmp_path):
    path = tmp_path / "model.uk"
    model = make_model(share=1.0)
    model.save(path)
    loaded = load_model(path)
    dataclasses.replace(loaded, weights=2 * loaded.weights).save(path)
    assert np.array_equal(loaded.weights, model.weights)  # unchanged
    assert np.array_equal(load_model(path).weights, 2 * model.weights)


def test_counts_and_pickles(tmp_path):
    model = make_model(share=1.0)
    assert model.n_conjunctions == len(model.keys) == 10
    assert model.nbytes == 8 * (4 + 10 + 10 + 1)
    model.save(tmp_path / "model.uk")
    assert_same(pickle.loads(pickle.dumps(load_model(tmp_path / "model.uk"))), model)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.degree = 3


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "any").write_bytes(b"")
    make_model().save(tmp_path / "model.uk")
    assert stat.S_IMODE((tmp_path / "model.uk").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "any").stat().st_mode
    )


# --- Writing that fails ---------------------------------------------------------------------------


class Disk:
    """A file on a disk that raises `error` after `free_bytes` bytes."""

    def __init__(self, file, free_bytes, error):
        self.file, self.free_bytes, self.error = file, free_bytes, error

    def write(self, data):
        data = bytes(data)
        self.file.write(data[: self.free_bytes])
        self.free_bytes -= len(data)
        if self.free_bytes < 0:
            raise self.error


FAILURES = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("free_bytes", [0, 1, 500, 800])
@pytest.mark.parametrize("existing", [False, True])
def test_a_failed_write_leaves_all_files_unchanged(failure, free_bytes, existing, tmp_path, monkeypatch):
    path = tmp_path / "model.uk"
    old_model = make_model(1)
    if existing:
        old_model.save(path)
    old_files = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}

    @contextlib.contextmanager
    def replace_failing(target):
        with files.replace_file(target) as file:
            yield Disk(file, free_bytes, failure)

    monkeypatch.setattr(container, "replace_file", replace_failing)
    with pytest.raises(type(failure)):
        make_model(2, degree=3, share=1.0).save(path)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == old_files
    if existing:
        assert_same(load_model(path), old_model)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_in_the_last_steps_leaves_the_old_file(failure, step, tmp_path, monkeypatch):
    path = tmp_path / "model.uk"
    old_model = make_model(1)
    old_model.save(path)

    def fail(*_):
        raise failure

    monkeypatch.setattr(*((files.os, "fsync", fail) if step == "fsync" else (Path, "replace", fail)))
    with pytest.raises(type(failure)):
        make_model(2).save(path)
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.uk"]
    assert_same(load_model(path), old_model)


def test_missing_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        make_model().save(tmp_path / "missing" / "model.uk")
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_place_of_the_file(tmp_path):
    (tmp_path / "model.uk").mkdir()
    with pytest.raises(OSError, match=r"model\.uk"):
        make_model().save(tmp_path / "model.uk")
    assert not list((tmp_path / "model.uk").iterdir())
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.uk"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_devices_are_reported():
    with pytest.raises(OSError, match="No space left"):
        make_model().save("/dev/full")


def test_the_model_is_checked_before_anything_is_written(tmp_path):
    model = dataclasses.replace(make_model(), origin={"C": object()})
    with pytest.raises(TypeError):
        model.save(tmp_path / "model.uk")
    assert not list(tmp_path.iterdir())
    assert isinstance(model, ConjunctionModel)
