"""Forests of many and of deep trees, subtree tables from arrays, and access from several threads."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference.preorders import Tree
from reference.tree_examples import chain
from reference.tree_files import SMALL
from unkernel import Forest, TreeKernel
from unkernel._core import Forest as SubtreeTable

# --- Large trees ------------------------------------------------------------------------------------

LARGE = {
    "deep": chain(100_000),
    "deep and different": "".join(f"(L{i} " for i in range(100_000)) + "x" + ")" * 100_000,
    "pairs of new labels": "(A" + "".join(f" (L{i} w{i})" for i in range(50_000)) + ")",
    "wide": "(A" + " b" * 100_000 + ")",
    "wide and different": "(A" + "".join(f" (B w{i})" for i in range(50_000)) + ")",
    "a long label": "(" + "L" * 1_000_000 + " " + "w" * 1_000_000 + ")",
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_trees(kind):
    forest = Forest([LARGE[kind], "(A b)"])
    assert forest.brackets()[0] == LARGE[kind]
    copy = pickle.loads(pickle.dumps(forest[:1].compact()))
    assert copy.brackets() == [LARGE[kind]]
    assert Forest([*copy, LARGE[kind]]).trees["0"].tolist() == [copy.trees["0"][0]] * 2


def test_deep_trees_of_other_libraries():
    tree = Tree("X", ["x"])
    for _ in range(9_999):
        tree = Tree("X", [tree])
    assert Forest([tree]).brackets() == [chain(10_000)]


def test_repeatedly_doubled_trees_cost_only_their_distinct_subtrees():
    """Written out, the tree would have 2^40 nodes."""
    doubled = Forest(["(A x)"])
    table = doubled.table
    root = int(doubled.trees["0"][0])
    arrays = {name: list(values) for name, values in table.arrays().items()}
    for _ in range(40):
        arrays["node_labels"].append(0)
        arrays["children"] += [root, root]
        arrays["child_begins"].append(len(arrays["children"]))
        root = len(arrays["node_labels"]) - 1
    kinds = {name: np.asarray(values).dtype for name, values in table.arrays().items()}
    grown = SubtreeTable.from_arrays(**{name: np.array(arrays[name], kind) for name, kind in kinds.items()})
    forest = Forest._from_table(grown, {"0": np.array([root], np.int32)}, {})
    value = TreeKernel("st", decay=0.5, normalize=False)(forest)
    # There are 2^(40 - h) nodes of height h; large ones have a weight of 2^-(2^h ...).
    expected = sum((2.0 ** (40 - h)) ** 2 * 0.5 ** (2.0 ** (h + 1) - 1) for h in range(41))
    assert value[0, 0] == pytest.approx(expected, rel=1e-12)


# --- Tables out of arrays ---------------------------------------------------------------------------

ARRAYS = {name: np.asarray(values) for name, values in Forest(SMALL).table.arrays().items()}


def test_tables_are_restored_from_their_arrays():
    copy = SubtreeTable.from_arrays(**ARRAYS)
    for name, values in copy.arrays().items():
        assert np.array_equal(values, ARRAYS[name])


@given(data=st.data())
def test_changed_arrays_are_refused_or_form_a_valid_table(data):
    arrays = {name: values.copy() for name, values in ARRAYS.items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    place = data.draw(st.integers(0, len(arrays[name]) - 1))
    if data.draw(st.booleans()):
        limits = np.iinfo(arrays[name].dtype)
        small_values = st.integers(max(int(limits.min), -2), 20)
        arrays[name][place] = data.draw(small_values | st.integers(int(limits.min), int(limits.max)))
    else:
        arrays[name] = np.delete(arrays[name], place)
    try:
        table = SubtreeTable.from_arrays(**arrays)
    except ValueError as error:
        assert "damaged" in str(error)
        return
    for key, values in table.arrays().items():
        assert np.array_equal(values, arrays[key])
    for root in range(table.nodes):
        assert table.brackets(root, True).count("(") >= 1


@pytest.mark.parametrize("root", [8, -2, 2**31 - 1])
def test_roots_outside_of_the_table_are_refused(root):
    table = Forest(SMALL).table
    with pytest.raises(IndexError, match="no node"):
        table.brackets(root, False)
    with pytest.raises(IndexError, match="no node"):
        SubtreeTable().absorb(table, np.array([0, root], np.int32))


# --- Threads ----------------------------------------------------------------------------------------


def test_a_forest_is_read_while_it_grows():
    """Kernels of existing trees do not change while another thread extends the forest."""
    forest = Forest([f"(S (NP w{i}) (VP (V v{i % 7}) (NP w{i % 5})))" for i in range(300)])
    part = forest[:]
    expected = TreeKernel(n_jobs=1)(part)
    stop = threading.Event()

    def grow():
        added = 0
        while not stop.is_set() and added < 20_000:
            forest.extend([f"(S (NP new{added}) (VP (V x{added})))"])
            added += 1
        return added

    with ThreadPoolExecutor(4) as pool:
        growing = pool.submit(grow)
        futures = [pool.submit(TreeKernel(n_jobs=2), part) for _ in range(6)]
        matrices = [future.result() for future in futures]
        stop.set()
        added = growing.result()
    assert added > 0
    assert len(forest) == 300 + added
    for matrix in matrices:
        assert np.array_equal(matrix, expected)


def test_channels_without_a_common_name_are_refused():
    forest, other = Forest({"a": SMALL, "b": SMALL}), Forest({"c": SMALL, "d": SMALL})
    with pytest.raises(ValueError, match="the same names"):
        forest.roots_like(other)


def test_matching_vectors_by_name_does_not_change_the_forest():
    vectors = sparse.csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]]))
    forest, other = (Forest({"t": SMALL}, vectors={"v": vectors}) for _ in range(2))
    forest.features, other.features = ["x", "y"], ["y", "x"]
    expected = forest.vectors["v"].matrix.toarray()
    (moved,) = forest.vectors_like(other)
    assert moved.matrix.toarray().tolist() == expected[:, ::-1].tolist()
    assert forest.vectors["v"].matrix.toarray().tolist() == expected.tolist()
    vectors.data[:] = 9.0
    assert forest.vectors["v"].matrix.toarray().tolist() == expected.tolist()


def test_examples_of_several_trees_are_not_taken_apart():
    forest = Forest({"a": SMALL, "b": SMALL})
    with pytest.raises(ValueError, match=r"select examples"):
        Forest([forest[0], "(A b)"])


def test_threads_can_extend_one_forest():
    forest = Forest(SMALL)
    threads = [
        threading.Thread(target=lambda: [forest.extend([f"(X w{i})"]) for i in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(forest) == len(SMALL) + 200
