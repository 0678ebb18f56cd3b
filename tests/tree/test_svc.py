"""TreeSVC, compared with LIBSVM on the same kernel matrix, and its bounds compared with plain sums."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score
from sklearn.svm import SVC

import unkernel
import unkernel.tree.svc as svc_module
from reference.poly import solve_dual
from reference.selection import few_examples, slow_after
from reference.tree_examples import make_problem
from reference.tree_kernels import KINDS
from unkernel import Forest, TreeKernel, TreeSVC
from unkernel._core import train_exact_trees
from unkernel.models import ExampleKernel, Kernel
from unkernel.tree.options import ExactOptions

every_kernel = pytest.mark.parametrize("kind", KINDS)
TIGHT = 1e-5


def make_kernel(clf):
    return TreeKernel(clf.kernel, decay=clf.decay, width_decay=clf.width_decay, normalize=clf.normalize)


def hinge(signs, scores):
    return np.maximum(0.0, 1.0 - signs * scores)


def libsvm(K, y, *, C=1.0, sample_weight=None, class_weight=None):
    """Return LIBSVM's model, and its primal and dual objective with one cost per example."""
    peer = SVC(kernel="precomputed", C=C, tol=1e-7, class_weight=class_weight).fit(K, y, sample_weight)
    weights = peer.class_weight_[np.searchsorted(peer.classes_, y)]
    costs = C * weights * (1.0 if sample_weight is None else sample_weight)
    coefficients = np.zeros(len(y))
    coefficients[peer.support_] = peer.dual_coef_[0]
    squared = coefficients @ K @ coefficients
    signs = np.where(y == peer.classes_[1], 1.0, -1.0)
    primal = 0.5 * squared + costs @ hinge(signs, peer.decision_function(K))
    return peer, primal, np.abs(coefficients).sum() - 0.5 * squared


def check_certificate(clf, X, y, costs):
    """Check the primal objective and the lower bound of a learner by plain sums over its model."""
    model = clf.to_model()
    coefficients = model.coefficients[:, 0]
    K = make_kernel(clf)(model.support)
    squared = coefficients @ K @ coefficients
    signs = np.where(y == clf.classes_[1], 1.0, -1.0)
    primal = 0.5 * squared + costs @ hinge(signs, clf.decision_function(X))
    dual = np.abs(coefficients).sum() - 0.5 * squared
    assert clf.objective_ == pytest.approx(primal, rel=1e-9)
    assert clf.gap_ == pytest.approx((primal - dual) / primal, abs=1e-9)
    assert clf.gap_ <= clf.tol
    if clf.fit_intercept:
        assert abs(coefficients.sum()) <= 1e-9 * np.abs(coefficients).sum()
    assert np.abs(coefficients).max() <= costs.max() * (1 + 1e-12)
    return primal


# --- Against LIBSVM ---------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize(("C", "normalize"), [(0.05, True), (1.0, True), (50.0, True), (0.5, False)])
def test_objective_equals_the_objective_of_libsvm(kind, C, normalize):
    texts, y = make_problem(1, 150)
    clf = TreeSVC(kind, C=C, normalize=normalize, tol=TIGHT).fit(texts, y)
    peer, primal, dual = libsvm(make_kernel(clf)(texts), y, C=C)
    assert dual * (1 - 1e-9) <= check_certificate(clf, texts, y, np.full(150, C)) <= primal * (1 + TIGHT)
    assert primal == pytest.approx(dual, rel=1e-4)
    assert clf.objective_ == pytest.approx(dual, rel=1e-4)
    test_texts, _ = make_problem(2, 60)
    margins = peer.decision_function(make_kernel(clf)(test_texts, texts))
    scores = clf.decision_function(test_texts)
    np.testing.assert_allclose(scores, margins, atol=0.02)
    clear = np.abs(margins) > 0.02
    assert np.array_equal(
        clf.predict(test_texts)[clear], peer.predict(make_kernel(clf)(test_texts, texts))[clear]
    )


