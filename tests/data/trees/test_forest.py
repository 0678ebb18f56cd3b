"""Forests store every subtree once, and are sliced and joined like sequences."""

from __future__ import annotations

import ast
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference.preorders import Tree
from reference.tree_examples import as_trees, text, trees
from reference.tree_files import SMALL
from reference.tree_kernels import nodes, production
from unkernel import Forest, FormatError
from unkernel.data import Treebank
from unkernel.data.trees.forest import TreeExample, as_forest
from unkernel.data.trees.preorder import Preorder

LISTS = st.lists(trees(), max_size=12)


# --- Contents ---------------------------------------------------------------------------------------


@given(LISTS)
def test_every_subtree_is_stored_once(given_trees):
    forest = Forest([text(tree) for tree in given_trees])
    every = {node for tree in given_trees for node in nodes(tree)}
    assert forest.nodes == len(every)
    assert forest.labels == len({label for label, _ in every})
    assert forest.productions == len({production(node) for node in every if node[1]})
    assert as_trees(forest.brackets()) == given_trees


@given(LISTS)
def test_equal_trees_have_the_same_root(given_trees):
    roots = Forest([text(tree) for tree in given_trees]).trees["0"].tolist()
    for tree, root in zip(given_trees, roots, strict=True):
        assert [other_tree == tree for other_tree in given_trees] == [
            other_tree == root for other_tree in roots
        ]


@given(LISTS)
def test_children_have_smaller_numbers_than_their_parents(given_trees):
    arrays = Forest([text(tree) for tree in given_trees]).table.arrays()
    begins, children = arrays["child_begins"], arrays["children"]
    for node in range(len(begins) - 1):
        assert (children[begins[node] : begins[node + 1]] < node).all()


@pytest.mark.parametrize(
    ("given_text", "brackets", "with_bracketed_leaves"),
    [
        ("(A)", "(A)", "(A)"),
        ("(NN (dog))", "(NN dog)", "(NN (dog))"),
        ("(A b (C d) e)", "(A b (C d) e)", "(A (b)(C (d))(e))"),
        (" (A\n\t(B  b)\r\n) ", "(A (B b))", "(A (B (b)))"),
        ("((S x))", "( (S x))", "( (S (x)))"),
        ("( (S x))", "( (S x))", "( (S (x)))"),
        ("(A(B b)(C c))", "(A (B b) (C c))", "(A (B (b))(C (c)))"),
        ("(犬 ü😀)", "(犬 ü😀)", "(犬 (ü😀))"),
        ("(A \0 \x01)", "(A \0 \x01)", "(A (\0)(\x01))"),
        ("(-LRB- -RRB-)", "(-LRB- -RRB-)", "(-LRB- (-RRB-))"),
    ],
)
def test_brackets(given_text, brackets, with_bracketed_leaves):
    forest = Forest([given_text])
    assert forest.brackets() == [brackets]
    assert forest.brackets(bracket_leaves=True) == [with_bracketed_leaves]
    assert len({*Forest([given_text, brackets, with_bracketed_leaves]).trees["0"].tolist()}) == 1


def test_words_and_nodes_of_the_same_name_are_different():
    forest = Forest(["(A b)", "(A (b c))"])
    assert len(set(forest.trees["0"].tolist())) == 2
    assert (forest.nodes, forest.labels) == (5, 3)
    # The subset tree kernel does not distinguish them: both have one production.
    assert forest.productions == 2


@pytest.mark.parametrize(
    ("tree", "column", "reason"),
    [
        ("", 1, "a tree begins with '('"),
        ("   ", 4, "a tree begins with '('"),
        ("dog", 1, "a tree begins with '('"),
        (")", 1, "a tree begins with '('"),
        ("()", 2, "nothing in this pair of brackets"),
        ("(A ())", 5, "nothing in this pair of brackets"),
        ("( ( ) )", 5, "nothing in this pair of brackets"),
        ("(A (B c) (D", 10, "never closed"),
        ("(A", 1, "never closed"),
        ("(A b))", 6, "the tree"),
        ("(A b) (C d)", 7, "the tree"),
        ("(A b) x", 7, "the tree"),
    ],
)
def test_malformed_trees_are_refused_with_their_place(tree, column, reason):
    with pytest.raises(FormatError) as caught:
        Forest(["(A b)", tree])
    assert reason in caught.value.reason
    assert (caught.value.file, caught.value.line, caught.value.column) == ("trees[1]", 1, column)


