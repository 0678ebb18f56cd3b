"""Models written in the format of SVM-light-TK, and models that the format cannot express."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
from reference.svmlight_tk import (
    FOLDER,
    READ,
    model_path,
    read_trees_of,
    test_trees,
)
from unkernel import Forest, read_trees
from unkernel.data.trees.forest import Vectors
from unkernel.data.trees.preorder import Preorder
from unkernel.models import Decision, ExampleKernel, Kernel, TreeModel, read_model, write_model


def assert_same(actual, model):
    assert actual.kernel == model.kernel
    assert actual.coefficients.tobytes() == model.coefficients.tobytes()
    assert actual.intercept.tobytes() == model.intercept.tobytes()
    assert actual.decision.to_json() == model.decision.to_json()


@pytest.mark.parametrize("name", READ)
def test_written_models_are_read_back(name, tmp_path):
    model, X = read_model(model_path(name)), test_trees(name)
    write_model(model, tmp_path / "model")
    actual = read_model(tmp_path / "model")
    assert_same(actual, model)
    assert actual.origin == model.origin
    assert np.array_equal(actual.scores(X), model.scores(X))
    write_model(actual, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    golden_lines, written_lines = (
        path.read_bytes().splitlines() for path in (model_path(name), tmp_path / "model")
    )
    assert len(written_lines) == len(golden_lines)
    if model.kernel.combination != "vectors":
        assert list(map(list_trees, written_lines[21:])) == list(map(list_trees, golden_lines[21:]))


def list_trees(line):
    """Return the written trees of a support vector, without empty ones at the end."""
    trees = [tree.strip() for tree in line.partition(b"|ET|")[0].split(b"|BT|")[1:]]
    while trees and not trees[-1]:
        trees.pop()
    return trees


def make_model(support, coefficients, *, intercept=0.1, decision=None, **kernel):
    return TreeModel(
        kernel=ExampleKernel(**kernel),
        support=support,
        coefficients=np.asarray(coefficients, float).reshape(-1, 1),
        intercept=np.array([intercept]),
        decision=decision or Decision("binary", np.array([-1, 1])),
        origin={},
    )


def write_and_read(model, path):
    write_model(model, path, format="svmlight-tk")
    return read_model(path)


@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    decay=st.floats(1e-6, 1e300),
    weight=st.floats(0, 1e300),
    gamma=st.floats(-1e300, 1e300),
)
def test_numbers_are_read_back_exactly(tmp_path_factory, numbers, decay, weight, gamma):
    path = tmp_path_factory.mktemp("written") / "model"
    forest = Forest(["(A b)", "(A (B c))"], vectors=np.array([[numbers[0], 1.0], [0.0, numbers[2]]]))
    model = make_model(
        forest,
        numbers[:2],
        intercept=numbers[2],
        decay=decay,
        combination="sum",
        tree_weight=weight,
        vector=Kernel("sigmoid", gamma=gamma, coef0=numbers[1]),
    )
    result = write_and_read(model, path)
    assert_same(result, model)
    assert np.array_equal(result.support.vectors["0"].matrix.toarray(), forest.vectors["0"].matrix.toarray())


def test_mu_becomes_a_float(tmp_path):
    result = write_and_read(
        make_model(Forest(["(A b)"]), [1.0], tree="ptk", width_decay=0.1), tmp_path / "model"
    )
    assert result.kernel.width_decay == float(np.float32(0.1))


def test_labels_of_all_kinds(tmp_path):
    texts = ["(A (B c) d)", "( (S é))", "(X ( (Y z)))", "(:-] ->)", "(a |BV|)", "(# \\n)", "(A (b))", "(w)"]
    model = make_model(Forest(texts), range(1, len(texts) + 1))
    assert write_and_read(model, tmp_path / "model").support.brackets() == model.support.brackets()
    invalid_utf8 = read_trees_of(b"1 |BT| (A \xff) |ET|\n")
    result = write_and_read(make_model(invalid_utf8, [1.0]), tmp_path / "model")
    assert result.support.brackets() == invalid_utf8.brackets()


def test_missing_trees_and_vectors(tmp_path):
    trees = {"0": ["(A b)", None, None], "1": [None, "(A b)", None], "2": [None] * 3}
    forest = Forest(trees, vectors={"0": np.eye(3), "1": 2 * np.eye(3)})
    present = Vectors(sparse.csr_matrix(2 * np.eye(3)), np.array([True, False, False]))
    model = make_model(
        Forest._from_table(forest.table, forest.trees, forest.vectors | {"1": present}),
        [1, 2, 3],
        combination="sum",
        vector=Kernel("polynomial", 2, 1.0, 1.0),
    )
    result = write_and_read(model, tmp_path / "model")
    assert result.support.brackets("0") == ["(A b)", "", ""]
    assert result.support.brackets("1") == ["", "(A b)", ""]
    assert "2" not in result.support.trees
    assert result.support.vectors["1"].present.tolist() == [True, False, False]
    X = Forest({"0": ["(A b)"], "1": ["(A b)"]}, vectors={"0": np.ones((1, 3)), "1": np.ones((1, 3))})
    assert np.array_equal(result.scores(X), model.scores(X))


def test_parts_without_effect_are_not_written(tmp_path):
    forest = Forest({"grct": ["(A b)"]}, vectors={"bow": [[1.0]]})
    forest.features = ["word"]
    result = write_and_read(
        make_model(forest, [1.0], vector=Kernel("rbf"), normalize_vectors=True), tmp_path / "model"
    )
    assert not result.support.vectors
    assert result.support.brackets("0") == ["(A b)"]


def test_a_positive_score_for_class_minus_one_is_negated(tmp_path):
    model = make_model(Forest(["(A b)"]), [1.0], decision=Decision("binary", np.array([1, -1])))
    result = write_and_read(model, tmp_path / "model")
    assert np.array_equal(result.scores(Forest(["(A b)"])), -model.scores(Forest(["(A b)"])))


def test_models_of_learners_are_written(tmp_path):
    X, y = read_trees(FOLDER / "trees.train.dat")
    model = unkernel.TreeSVC().fit(X, y).to_model()
    result = write_and_read(model, tmp_path / "model")
    assert result.n_support == model.n_support
    tests = test_trees("sst")
    np.testing.assert_allclose(result.scores(tests), model.scores(tests), rtol=1e-12, atol=1e-14)


def one_tree(**changes):
    return dataclasses.replace(make_model(Forest(["(A b)"]), [1.0]), **changes)


def make_word_model(word):
    return make_model(Forest([Preorder(["NN", word], [1, 0])]), [1.0])


def make_vector_model(vectors, **kernel):
    return make_model(Forest(["(A b)"], vectors=vectors), [1.0], combination="sum", **kernel)


def second_vector_alone():
    forest = Forest(["(A b)"])
    vectors = {str(k): Vectors(sparse.csr_matrix((1, 2)), np.array([k == 1])) for k in range(2)}
    return make_model(Forest._from_table(forest.table, forest.trees, vectors), [1.0], combination="sum")


REFUSED = {
    "other classes": (
        lambda: one_tree(decision=Decision("binary", np.array(["HUM", "LOC"]))),
        "classes -1 and 1",
    ),
    "many classes": (
        lambda: one_tree(
            decision=Decision("one_vs_rest", np.array([1, 2, 3])),
            coefficients=np.ones((1, 3)),
            intercept=np.ones(3),
        ),
        "classes -1 and 1",
    ),
    "blank in a label": (lambda: make_word_model("New York"), "label 'New York'"),
    "bracket in a label": (lambda: make_word_model("("), r"label '\('"),
    "mark in a label": (lambda: make_word_model("|BT|"), r"label '\|BT\|'"),
    "empty word": (lambda: make_word_model(""), "label ''"),
    "names of trees": (
        lambda: make_model(Forest({"grct": ["(A b)"], "lct": ["(C d)"]}), [1.0]),
        "the names grct, lct",
    ),
    "names of vectors": (lambda: make_vector_model({"a": [[1.0]], "b": [[1.0]]}), "the names a, b"),
    "a second vector without a first": (second_vector_alone, "none before it"),
    "rbf, normalised": (
        lambda: make_vector_model([[1.0]], vector=Kernel("rbf"), normalize_vectors=True),
        "rbf kernel with normalised vectors",
    ),
}


@pytest.mark.parametrize(("model", "match"), REFUSED.values(), ids=REFUSED)
def test_models_that_the_format_cannot_express_are_refused(model, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        write_model(model(), tmp_path / "model", format="svmlight-tk")
    assert not list(tmp_path.iterdir())


def test_names_of_features_cannot_be_written(tmp_path):
    forest = read_trees_of(b"1 |BT:a| (A b) |ET| |BV:v| word:1 |EV|\n")
    with pytest.raises(ValueError, match="numbers features"):
        write_model(make_model(forest, [1.0], combination="sum"), tmp_path / "model", format="svmlight-tk")


def test_formats_are_for_models_of_their_kind(tmp_path):
    trees = read_model(model_path("sst"))
    rows = read_model(FOLDER / "svmlight-poly2.model")
    for model, format in ((trees, "svmlight"), (trees, "libsvm"), (rows, "svmlight-tk")):
        with pytest.raises(ValueError, match="is for models of"):
            write_model(model, tmp_path / "model", format=format)
    write_model(trees, tmp_path / "model.uk")
    assert_same(read_model(tmp_path / "model.uk"), trees)
    assert len(list(tmp_path.iterdir())) == 1