@few_examples(8, print_blob=True)
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(2, 60),
    C=st.floats(1e-3, 100),
    kind=st.sampled_from(KINDS),
    fit_intercept=st.booleans(),
    tol=st.sampled_from([1e-2, 1e-3, 1e-4]),
)
def test_the_reported_gap_is_correct(*, seed, rows, C, kind, fit_intercept, tol):
    texts, y = make_problem(seed, rows, noise=0.4)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], rows)
    clf = TreeSVC(kind, C=C, fit_intercept=fit_intercept, tol=tol).fit(texts, y, weights)
    check_certificate(clf, texts, y, C * weights)
    inaccurate = TreeSVC(kind, C=C, fit_intercept=fit_intercept, tol=0.1).fit(texts, y, weights)
    assert clf.objective_ * (1 - clf.gap_) <= inaccurate.objective_ * (1 + 1e-9)


@pytest.mark.parametrize(
    ("seed", "rows", "noise", "options"),
    [(0, 2, 0.4, {"kernel": "st", "C": 12.0, "fit_intercept": False}), (6, 60, 0.15, {"C": 0.5})],
)
def test_small_problems_are_solved_to_six_digits(seed, rows, noise, options):
    texts, y = make_problem(seed, rows, noise=noise)
    clf = TreeSVC(tol=1e-6, **options).fit(texts, y)
    check_certificate(clf, texts, y, np.full(rows, options["C"]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_reported_gap_is_correct_without_convergence():
    texts, y = make_problem(0, 2, noise=0.4)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 2)
    clf = TreeSVC("st", C=6.0, fit_intercept=False, tol=1e-6).fit(texts, y, weights)
    clf.tol = 1.0
    check_certificate(clf, texts, y, 6.0 * weights)


@every_kernel
def test_without_an_intercept(kind):
    texts, y = make_problem(3, 40)
    clf = TreeSVC(kind, C=2.0, fit_intercept=False, tol=TIGHT).fit(texts, y)
    check_certificate(clf, texts, y, np.full(40, 2.0))
    coefficients, optimum = solve_dual(
        make_kernel(clf)(texts), 2.0 * y - 1, np.full(40, 2.0), "hinge", gap=1e-7
    )
    assert clf.objective_ == pytest.approx(optimum, rel=1e-5)
    assert clf.model_.intercept.tolist() == [0.0]
    np.testing.assert_allclose(
        clf.decision_function(texts), make_kernel(clf)(texts) @ coefficients, atol=0.02
    )


@pytest.mark.parametrize("class_weight", [None, {0: 0.5, 1: 4.0}, {1: 3.0}, "balanced"], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_have_the_effect_of_libsvms(class_weight, weighted):
    texts, y = make_problem(4, 120, share=0.25)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 120) if weighted else np.ones(120)
    clf = TreeSVC(class_weight=class_weight, tol=TIGHT).fit(texts, y, weights if weighted else None)
    factors = {0: 1.0, 1: 1.0} | (class_weight if isinstance(class_weight, dict) else {})
    if class_weight == "balanced":  # scikit-learn's SVC counts rows, whatever their weights
        counts = np.bincount(y, weights)
        factors = dict(enumerate(counts.sum() / (2 * counts)))
    some = weights > 0
    K = make_kernel(clf)(Forest(texts)[some])
    _, primal, dual = libsvm(K, y[some], sample_weight=weights[some], class_weight=factors)
    assert dual * (1 - 1e-9) <= clf.objective_ <= primal * (1 + TIGHT)
    assert clf.objective_ == pytest.approx(dual, rel=1e-4)


def test_imbalance_is_a_weight_of_the_positive_class():
    texts, y = make_problem(5, 120, share=0.2)
    by_imbalance = TreeSVC(imbalance=5.0, tol=TIGHT).fit(texts, y)
    by_class_weight = TreeSVC(class_weight={1: 5.0}, tol=TIGHT).fit(texts, y)
    assert by_imbalance.objective_ == by_class_weight.objective_
    assert np.array_equal(by_imbalance.decision_function(texts), by_class_weight.decision_function(texts))


def test_weights_equal_repeated_examples_in_any_order():
    texts, y = make_problem(6, 60)
    weights = np.random.default_rng(1).integers(0, 3, 60)
    weights[:2] = 1
    clf = TreeSVC(C=0.5, tol=TIGHT).fit(texts, y, weights)
    repetitions = np.repeat(np.arange(60), weights)
    np.random.default_rng(2).shuffle(repetitions)
    repeated = [texts[i] for i in repetitions]
    for equivalent in (
        TreeSVC(C=0.5, tol=TIGHT).fit(repeated, y[repetitions]),
        TreeSVC(C=0.125, tol=TIGHT).fit(texts, y, 4.0 * weights),
        TreeSVC(C=0.5, tol=TIGHT).fit(texts, 1 - y, weights),
    ):
        assert equivalent.objective_ == pytest.approx(clf.objective_, rel=2 * TIGHT)


def test_conflicting_labels():
    texts, y = ["(A b)", "(A b)", "(C d)", "(C d)"], np.array([0, 1, 0, 1])
    clf = TreeSVC(tol=TIGHT).fit(texts, y, [1.0, 2.0, 2.0, 1.0])
    assert check_certificate(clf, texts, y, np.array([1.0, 2.0, 2.0, 1.0])) == pytest.approx(
        libsvm(make_kernel(clf)(texts), y, sample_weight=np.array([1.0, 2.0, 2.0, 1.0]))[2], rel=1e-4
    )


# --- Many classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_many_classes_are_one_against_the_rest(solver):
    texts, y = make_problem(7, 160, classes=4)
    names = np.array(["north", "east", "south", "west"])
    options = {
        "exact": {"tol": TIGHT, "imbalance": 1.5},
        "sampled": {"solver": "sampled", "sample_size": 160},
    }[solver]
    clf = TreeSVC(**options).fit(texts, names[y])
    assert clf.classes_.tolist() == sorted(names)
    scores = clf.decision_function(texts)
    assert scores.shape == (160, 4)
    assert np.array_equal(clf.predict(texts), clf.classes_[scores.argmax(axis=1)])
    binary = [TreeSVC(**options).fit(texts, names[y] == name) for name in clf.classes_]
    assert clf.objective_ == pytest.approx(sum(classifier.objective_ for classifier in binary), rel=2 * TIGHT)
    assert clf.gap_ <= TIGHT or solver == "sampled"
    for k, classifier in enumerate(binary):
        np.testing.assert_allclose(scores[:, k], classifier.decision_function(texts), atol=0.02)


def test_a_class_of_one_tree():
    texts, y = make_problem(8, 50)
    y = y.copy()
    y[10] = 2
    clf = TreeSVC(C=100.0, tol=1e-4).fit([*texts[:10], "(Odd one)", *texts[11:]], y)
    assert clf.predict(["(Odd one)"]).tolist() == [2]


# --- Little memory, many threads --------------------------------------------------------------------


def train(texts, y, *, C=1.0, memory=1 << 30, threads=1, kernel=None, positives=(1,), rounds=1000, **options):
    kernel = kernel or ExampleKernel()
    on_progress = options.pop("on_progress", None)
    all_options = {"imbalance": 1.0, "tolerance": 1e-5, "max_rounds": rounds, "fit_intercept": True}
    all_options |= {"memory": memory, "threads": threads}
    outcomes = train_exact_trees(
        ExactOptions(**all_options | options),
        kernel=kernel.core(),
        set=kernel.examples(Forest(texts), indexed=True),
        codes=np.asarray(y, np.int32),
        costs=np.full(len(y), float(C)),
        positives=list(positives),
        on_progress=on_progress,
    )
    return [dict(outcome) for outcome in outcomes]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("memory", [0, 4 * 100 * 100, 4 * 300 * 300])
def test_the_solution_does_not_depend_on_kernel_memory(fit_intercept, memory):
    """The memory holds kernel values of 64 (the minimum), 100 or 300 of 600 examples at a time."""
    texts, y = make_problem(9, 600)
    (expected,) = train(texts, y, C=0.05, fit_intercept=fit_intercept)
    (actual,) = train(texts, y, C=0.05, fit_intercept=fit_intercept, memory=memory)
    assert expected["converged"]
    assert actual["converged"]
    assert actual["rounds"] > expected["rounds"]
    assert actual["objective"] == pytest.approx(expected["objective"], rel=2e-5)
    assert actual["dual_objective"] <= expected["objective"]


def test_more_free_examples_than_fit_into_kernel_memory():
    texts, y = make_problem(9, 400)
    (expected,) = train(texts, y, C=10.0)
    (actual,) = train(texts, y, C=10.0, memory=0, rounds=300)
    assert np.sum(np.abs(expected["coefficients"]) > 0) > 64
    assert actual["converged"]
    assert actual["objective"] == pytest.approx(expected["objective"], rel=2e-5)


def test_many_classes_share_the_kernel_memory():
    texts, y = make_problem(10, 600, classes=3)
    expected = train(texts, y, C=0.05, positives=range(3))
    result = train(texts, y, C=0.05, positives=range(3), memory=4 * 200 * 200)
    for actual_outcome, expected_outcome in zip(result, expected, strict=True):
        assert actual_outcome["converged"]
        assert actual_outcome["objective"] == pytest.approx(expected_outcome["objective"], rel=2e-5)


@every_kernel
def test_results_do_not_depend_on_the_number_of_threads(kind):
    texts, y = make_problem(11, 400, classes=3)
    expected, *results = (TreeSVC(kind, n_jobs=jobs).fit(texts, y) for jobs in (1, 2, -1))
    for result in results:
        assert np.array_equal(result.model_.coefficients, expected.model_.coefficients)
        assert np.array_equal(result.model_.intercept, expected.model_.intercept)
        assert (result.objective_, result.gap_, result.n_iter_) == (
            expected.objective_,
            expected.gap_,
            expected.n_iter_,
        )
        assert np.array_equal(result.decision_function(texts), expected.decision_function(texts))


def test_the_working_set_grows():
    texts, y = make_problem(12, 2500, noise=0.3)
    forest = Forest(texts)
    clf = TreeSVC(C=0.2, tol=1e-4, n_jobs=2).fit(forest, y)
    check_certificate(clf, forest, y, np.full(2500, 0.2))
    assert clf.n_iter_ > 1
    _, primal, dual = libsvm(make_kernel(clf)(forest), y, C=0.2)
    assert dual * (1 - 1e-9) <= clf.objective_ <= primal * (1 + 1e-4)


# --- Several trees, and vectors ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("combine", "solver"),
    slow_after(
        5,
        [
            ("auto", "exact"),
            ("vectors", "exact"),
            ("product", "exact"),
            ("sum", "sampled"),
            ("trees", "sampled"),
            ("trees", "exact"),
            ("sum", "exact"),
            ("auto", "sampled"),
            ("vectors", "sampled"),
            ("product", "sampled"),
        ],
    ),
)
def test_trees_and_vectors(combine, solver):
    texts, y = make_problem(13, 100)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100, 3)).round(2) + y[:, None]
    forest = Forest({"a": texts, "b": [*texts[50:], *texts[:50]]}, vectors=vectors)
    clf = TreeSVC(
        combine=combine, tree_weight=0.5, vector_kernel="polynomial", degree=2, gamma=0.5, coef0=1.0,
        solver=solver, fit_intercept=solver == "exact", tol=1e-4, random_state=0, sample_size=100,
    )  # fmt: skip
    clf.fit(forest, y)
    trees = TreeKernel()(forest)
    values = Kernel("polynomial", 2, 0.5, 1.0).matrix(vectors, vectors)
    values /= np.sqrt(np.outer(np.diag(values), np.diag(values)))
    K = {"trees": trees, "vectors": values, "product": trees * values}.get(combine, 0.5 * trees + values)
    if solver == "exact":
        assert clf.objective_ == pytest.approx(libsvm(K, y)[2], rel=2e-4)
    else:
        _, optimum = solve_dual(K, 2.0 * y - 1, np.ones(100), "hinge", gap=1e-5)
        assert optimum - 100 * 1e-4 * 1.2 <= clf.objective_ <= optimum * (1 + 1e-4)
    assert clf.score(forest, y) > 0.8


