"""Kernel and linear models in .uk files: round trips and errors."""

from __future__ import annotations

import dataclasses
import json
import random

import numpy as np
import pytest
from safetensors import safe_open
from scipy import sparse

from reference import golden
from reference.models import join_arrays, join_file_parts
from unkernel import FormatError, compile
from unkernel.models import Decision, Kernel, KernelModel, LinearModel, container, load_model, read_model

NAMES = {dtype: name for name, dtype in container._DTYPES.items()}


def kernel_model(values=(1.0, 2.5, -1.0, 1.0), n_features=5):
    vectors = sparse.csr_matrix(
        (np.array(values), np.array([0, 3, 1, 4]), np.array([0, 2, 2, 4])), shape=(3, n_features)
    )
    return KernelModel(
        kernel=Kernel("polynomial", 2, 0.5, 1.0),
        vectors=vectors,
        coefficients=np.arange(9.0).reshape(3, 3),
        intercept=np.array([0.1, 0.2, 0.3]),
        decision=Decision("one_vs_one", np.array(["a", "b", "c"])),
        n_features=n_features,
        fixed_width=True,
        origin={"format": "libsvm", "nr_sv": [1, 1, 1]},
    )


def linear_model():
    return LinearModel(
        weights=np.arange(6.0).reshape(3, 2),
        intercept=np.array([1.0, -1.0]),
        decision=Decision("one_vs_rest", np.array([4, 2])),
        n_features=3,
        fixed_width=False,
        origin={},
    )


def uk_bytes(model, *, arrays=None, settings=None, kind=None):
    """Return the file of a model, with some arrays or settings replaced, or removed (None)."""
    all_arrays, all_settings = model.to_container()
    all_arrays = {name: a for name, a in (all_arrays | (arrays or {})).items() if a is not None}
    all_settings = {name: s for name, s in (all_settings | (settings or {})).items() if s is not ...}
    metadata = {"format": "unkernel", "version": "1", "kind": kind or model.kind}
    header = {"__metadata__": metadata | {"settings": json.dumps(all_settings)}}
    all_arrays = dict(sorted(all_arrays.items(), key=lambda item: -item[1].dtype.itemsize))
    offset = 0
    for name, array in all_arrays.items():
        offsets = [offset, offset + array.nbytes]
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        offset += array.nbytes
    return join_file_parts(header, join_arrays(all_arrays))


def check_refused(path, content, match=None):
    path.write_bytes(content)
    for read_or_load in (load_model, read_model):
        with pytest.raises(FormatError, match=match) as caught:
            read_or_load(path)
        assert caught.value.file == str(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.uk"


@pytest.mark.parametrize("values", [(1.0, 2.5, -1.0, 1.0), (1.0, 1.0, 1.0, 1.0)], ids=["any", "binary"])
@pytest.mark.parametrize("n_features", [5, 2**40])
def test_kernel_models_are_read_back(values, n_features, path):
    model = kernel_model(values, n_features)
    model.save(path)
    loaded = load_model(path)
    assert isinstance(loaded, KernelModel)
    assert (loaded.support_vectors != model.support_vectors).nnz == 0
    assert loaded.support_vectors.has_canonical_format
    for name in ("coefficients", "intercept"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name))
    for name in ("kernel", "n_features", "fixed_width", "origin", "binary", "n_support", "n_scores"):
        assert getattr(loaded, name) == getattr(model, name), name
    assert loaded.classes.tolist() == ["a", "b", "c"]
    with safe_open(path, framework="numpy") as file:
        assert ("sv_values" in file.keys()) == (not model.binary)  # noqa: SIM118
        assert file.get_tensor("sv_columns").dtype == (np.int32 if n_features == 5 else np.int64)
    loaded.save(path.with_name("again.uk"))
    assert path.read_bytes() == path.with_name("again.uk").read_bytes()


def test_linear_models_are_read_back(path):
    model = linear_model()
    model.save(path)
    loaded = load_model(path)
    assert isinstance(loaded, LinearModel)
    assert np.array_equal(loaded.weights, model.weights)
    assert loaded.scores([[1.0, 2.0, 3.0, 9.0]]).tolist() == model.scores([[1.0, 2.0, 3.0]]).tolist()
    assert loaded.nbytes == model.nbytes == 64


def test_arrays_are_aligned(path):
    """Arrays are aligned even if their items are larger than the items of the array before."""
    arrays = {
        "bytes": np.arange(3, dtype=np.uint8),
        "shorts": np.arange(5, dtype=np.uint16),
        "cube": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        "wide": np.arange(3, dtype=np.float64),
        "ints": np.arange(3, dtype=np.int32),
        "more": np.arange(1, dtype=np.uint32),
    }
    container.write(path, "test", arrays, {})
    kind, loaded, _ = container.read(path)
    assert kind == "test"
    assert (8 + int.from_bytes(path.read_bytes()[:8], "little")) % 64 == 0
    for name, array in arrays.items():
        assert np.array_equal(loaded[name], array) and loaded[name].dtype == array.dtype
        assert loaded[name].flags.aligned
    with safe_open(path, framework="numpy") as file:
        assert np.array_equal(file.get_tensor("cube"), arrays["cube"])
    content = path.read_bytes().replace(b"[2, 3, 4]", b"[1,2,3,4]")
    path.write_bytes(content)
    with pytest.raises(FormatError):
        container.read(path)


