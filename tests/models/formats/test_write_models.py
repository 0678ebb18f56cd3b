"""write_model: written models are read back unchanged, and the other programs read them, too."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference import golden
from unkernel import FormatError
from unkernel.models import Decision, Kernel, KernelModel, Platt, read_model, write_model

LIBSVM = [name for name in golden.NAMES if name.startswith("libsvm")]
SIGNED = [name for name in golden.NAMES if name.startswith(("svmlight", "tinysvm"))]


def assert_same(actual, model):
    assert actual.kernel == model.kernel
    assert (actual.support_vectors != model.support_vectors).nnz == 0
    assert actual.support_vectors.shape == model.support_vectors.shape
    assert actual.coefficients.tobytes() == model.coefficients.tobytes()
    assert np.array_equal(actual.intercept, model.intercept)
    assert actual.decision.to_json() == model.decision.to_json()


def make_model(seed=0, *, kernel=None, classes=(3, 1, 2), scheme="one_vs_one", n_support=7, **changes):
    rng = np.random.default_rng(seed)
    vectors = sparse.random(n_support, 9, density=0.4, random_state=rng, format="csr")
    vectors.data = rng.normal(size=vectors.nnz)
    vectors.sort_indices()
    vectors = sparse.csr_matrix(sparse.hstack([vectors, np.ones((n_support, 1))]))
    decision = Decision(scheme, np.asarray(classes))
    coefficients = rng.normal(size=(n_support, decision.n_scores))
    origin = {}
    if scheme == "one_vs_one":
        counts = np.bincount(rng.integers(len(classes), size=n_support), minlength=len(classes)).tolist()
        codes = np.repeat(np.arange(len(classes)), counts)
        pairs = [(i, j) for i in range(len(classes)) for j in range(i + 1, len(classes))]
        for row, code in enumerate(codes):
            coefficients[row, [code not in pair for pair in pairs]] = 0
        origin = {"nr_sv": counts}
    model = KernelModel(
        kernel=kernel or Kernel("polynomial", 3, 0.1, -0.7),
        vectors=vectors,
        coefficients=coefficients,
        intercept=rng.normal(size=decision.n_scores),
        decision=decision,
        n_features=vectors.shape[1],
        fixed_width=False,
        origin=origin,
    )
    return dataclasses.replace(model, **changes)


@pytest.mark.parametrize("name", LIBSVM)
def test_libsvm_models_are_read_back(name, tmp_path):
    model = read_model(golden.model_path(name))
    write_model(model, tmp_path / "model")
    actual = read_model(tmp_path / "model")
    assert_same(actual, model)
    assert actual.origin == model.origin
    write_model(actual, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    # The lines equal LIBSVM's, except for the form of numbers.
    keys = [line.split()[0] for line in golden.content(name).split(b"SV\n")[0].splitlines()]
    assert [
        line.split()[0] for line in (tmp_path / "model").read_bytes().split(b"SV\n")[0].splitlines()
    ] == keys


@pytest.mark.parametrize("name", SIGNED)
def test_svmlight_models_are_read_back(name, tmp_path):
    model = read_model(golden.model_path(name))
    write_model(model, tmp_path / "model", format="svmlight")
    assert_same(read_model(tmp_path / "model"), model)


@pytest.mark.parametrize("name", ["libsvm-poly2", "libsvm-rbf"])
def test_from_libsvm_to_svmlight_and_back(name, tmp_path):
    model = read_model(golden.model_path(name))
    write_model(model, tmp_path / "light", format="svmlight")
    light = read_model(tmp_path / "light")
    X = golden.test_rows(name)
    np.testing.assert_array_equal(light.scores(X), model.scores(X))
    assert np.array_equal(light.decision.choose(light.scores(X)), model.decision.choose(model.scores(X)))
    write_model(light, tmp_path / "svm", format="libsvm")
    svm = read_model(tmp_path / "svm")
    np.testing.assert_allclose(svm.scores(X), model.scores(X), rtol=1e-12)
    assert svm.classes.tolist() == [1, -1]


def test_a_positive_score_for_class_minus_one_is_negated(tmp_path):
    model = make_model(classes=[-1, 1])
    write_model(model, tmp_path / "light", format="svmlight")
    light = read_model(tmp_path / "light")
    X = np.eye(10)
    assert np.array_equal(light.scores(X), -model.scores(X))
    assert np.array_equal(light.decision.choose(light.scores(X)), model.decision.choose(model.scores(X)))


@given(
    seed=st.integers(0, 2**32),
    kernel=st.one_of(
        st.just(Kernel("linear")),
        st.builds(Kernel, st.just("rbf"), gamma=st.floats(0, 1e300)),
        st.builds(
            Kernel,
            st.sampled_from(["polynomial", "sigmoid"]),
            gamma=st.floats(-1e300, 1e300),
            coef0=st.floats(-1e300, 1e300),
        ),
    ),
    classes=st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=2, max_size=6, unique=True),
    n_support=st.integers(0, 12),
)
def test_generated_classifiers_are_read_back(tmp_path_factory, seed, kernel, classes, n_support):
    path = tmp_path_factory.mktemp("written") / "model"
    model = make_model(seed, kernel=kernel, classes=classes, n_support=n_support)
    if n_support == 0:
        model = dataclasses.replace(model, vectors=sparse.csr_matrix((0, 0)), n_features=0)
    write_model(model, path, format="libsvm")
    assert_same(read_model(path), model)


@pytest.mark.parametrize("scheme", ["one_class", "regression"])
def test_extreme_numbers_are_read_back(scheme, tmp_path):
    model = make_model(scheme=scheme, classes=[-1, 1] if scheme == "one_class" else [])
    coefficients = np.resize([5e-324, -1.7976931348623157e308, 0.1, -0.0], model.coefficients.shape)
    model = dataclasses.replace(model, coefficients=coefficients, intercept=np.array([1 / 3]))
    write_model(model, tmp_path / "model", format="libsvm")
    assert_same(read_model(tmp_path / "model"), model)


def test_features_counted_from_zero_are_written_from_zero(tmp_path):
    model = make_model(origin={"zero_based": True, "nr_sv": make_model().origin["nr_sv"]})
    assert model.support_vectors[:, 0].nnz  # without an entry in column 0, a reader would count from 1
    write_model(model, tmp_path / "model", format="libsvm")
    assert_same(read_model(tmp_path / "model"), model)
    binary = make_model(classes=[-1, 1], scheme="binary", origin={"zero_based": True})
    with pytest.raises(ValueError, match="count from 0"):
        write_model(binary, tmp_path / "light", format="svmlight")


def test_density_marks_are_kept(tmp_path):
    """Written by LIBSVM's -b 1 for one class."""
    marks = b"prob_density_marks " + b" ".join(b"%d.5" % mark for mark in range(10)) + b"\n"
    content = golden.content("libsvm-one-class").replace(b"SV\n", marks + b"SV\n")
    (tmp_path / "model").write_bytes(content)
    model = read_model(tmp_path / "model")
    assert model.origin["prob_density_marks"] == [mark + 0.5 for mark in range(10)]
    write_model(model, tmp_path / "again")
    assert marks in (tmp_path / "again").read_bytes()
    assert read_model(tmp_path / "again").origin == model.origin
    (tmp_path / "model").write_bytes(content.replace(b" 9.5", b""))
    with pytest.raises(FormatError, match="'prob_density_marks' has 9 numbers"):
        read_model(tmp_path / "model")