def test_lines_of_a_string_are_counted():
    with pytest.raises(FormatError) as caught:
        Forest(["(A\n (B c)\n  ())"])
    assert (caught.value.line, caught.value.column) == (3, 4)


def test_errors_name_the_index_of_the_malformed_tree():
    with pytest.raises(FormatError, match=r"^trees\[2\]"):
        Forest([None, "(A b)", "(A"])


def test_a_malformed_tree_does_not_change_the_forest():
    forest = Forest(SMALL)
    with pytest.raises(FormatError):
        forest.extend(["(NEW tree)", "(A"])
    assert forest.brackets() == SMALL


# --- Indices and slices -----------------------------------------------------------------------------


@given(LISTS, st.data())
def test_forests_are_sliced_like_arrays(given_trees, data):
    forest = Forest([text(tree) for tree in given_trees])
    array = np.empty(len(given_trees), object)
    array[:] = [str(example) for example in forest]
    size = len(array)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    places = data.draw(st.lists(st.integers(-size, size - 1), max_size=8)) if size else []
    for cut in (data.draw(st.slices(size)), mask, np.array(places, np.intp), places, []):
        part = forest[cut]
        assert part.brackets() == [t if t.startswith("(") else f"({t})" for t in array[cut].tolist()]
        assert part.table is forest.table


def test_one_example():
    forest = Forest(SMALL)
    assert isinstance(forest[0], TreeExample)
    assert str(forest[np.int64(1)]) == SMALL[1]
    assert str(forest[-1]) == SMALL[-1]
    assert [str(example) for example in forest] == SMALL
    assert repr(forest[2]) == "<tree (NP dogs)>"
    assert forest[0] == Forest(SMALL[::-1])[2]
    assert len({*forest, *Forest(SMALL)}) == 3
    assert forest[0] != SMALL[0]


@pytest.mark.parametrize("place", [3, -4, 10**20])
def test_indices_out_of_range_are_refused(place):
    with pytest.raises(IndexError, match="of 3"):
        Forest(SMALL)[place]
    with pytest.raises((IndexError, OverflowError)):
        Forest(SMALL)[[0, place]]


@pytest.mark.parametrize("places", [True, [[0, 1]], np.zeros((1, 1), int), [0.0], "0", ["0"], None], ids=repr)
def test_objects_that_are_not_indices_are_refused(places):
    with pytest.raises(IndexError, match="a number, a slice, a list of numbers or a mask"):
        Forest(SMALL)[places]


def test_extending_is_adding_at_the_end():
    forest = Forest(SMALL[:1])
    part = forest[:]
    forest.extend(SMALL[1:])
    assert forest.brackets() == SMALL
    assert part.brackets() == SMALL[:1]
    assert forest.nodes == Forest(SMALL).nodes
    part.extend([forest[1], None])
    assert part.brackets() == [*SMALL[:2], ""]
    assert len(forest) == 3


@pytest.mark.parametrize(
    "arguments",
    [{"trees": {"a": SMALL, "b": SMALL}}, {"trees": SMALL, "vectors": np.eye(3)}, {"trees": {}}],
    ids=["channels", "vectors", "nothing"],
)
def test_forests_that_cannot_be_extended(arguments):
    with pytest.raises(ValueError, match="one channel"):
        Forest(**arguments).extend(SMALL)


def test_compact_copies_hold_only_the_needed_nodes():
    forest = Forest(SMALL)
    part = forest[[2, 2]]
    compact = part.compact()
    assert compact.brackets() == part.brackets() == ["(NP dogs)"] * 2
    assert (part.nodes, compact.nodes) == (forest.nodes, 2)
    assert compact.nbytes <= forest.nbytes
    assert Forest([None]).compact().brackets() == [""]