def test_other_arrays_are_left_alone(path):
    """A file of another kind can contain a kernel model and further arrays."""
    path.write_bytes(uk_bytes(kernel_model(), arrays={"trie": np.arange(7, dtype=np.uint16)}))
    assert load_model(path).n_support == 3


KERNEL_ARRAYS = {
    "offsets missing": ({"sv_offsets": None}, "sv_offsets"),
    "offsets empty": ({"sv_offsets": np.array([], dtype=np.int64)}, "sv_offsets"),
    "offsets narrow": ({"sv_offsets": np.array([0, 2, 2, 4], dtype=np.int32)}, "sv_offsets"),
    "offsets of floats": ({"sv_offsets": np.array([0.0, 2, 2, 4])}, "sv_offsets"),
    "offsets begin late": ({"sv_offsets": np.array([1, 2, 2, 4])}, "sv_offsets"),
    "offsets begin early": ({"sv_offsets": np.array([-1, 2, 2, 4])}, "sv_offsets"),
    "offsets descend": ({"sv_offsets": np.array([0, 3, 2, 4])}, "sv_offsets"),
    "offsets end early": ({"sv_offsets": np.array([0, 2, 2, 3])}, "sv_offsets"),
    "offsets end late": ({"sv_offsets": np.array([0, 2, 2, 5])}, "sv_offsets"),
    "offsets huge": ({"sv_offsets": np.array([0, 2, 2**62, 4])}, "sv_offsets"),
    "fewer vectors": ({"sv_offsets": np.array([0, 2, 4])}, "number of scores"),
    "columns missing": ({"sv_columns": None}, "sv_columns"),
    "columns unsigned": ({"sv_columns": np.array([0, 3, 1, 4], dtype=np.uint32)}, "sv_columns"),
    "columns in two dimensions": ({"sv_columns": np.array([[0, 3, 1, 4]])}, "sv_columns"),
    "column beyond": ({"sv_columns": np.array([0, 3, 1, 5])}, "outside of the model's features"),
    "column negative": ({"sv_columns": np.array([-1, 3, 1, 4])}, "outside of the model's features"),
    "columns descend": ({"sv_columns": np.array([3, 0, 1, 4])}, "do not ascend"),
    "columns repeat": ({"sv_columns": np.array([0, 0, 1, 4])}, "do not ascend"),
    "last columns descend": ({"sv_columns": np.array([0, 3, 4, 1])}, "do not ascend"),
    "values short": ({"sv_values": np.ones(3)}, "one nonzero value"),
    "values narrow": ({"sv_values": np.ones(4, dtype=np.float32)}, "sv_values"),
    "value zero": ({"sv_values": np.array([1.0, 0, 1, 1])}, "one nonzero value"),
    "value nan": ({"sv_values": np.array([1.0, np.nan, 1, 1])}, "not finite"),
    "coefficients missing": ({"coefficients": None}, "coefficients"),
    "coefficients in one dimension": ({"coefficients": np.ones(9)}, "coefficients"),
    "coefficients few": ({"coefficients": np.ones((2, 3))}, "number of scores"),
    "coefficients narrow": ({"coefficients": np.ones((3, 1))}, "number of scores"),
    "coefficient inf": ({"coefficients": np.full((3, 3), np.inf)}, "not finite"),
    "intercepts missing": ({"intercepts": None}, "intercepts"),
    "intercepts few": ({"intercepts": np.ones(2)}, "number of scores"),
    "intercept nan": ({"intercepts": np.array([np.nan, 0, 0])}, "not finite"),
}


@pytest.mark.parametrize(("arrays", "match"), KERNEL_ARRAYS.values(), ids=KERNEL_ARRAYS)
def test_arrays_of_a_kernel_model(arrays, match, path):
    check_refused(path, uk_bytes(kernel_model(), arrays=arrays), match)


@pytest.mark.parametrize(
    "arrays",
    [
        {"weights": None},
        {"weights": np.ones((2, 2))},
        {"weights": np.ones((3, 1))},
        {"weights": np.ones((3, 2), dtype=np.float32)},
        {"weights": np.full((3, 2), np.nan)},
        {"weights": np.ones((3, 2, 1))},
        {"intercepts": None},
        {"intercepts": np.ones(3)},
        {"intercepts": np.array([np.inf, 0])},
    ],
    ids=str,
)
def test_arrays_of_a_linear_model(arrays, path):
    check_refused(path, uk_bytes(linear_model(), arrays=arrays))


SETTINGS = {
    "kernel": [..., None, "cosine", 3],
    "degree": [..., -1, 2.0, 2**40, True],
    "gamma": [..., "1", float("nan"), float("inf"), 10**400, None],
    "coef0": [..., float("-inf"), True],
    "n_features": [..., -1, 2**63, 5.0, 4, True],
    "fixed_width": [..., 1, None],
    "decision": [..., None, {}, [], {"scheme": "binary"}],
    "origin": [..., None, []],
}


