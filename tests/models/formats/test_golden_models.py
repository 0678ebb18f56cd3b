"""Models of other programs give the predictions that those programs gave."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import pytest
import zstandard

from reference import golden
from unkernel import FormatError
from unkernel.models import KernelModel, LinearModel, TreeModel, load_model, read_model

# Half a unit of the last digit that the program prints, and rounding.
TOLERANCE = {"libsvm": 1e-9, "liblinear": 1e-9, "svmlight": 5.1e-8, "tinysvm": 5.1e-6, "opal": 5.1e-7}
PROBABILITIES = [name for name in golden.NAMES if "prob" in name and "svr" not in name]
SCORES = [name for name in golden.NAMES if name not in PROBABILITIES]


def test_golden_models_of_all_programs_exist():
    assert {name.split("-")[0] for name in golden.NAMES} == set(TOLERANCE)
    assert len(golden.NAMES) == 21


@pytest.mark.parametrize("name", SCORES)
def test_scores(name):
    model = read_model(golden.model_path(name))
    expected = golden.margins(name)[:, 1:] if name[0] == "l" else golden.margins(name)[:, -1:]
    scores = model.scores(golden.test_rows(name))
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=TOLERANCE[name.split("-")[0]])


@pytest.mark.parametrize("name", [name for name in SCORES if name.startswith("lib")])
def test_answers(name):
    model = read_model(golden.model_path(name))
    expected = golden.margins(name)[:, 0]
    result = model.decision.choose(model.scores(golden.test_rows(name)))
    if model.decision.scheme == "regression":
        np.testing.assert_allclose(result, expected, rtol=1e-9)
    else:
        assert np.array_equal(result, expected)
        assert len(set(expected.tolist())) > 1


@pytest.mark.parametrize("name", PROBABILITIES)
def test_probabilities(name):
    model = read_model(golden.model_path(name))
    probabilities = model.decision.probabilities(model.scores(golden.test_rows(name)))
    expected = golden.margins(name)
    np.testing.assert_allclose(probabilities, expected[:, 1:], rtol=1e-9)
    assert np.array_equal(model.classes[probabilities.argmax(axis=1)], expected[:, 0])


@pytest.mark.parametrize("name", golden.NAMES)
def test_attributes_of_read_models(name):
    model = read_model(golden.model_path(name))
    assert isinstance(model, LinearModel if name.startswith("liblinear") else KernelModel)
    assert model.origin["format"] == name.split("-")[0]
    assert not model.fixed_width
    assert model.n_scores == model.decision.n_scores
    assert 60 < model.n_features <= 64
    if isinstance(model, KernelModel):
        assert model.binary
        assert model.support_vectors.has_canonical_format
        assert model.origin["zero_based"] is False


def test_the_parts_of_a_libsvm_model():
    model = read_model(golden.model_path("libsvm-poly3-multi"))
    assert (model.kernel.name, model.kernel.degree, model.kernel.gamma, model.kernel.coef0) == (
        "polynomial",
        3,
        0.5,
        2.0,
    )
    assert model.classes.tolist() == [4, 1, 7, 9]
    assert model.decision.scheme == "one_vs_one"
    assert model.intercept[0] == 0.090693320326520069
    assert model.origin["nr_sv"] == [34, 41, 38, 33]
    # The first vector is of class 4 and occurs in 4-1 and 4-7; the last one is of class 9.
    assert model.coefficients[0].tolist() == [0.00013859772564190563, 0.00021863877787825565, 0, 0, 0, 0]
    assert not model.coefficients[-1, [0, 1, 3]].any()
    assert read_model(golden.model_path("libsvm-svr-prob")).origin["probA"] == 2.654642082441721


@pytest.mark.parametrize("name", golden.NAMES)
def test_rows_of_any_width(name):
    model = read_model(golden.model_path(name))
    X = golden.test_rows(name)[:5].toarray()
    expected = model.scores(X)
    wider = np.hstack([X, np.zeros((5, 1000))])
    np.testing.assert_allclose(model.scores(wider), expected, rtol=1e-12)
    narrower = X[:, :30]
    padded = np.hstack([narrower, np.zeros((5, 34))])
    np.testing.assert_allclose(model.scores(narrower), model.scores(padded), rtol=1e-12)


COMPRESSORS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": lambda content: zstandard.ZstdCompressor().compress(content),
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed_files(suffix, tmp_path):
    path = tmp_path / "model"  # the name does not matter
    packed = COMPRESSORS[suffix](golden.content("libsvm-poly3-multi"))
    path.write_bytes(packed)
    expected = read_model(golden.model_path("libsvm-poly3-multi"))
    assert np.array_equal(read_model(path).coefficients, expected.coefficients)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FormatError, match="ends early"):
        read_model(path)


@pytest.mark.parametrize("name", golden.NAMES)
def test_line_ends_and_blanks_do_not_matter(name, tmp_path):
    expected = read_model(golden.model_path(name))
    content = golden.content(name)
    variants = {
        "crlf": content.replace(b"\n", b"\r\n"),
        "trailing blanks": content.replace(b"\n", b" \t \n"),
        "blank lines after": content + b"\n \n\n",
        "no last newline": content.rstrip(),
    }
    for kind, variant in variants.items():
        (tmp_path / "model").write_bytes(variant)
        model = read_model(tmp_path / "model")
        assert np.array_equal(model.intercept, expected.intercept), kind
        assert np.array_equal(model.scores(np.eye(64)), expected.scores(np.eye(64)), equal_nan=False), kind


@pytest.mark.parametrize("name", golden.NAMES)
def test_to_a_uk_file_and_back(name, tmp_path):
    model = read_model(golden.model_path(name))
    model.save(tmp_path / "model.uk")
    for read in (load_model, read_model):
        loaded = read(tmp_path / "model.uk")
        assert type(loaded) is type(model)
        assert np.array_equal(loaded.scores(np.eye(64)), model.scores(np.eye(64)))
        assert loaded.decision.to_json() == model.decision.to_json()
        assert loaded.origin == model.origin
        assert (loaded.n_features, loaded.fixed_width) == (model.n_features, model.fixed_width)
    assert len(list(tmp_path.iterdir())) == 1


def test_models_of_trees_are_recognised():
    assert isinstance(read_model(golden.model_path("svmlight-tk-sst")), TreeModel)
