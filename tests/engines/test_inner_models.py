"""Damaged models inside compiled files with correct digests are refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import unkernel
from reference.models import make_model
from unkernel import FormatError, load
from unkernel._loading import check_loaded
from unkernel.engines import classifier_files
from unkernel.models import container
from unkernel.models.numbering import decode, numbers_of

MODELS = {
    "sets": make_model(2, degree=3, classes=["a", "ü", "猫"]),
    "monomials": make_model(2, degree=2, sets=False),
    "plain": make_model(3, degree=1),
}


def set_item(array, index, value):
    array[index] = value
    return array


DAMAGES = {
    "keys reversed": ("keys", lambda keys: keys[::-1]),
    "a key twice": ("keys", lambda keys: set_item(keys, 1, keys[0])),
    "a key beyond the numbering": ("keys", lambda keys: set_item(keys, -1, 2**40)),
    "the largest key": ("keys", lambda keys: set_item(keys, -1, 2**64 - 1)),
    "the constant's key": ("keys", lambda keys: set_item(keys, 0, 0)),
    "a column twice": ("columns", lambda columns: set_item(columns, 1, columns[0])),
    "a negative column": ("columns", lambda columns: set_item(columns, 0, -1)),
    "a column that no row has": ("columns", lambda columns: set_item(columns, 0, 2**40)),
    "a weight that is none": ("weights", lambda weights: set_item(weights, 0, np.nan)),
    "an infinite constant": ("constants", lambda constants: set_item(constants, 0, np.inf)),
}


def save_damaged_file(model, damage, path):
    """Return a compiled file of the model, with damaged arrays of the model itself."""
    name, change = DAMAGES[damage]
    unkernel.compile(model, "expanded", measure=False).save(path)
    kind, arrays, settings = container.read(path, mmap=False)
    key = f"model.{name}"
    arrays[key] = np.ascontiguousarray(change(arrays[key].copy()))
    container.write(path, kind, arrays, settings)
    return path


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_models_with_valid_tables_are_refused(model, damage, tmp_path):
    path = save_damaged_file(model, damage, tmp_path / "model.uk")
    with pytest.raises(FormatError, match=r"conjunction keys|a column is|is not finite") as caught:
        load(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_large_models_are_checked_when_they_are_first_used(model, damage, tmp_path, monkeypatch):
    monkeypatch.setattr(classifier_files, "_MAX_BYTES_CHECKED_AT_LOAD", 0)
    path = save_damaged_file(model, damage, tmp_path / "model.uk")
    loaded = load(path)
    loaded.predict(np.ones((1, model.n_features)))  # uses only the tables
    for use_model in (
        lambda: loaded.heaviest(3),
        lambda: loaded.explain([0, 1]),
        loaded.to_model,
        lambda: loaded.save(tmp_path / "again.uk"),
        lambda: pickle.dumps(loaded),
        lambda: check_loaded(loaded, str(path)),
        lambda: load(path, verify=True),
    ):
        with pytest.raises(FormatError, match=r"conjunction keys|a column is|is not finite") as caught:
            use_model()
        assert caught.value.file == str(path)


def test_valid_models_are_accepted(model, tmp_path, monkeypatch):
    for max_bytes in (1 << 24, 0):
        monkeypatch.setattr(classifier_files, "_MAX_BYTES_CHECKED_AT_LOAD", max_bytes)
        fast = unkernel.compile(model, "expanded", measure=False)
        fast.save(tmp_path / "model.uk")
        for verify in ("lazy", True, False):
            reloaded = load(tmp_path / "model.uk", verify=verify)
            assert [str(heavy) for heavy in reloaded.heaviest(5)] == [
                str(heavy) for heavy in fast.heaviest(5)
            ]


def test_repeated_columns_are_refused():
    """Repeated columns are found by sorting or by marking, depending on the number of features."""
    model = MODELS["sets"]
    for n_features in (model.n_features, 2**40):
        replace(model, n_features=n_features).check("file")
        repeated = np.array(model.columns)
        repeated[1] = repeated[0]
        with pytest.raises(FormatError, match="or repeated"):
            replace(model, n_features=n_features, columns=repeated).check("file")


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("sets", [True, False])
def test_numbers_of_features(degree, sets):
    for features in range(1, 6):
        end = numbers_of(features, degree, sets)
        ranks = decode(np.arange(end + 1, dtype=np.uint64), degree, sets)[:, 0]
        assert ranks[:-1].max(initial=0) == features - 1 and ranks[-1] == features
    with pytest.raises(ValueError, match="too many conjunctions to number"):
        numbers_of(2**32, degree, sets)