@given(LISTS)
def test_pickles_and_copies_equal_the_forest(given_trees):
    forest = Forest({"a": [text(tree) for tree in given_trees], "b": [None] * len(given_trees)})
    for copy in (pickle.loads(pickle.dumps(forest)), forest.compact()):
        assert {name: copy.brackets(name) for name in copy.trees} == {
            name: forest.brackets(name) for name in "ab"
        }
        assert (copy.nodes, copy.labels, copy.productions) == (
            forest.nodes,
            forest.labels,
            forest.productions,
        )


def test_examples_can_be_pickled():
    examples = pickle.loads(pickle.dumps(list(Forest(SMALL))))
    assert [str(example) for example in examples] == SMALL
    assert as_forest(examples).brackets() == SMALL


def test_repr_gives_sizes_and_channels():
    assert repr(Forest(SMALL)) == "Forest(3 examples, 8 subtrees)"
    several = Forest({"a": SMALL}, vectors={"v": np.eye(3)})
    assert repr(several) == "Forest(3 examples, 8 subtrees, trees=['a'], vectors=['v'])"
    assert repr(Forest()) == "Forest(0 examples, 0 subtrees)"


# --- Accepted trees ---------------------------------------------------------------------------------


def test_trees_of_every_kind():
    sentence = Treebank.from_words(
        [["Dogs", "bark"]],
        [["NOUN", "VERB"]],
        lemmas=[["dog", "bark"]],
        heads=[[2, 0]],
        deprels=[["nsubj", "root"]],
    )[0]
    forest = Forest(
        [
            "(A b)",
            Tree("A", ["b"]),
            ast.parse("x").body[0],
            Preorder(["A", "b"], [1, 0]),
            Forest(["(C d)", "(A b)"])[1],
            np.str_("(A b)"),
            sentence,
            None,
        ]
    )  # fmt: skip
    roots = forest.trees["0"]
    assert [root == roots[0] for root in roots] == [True, True, False, True, True, True, False, False]
    assert str(forest[2]) == "(Expr (Name (id: x)))"
    assert "nsubj" in str(forest[6])
    assert Forest.from_sentences([sentence]).brackets() == [str(forest[6])]
    assert Forest.from_sentences([sentence], "lct").brackets() != [str(forest[6])]
    assert roots[7] == -1
    assert str(forest[7]) == ""


def test_arrays_and_iterators_of_strings():
    assert Forest(np.array(SMALL)).brackets() == SMALL
    assert Forest(np.array(SMALL, object)).brackets() == SMALL
    assert Forest(tree for tree in SMALL).brackets() == SMALL


@pytest.mark.parametrize("value", [5, b"(A b)", ["(A b)"], ("A", "b"), np.array(["(A b)"])], ids=repr)
def test_objects_that_are_not_trees_are_named(value):
    with pytest.raises(TypeError, match=rf"trees\[1\] is of type {type(value).__name__}; expected"):
        Forest(["(A b)", value])


def test_one_string_is_not_several_trees():
    with pytest.raises(TypeError, match="got a single string; wrap it in a list"):
        Forest("(A b)")


@pytest.mark.parametrize(
    ("labels", "arities"),
    [([], []), (["A"], []), (["A"], [1]), (["A", "b"], [0, 0]), (["A"], [-1]), (["A", "b"], [2, 0]),
     (["A", "b"], [2**62, 0])],
)  # fmt: skip
def test_lists_that_form_no_tree_are_refused(labels, arities):
    with pytest.raises(ValueError, match="preorder"):
        Forest([Preorder(labels, arities)])


def test_labels_that_brackets_cannot_write_are_kept():
    forest = Forest(
        [Tree("NN", ["New York"]), Tree("NN", ["New", "York"]), Tree("NN", ["("]), Tree("NN", [""])]
    )
    assert len(set(forest.trees["0"].tolist())) == 4
    assert forest.brackets(bracket_leaves=True)[:2] == ["(NN (New York))", "(NN (New)(York))"]