def test_channels_that_the_examples_lack_are_refused():
    texts, y = make_problem(14, 10)
    for combine in ("vectors", "sum", "product"):
        with pytest.raises(ValueError, match="needs vectors"):
            TreeSVC(combine=combine).fit(texts, y)
    vectors_without_trees = Forest({}, vectors=np.eye(10))
    for combine in ("trees", "sum", "product"):
        with pytest.raises(ValueError, match="needs trees"):
            TreeSVC(combine=combine).fit(vectors_without_trees, y)
    assert TreeSVC(C=10.0).fit(vectors_without_trees, y).predict(vectors_without_trees).tolist() == y.tolist()
    for nothing in (Forest([None] * 10), Forest({"a": [None] * 10, "b": [None] * 10})):
        with pytest.raises(ValueError, match="no example has a tree"):
            TreeSVC().fit(nothing, y)


def test_missing_trees_have_kernel_zero():
    texts, y = make_problem(15, 40)
    forest = Forest([None if i % 5 == 0 else tree for i, tree in enumerate(texts)])
    clf = TreeSVC(tol=1e-5).fit(forest, y)
    check_certificate(clf, forest, y, np.ones(40))
    test_forest = Forest([None, None, "(New)"])
    assert np.unique(clf.decision_function(test_forest)).tolist() == [clf.model_.intercept[0]]