@pytest.mark.parametrize("key", SETTINGS)
def test_settings(key, path):
    for value in SETTINGS[key]:
        check_refused(path, uk_bytes(kernel_model(), settings={key: value}))
        if key in ("n_features", "fixed_width", "decision", "origin"):
            check_refused(path, uk_bytes(linear_model(), settings={key: value}))


def test_a_negative_gamma_of_rbf(path):
    check_refused(path, uk_bytes(kernel_model(), settings={"kernel": "rbf", "gamma": -1.0}), "negative")


@pytest.mark.hostile
@pytest.mark.parametrize("model", [kernel_model(), linear_model()], ids=lambda model: model.kind)
def test_a_file_cut_anywhere(model, path):
    content = uk_bytes(model)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FormatError):
            load_model(path)


def test_kinds_are_not_mixed_up(path):
    check_refused(path, uk_bytes(kernel_model(), kind="linear"))
    check_refused(path, uk_bytes(linear_model(), kind="kernel"))
    check_refused(path, uk_bytes(linear_model(), kind="conjunctions"))
    check_refused(path, uk_bytes(linear_model(), kind="trees"), "which this unkernel does not know")


@pytest.mark.hostile
@pytest.mark.parametrize("model", [kernel_model(), linear_model()], ids=lambda model: model.kind)
def test_fuzz_any_byte(model, path):
    content = uk_bytes(model)
    rng = random.Random(0)
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :])
        try:
            loaded = load_model(path)
        except FormatError:
            continue
        if loaded.n_features < 1000 and getattr(loaded, "kernel", None) is not None:
            assert loaded.scores(np.zeros((2, loaded.n_features))).shape == (2, loaded.n_scores)


# --- Kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_array])
def test_kernels(kind):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(4, 6)), rng.normal(size=(3, 5))
    X[rng.random(X.shape) < 0.4] = 0
    for row, x in enumerate(X):
        for column, z in enumerate(Z):
            wide = np.append(z, 0)
            expected = {
                Kernel("linear"): x @ wide,
                Kernel("polynomial", 3, 0.5, 1.5): (0.5 * x @ wide + 1.5) ** 3,
                Kernel("polynomial", 0, 0.5, 1.5): 1.0,
                Kernel("rbf", gamma=0.3): np.exp(-0.3 * ((x - wide) ** 2).sum()),
                Kernel("sigmoid", gamma=0.3, coef0=-1.0): np.tanh(0.3 * x @ wide - 1),
            }
            for kernel, value in expected.items():
                assert kernel.matrix(kind(X), kind(Z))[row, column] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("cosine",), "must be one of"),
        (("polynomial", -1), "degree"),
        (("polynomial", 2**31), "degree"),
        (("polynomial", 2, float("nan")), "finite"),
        (("sigmoid", 2, 1.0, float("inf")), "finite"),
        (("rbf", 2, -1.0), "negative"),
    ],
)
def test_invalid_kernel_parameters_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Kernel(*arguments)


def test_rows_in_any_form():
    model = kernel_model()
    X = np.array([[1.0, 0, 2, 0, 1], [0, 0, 0, 0, 0]])
    expected = model.scores(X)
    repeated = sparse.csr_matrix(
        (np.array([0.5, 0.5, 2.0, 0.0, 1.0]), np.array([0, 0, 2, 1, 4]), np.array([0, 5, 5])), shape=(2, 5)
    )
    for rows in (X.tolist(), X.astype(np.float32), sparse.coo_array(X), sparse.csc_matrix(X), repeated):
        np.testing.assert_allclose(model.scores(rows), expected, rtol=1e-14)
    assert model.scores(np.empty((0, 5))).shape == (0, 3)
    with pytest.raises(ValueError, match="NaN"):
        model.scores([[np.nan] * 5])
    any_width = dataclasses.replace(model, fixed_width=False)
    np.testing.assert_array_equal(any_width.scores(np.tile(X, (700_000 // 2, 1)))[-2:], expected)


def test_the_model_inside_a_compiled_file(tmp_path):
    model = read_model(golden.model_path("libsvm-poly2"))
    compile(model).save(tmp_path / "m.uk")
    X = golden.test_rows("libsvm-poly2")
    assert np.array_equal(read_model(tmp_path / "m.uk").scores(X), model.scores(X))


def test_distances_of_wide_rows_need_no_dense_matrix():
    """A dense matrix of these columns would take 160 GB."""
    rng = np.random.default_rng(0)
    X = sparse.random(2000, 10_000_000, density=1e-6, format="csr", random_state=rng)
    kernel = Kernel("rbf", gamma=0.5)
    matrix = kernel.matrix(X[:2], X)
    dense = X[:2, np.unique(X[:2].indices)].toarray()
    assert matrix.shape == (2, 2000) and matrix[0, 0] == matrix[1, 1] == 1.0
    np.testing.assert_allclose(matrix[0, 1], np.exp(-0.5 * ((dense[0] - dense[1]) ** 2).sum()))
