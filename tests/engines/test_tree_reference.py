"""The slow twins of the tree kernels agree with each other, with manual values, and with SVM-light-TK."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import golden
from reference.tree_kernels import (
    KINDS,
    LONGEST_SUBSEQUENCE,
    features,
    fragment_weight,
    fragments,
    kernel,
    kernel_by_fragments,
    nodes,
    parse,
    read_tk_examples,
    read_tk_model,
    write,
)


def trees(inner, words, max_leaves=8):
    """Draw small trees with few labels, so that many match."""
    leaf = st.tuples(st.sampled_from(words), st.just(()))
    return st.recursive(
        leaf,
        lambda below: st.tuples(st.sampled_from(inner), st.lists(below, min_size=1, max_size=3).map(tuple)),
        max_leaves=max_leaves,
    )


DECAYS = st.floats(0.1, 1.0)
TREES = trees("AB", "xy")
CLASHING = trees("AB", "AB")  # a label may be a leaf in one tree and an inner node in another


# --- Brackets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("(A)", ("A", ())),
        ("(NN dog)", ("NN", (("dog", ()),))),
        ("(NN (dog))", ("NN", (("dog", ()),))),
        ("(A (b)(C d e))", ("A", (("b", ()), ("C", (("d", ()), ("e", ())))))),
        ("( (S x))", ("", (("S", (("x", ()),)),))),
        (" (A\n\t(B  b) )", ("A", (("B", (("b", ()),)),))),
    ],
)
def test_brackets(text, tree):
    assert parse(text) == tree


@given(TREES.filter(lambda tree: tree[1]))
def test_brackets_survive_a_round_trip(tree):
    assert parse(write(tree)) == tree


# --- Values by hand ---------------------------------------------------------------------------------

NP = parse("(NP (D a) (N dog))")
OTHER = parse("(NP (D a) (N cat))")


@pytest.mark.parametrize(
    ("kind", "same", "other"),
    [
        # D and N have lambda each; NP has lambda^3 as a whole, lambda (1 + lambda)^2 as a subset tree
        ("st", 2 * 0.4 + 0.4**3, 0.4),
        ("sst", 2 * 0.4 + 0.4 * 1.4**2, 0.4 + 0.4 * 1.4),
        ("sst_bow", 4 * 0.4 + 0.4 * 1.4**2, 2 * 0.4 + 0.4 * 1.4),
    ],
)
def test_small_values(kind, same, other):
    assert kernel(NP, NP, kind, 0.4) == pytest.approx(same, rel=1e-14)
    assert kernel(NP, OTHER, kind, 0.4) == pytest.approx(other, rel=1e-14)
    assert kernel(NP, OTHER, kind, 0.4, normalize=True) == pytest.approx(
        other / math.sqrt(same * kernel(OTHER, OTHER, kind, 0.4)), rel=1e-14
    )


def test_a_small_value_of_partial_trees():
    decay, width_decay = 0.3, 0.7
    leaf = width_decay * decay**2
    a, b = parse("(A x y)"), parse("(A x z y)")
    # x and y alone, as children; both, with a gap in b; then the root alone, and the leaves alone
    root = width_decay * (decay**2 + 2 * leaf + decay * leaf**2)
    assert kernel(a, b, "ptk", decay, width_decay) == pytest.approx(root + 2 * leaf, rel=1e-14)


def test_partial_trees_have_at_most_five_children_of_a_node():
    for width in (4, 5, 6, 7):
        wide = ("A", tuple((f"x{i}", ()) for i in range(width)))
        sizes = {len(parse(fragment)[1]) for fragment in features(wide, "ptk", 1.0, 1.0) if "(" in fragment}
        assert max(sizes) == min(width, LONGEST_SUBSEQUENCE)
        subsets = sum(math.comb(width, size) for size in range(LONGEST_SUBSEQUENCE + 1))
        assert kernel(wide, wide, "ptk", 1.0, 1.0) == pytest.approx(subsets + width)


def test_fragments_of_a_small_tree():
    assert fragments(NP, "st") == {"(D a)": 1, "(N dog)": 1, "(NP (D a) (N dog))": 1}
    assert set(fragments(NP, "sst")) == {
        "(D a)", "(N dog)", "(NP D N)", "(NP (D a) N)", "(NP D (N dog))", "(NP (D a) (N dog))"
    }  # fmt: skip
    assert set(fragments(NP, "sst_bow")) == {"a", "dog", *fragments(NP, "sst")}
    assert [fragment_weight(fragment, 0.5) for fragment in ("a", "(D a)", "(NP (D a) (N dog))")] == [
        0.5,
        0.5,
        0.125,
    ]
    assert set(features(NP[1][0], "ptk", 0.4, 0.4)) == {"D", "a", "(D a)"}


# --- The twins --------------------------------------------------------------------------------------


def assert_twins_agree(a, b, kind, decay, width_decay):
    expected = kernel_by_fragments(a, b, kind, decay, width_decay)
    assert kernel(a, b, kind, decay, width_decay) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("kind", KINDS)
@given(a=TREES, b=TREES, decay=DECAYS, width_decay=DECAYS)
def test_recursions_count_fragments(kind, a, b, decay, width_decay):
    assert_twins_agree(a, b, kind, decay, width_decay)
    assert_twins_agree(a, a, kind, decay, width_decay)


@pytest.mark.parametrize("kind", ["sst", "sst_bow", "ptk"])
@given(a=CLASHING, b=CLASHING, decay=DECAYS, width_decay=DECAYS)
def test_fragments_equate_leaves_with_nodes_without_children(kind, a, b, decay, width_decay):
    assert_twins_agree(a, b, kind, decay, width_decay)


def test_whole_subtrees_of_svm_light_tk_where_a_leaf_and_a_node_have_one_label():
    """Its recursion treats both as equal, which is not a kernel; fragments distinguish them."""
    leaf = parse("(A b (C d))")
    inner = [parse(f"(A (b {word}) (C d))") for word in "xyz"]
    assert kernel(leaf, inner[0], "st", 0.4) == pytest.approx(0.4 + 0.4**2)
    assert kernel_by_fragments(leaf, inner[0], "st", 0.4) == pytest.approx(0.4)

    def least_eigenvalue(value):
        return np.linalg.eigvalsh([[value(x, z, "st", 1.0) for x in (leaf, *inner)] for z in (leaf, *inner)])[
            0
        ]

    assert least_eigenvalue(kernel) < -0.1
    assert least_eigenvalue(kernel_by_fragments) > 0.1


@pytest.mark.parametrize("kind", KINDS)
@given(a=TREES, b=TREES, decay=DECAYS, width_decay=DECAYS)
def test_properties_of_kernels(kind, a, b, decay, width_decay):
    value = kernel(a, b, kind, decay, width_decay)
    assert value == pytest.approx(kernel(b, a, kind, decay, width_decay), rel=1e-13)
    normalized = kernel(a, b, kind, decay, width_decay, normalize=True)
    assert 0.0 <= normalized <= 1.0 + 1e-12
    has_fragments = a[1] or kind in ("sst_bow", "ptk")
    assert kernel(a, a, kind, decay, width_decay, normalize=True) == pytest.approx(
        1.0 if has_fragments else 0.0
    )


def test_trees_without_fragments_are_not_divided_by_zero():
    for kind in ("st", "sst"):
        assert kernel(parse("(A)"), NP, kind, normalize=True) == 0.0


# --- SVM-light-TK -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["st", "sst", "ptk"])
def test_margins_of_svm_light_tk(kind):
    model = read_tk_model(golden.FOLDER / f"svmlight-tk-{kind}.model")
    assert (model.kind, model.decay, model.normalize) == (kind, 0.4, True)
    examples = read_tk_examples(golden.FOLDER / "trees.test.dat")
    expected = golden.margins(f"svmlight-tk-{kind}").ravel()
    assert len(examples) == len(expected)
    result = [model.score(tree) for _, tree in examples[:6]]
    # Its kernel is rounded to float32 for each of some 150 support vectors.
    np.testing.assert_allclose(result, expected[:6], rtol=0, atol=1e-6)


def test_golden_trees():
    train, test = (read_tk_examples(golden.FOLDER / f"trees.{part}.dat") for part in ("train", "test"))
    assert (len(train), len(test)) == (160, 60)
    assert {label for label, _ in train} == {-1.0, 1.0}
    assert max(sum(1 for _ in nodes(tree)) for _, tree in train) > 100
    known = {tree for _, tree in train}
    assert all(tree in known for tree in read_tk_model(golden.FOLDER / "svmlight-tk-sst.model").trees)