def test_invalid_origins_do_not_prevent_writing(tmp_path):
    """The origin may come from any .uk file, so its values can be of any type."""
    origin = {
        "svm_type": "x\ny",
        "version": 3,
        "highest_feature_index": "9",
        "training_documents": [],
        "probA": "1",
    }
    binary = make_model(
        classes=[-1, 1], scheme="binary", origin=origin | {"nr_sv": {}, "prob_density_marks": "x"}
    )
    for name in ("libsvm", "svmlight"):
        write_model(binary, tmp_path / "model", format=name)
        assert read_model(tmp_path / "model").n_support == binary.n_support


def test_paths_are_compressed_and_formats_are_found(tmp_path):
    model = read_model(golden.model_path("libsvm-poly2"))
    for suffix in ("gz", "xz", "bz2", "zst"):
        write_model(model, tmp_path / f"model.{suffix}")
        assert_same(read_model(tmp_path / f"model.{suffix}"), model)
    write_model(model, tmp_path / "model.uk")
    assert_same(read_model(tmp_path / "model.uk"), model)
    write_model(model, tmp_path / "also", format="uk")
    assert_same(read_model(tmp_path / "also"), model)


REFUSED = {
    "no format": (make_model(), {}, "say which format"),
    "unknown format": (make_model(), {"format": "onnx"}, "format must be one of"),
    "classes unknown": (
        make_model(origin={}),
        {"format": "libsvm"},
        "not store the class of each support vector",
    ),
    "wrong counts": (
        make_model(origin={"nr_sv": [7, 0, 0]}),
        {"format": "libsvm"},
        "not store the class of each",
    ),
    "odd counts": (make_model(origin={"nr_sv": "7"}), {"format": "libsvm"}, "not store the class of each"),
    "one against the rest": (make_model(scheme="one_vs_rest"), {"format": "libsvm"}, "one against the rest"),
    "texts as labels": (make_model(classes=["a", "b"]), {"format": "libsvm"}, "integers of 32 bits"),
    "fractions as labels": (make_model(classes=[0.5, 1]), {"format": "libsvm"}, "integers of 32 bits"),
    "large labels": (make_model(classes=[1, 2**40]), {"format": "libsvm"}, "integers of 32 bits"),
    "many classes": (make_model(), {"format": "svmlight"}, "classes -1 and 1"),
    "other classes": (make_model(classes=[0, 1]), {"format": "svmlight"}, "classes -1 and 1"),
    "regression": (make_model(scheme="regression", classes=[]), {"format": "svmlight"}, "classes -1 and 1"),
    "precomputed": (
        make_model(scheme="binary", classes=[-1, 1], kernel=Kernel("precomputed")),
        {"format": "svmlight"},
        "no precomputed kernel",
    ),
    "probabilities": (
        make_model(
            decision=Decision("one_vs_one", np.array([1, -1]), probability=Platt(np.ones(1), np.ones(1))),
            classes=[1, -1],
        ),
        {"format": "svmlight"},
        "no probabilities",
    ),
    "linear": (read_model(golden.model_path("liblinear-multi")), {"format": "libsvm"}, "is a LinearModel"),
}


