"""Model files of earlier versions: they load forever, and predict as before."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from reference import golden_models
from unkernel.models import container

FILES = sorted(golden_models.FILES.glob("*.uk"))


@functools.cache
def questions() -> dict[str, object]:
    return {name: inputs for name, _, inputs in golden_models.make_models()}


def test_every_kind_has_a_golden_file():
    new_kinds = {"records", "threshold", "counts", "functions"}
    for version, kinds_without_file in (("plain", new_kinds), ("digests", set())):
        names = {path.stem.partition("-")[2] for path in FILES if path.stem.startswith(version)}
        assert names == set(questions()) - kinds_without_file


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_answer_as_when_they_were_written(path: Path):
    inputs = questions()[path.stem.partition("-")[2]]
    expected = np.loadtxt(path.with_suffix(".scores"))
    np.testing.assert_allclose(
        golden_models.open_model(path).decision_function(inputs), expected, rtol=1e-9, atol=1e-12
    )


def test_a_threshold_decides_as_when_it_was_written():
    path = golden_models.FILES / "digests-threshold.uk"
    classifier = golden_models.open_model(path)
    probabilities = classifier.predict_proba(questions()["threshold"])[:, 1]
    assert classifier.predict(questions()["threshold"]).tolist() == [
        classifier.classes_[int(probability >= 0.2)] for probability in probabilities
    ]
    assert b'"version": "2"' in path.read_bytes()[:4096]  # earlier readers would ignore the threshold


def test_a_link_applies_as_when_it_was_written():
    path = golden_models.FILES / "digests-counts.uk"
    classifier = golden_models.open_model(path)
    scores = classifier.decision_function(questions()["counts"])
    np.testing.assert_allclose(classifier.predict(questions()["counts"]), np.exp(scores), rtol=1e-14)
    assert b'"version": "3"' in path.read_bytes()[:4096]  # earlier readers would ignore the link


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_files_of_the_digest_format_have_digests(path: Path):
    assert container.has_digests(path) == path.stem.startswith("digests")
    container.open_file(path, verify=True)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem.startswith("digests")], ids=lambda path: path.stem
)
def test_rewriting_a_file_gives_equal_bytes(path: Path, tmp_path: Path):
    """A change of the format must not happen by accident: it needs a new set of golden files."""
    kind, arrays, settings = container.read(path)
    container.write(tmp_path / "again.uk", kind, arrays, settings)
    assert (tmp_path / "again.uk").read_bytes() == path.read_bytes()
