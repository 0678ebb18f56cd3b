"""Kernels of examples with several trees and vectors, and sums of them, against plain sums."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference.selection import few_examples, slow_after
from reference.tree_examples import Example, example_kernel, make_forest, make_problem, trees
from unkernel import Forest, TreeClassifier, TreeModel, read_trees
from unkernel._core import example_machine, example_set, kernel_matrix, self_kernels
from unkernel.data.trees.forest import Vectors
from unkernel.models import Decision, ExampleKernel, Kernel

costly = few_examples(10)
combinations = pytest.mark.parametrize("combination", ["trees", "vectors", "sum", "product"])
VECTOR_KERNELS = st.one_of(
    st.just(Kernel("linear")),
    st.builds(Kernel, st.just("polynomial"), st.integers(1, 4), st.floats(0.1, 2), st.floats(-1, 2)),
    st.builds(Kernel, st.just("rbf"), st.just(3), st.floats(0, 2)),
    st.builds(Kernel, st.just("sigmoid"), st.just(3), st.floats(0.1, 1), st.floats(-1, 1)),
)


def kernels(combination):
    return st.builds(
        ExampleKernel,
        tree=st.sampled_from(["st", "sst", "sst_bow", "ptk"]),
        decay=st.floats(0.1, 1.0),
        width_decay=st.floats(0.1, 1.0),
        normalize=st.booleans(),
        tree_pairing=st.sampled_from(["same", "all"]),
        combination=st.just(combination),
        tree_weight=st.floats(0, 3),
        vector=VECTOR_KERNELS,
        normalize_vectors=st.booleans(),
        vector_pairing=st.sampled_from(["same", "all"]),
    )


def example_lists(tree_channels, vector_channels, max_size=5):
    vector = st.lists(st.integers(-4, 4).map(lambda i: i / 4), min_size=3, max_size=3)
    example = st.builds(
        Example,
        st.tuples(*[st.none() | trees(max_leaves=5)] * tree_channels),
        st.tuples(*[st.none() | vector] * vector_channels),
    )
    return st.lists(example, min_size=1, max_size=max_size)


@st.composite
def two_sides(draw):
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    return draw(example_lists(*shape)), draw(example_lists(*shape))


def matrix(kernel, left, right=None, threads=1):
    examples = kernel.examples(left, like=right, indexed=right is None)
    others = examples if right is None else kernel.examples(right, indexed=True)
    return np.asarray(
        kernel_matrix(
            kernel.core(), examples, others, symmetric=right is None, threads=threads, on_progress=None
        )
    )


def expected_matrix(kernel, left, right):
    return np.array([[example_kernel(kernel, a, b) for b in right] for a in left])


def assert_values(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * max(1.0, np.abs(expected).max()))


# --- Matrices ---------------------------------------------------------------------------------------


@combinations
@given(data=st.data(), sides=two_sides())
@costly
def test_kernels_are_plain_sums(combination, data, sides):
    kernel = data.draw(kernels(combination))
    left, right = sides
    assert_values(matrix(kernel, make_forest(left), make_forest(right)), expected_matrix(kernel, left, right))
    symmetric = expected_matrix(kernel, left, left)
    forest = make_forest(left)
    assert_values(matrix(kernel, forest), symmetric)
    diagonal = self_kernels(kernel.core(), kernel.examples(forest, indexed=True), 2)
    assert_values(np.asarray(diagonal), np.diag(symmetric))


@given(data=st.data(), left=example_lists(3, 2), right=example_lists(2, 1))
@costly
def test_sides_with_different_numbers_of_channels(data, left, right):
    kernel = data.draw(kernels("sum"))
    expected = expected_matrix(kernel, left, right)
    assert_values(matrix(kernel, make_forest(left), make_forest(right)), expected)
    assert_values(matrix(kernel, make_forest(right), make_forest(left)), expected.T)


def test_all_pairs_of_trees_by_hand():
    left = Forest({"a": ["(A b)"], "b": ["(C d)"]})
    right = Forest({"a": ["(C d)"], "b": ["(A b)"]})
    assert matrix(ExampleKernel(tree_pairing="same"), left, right)[0, 0] == 0.0
    assert matrix(ExampleKernel(tree_pairing="all"), left, right)[0, 0] == pytest.approx(2.0)


@pytest.mark.parametrize("combination", ["trees", "vectors"])
def test_all_pairs_where_one_side_has_more_channels(combination):
    kernel = ExampleKernel(tree_pairing="all", vector_pairing="all", combination=combination)
    left = Forest({"a": ["(A b)"], "b": ["(C d)"]}, vectors={"v": [[1.0, 0]], "w": [[0, 1.0]]})
    right = Forest({"a": ["(C d)"]}, vectors={"v": [[0, 1.0]]})
    assert matrix(kernel, left, right)[0, 0] == pytest.approx(1.0)
    assert matrix(kernel, right, left)[0, 0] == pytest.approx(1.0)


def test_empty_vectors_differ_from_missing_ones():
    forest = Forest({"0": ["(A b)"] * 3})
    vectors = Vectors(sparse.csr_matrix([[0.0], [0.0], [2.0]]), np.array([True, False, True]))
    forest = Forest._from_table(forest.table, forest.trees, {"0": vectors})
    kernel = ExampleKernel(combination="vectors", vector=Kernel("polynomial", 2, 1.0, 3.0))
    assert matrix(kernel, forest).tolist() == [[9, 0, 9], [0, 0, 0], [9, 0, 49]]


def test_columns_of_only_one_side():
    kernel = ExampleKernel(combination="vectors", vector=Kernel("rbf", gamma=0.5))
    narrow, wide = Forest({}, vectors=[[1.0, 0.0]]), Forest({}, vectors=[[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    assert_values(matrix(kernel, narrow, wide), np.exp([[-2.0, -0.5]]))
    assert_values(matrix(kernel, wide, narrow), np.exp([[-2.0], [-0.5]]))


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", gamma=0.5)])
def test_named_features_are_compared_by_their_names(kernel):
    left, right = (read_trees(io.BytesIO(text.encode())).X for text in (
        "A |BV:v| x:1 z:2 |EV|\nB |BV:v| y:3 |EV|\n",
        "A |BV:v| y:5 x:7 new:1 |EV|\n",
    ))  # fmt: skip
    values = kernel.matrix([[1.0, 2, 0, 0], [0, 0, 3, 0]], [[7.0, 0, 5, 1]])
    example = ExampleKernel(combination="vectors", vector=kernel)
    assert_values(matrix(example, left, right), values)
    assert_values(matrix(example, right, left), values.T)


@combinations
def test_results_do_not_depend_on_threads_and_pieces(combination):
    texts, _ = make_problem(1, 150)
    vectors = np.random.default_rng(0).normal(size=(150, 6)).round(2)
    forest = Forest({"a": texts, "b": texts[::-1]}, vectors={"v": vectors, "w": vectors * 2})
    kernel = ExampleKernel(combination=combination, vector=Kernel("polynomial", 2, 0.5, 1.0))
    expected_values = matrix(kernel, forest)
    assert np.array_equal(matrix(kernel, forest, threads=3), expected_values)
    assert_values(matrix(kernel, forest[:7], forest), expected_values[:7])


# --- Scores of models: sums of kernels --------------------------------------------------------------


def machine_scores(kernel, support, coefficients, examples, threads=1):
    right = kernel.examples(support, indexed=True)
    example_numbers = np.arange(len(support), dtype=np.int32)
    machine = example_machine(kernel.core(), right, example_numbers, np.ascontiguousarray(coefficients))
    return np.asarray(machine.score(kernel.examples(examples, like=support), threads))


@combinations
@pytest.mark.parametrize("scores", slow_after(1, [3, 1]))
@given(data=st.data(), sides=two_sides())
@few_examples(5)
def test_scores_are_sums_of_kernels(combination, scores, data, sides):
    kernel = data.draw(kernels(combination))
    left, right = sides
    coefficients = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(len(right), scores))
    actual_scores = machine_scores(kernel, make_forest(right), coefficients, make_forest(left))
    values = expected_matrix(kernel, left, right)
    scale = np.abs(values) @ np.abs(coefficients)
    norms = max(example_kernel(kernel, example, example) for example in [*left, *right])
    assert (np.abs(actual_scores - values @ coefficients) <= 1e-11 * scale + 1e-12 * max(1.0, norms)).all()


@combinations
def test_a_machine_of_some_examples(combination):
    texts, _ = make_problem(2, 60)
    vectors = np.random.default_rng(1).normal(size=(60, 4)).round(2)
    forest = Forest(texts, vectors=vectors)
    kernel = ExampleKernel(combination=combination, tree_weight=0.5)
    right = kernel.examples(forest, indexed=True)
    example_numbers = np.array([3, 3, 17, 42], np.int32)  # example 3 occurs twice
    coefficients = np.array([[1.0], [0.5], [-2.0], [1.0]])
    machine = example_machine(kernel.core(), right, example_numbers, coefficients)
    expected = matrix(kernel, forest)[:, example_numbers] @ coefficients
    for threads in (1, 3):
        assert_values(np.asarray(machine.score(right, threads)), expected)


def test_machines_without_examples_score_zero():
    kernel = ExampleKernel(combination="sum")
    forest = Forest(["(A b)", "(C d)"], vectors=np.eye(2))
    machine = example_machine(
        kernel.core(), kernel.examples(forest, indexed=True), np.zeros(0, np.int32), np.zeros((0, 2))
    )
    assert np.asarray(machine.score(kernel.examples(forest), 1)).tolist() == [[0, 0], [0, 0]]
    model = TreeModel(
        kernel, forest[:0], np.zeros((0, 1)), np.array([0.5]), Decision("binary", np.array([0, 1])), {}
    )
    assert TreeClassifier(model).decision_function(forest).tolist() == [0.5, 0.5]


# --- Refused inputs ---------------------------------------------------------------------------------


def core_set(**changes):
    forest = Forest(["(A b)", "(C d)"])
    kernel = ExampleKernel(combination="sum").core()
    ends = np.arange(3, dtype=np.int64)
    given_values = {
        "trees": [(ends, forest.trees["0"])],
        "vectors": [(ends, ends, np.array([0, 1], np.int32), np.ones(2))],
    } | changes
    return example_set(
        kernel=kernel, forest=forest.table, size=2, normalize_trees=True, normalize_vectors=False,
        indexed=True, threads=1, **given_values,
    )  # fmt: skip


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


ROOTS = ints(1, 3, dtype=np.int32)
COLUMNS = ints(0, 1, dtype=np.int32)


@pytest.mark.parametrize(
    "changes",
    [
        {"trees": [(ints(0, 1), ROOTS)]},
        {"trees": [(ints(0, 1, 3), ROOTS)]},
        {"trees": [(ints(1, 1, 2), ROOTS)]},
        {"trees": [(ints(0, 2, 1), ROOTS)]},
        {"trees": [(ints(0, -1, 2), ROOTS)]},
        {"trees": [(ints(), ROOTS)]},
        {"trees": [(ints(0, 1, 2), ints(1, 4, dtype=np.int32))]},
        {"trees": [(ints(0, 1, 2), ints(1, -2, dtype=np.int32))]},
        {"vectors": [(ints(0, 1, 2), ints(), COLUMNS, np.ones(2))]},
        {"vectors": [(ints(0, 1, 2), ints(0, 1, 3), COLUMNS, np.ones(2))]},
        {"vectors": [(ints(0, 1, 2), ints(0, 2, 1), COLUMNS, np.ones(2))]},
        {"vectors": [(ints(0, 2, 2), ints(0, 1), COLUMNS[:1], np.ones(1))]},
        {"vectors": [(ints(0, 1, 2), ints(0, 1, 2), COLUMNS, np.ones(3))]},
        {"vectors": [(ints(0, 1, 2), ints(0, 1, 2), ints(0, -1, dtype=np.int32), np.ones(2))]},
        {"vectors": [(ints(0, 1, 2), ints(0, 1, 2), ints(0, 2**31 - 1, dtype=np.int32), np.ones(2))]},
        {"vectors": [(ints(0, 1, 2), ints(0, 1, 2), COLUMNS, np.array([1e200, 1.0]))]},
    ],
)
def test_invalid_example_arrays_are_refused(changes):
    with pytest.raises((ValueError, IndexError)):
        core_set(**changes)


def test_valid_example_arrays_are_accepted():
    assert core_set().size == 2


@pytest.mark.parametrize("example_numbers", [[2], [-1], [0, 0]])
def test_example_numbers_out_of_range_are_refused(example_numbers):
    with pytest.raises((ValueError, IndexError)):
        example_machine(
            ExampleKernel(combination="sum").core(),
            core_set(),
            np.array(example_numbers, np.int32),
            np.ones((1, 1)),
        )


@pytest.mark.parametrize(
    "settings_given",
    [
        {"tree": "tree"},
        {"combination": "both"},
        {"tree_pairing": "some"},
        {"vector_pairing": "none"},
        {"vector": Kernel("precomputed")},
        {"decay": 0.0},
        {"decay": np.nan},
        {"decay": np.inf},
        {"width_decay": -1.0},
        {"tree_weight": -0.5},
        {"tree_weight": np.inf},
    ],
    ids=str,
)
def test_invalid_kernel_settings_are_refused(settings_given):
    with pytest.raises(ValueError, match="must be"):
        ExampleKernel(**settings_given)


def test_kernels_are_described_in_words():
    assert ExampleKernel().words() == "subset trees, decay 0.4"
    assert ExampleKernel("ptk", combination="sum", tree_weight=0.5).words() == (
        "0.5 times partial trees, decay 0.4, width decay 0.4, plus vectors, linear"
    )
