"""``compile(trie=...)``: the options, which tries are kept, and errors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

import unkernel
from reference import golden
from reference.kernels import assert_scores, make_kernel_model, make_rows_for, make_slots_model, polynomial
from reference.models import make_model
from unkernel.engines.search import candidate_search, candidates
from unkernel.models.kernel import Kernel

MODEL = make_slots_model(1, 3)
ROWS = make_rows_for(MODEL, 1, 60)[:180]


@pytest.mark.parametrize("engine", ["auto", "expanded", "split"])
@pytest.mark.parametrize("nodes", [1, 25, np.int64(25)])
def test_an_explicit_trie_is_kept(engine, nodes):
    fast = unkernel.compile(MODEL, engine, rare=4, trie=ROWS, trie_nodes=nodes)
    assert 0 < fast.trie.nodes <= nodes and fast.trie.limit == nodes
    assert fast.chosen.trie_nodes == fast.trie.nodes
    assert sum(candidate.chosen for candidate in fast.candidates) == 1
    assert fast.exact and fast.engine in ("expanded", "split")
    X = make_rows_for(MODEL)
    assert_scores(fast.decision_function(X), MODEL, X)
    candidates_without_trie = [candidate for candidate in fast.candidates if not candidate.trie_nodes]
    assert candidates_without_trie  # engines without a trie are still listed


def test_pruned_engines_can_have_a_trie():
    fast = unkernel.compile(MODEL, "pruned", threshold=0.5, trie=ROWS, trie_nodes=30)
    without_trie = unkernel.compile(MODEL, "pruned", threshold=0.5)
    assert fast.trie.nodes == 30 and not fast.exact and fast.engine == "pruned"
    X = make_rows_for(MODEL)
    np.testing.assert_allclose(
        fast.decision_function(X), without_trie.decision_function(X), rtol=1e-9, atol=1e-9
    )


def test_trained_models_can_have_a_trie():
    model = make_model(1, degree=3, used=10, n_features=12, classes=range(3))
    X = (np.random.default_rng(0).random((60, 12)) < 0.4) * 1.0
    fast = unkernel.compile(model, trie=X, trie_nodes=20)
    assert fast.trie.nodes == 20
    expected = unkernel.compile(model).decision_function(X)
    np.testing.assert_allclose(fast.decision_function(X), expected, rtol=1e-10, atol=1e-10)


def replace_measurements(monkeypatch, trie_is_slower):
    """Replace measurements: engines with a trie are slower, or faster, than engines without a trie."""

    def measure(engine, rows, seconds=0.0):
        assert rows is not None and rows.shape[0] > 0
        return 1.0 if (engine_has_trie(engine) == trie_is_slower) else 0.5

    monkeypatch.setattr(candidates, "measure", measure)


def engine_has_trie(engine):
    try:
        return engine.trie() is not None
    except ValueError:
        return False


@pytest.mark.parametrize("engine", ["auto", "expanded", "split"])
def test_tries_that_slow_the_engine_down_are_left_out(engine, monkeypatch):
    replace_measurements(monkeypatch, True)
    fast = unkernel.compile(MODEL, engine, trie=ROWS)
    assert fast.trie is None and not fast.chosen.trie_nodes
    assert any(candidate.trie_nodes for candidate in fast.candidates)
    with_small_trie = unkernel.compile(MODEL, engine, trie=ROWS, trie_nodes=10)
    assert with_small_trie.trie.nodes == 10 and with_small_trie.chosen.trie_nodes == 10


@pytest.mark.parametrize("engine", ["auto", "expanded", "split"])
def test_tries_that_speed_the_engine_up_are_kept(engine, monkeypatch):
    replace_measurements(monkeypatch, False)
    monkeypatch.setattr(candidate_search, "_TRIE_SIZES", (100, 30, 10))
    fast = unkernel.compile(MODEL, engine, trie=ROWS)
    assert [c.trie_nodes for c in fast.candidates if c.trie_nodes] == [100, 30, 10]
    assert fast.trie.limit == fast.trie.nodes == 100  # all sizes are equally fast; the first is chosen
    X = make_rows_for(MODEL)
    assert_scores(fast.decision_function(X), MODEL, X)


def test_rows_can_be_read_from_a_file(tmp_path):
    path = tmp_path / "rows.txt"
    lines = [" ".join(["0", *(f"{c + 1}:1" for c in np.flatnonzero(row))]) for row in ROWS]
    path.write_text("\n".join(lines) + "\n")
    for trie_rows in (path, str(path)):
        fast = unkernel.compile(MODEL, trie=trie_rows, trie_nodes=15)
        assert fast.trie.nodes == 15
    sparse_rows = unkernel.compile(MODEL, trie=sparse.csc_matrix(ROWS), trie_nodes=15)
    assert sparse_rows.trie.nodes == 15
    with pytest.raises(FileNotFoundError):
        unkernel.compile(MODEL, trie=tmp_path / "nothing.txt")
    path.write_bytes(b"\x00\xff 1:1:1 \n" * 3)
    with pytest.raises(ValueError, match=r"rows\.txt"):
        unkernel.compile(MODEL, trie=path)


@pytest.mark.parametrize("nodes", [0, -5, True, False, 2.5, "10", 2**31, float("nan"), [3]])
def test_numbers_of_nodes_that_are_refused(nodes):
    with pytest.raises(ValueError, match="trie_nodes must be a whole number from 1"):
        unkernel.compile(MODEL, trie=ROWS, trie_nodes=nodes)


@pytest.mark.parametrize("engine", ["inverted", "bitsliced"])
def test_engines_without_conjunctions_refuse_a_trie(engine):
    with pytest.raises(ValueError, match="no conjunctions, and so no prefix trie"):
        unkernel.compile(MODEL, engine, trie=ROWS)


def test_trie_nodes_needs_rows():
    with pytest.raises(ValueError, match="trie_nodes needs rows to grow a trie from"):
        unkernel.compile(MODEL, trie_nodes=10)


def test_too_few_rows():
    with pytest.raises(ValueError, match="at least 2 rows"):
        unkernel.compile(MODEL, trie=ROWS[:1])
    for sample in (None, ROWS):
        with pytest.raises(ValueError, match="trie has no rows"):
            unkernel.compile(MODEL, trie=sparse.csr_matrix((0, 5)), sample=sample)
    fast = unkernel.compile(MODEL, trie=ROWS[:1], sample=ROWS, trie_nodes=100)
    assert fast.trie.nodes == np.count_nonzero(ROWS[0, : MODEL.n_features - 1])
    empty = unkernel.compile(MODEL, trie=np.zeros((3, 5)), trie_nodes=100)
    assert empty.trie is not None and empty.trie.nodes == 0
    X = make_rows_for(MODEL)
    assert_scores(empty.decision_function(X), MODEL, X)
    from_two_rows = unkernel.compile(MODEL, trie=ROWS[:2], trie_nodes=100)
    assert from_two_rows.trie.nodes == fast.trie.nodes  # one of the two rows is used for measuring


MODELS_WITHOUT_SETS = {
    "linear": make_kernel_model(2, Kernel("linear")),
    "degree 1": make_kernel_model(2, polynomial(1)),
    "rbf": make_kernel_model(2, Kernel("rbf", gamma=0.2)),
    "degree 5": make_kernel_model(2, polynomial(5)),
    "real": make_kernel_model(2, polynomial(2), real=True),
    "negative coef0": make_kernel_model(2, polynomial(2, 0.5, -1.0)),
    "monomials": make_model(2, degree=2, sets=False),
}


@pytest.mark.parametrize("name", MODELS_WITHOUT_SETS)
@pytest.mark.parametrize("nodes", [None, 10])
def test_models_without_sets_refuse_a_trie(name, nodes):
    model = MODELS_WITHOUT_SETS[name]
    X = np.ones((4, model.n_features))
    with pytest.raises(ValueError, match="a prefix trie needs conjunctions of binary features"):
        unkernel.compile(model, trie=X, trie_nodes=nodes)


def test_models_of_trees_refuse_a_trie():
    with pytest.raises(ValueError, match="leave out engine, sample and trie"):
        unkernel.compile(golden.model_path("svmlight-tk-sst"), trie=ROWS)


def test_rows_of_the_wrong_width():
    model = dataclasses.replace(MODEL, fixed_width=True)
    with pytest.raises(ValueError, match="features"):
        unkernel.compile(model, trie=ROWS, trie_nodes=3)
    with pytest.raises(ValueError, match="NaN"):
        unkernel.compile(MODEL, trie=[[np.nan], [1.0]])


def test_memory_is_a_limit():
    fast = unkernel.compile(MODEL, trie=ROWS, trie_nodes=200, memory="1M")
    assert fast.nbytes <= 1e6 and fast.trie.nodes > 100
    with pytest.raises(MemoryError, match="raise memory"):
        unkernel.compile(MODEL, trie=ROWS, trie_nodes=200, memory=fast.nbytes // 3)
    smallest = min(c.nbytes for c in fast.candidates if c.nbytes > 0)
    small = unkernel.compile(MODEL, trie=ROWS, memory=smallest + 1000)
    assert small.nbytes <= smallest + 1000


def test_progress_names_the_trie():
    reported = []
    unkernel.compile(MODEL, "split", rare=4, trie=ROWS, trie_nodes=10, on_progress=reported.append)
    assert any("growing a trie" in words for words in reported)
    assert any("trie of 10" in words for words in reported)


@pytest.mark.filterwarnings("ignore:.*features.*")
def test_rows_in_files_can_have_unknown_features(tmp_path):
    X = np.random.default_rng(0).integers(0, 2, (40, 6)).astype(float)
    model = unkernel.PolySVC(2, gamma=1).fit(X, X[:, 0] != X[:, 1]).to_model()
    more_columns = sparse.csr_matrix(np.hstack([X, np.ones((40, 2))]))
    unkernel.write_svmlight(tmp_path / "rows.svm", more_columns, np.zeros(40))
    fast = unkernel.compile(model, trie=tmp_path / "rows.svm", trie_nodes=20)
    np.testing.assert_allclose(
        fast.decision_function(X), unkernel.CompiledClassifier(model).decision_function(X)
    )