def test_none_in_a_list_is_refused():
    """None in a list is mostly a mistake; an example without a tree can be stored in a Forest."""
    texts, y = make_problem(15, 40)
    clf = TreeSVC().fit(texts, y)
    for ask in (
        clf.predict,
        clf.decision_function,
        unkernel.compile(clf).predict,
        lambda X: TreeSVC().fit(X, y[:2]),
    ):
        with pytest.raises(ValueError, match=r"trees\[1\] is None, not a tree"):
            ask([texts[0], None])


# --- Imbalance --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_imbalance_trades_precision_for_recall(solver):
    texts, y = make_problem(16, 600, share=0.08, noise=0.4)
    test_texts, test_labels = make_problem(17, 600, share=0.08, noise=0.4)
    balanced, imbalanced = (
        TreeSVC(solver=solver, C=0.05, imbalance=j, random_state=0, sample_size=300, tol=1e-2)
        .fit(texts, y)
        .predict(test_texts)
        for j in (1.0, 10.0)
    )
    assert recall_score(test_labels, imbalanced) > recall_score(test_labels, balanced) + 0.2
    assert np.mean(imbalanced) > np.mean(balanced)
    assert precision_score(test_labels, imbalanced) < 0.9


# --- Copies, files and messages ---------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_saved_pickled_and_compiled_models_give_the_same_scores(classes, tmp_path):
    texts, y = make_problem(18, 80, classes=classes)
    clf = TreeSVC("ptk").fit(texts, y)
    scores = clf.decision_function(texts)
    clf.save(tmp_path / "model.uk")
    for copy in (
        unkernel.load(tmp_path / "model.uk"),
        unkernel.compile(clf),
        unkernel.compile(clf.to_model()),
        unkernel.compile(tmp_path / "model.uk"),
        pickle.loads(pickle.dumps(clf)),
    ):
        assert np.array_equal(copy.decision_function(texts), scores)
        assert np.array_equal(copy.predict(texts), clf.predict(texts))
        assert np.array_equal(copy.classes_, clf.classes_)
    np.testing.assert_allclose(
        clf.to_model().scores(Forest(texts)), scores.reshape(80, -1), rtol=0, atol=1e-11
    )
    origin = clf.to_model().origin
    assert (origin["learner"], origin["solver"], origin["objective"]) == ("TreeSVC", "exact", clf.objective_)
    assert clf.n_support_ == clf.to_model().n_support == len(clf.to_model().support)