def test_a_mapping_of_channels():
    assert as_forest({"a": SMALL, "b": SMALL}).brackets("b") == SMALL


@pytest.mark.parametrize("trees_given", [5, None, "(A b)", b"(A b)"])
def test_objects_that_are_not_lists_of_trees_are_refused(trees_given):
    with pytest.raises(TypeError, match="expected a list of trees or a Forest"):
        as_forest(trees_given)


def test_no_trees_at_all():
    with pytest.raises(ValueError, match="no trees"):
        as_forest([])
    assert len(as_forest(Forest([]))) == 0


def test_examples_of_one_forest_share_its_table():
    forest = Forest({"a": SMALL, "b": SMALL[::-1]}, vectors=np.eye(3))
    part = as_forest([forest[2], forest[0]])
    assert part.table is forest.table
    assert part.brackets("b") == [SMALL[0], SMALL[2]]
    assert part.vectors["0"].matrix.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_examples_of_different_forests_are_joined():
    mixed = as_forest([Forest(SMALL)[1], Forest(SMALL[:1])[0], "(NP dogs)"])
    assert mixed.brackets() == [SMALL[1], SMALL[0], SMALL[2]]
    assert mixed.nodes == Forest(SMALL).nodes


# --- Channels and vectors ---------------------------------------------------------------------------


def test_several_trees_an_example():
    forest = Forest({"syntax": SMALL[:2], "role": ["(R x)", None]}, vectors={"v": [[1.0, 0], [0, 2]]})
    assert list(forest.trees) == ["syntax", "role"]
    assert forest.brackets() == forest.brackets("syntax") == SMALL[:2]
    assert forest.brackets("role") == ["(R x)", ""]
    assert forest.vectors["v"].present.all()
    part = forest[1:]
    assert part.brackets("role") == [""]
    assert part.vectors["v"].matrix.toarray().tolist() == [[0, 2]]


def test_a_forest_of_vectors_alone():
    forest = Forest({}, vectors=np.eye(4))
    assert len(forest) == 4
    assert len(forest[1:3]) == 2
    assert forest.brackets() == [""] * 4
    assert str(forest[0]) == ""


@pytest.mark.parametrize(
    ("arguments", "vectors"),
    [({"a": SMALL, "b": SMALL[:2]}, None), (SMALL, np.eye(2)), (SMALL, {"v": np.eye(3), "w": np.eye(4)})],
    ids=["trees", "vectors", "several vectors"],
)
def test_channels_of_different_lengths(arguments, vectors):
    with pytest.raises(ValueError, match="equally many examples"):
        Forest(arguments, vectors=vectors)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_must_be_finite(value):
    with pytest.raises(ValueError, match="finite"):
        Forest(SMALL, vectors=[[1.0], [value], [0.0]])


def test_vectors_of_any_kind():
    repeated = sparse.coo_matrix(([1.0, 2.0, 5.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 2))
    for given_vectors in (
        repeated,
        repeated.tocsc(),
        sparse.csr_array(repeated),
        repeated.toarray(),
        [[0, 3], [0, 0], [5, 0]],
    ):
        matrix = Forest(SMALL, vectors=given_vectors).vectors["0"].matrix
        assert matrix.toarray().tolist() == [[0, 3], [0, 0], [5, 0]]
        assert matrix.data.dtype == np.float64


def test_channels_are_matched_by_name():
    forest = Forest({"a": SMALL, "b": SMALL[::-1]}, vectors={"v": np.eye(3)})
    expected_layout = Forest({"b": SMALL, "a": SMALL, "c": SMALL}, vectors={"v": np.eye(3), "w": np.eye(3)})
    roots, vectors = forest.roots_like(expected_layout), forest.vectors_like(expected_layout)
    assert roots[0].tolist() == forest.trees["b"].tolist()
    assert roots[2].tolist() == [-1] * 3
    assert vectors[0] is forest.vectors["v"]
    assert vectors[1] is None
    root_columns = Forest({"x": SMALL}).roots_like(Forest(SMALL))
    assert (root_columns[0] >= 0).all()
