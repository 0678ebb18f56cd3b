"""Kinds of files: registered kinds can be loaded, and errors name other kinds in words."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from unkernel.models import container, load_model, registry


@pytest.fixture
def sundial(tmp_path, monkeypatch):
    """Return a file of a kind that is registered for one test."""
    monkeypatch.setattr(registry, "_kinds", registry.list_kinds())
    registry.register("sundial", "a sundial", lambda name, arrays, settings: (name, arrays, settings))
    container.write(tmp_path / "s.uk", "sundial", {"hours": np.arange(3)}, {"latitude": 49})
    return tmp_path / "s.uk"


def test_a_registered_kind_is_loaded(sundial):
    name, arrays, settings = unkernel.load(sundial)
    assert name == str(sundial)
    assert arrays["hours"].tolist() == [0, 1, 2]
    assert settings == {"latitude": 49}


def test_a_loader_is_imported_when_it_is_needed(sundial):
    registry.register("sundial", "a sundial", "collections:OrderedDict.fromkeys")
    with pytest.raises(TypeError):
        unkernel.load(sundial)  # imports dict.fromkeys, which refuses three arguments


def test_a_file_of_another_kind_is_named_in_words(sundial):
    for read in (load_model, unkernel.read_model, unkernel.compile, unkernel.engines.load):
        with pytest.raises(unkernel.FormatError, match="a sundial, and not a model of rows or trees"):
            read(sundial)


def test_unregistered_kinds_are_refused(tmp_path):
    container.write(tmp_path / "x.uk", "hourglass", {}, {})
    for read in (load_model, unkernel.load, unkernel.engines.load):
        with pytest.raises(unkernel.FormatError, match="of kind 'hourglass', which this unkernel does not"):
            read(tmp_path / "x.uk")


def test_descriptions():
    kinds = registry.list_kinds()
    assert kinds["chunker"].description == "a chunker"
    assert registry.kind_of("file", "tree").description == "a model of trees"