def test_models_hold_only_their_support_trees():
    texts, y = make_problem(19, 200, noise=0.0)
    forest = Forest([*texts, *make_problem(20, 200)[0]])
    clf = TreeSVC(C=100.0).fit(forest[:200], y)
    assert clf.n_support_ < 200
    assert clf.model_.support.nodes < forest.nodes
    assert (np.abs(clf.model_.coefficients) > 0).any(axis=1).all()


def test_verbose_prints_the_chosen_method(capsys):
    texts, y = make_problem(21, 30)
    TreeSVC(verbose=1).fit(texts, y)
    assert "[TreeSVC] solver=exact, 30 trees" in capsys.readouterr().out
    TreeSVC().fit(texts, y)
    assert not capsys.readouterr().out


def test_auto_samples_many_examples(monkeypatch):
    texts, y = make_problem(22, 30)
    assert TreeSVC().fit(texts, y).solver_ == "exact"
    monkeypatch.setattr(svc_module, "_MIN_SAMPLED_EXAMPLES", 30)
    assert TreeSVC(random_state=0).fit(texts, y).solver_ == "sampled"
    assert TreeSVC(random_state=0).fit(texts[1:], y[1:]).solver_ == "exact"
    assert TreeSVC(solver="exact").fit(texts, y).solver_ == "exact"


def test_kernels_that_single_precision_cannot_hold_are_refused():
    wide = "(A " + "(B x) " * 300 + ")"
    with pytest.raises(ValueError, match="lower the decay"):
        TreeSVC(normalize=False, decay=1.0).fit([wide, "(C d)"], [0, 1])
