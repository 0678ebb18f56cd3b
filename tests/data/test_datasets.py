"""The catalogue of data sets, with and without the data."""

from __future__ import annotations

import dataclasses
import hashlib
import re

import numpy as np
import pytest

from unkernel.data import datasets


def test_the_catalogue_is_complete():
    for name in datasets.names():
        dataset = datasets.describe(name)
        assert dataset.description
        assert dataset.address.startswith("http")
        assert "train" in dataset.parts
        assert (dataset.n_features is not None) == (dataset.format == "svmlight")
        for part in dataset.parts.values():
            assert re.fullmatch("[0-9a-f]{64}", part.sha256)
    assert "a9a" in datasets.names("svmlight")
    assert "en_ewt" not in datasets.names("svmlight")


def test_errors_about_missing_files_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("UNKERNEL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"set UNKERNEL_DATA .*https://www\.csie\.ntu"):
        datasets.path("a9a")
    monkeypatch.delenv("UNKERNEL_DATA")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "_find_project_root", list)
    with pytest.raises(FileNotFoundError, match="there is no data folder"):
        datasets.path("a9a")


def test_unknown_names_and_parts():
    with pytest.raises(ValueError, match="no data set is called 'a9b'; there are a9a"):
        datasets.path("a9b")
    with pytest.raises(ValueError, match="mushrooms has no part 'test'; it has train"):
        datasets.path("mushrooms", "test")
    with pytest.raises(ValueError, match="'conllu', not svmlight"):
        datasets.load("en_ewt")


@pytest.fixture
def small_folder(tmp_path, monkeypatch):
    """A folder with a stand-in for mushrooms."""
    file = tmp_path / datasets.describe("mushrooms").parts["train"].file
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1 1:1\n2 112:1\n")
    monkeypatch.setenv("UNKERNEL_DATA", str(tmp_path))
    return file


def test_load(small_folder):
    data = datasets.load("mushrooms")
    assert data.X.shape == (2, 112)
    np.testing.assert_array_equal(data.y, [1, 2])


def test_the_folder_shared_data_next_to_a_project_is_found(small_folder, tmp_path, monkeypatch):
    monkeypatch.delenv("UNKERNEL_DATA")
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "data").symlink_to(tmp_path, target_is_directory=True)
    monkeypatch.chdir(project)
    assert datasets.path("mushrooms").resolve() == small_folder.resolve()


def test_verify(small_folder, monkeypatch):
    with pytest.raises(ValueError, match="has the sha256"):
        datasets.verify("mushrooms")
    result = hashlib.sha256(small_folder.read_bytes()).hexdigest()
    dataset = datasets.describe("mushrooms")
    with_digest = dataclasses.replace(
        dataset, parts={"train": datasets.DatasetFile(dataset.parts["train"].file, result)}
    )
    monkeypatch.setattr(datasets, "_read_catalogue", lambda: {"mushrooms": with_digest})
    datasets.verify("mushrooms")


@pytest.mark.parametrize("name", datasets.names())
def test_installed_files_have_their_expected_digests(name):
    try:
        datasets.verify(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
