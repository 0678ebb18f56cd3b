"""Kernel matrices of trees against their slow twins.

Values are compared within 1e-12 of sqrt(K(x, x) K(z, z)), the largest possible value of a kernel: a matrix is
the sum of common parts of whole groups of nodes and the differences of single nodes.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from reference.selection import few_examples, slow_after
from reference.tree_examples import (
    as_trees,
    chain,
    chain_kernel,
    gram,
    make_problem,
    text,
    trees,
)
from reference.tree_kernels import KINDS, kernel, kernel_by_fragments
from unkernel import Forest, FormatError, TreeKernel

every_kernel = pytest.mark.parametrize("kind", KINDS)
DECAYS = st.floats(0.05, 1.5)
LISTS = st.lists(trees(), min_size=1, max_size=6)
few = few_examples(10)


def assert_kernels(found, expected, left, right):
    """Check values within 1e-12 of the norms; left and right have K(x, x), before normalisation."""
    scale = np.sqrt(np.outer(np.where(left > 0, left, 1.0), np.where(right > 0, right, 1.0)))
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 1e-12 * scale).all()


def check(a, b, found, options, value=kernel):
    kind, decay, width_decay, normalize = options
    norms = [np.array([value(x, x, kind, decay, width_decay) for x in side]) for side in (a, b)]
    expected = np.array([[value(x, z, kind, decay, width_decay) for z in b] for x in a])
    if normalize:
        norms = [np.where(norm > 0, norm, 1.0) for norm in norms]
        expected = expected / np.sqrt(np.outer(*norms))
        norms = [np.ones(len(norm)) for norm in norms]
    assert_kernels(found, expected, *norms)


def draw_options(kind):
    return st.tuples(st.just(kind), DECAYS, DECAYS, st.booleans())


def tree_kernel(options, n_jobs=1):
    kind, decay, width_decay, normalize = options
    return TreeKernel(kind, decay=decay, width_decay=width_decay, normalize=normalize, n_jobs=n_jobs)


# --- The twins --------------------------------------------------------------------------------------


@every_kernel
@given(data=st.data(), a=LISTS, b=LISTS)
@few
def test_kernels_equal_the_twin(kind, data, a, b):
    options = data.draw(draw_options(kind))
    compute = tree_kernel(options)
    left, right = [text(tree) for tree in a], [text(tree) for tree in b]
    check(a, a, compute(left), options)
    result = compute(left, right)
    check(a, b, result, options)
    # Uses a part of a forest with other content.
    forest = Forest(["(Other tree)", *right, *left])
    np.testing.assert_allclose(
        compute(forest[1 + len(b) :], forest[1 : 1 + len(b)]), result, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(compute(left, forest[1 : 1 + len(b)]), result, rtol=1e-12, atol=1e-14)


@every_kernel
@given(data=st.data(), a=st.lists(trees("AB", "AB"), min_size=1, max_size=5))
@few
def test_labels_can_be_words_in_one_tree_and_nodes_in_another(kind, data, a):
    """Complete subtrees are equal or not, although SVM-light-TK treats some different ones as equal."""
    options = data.draw(draw_options(kind))
    left = [text(tree) for tree in a]
    value = kernel_by_fragments if kind == "st" else kernel
    check(a, a, tree_kernel(options)(left), options, value)
    check(a, a[::-1], tree_kernel(options)(left, left[::-1]), options, value)


@every_kernel
@given(data=st.data())
@few
def test_productions_that_match_nearly_everywhere(kind, data):
    """One production nearly everywhere, with nearly the same below it: exceptions are computed."""
    word = st.sampled_from(["x"] * 6 + ["y", "(x z)"])
    node = st.builds("(S (A {}) (B {}) (C {}) (B {}))".format, word, word, word, word)
    a, b = (data.draw(st.lists(node, min_size=3, max_size=9)) for _ in range(2))
    options = data.draw(draw_options(kind))
    value = kernel_by_fragments if kind == "st" else kernel  # x is a word and a node
    check(as_trees(a), as_trees(a), tree_kernel(options)(a), options, value)
    check(as_trees(a), as_trees(b), tree_kernel(options)(a, b), options, value)


@pytest.mark.parametrize("width", [5, 6, 12])
@given(data=st.data())
@few_examples(8)
def test_many_children(width, data):
    wide = st.lists(st.sampled_from(["x", "(A x)", "(A y)", "(B x)"]), min_size=width, max_size=width)
    a = ["(S " + " ".join(data.draw(wide)) + ")" for _ in range(4)]
    for kind in KINDS:
        options = data.draw(draw_options(kind))
        check(as_trees(a), as_trees(a), tree_kernel(options)(a), options)


@every_kernel
def test_repeated_children_are_counted(kind):
    a = ["(S (A (B x)) (A (B x)) (A (B y)))", "(S (A (B x)) (A (B y)) (A (B x)))", "(A (A (A (B x))))"]
    for normalize in (False, True):
        options = (kind, 0.7, 0.3, normalize)
        check(as_trees(a), as_trees(a), tree_kernel(options)(a), options)


@every_kernel
def test_kernels_of_trees_with_parts_of_only_one_side(kind):
    known = ["(S (A x) (B y))", "(S (A x))"]
    new = ["(S (A x) (New y))", "(New (A x))", "(S (A new) (B y))", "(New new)", "(S (A x) (B y) (C z))"]
    options = (kind, 0.4, 0.6, True)
    check(as_trees(new), as_trees(known), tree_kernel(options)(new, known), options)
    check(as_trees(known), as_trees(new), tree_kernel(options)(known, new), options)


def sentences(seed, rows):
    return make_problem(seed, rows)[0]


@every_kernel
@pytest.mark.parametrize("normalize", slow_after(1, [True, False]))
def test_sentences(kind, normalize):
    a, b = sentences(1, 30), sentences(2, 20)
    options = (kind, 0.4, 0.5, normalize)
    check(as_trees(a), as_trees(b), tree_kernel(options)(a, b), options)
    check(as_trees(a), as_trees(a), tree_kernel(options)(a), options)


# --- Sizes ------------------------------------------------------------------------------------------


@every_kernel
def test_more_columns_than_are_computed_at_once(kind):
    distinct = sorted(set(sentences(3, 25)))
    small = gram(as_trees(distinct), as_trees(distinct), kind)
    forest = Forest(distinct)
    chosen = np.random.default_rng(0).integers(0, len(distinct), 2100)
    result = TreeKernel(kind, n_jobs=2)(forest[chosen])
    np.testing.assert_allclose(result, small[np.ix_(chosen, chosen)], rtol=0, atol=1e-12)
    result = TreeKernel(kind, n_jobs=2)(forest[chosen[:70]], Forest(distinct)[chosen])
    np.testing.assert_allclose(result, small[np.ix_(chosen[:70], chosen)], rtol=0, atol=1e-12)


@every_kernel
def test_results_do_not_depend_on_the_number_of_threads(kind):
    a = sentences(4, 200)
    alone = TreeKernel(kind, n_jobs=1)(a)
    for n_jobs in (2, 5, -1, None):
        assert np.array_equal(TreeKernel(kind, n_jobs=n_jobs)(a), alone)
        np.testing.assert_allclose(TreeKernel(kind, n_jobs=n_jobs)(a, a), alone, rtol=1e-13)


@pytest.mark.parametrize(
    ("kind", "nodes"), [("st", 10_000), ("sst", 4_000), ("sst_bow", 1_500), ("ptk", 1_500)]
)
def test_chains(kind, nodes):
    """Deeper than recursion allows, with all nodes in one group.

    Sums of millions of nearly equal numbers are accurate to 1e-9.
    """
    sizes = (nodes, nodes - 1, 3)
    twin = "sst" if kind == "sst_bow" else kind
    word = 0.4 if kind == "sst_bow" else 0.0
    expected = np.array([[chain_kernel(n, m, twin, 0.4, 0.6) + word for m in sizes] for n in sizes])
    result = TreeKernel(kind, decay=0.4, width_decay=0.6, normalize=False)([chain(n) for n in sizes])
    np.testing.assert_allclose(result, expected, rtol=1e-9)
    norms = np.sqrt(np.diag(expected))
    result = TreeKernel(kind, decay=0.4, width_decay=0.6)([chain(sizes[0])], [chain(sizes[1])])
    np.testing.assert_allclose(result, expected[:1, 1:2] / np.outer(norms[:1], norms[1:2]), rtol=1e-9)


@every_kernel
def test_a_chain_of_ten_thousand_different_labels(kind):
    labels = [f"L{i % 97}_{i // 97}" for i in range(10_000)]
    tree = "".join(f"({label} " for label in labels) + "x" + ")" * len(labels)
    result = TreeKernel(kind, normalize=False, width_decay=0.5)([tree, tree])
    # Each node matches only itself, with everything below it.
    value = {"st": 0.0, "sst": 0.0, "sst_bow": 0.0, "ptk": 0.5 * 0.16}[kind]
    total = 0.4 if kind == "sst_bow" else value
    for height in range(len(labels)):
        value = {"st": 0.4 ** (height + 1), "ptk": 0.5 * (0.16 + value)}.get(kind, 0.4 * (1.0 + value))
        total += value
    np.testing.assert_allclose(result, np.full((2, 2), total), rtol=1e-11)


@every_kernel
def test_trees_too_large_for_a_table_of_all_pairs(kind):
    """With more than 1,024 distinct nodes, an index computes the norm."""
    rng = np.random.default_rng(5)
    rows = [f"(A{rng.integers(100)} (B w{i}) (C w{rng.integers(50)}))" for i in range(350)]
    for label, width in (("D", 5), ("E", 10), ("S", 10)):
        rows = [f"({label} {' '.join(rows[i : i + width])})" for i in range(0, len(rows), width)]
    (tree,) = rows
    (parsed,) = as_trees(rows)
    assert Forest([tree]).nodes > 1024
    decay = 0.01  # the factors 1 + Delta, of which there are hundreds, would be large otherwise
    expected = kernel(parsed, parsed, kind, decay, 0.3)
    result = TreeKernel(kind, decay=decay, width_decay=0.3, normalize=False)([tree])
    assert result[0, 0] == pytest.approx(expected, rel=1e-11)
    assert TreeKernel(kind, decay=decay, width_decay=0.3)([tree])[0, 0] == pytest.approx(1.0, rel=1e-12)


@every_kernel
def test_trees_of_one_leaf_and_no_trees(kind):
    a = ["(A)", "(B)", None, "(A B)", "(A)"]
    result = TreeKernel(kind, decay=0.5, width_decay=0.5)(Forest(a))
    parsed = [None if one is None else as_trees([one])[0] for one in a]
    expected = np.array(
        [
            [0.0 if x is None or z is None else kernel(x, z, kind, 0.5, 0.5, normalize=True) for z in parsed]
            for x in parsed
        ]
    )
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert (result[2] == 0).all()


def test_no_trees_on_a_side():
    empty, some = Forest([]), Forest(["(A b)"])
    assert TreeKernel()(empty).shape == (0, 0)
    assert TreeKernel()(empty, some).shape == (0, 1)
    assert TreeKernel()(some, empty).shape == (1, 0)


def test_kernels_that_are_too_large_are_refused():
    wide = "(A " + "(B x) " * 3000 + ")"
    for normalize in (True, False):
        with pytest.raises(ValueError, match=r"not finite.*lower it"):
            TreeKernel(decay=1.0, normalize=normalize)(["(A b)", wide])
    assert TreeKernel(decay=1e-6)([wide, wide]) == pytest.approx(1.0)


@every_kernel
@given(data=st.data(), a=LISTS)
@few_examples(8)
def test_matrices_are_symmetric_and_positive_semidefinite(kind, data, a):
    """Symmetric, no negative eigenvalues, 1 on the diagonal."""
    _, decay, width_decay, _ = data.draw(draw_options(kind))
    result = tree_kernel((kind, decay, width_decay, True))([text(tree) for tree in a])
    assert np.array_equal(result, result.T)
    assert np.linalg.eigvalsh(result)[0] > -1e-9
    assert ((np.abs(np.diag(result) - 1) < 1e-12) | (np.diag(result) == 0)).all()


# --- As a function and as a transformer -------------------------------------------------------------


def test_trees_of_every_kind_are_accepted():
    a = sentences(6, 12)
    forest = Forest(a)
    expected = TreeKernel()(a)
    for same in (forest, np.array(a), list(forest), [*forest[:3], *a[3:]], (one for one in a)):
        np.testing.assert_allclose(TreeKernel()(same), expected, rtol=1e-13)
    part = TreeKernel()(forest[2:5], forest)
    np.testing.assert_allclose(part, expected[2:5], rtol=1e-13)


def test_fit_and_transform_equal_calling_the_kernel():
    a, b = sentences(7, 15), sentences(8, 10)
    transformer = TreeKernel("ptk", decay=0.3)
    with pytest.raises(NotFittedError):
        transformer.transform(a)
    assert np.array_equal(transformer.fit_transform(a), TreeKernel("ptk", decay=0.3)(a))
    assert np.array_equal(transformer.transform(b), TreeKernel("ptk", decay=0.3)(b, a))
    assert np.array_equal(clone(transformer).fit(a).transform(b), transformer.transform(b))


def test_extending_the_forest_does_not_change_a_fitted_transformer():
    forest = Forest(sentences(7, 15))
    transformer = TreeKernel("sst_bow").fit(forest)
    before = transformer.transform(["(S (NP (PRP i)))"])
    forest.extend(["(New (tree x))"])
    after = transformer.transform(["(S (NP (PRP i)))"])
    assert after.shape == before.shape
    assert np.array_equal(after, before)


def test_several_channels_add_up():
    a, b = sentences(9, 8), sentences(10, 8)
    both = TreeKernel()(Forest({"first": a, "second": b}))
    np.testing.assert_allclose(both, TreeKernel()(a) + TreeKernel()(b), rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"kernel": "sstk"}, "kernel"),
        ({"kernel": None}, "kernel"),
        ({"decay": 0.0}, "decay"),
        ({"decay": 1e-7}, "decay"),
        ({"decay": -1.0}, "decay"),
        ({"decay": np.nan}, "decay"),
        ({"decay": np.inf}, "decay"),
        ({"decay": "0.4"}, "decay"),
        ({"width_decay": 0}, "width_decay"),
        ({"normalize": "yes"}, "normalize"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        TreeKernel(**parameters)(["(A b)"])
    with pytest.raises(ValueError, match=complaint):
        TreeKernel(**parameters).fit_transform(["(A b)"])


def test_bad_trees_are_named():
    with pytest.raises(FormatError, match=r"trees\[1\]:1:6: .*unexpected text"):
        TreeKernel()(["(A b)", "(A b))"])
    with pytest.raises(FormatError, match=r"trees\[0\]"):
        TreeKernel().fit(["(A b)"]).transform(["(A"])
    with pytest.raises(ValueError, match="no trees"):
        TreeKernel()([])
    for wrong in ("(A b)", 5, None, [5], np.zeros((2, 2))):
        with pytest.raises(TypeError):
            TreeKernel()(wrong)