@pytest.mark.parametrize(("model", "options", "match"), REFUSED.values(), ids=REFUSED)
def test_models_that_a_format_cannot_express_are_refused(model, options, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        write_model(model, tmp_path / "model", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LIBSVM)
def test_libsvm_reads_written_models(name, tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = read_model(golden.model_path(name))
    write_model(model, tmp_path / "model")
    libsvm_model = svmutil.svm_load_model(str(tmp_path / "model"))
    X = golden.test_rows(name)
    rows = [dict(zip((row.indices + 1).tolist(), row.data.tolist(), strict=True)) for row in X]
    options = "-q -b 1" if "nu-sigmoid" in name else "-q"  # without -b 1, LIBSVM 3.37 crashes on nu-sigmoid
    labels, _, values = svmutil.svm_predict([0] * len(rows), rows, libsvm_model, options)
    expected = model.scores(X)
    if "nu-sigmoid" in name:
        expected = model.decision.probabilities(expected)
    np.testing.assert_allclose(np.array(values), expected, rtol=1e-9, atol=1e-12)
    if "prob" not in name:
        np.testing.assert_allclose(labels, model.decision.choose(model.scores(X)), rtol=1e-9)


def test_libsvm_reads_models_of_svmlight(tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = read_model(golden.model_path("svmlight-poly2"))
    write_model(model, tmp_path / "model", format="libsvm")
    libsvm_model = svmutil.svm_load_model(str(tmp_path / "model"))
    X = golden.test_rows("svmlight-poly2")
    rows = [dict(zip((row.indices + 1).tolist(), row.data.tolist(), strict=True)) for row in X]
    labels, _, values = svmutil.svm_predict([0] * len(rows), rows, libsvm_model, "-q")
    np.testing.assert_allclose(np.array(values), model.scores(X), rtol=1e-9)
    assert np.array_equal(labels, model.decision.choose(model.scores(X)))
