"""Models of pairs whose weights fit into 16 bits have their own engine, ``int16``."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.conjunctions import score
from reference.kernels import make_kernel_model
from reference.models import make_model
from unkernel import CompiledClassifier, FormatError, compile, load
from unkernel.engines.search import candidates
from unkernel.engines.tables import builders
from unkernel.engines.tables.int16 import build_int16, find_int16_obstacle
from unkernel.models.kernel import Kernel


def make_int16_model(seed, *, used=7, n_features=9, classes=4, unit=1 / 64, degree=2):
    model = make_model(
        seed, degree=degree, sets=True, used=used, n_features=n_features, classes=range(classes), share=0.6
    )
    return change_weights(model, lambda weights: unit * np.round(weights / unit))


def change_weights(model, change):
    return dataclasses.replace(model, weights=change(model.weights), intercept=change(model.intercept))


@given(seed=st.integers(0, 2**32), classes=st.integers(3, 9), binary=st.booleans())
def test_scores_are_the_sums_over_conjunctions(seed, classes, binary):
    model = make_int16_model(seed, classes=classes)
    assert find_int16_obstacle(model) is None
    rng = np.random.default_rng(seed)
    X = (rng.random((8, model.n_features)) < 0.6).astype(float)
    X = X if binary else X * np.round(rng.normal(size=X.shape), 2)
    compiled = CompiledClassifier(model)
    assert compiled.engine == "int16"
    expected = np.array([score(model, x) for x in X])
    # Sums of integers are not rounded.
    np.testing.assert_allclose(
        compiled.decision_function(X), expected, rtol=0 if binary else 1e-12, atol=1e-11
    )
    np.testing.assert_array_equal(compiled.predict(X), model.classes[expected.argmax(axis=1)])


def test_int16_is_smaller_than_tables_and_gives_the_same_scores(tmp_path):
    rng = np.random.default_rng(0)
    model = make_int16_model(1, used=150, n_features=150, classes=5)
    X = (rng.random((200, 150)) < 0.2).astype(float)
    compiled = CompiledClassifier(model)
    tables = CompiledClassifier(
        model, builders.build_conjunctions(model, head=builders.choose_default_head(model))
    )
    assert compiled.nbytes < 0.5 * tables.nbytes
    np.testing.assert_allclose(
        compiled.decision_function(X), tables.decision_function(X), rtol=1e-13, atol=1e-13
    )
    assert compiled.trie is None
    compiled.save(tmp_path / "short.uk")
    for copy_ in (load(tmp_path / "short.uk"), pickle.loads(pickle.dumps(compiled))):
        np.testing.assert_array_equal(copy_.decision_function(X), compiled.decision_function(X))
        assert copy_.nbytes == compiled.nbytes


UNSUITABLE_MODELS = {
    "at least two scores, and this model has one": make_int16_model(2, classes=2),
    "pairs of binary features, and this model is of degree 3": make_int16_model(2, degree=3),
    "pairs of binary features, and this model is of degree 1": make_int16_model(2, degree=1),
    "degree 2, over features with values": make_model(2, degree=2, sets=False, classes=range(4)),
    "multiples of one power of two in 16 bits": change_weights(
        make_int16_model(2), lambda weights: weights / 3
    ),
    "in 16 bits, and the weights of this model are not": change_weights(
        make_int16_model(2), lambda weights: weights * 2.0**20 + (weights > 0)
    ),
}


@pytest.mark.parametrize("obstacle", UNSUITABLE_MODELS)
def test_weights_that_do_not_fit_16_bits_use_tables(obstacle):
    model = UNSUITABLE_MODELS[obstacle]
    assert obstacle in find_int16_obstacle(model)
    with pytest.raises(ValueError, match=f"engine='int16' needs .*{obstacle}.*; use engine='auto'"):
        compile(model, "int16")
    x = np.ones(model.n_features)
    for fast in (CompiledClassifier(model), compile(model)):
        assert fast.engine == "expanded"
        np.testing.assert_allclose(
            np.ravel(fast.decision_function([x])), np.ravel(score(model, x)), rtol=1e-9
        )
    assert "int16" not in {candidate.engine for candidate in fast.candidates}


@pytest.mark.parametrize(
    ("model", "obstacle"),
    [
        (make_kernel_model(scores=3), "weights of pairs, and this model has support vectors"),
        (make_kernel_model(kernel=Kernel("linear")), "this model has support vectors"),
        (make_kernel_model(kernel=Kernel("linear"), scores=3), "this model has support vectors"),
    ],
)
def test_models_of_support_vectors_have_no_weights(model, obstacle):
    with pytest.raises(ValueError, match=f"engine='int16' needs .*{obstacle}; use engine='auto'"):
        compile(model, "int16")


@given(
    weights=st.lists(
        st.one_of(
            st.integers(-40_000, 40_000).map(float),
            st.integers(-40_000, 40_000).map(lambda weight: weight / 1024),
            st.floats(-1e300, 1e300),
            st.sampled_from([0.0, -0.0, 5e-324, 2.0**-1060, 2.0**1000, 32767.0, 32768.0, 1 / 3]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_python_and_the_core_accept_the_same_weights(weights):
    model = make_int16_model(3, used=2, n_features=2, classes=3)
    padded_weights = np.zeros(model.weights.size)
    padded_weights[: len(weights)] = weights[: len(padded_weights)]
    model = dataclasses.replace(
        model, weights=padded_weights.reshape(model.weights.shape), intercept=np.zeros(len(model.intercept))
    )
    tables = dataclasses.replace(build_int16(make_int16_model(3)), arrays=int16_arrays(model))
    if find_int16_obstacle(model) is None:
        assert tables.engine().scores == len(model.intercept)
    else:
        with pytest.raises(ValueError, match="does not fit the int16 engine"):
            tables.engine()


def int16_arrays(model):
    arrays = {name: getattr(model, name) for name in ("columns", "keys", "weights")}
    return arrays | {"constants": model.intercept, "features": np.array([model.n_features])}


# --- As a candidate of compile -----------------------------------------------------------------------

MODEL = make_int16_model(1, used=60, n_features=60, classes=5)
ROWS = (np.random.default_rng(0).random((40, 60)) < 0.2).astype(float)


def replace_measurements(monkeypatch, engine):
    """Replace measurements: `engine` is faster than the other engine."""

    def measure(built_engine, rows, seconds=0.0):
        return (
            0.5 if (built_engine.nbytes == CompiledClassifier(MODEL).nbytes) == (engine == "int16") else 1.0
        )

    monkeypatch.setattr(candidates, "measure", measure)


@pytest.mark.parametrize("faster", ["int16", "expanded"])
def test_auto_compares_int16_with_other_engines(faster, monkeypatch):
    replace_measurements(monkeypatch, faster)
    fast = compile(MODEL, sample=ROWS)
    assert fast.engine == fast.chosen.engine == faster
    assert {candidate.engine for candidate in fast.candidates} == {"int16", "expanded"}
    assert f"engine={faster!r}" in repr(fast)
    np.testing.assert_allclose(
        fast.decision_function(ROWS),
        CompiledClassifier(MODEL).decision_function(ROWS),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("options", [{}, {"measure": False}, {"measure": False, "sample": ROWS}])
def test_int16_is_chosen_without_measuring(options):
    fast = compile(MODEL, **options)
    assert (fast.engine, fast.exact) == ("int16", True)
    assert [candidate.engine for candidate in fast.candidates] == ["int16"]
    assert compile(MODEL, memory=CompiledClassifier(MODEL).nbytes + 10).engine == "int16"
    with pytest.raises(MemoryError, match="no engine fits"):
        compile(MODEL, memory=10, **options)


def test_int16_can_be_requested_saved_and_loaded(tmp_path):
    fast = compile(MODEL, "int16")
    assert (fast.engine, fast.exact, fast.trie) == ("int16", True, None)
    assert fast.nbytes == CompiledClassifier(MODEL).nbytes
    fast.save(tmp_path / "fast.uk")
    MODEL.save(tmp_path / "model.uk")
    # The engine uses the model's own weights, which are not stored twice.
    assert (tmp_path / "fast.uk").stat().st_size < (tmp_path / "model.uk").stat().st_size + 2000
    copies = [load(tmp_path / "fast.uk"), pickle.loads(pickle.dumps(fast)), compile(tmp_path / "fast.uk")]
    for copy_ in copies:
        assert (copy_.engine, copy_.nbytes) == ("int16", fast.nbytes)
        np.testing.assert_array_equal(copy_.decision_function(ROWS), fast.decision_function(ROWS))
    assert load(tmp_path / "fast.uk").candidates == fast.candidates
    assert load(tmp_path / "model.uk").engine == "int16"


def test_the_heaviest_conjunctions_do_not_depend_on_the_engine():
    int16, tables = compile(MODEL, "int16"), compile(MODEL, "expanded")
    assert int16.heaviest(5) == tables.heaviest(5)
    conjunctions, expected = int16.heaviest_conjunctions(5), tables.heaviest_conjunctions(5)
    np.testing.assert_array_equal(conjunctions["columns"], expected["columns"])
    np.testing.assert_array_equal(conjunctions["weights"], expected["weights"])


def test_older_files_with_tables_are_read(tmp_path):
    """Files compiled before this engine had a name contain tables of conjunctions."""
    tables_of_expansion = compile(MODEL, "expanded")
    tables_of_expansion.save(tmp_path / "old.uk")
    loaded = load(tmp_path / "old.uk")
    assert loaded.engine == "expanded" and loaded.nbytes == tables_of_expansion.nbytes
    np.testing.assert_array_equal(loaded.decision_function(ROWS), tables_of_expansion.decision_function(ROWS))


def test_a_trie_needs_another_engine():
    with pytest.raises(ValueError, match="engine='int16' has no prefix trie"):
        compile(MODEL, "int16", trie=ROWS)
    fast = compile(MODEL, trie=ROWS, trie_nodes=20)
    assert fast.engine == "expanded" and fast.trie.nodes == 20
    np.testing.assert_allclose(
        fast.decision_function(ROWS),
        CompiledClassifier(MODEL).decision_function(ROWS),
        rtol=1e-12,
        atol=1e-12,
    )


def test_a_file_whose_weights_do_not_fit_is_refused(tmp_path):
    fast = compile(MODEL, "int16")
    fast.model = change_weights(MODEL, lambda weights: weights / 3)
    fast.save(tmp_path / "damaged.uk")
    with pytest.raises(FormatError, match="multiples of one power of two"):
        load(tmp_path / "damaged.uk")
