"""Compiled models of trees: scores equal the kernel sum, for many trees at once or one by one."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_classifier

import unkernel
from reference.selection import few_examples, slow_after
from reference.tree_examples import as_trees, chain, gram, make_problem, text, trees
from reference.tree_kernels import KINDS, kernel, kernel_by_fragments
from unkernel import Forest, FormatError, TreeClassifier, TreeModel
from unkernel.models import Decision, ExampleKernel, Kernel

every_kernel = pytest.mark.parametrize("kind", KINDS)
LISTS = st.lists(trees(max_leaves=7), min_size=1, max_size=6)


def make_model(support, *, scores=1, seed=0, **options):
    """Return a model with random coefficients."""
    rng = np.random.default_rng(seed)
    forest = support if isinstance(support, Forest) else Forest(support)
    classes = np.array(["no", "yes"]) if scores == 1 else np.arange(scores)
    return TreeModel(
        ExampleKernel(**options),
        forest,
        rng.normal(size=(len(forest), scores)),
        rng.normal(size=scores),
        Decision("binary" if scores == 1 else "one_vs_rest", classes),
        {},
    )


def expected_scores(model, tree_list, value=kernel):
    """Return the kernel sum, tree by tree."""
    options = model.kernel
    support = as_trees(model.support.brackets())
    values = gram(
        tree_list,
        support,
        options.tree,
        options.decay,
        options.width_decay,
        normalize=False,
        value=plain(value),
    )
    if options.normalize:
        settings_ = (options.tree, options.decay, options.width_decay)
        norms = [np.array([value(x, x, *settings_) or 1.0 for x in side]) for side in (tree_list, support)]
        values /= np.sqrt(np.outer(*norms))
    return values @ model.coefficients + model.intercept


def plain(value):
    return lambda x, z, kind, decay, width_decay, **_: value(x, z, kind, decay, width_decay)


def assert_scores(found, expected):
    np.testing.assert_allclose(found, expected.reshape(np.shape(found)), rtol=1e-12, atol=1e-12)


# --- The kernel sum ---------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("scores", slow_after(1, [3, 1]))
@given(support=LISTS, asked=LISTS, decay=st.floats(0.1, 1.0), normalize=st.booleans())
@few_examples(8)
def test_scores_are_the_kernel_sum(kind, scores, *, support, asked, decay, normalize):
    model = make_model(
        [text(tree) for tree in support],
        scores=scores,
        tree=kind,
        decay=decay,
        width_decay=0.3,
        normalize=normalize,
    )
    fast = TreeClassifier(model)
    texts = [text(tree) for tree in asked]
    actual_scores = fast.decision_function(texts)
    assert actual_scores.shape == (len(asked),) if scores == 1 else (len(asked), scores)
    assert_scores(actual_scores, expected_scores(model, asked))
    assert_scores(model.scores(Forest(texts)), expected_scores(model, asked))
    worker = fast.worker()
    for one, score in zip(texts, actual_scores.tolist(), strict=True):
        assert fast.score_one(one) == pytest.approx(score, rel=1e-12, abs=1e-13)
        assert worker.score_one(one) == fast.score_one(one)


@every_kernel
@given(support=st.lists(trees("AB", "AB"), min_size=1, max_size=5), asked=trees("AB", "AB"))
@few_examples(8)
def test_labels_can_be_words_in_one_tree_and_nodes_in_another(kind, support, asked):
    model = make_model([text(tree) for tree in support], tree=kind)
    fast = TreeClassifier(model)
    expected = expected_scores(model, [asked], kernel_by_fragments if kind == "st" else kernel)
    assert_scores(fast.decision_function([text(asked)]), expected)
    assert_scores([fast.score_one(text(asked))], expected)


@every_kernel
@pytest.mark.parametrize("scores", [1, 3])
def test_sentences_in_one_forest_and_in_two(kind, scores):
    texts, _ = make_problem(1, 80)
    forest = Forest(texts)
    model = make_model(forest[:60], scores=scores, tree=kind)
    fast = TreeClassifier(model)
    expected = expected_scores(model, as_trees(texts[60:]))
    for inputs in (texts[60:], forest[60:], list(forest[60:])):
        assert_scores(fast.decision_function(inputs), expected)
    assert_scores([fast.score_one(one) for one in texts[60:]], expected)


@every_kernel
def test_trees_with_unseen_parts_are_scored(kind):
    model = make_model(["(S (A x) (B y))", "(S (A y) (B y))", "(A x)"], tree=kind)
    fast = TreeClassifier(model)
    inputs = [
        "(New new)",
        "(New (A x))",
        "(S (A new) (B y))",
        "(S (B y) (A x))",
        "(S (A x) (B y) (C z))",
        "(new)",
        "(x)",
        "(S (A (x deeper)) (B y))",
    ]
    value = kernel_by_fragments if kind == "st" else kernel
    expected = expected_scores(model, as_trees(inputs), value)
    assert_scores(fast.decision_function(inputs), expected)
    assert_scores([fast.score_one(input_) for input_ in inputs], expected)
    assert fast.score_one("(New new)") == pytest.approx(model.intercept[0])


@every_kernel
def test_productions_that_match_most_nodes_are_scored(kind):
    """Many nodes of one production: lists, their complements, and ranges."""
    rng = np.random.default_rng(3)
    words = rng.choice(["x", "x", "x", "y", "z"], size=(60, 4))
    texts = ["(S (A {}) (B {}) (B {}) (C (D {})))".format(*row) for row in words]
    for scores in (1, 3):
        model = make_model(texts[:40], scores=scores, tree=kind, decay=0.9)
        assert_scores(TreeClassifier(model).decision_function(texts), expected_scores(model, as_trees(texts)))


def test_deep_trees():
    fast = TreeClassifier(make_model([chain(50), "(A b)"], tree="sst"))
    deep = chain(10_000)
    assert fast.score_one(deep) == pytest.approx(fast.decision_function([deep])[0], rel=1e-12)
    assert np.isfinite(fast.score_one(deep))


@pytest.mark.parametrize("combination", ["vectors", "sum", "product"])
@pytest.mark.parametrize("scores", [1, 3])
def test_trees_with_vectors(combination, scores):
    texts, _ = make_problem(4, 40)
    vectors = np.random.default_rng(5).normal(size=(40, 3)).round(2)
    forest = Forest(texts, vectors=vectors)
    model = make_model(
        forest[:30], scores=scores, combination=combination, tree_weight=0.25, vector=Kernel("rbf", gamma=0.3)
    )
    tree_values = gram(as_trees(texts[30:]), as_trees(texts[:30]), "sst")
    vector_values = Kernel("rbf", gamma=0.3).matrix(vectors[30:], vectors[:30])
    values = {
        "vectors": vector_values,
        "sum": 0.25 * tree_values + vector_values,
        "product": tree_values * vector_values,
    }[combination]
    expected = values @ model.coefficients + model.intercept
    fast = TreeClassifier(model)
    assert_scores(fast.decision_function(forest[30:]), expected)
    assert fast.engine == ("forest" if combination == "sum" else "kernels")


def test_one_tree_of_a_model_with_vectors():
    """Without a vector, a product is 0, and a sum is the part of the trees."""
    forest = Forest(["(A b)", "(C d)"], vectors=np.eye(2))
    for combination in ("vectors", "product"):
        model = make_model(forest, combination=combination)
        assert TreeClassifier(model).score_one("(A b)") == model.intercept[0]
    model = make_model(forest, combination="sum", scores=3)
    assert TreeClassifier(model).score_one("(A b)") == pytest.approx(model.coefficients[0] + model.intercept)


def test_several_channels():
    texts, _ = make_problem(6, 30)
    forest = Forest({"a": texts, "b": texts[::-1]})
    values = TreeKernelSum(texts)
    model = make_model(forest[:20])
    fast = TreeClassifier(model)
    assert_scores(fast.decision_function(forest[20:]), values(20, 30) @ model.coefficients + model.intercept)
    # A tree without a channel's name belongs to the first channel; the other has none.
    first = TreeClassifier(make_model(texts[:20]))
    assert fast.model.coefficients.tolist() == first.model.coefficients.tolist()
    only = Forest({"a": texts[20:]})
    assert_scores(fast.decision_function(only), first.decision_function(texts[20:]))


class TreeKernelSum:
    """The kernel sum of test_several_channels, computed by the twins."""

    def __init__(self, texts):
        self.first, self.second = as_trees(texts), as_trees(texts[::-1])

    def __call__(self, begin, end):
        return sum(gram(side[begin:end], side[:begin], "sst") for side in (self.first, self.second))


# --- Threads ----------------------------------------------------------------------------------------


@every_kernel
def test_results_do_not_depend_on_the_number_of_threads(kind):
    texts, _ = make_problem(7, 300)
    fast = TreeClassifier(make_model(texts[:100], tree=kind))
    alone = fast.decision_function(texts, n_jobs=1)
    for n_jobs in (2, 5, -1, None):
        assert np.array_equal(fast.decision_function(texts, n_jobs=n_jobs), alone)


def test_workers_in_threads():
    texts, _ = make_problem(8, 120)
    fast = TreeClassifier(make_model(texts[:60], tree="ptk"))
    expected = [fast.score_one(one) for one in texts]

    def ask(worker):
        return [worker.score_one(one) for one in texts]

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(ask, fast.worker()) for _ in range(4)]
        batches = [pool.submit(fast.decision_function, texts, n_jobs=2) for _ in range(4)]
    assert all(future.result() == expected for future in futures)
    for batch in batches:
        np.testing.assert_allclose(batch.result(), expected, rtol=1e-12)


def test_scores_of_a_worker_do_not_depend_on_the_previous_tree():
    fast = TreeClassifier(make_model(["(A (B x) (B y))", "(A (B x))"], tree="ptk"))
    trees_asked = ["(A (B x) (B y))", chain(300), "(A (B x))", "(New)", "(A (B x) (B y))"]
    fresh = [fast.worker().score_one(tree) for tree in trees_asked]
    assert [fast.score_one(tree) for tree in trees_asked] == fresh
    with pytest.raises(FormatError):
        fast.score_one("(A (B x")
    assert fast.score_one(trees_asked[0]) == fresh[0]


# --- Properties -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["(A", "(A b))", "", "  ", "dog", "(A\n())", "(A b) (C d)"])
def test_text_that_is_not_a_tree_is_refused(wrong):
    with pytest.raises(FormatError) as expected:
        Forest([wrong])
    with pytest.raises(FormatError) as caught:
        TreeClassifier(make_model(["(A b)"])).score_one(wrong)
    assert caught.value.file == "tree"
    for part in ("line", "column", "reason"):
        assert getattr(caught.value, part) == getattr(expected.value, part)


def test_objects_that_are_not_texts_are_refused():
    fast = TreeClassifier(make_model(["(A b)"]))
    for wrong in (None, 5, b"(A b)", ["(A b)"], Forest(["(A b)"])):
        with pytest.raises(TypeError):
            fast.score_one(wrong)
    with pytest.raises(TypeError):
        fast.predict("(A b)")
    with pytest.raises(ValueError, match="n_jobs"):
        fast.predict(["(A b)"], n_jobs="all")


def test_scores_that_are_too_large():
    wide = "(A " + "(B x) " * 3000 + ")"
    for fast in (
        TreeClassifier(make_model([wide], decay=1.0, normalize=False)),
        TreeClassifier(make_model(["(A b)"], decay=1.0)),
    ):
        for ask in (fast.score_one, lambda tree, fast=fast: fast.decision_function([tree])):
            with pytest.raises(ValueError, match="not finite"):
                ask(wide)


def test_classes_and_ties():
    model = make_model(["(A b)", "(C d)"], scores=3)
    fast = TreeClassifier(model)
    scores = fast.decision_function(["(A b)", "(C d)", "(New)"])
    assert fast.predict(["(A b)", "(C d)", "(New)"]).tolist() == scores.argmax(axis=1).tolist()
    assert fast.classes_.tolist() == [0, 1, 2]
    binary = TreeClassifier(make_model(["(A b)"]))
    assert set(binary.predict(["(A b)", "(New)"])) <= {"no", "yes"}
    score = binary.score_one("(A b)")
    assert binary.predict(["(A b)"]) == ["yes" if score > 0 else "no"]


def test_manners():
    model = make_model(["(A b)", "(C d)"])
    fast = unkernel.compile(model)
    assert isinstance(fast, TreeClassifier)
    assert is_classifier(fast)
    assert repr(fast) == "TreeClassifier(2 support trees, subset trees, decay 0.4)"
    assert fast.to_model() is model
    assert fast.exact
    assert fast.nbytes > 0
    assert fast.set_params() is fast
    for change in (lambda: fast.set_params(model=model), lambda: fast.fit(["(A b)"], [1])):
        with pytest.raises(TypeError, match="compiled classifier"):
            change()
    copy = pickle.loads(pickle.dumps(fast))
    assert copy.decision_function(["(A b)"]) == fast.decision_function(["(A b)"])
    for options in ({"engine": "split"}, {"sample": ["(A b)"]}):
        with pytest.raises(ValueError, match="one engine"):
            unkernel.compile(model, **options)


@every_kernel
def test_extending_the_forest_does_not_change_a_model(kind):
    texts, _ = make_problem(9, 20)
    forest = Forest(texts)
    fast = TreeClassifier(make_model(forest[:], tree=kind))
    before = fast.decision_function(texts)
    forest.extend(["(Q (R s) (T u))", "(V w)", *make_problem(10, 20)[0]])
    for inputs in (texts, forest[:20]):
        np.testing.assert_allclose(fast.decision_function(inputs), before, rtol=1e-12)
    assert [fast.score_one(one) for one in texts] == pytest.approx(before.tolist(), rel=1e-12)
