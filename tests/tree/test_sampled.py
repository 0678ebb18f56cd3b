"""Sampled cutting planes over trees: all methods compute the same cuts, and valid bounds of the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.poly import solve_dual
from reference.selection import few_examples, slow_after
from reference.tree_examples import make_problem
from reference.tree_kernels import KINDS
from unkernel import Forest, TreeKernel, TreeSVC
from unkernel._core import train_sampled_remote_trees, train_sampled_trees
from unkernel.models import ExampleKernel, Kernel
from unkernel.tree.options import SampledOptions

METHODS = ("forest", "usvm", "sdag", "sdag+", "kernels")
every_kernel = pytest.mark.parametrize("kind", KINDS)


def train(forest, y, *, kernel=None, costs=None, method="forest", threads=1, **options):
    kernel = kernel or ExampleKernel()
    on_progress, positive = options.pop("on_progress", None), options.pop("positive", 1)
    all_options = {"imbalance": 1.0, "C": 1.0, "epsilon": 1e-3, "max_rounds": 40, "sample_size": 60}
    all_options |= {"fit_intercept": True, "seed": 1, "method": method, "threads": threads}
    outcome = train_sampled_trees(
        SampledOptions(**all_options | options),
        kernel=kernel.core(),
        set=kernel.examples(forest, indexed=True),
        codes=np.asarray(y, np.int32),
        costs=np.ones(len(y)) if costs is None else np.asarray(costs, float),
        positive=positive,
        on_progress=on_progress,
    )
    return dict(outcome)


def assert_same(actual, expected, tolerance):
    assert actual["rounds"] == expected["rounds"]
    assert actual["converged"] == expected["converged"]
    for name in ("objective", "dual_objective", "intercept"):
        assert actual[name] == pytest.approx(expected[name], rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(actual["coefficients"], expected["coefficients"], rtol=0, atol=tolerance)


def problem(seed, rows=200, **options):
    texts, y = make_problem(seed, rows, **options)
    return Forest(texts), y


# --- The same cuts, however they are computed -------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("fit_intercept", slow_after(1, [True, False]))
def test_every_method_makes_the_same_cuts(kind, fit_intercept):
    forest, y = problem(1)
    expected, *results = (
        train(
            forest, y, kernel=ExampleKernel(kind), method=method, fit_intercept=fit_intercept, max_rounds=12
        )
        for method in METHODS
    )
    assert expected["rounds"] > 3
    assert np.count_nonzero(expected["coefficients"]) > 20
    for result in results:
        assert_same(result, expected, 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_several_channels_by_every_method(method):
    texts, y = make_problem(2, 120)
    forest = Forest({"a": texts, "b": texts[::-1]})
    for pairing in ("same", "all"):
        kernel = ExampleKernel(tree_pairing=pairing, normalize=False)
        expected = train(forest, y, kernel=kernel, method="kernels", max_rounds=8)
        assert_same(train(forest, y, kernel=kernel, method=method, max_rounds=8), expected, 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_threads_do_not_change_a_bit(method):
    forest, y = problem(3)
    expected = train(forest, y, method=method, max_rounds=10)
    for threads in (2, 3):
        result = train(forest, y, method=method, max_rounds=10, threads=threads)
        assert np.array_equal(result["coefficients"], expected["coefficients"])
        assert (result["intercept"], result["objective"]) == (expected["intercept"], expected["objective"])


class RoundedCuts:
    """Cuts computed from the kernel matrix, with noise as from another order of summation."""

    def __init__(self, gram, rounding):
        self.gram, self.rounding, self.cuts = gram, rounding, []
        self.random = np.random.default_rng(0)

    def score(self, alphas, examples, labels, intercept):
        return self.gram[examples] @ (np.array(self.cuts).T @ alphas)

    def add(self, examples, coefficients):
        self.cuts.append(np.zeros(len(self.gram)))
        self.cuts[-1][examples] = coefficients
        products = np.array(self.cuts) @ (self.gram @ self.cuts[-1])
        return products * (1 + self.rounding * self.random.normal(size=len(products)))


def test_rounding_does_not_grow_from_round_to_round():
    generator = np.random.default_rng(0)
    words = generator.integers(0, 6, (600, 4))
    codes = (generator.random(600) < 0.3).astype(np.int32)
    texts = [f"(S (A (N w{a}) (N v{b})) (B (M u{c}) (N w{d})))" for a, b, c, d in words]
    gram = TreeKernel(decay=0.4).fit_transform(texts)
    for seed in range(6):
        options = SampledOptions(
            imbalance=1.0,
            C=10.0,
            epsilon=1e-3,
            max_rounds=100,
            sample_size=200,
            fit_intercept=True,
            seed=seed,
            method="forest",
            threads=1,
        )
        exact, rounded = (
            train_sampled_remote_trees(
                options,
                cuts=RoundedCuts(gram, rounding),
                codes=codes,
                costs=np.ones(600),
                positive=1,
                on_progress=None,
            )
            for rounding in (0.0, 1e-14)
        )
        assert exact["rounds"] == rounded["rounds"] > 30
        assert exact["objective"] == pytest.approx(rounded["objective"], rel=1e-10)


def test_sampling_depends_only_on_the_seed():
    forest, y = problem(4)
    first, repeated, other_seed = (train(forest, y, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first["coefficients"], repeated["coefficients"])
    assert not np.array_equal(first["coefficients"], other_seed["coefficients"])


@pytest.mark.parametrize("method", ["forest", "usvm", "sdag", "sdag+"])
def test_kernels_that_are_no_sums_over_nodes(method):
    forest = Forest(["(A b)", "(C d)"], vectors=np.eye(2))
    kernel = ExampleKernel(combination="product")
    with pytest.raises(ValueError, match="kernels of trees alone"):
        train(forest, [0, 1], kernel=kernel, method=method)
    with pytest.raises(ValueError, match="cuts are computed by"):
        train(forest, [0, 1], kernel=kernel, method="smo")


# --- If all examples are drawn, it is a cutting-plane method ----------------------------------------


def add_intercept_constant(K, fit_intercept):
    """Return the kernel matrix, plus 1 for the constant feature of a regularised intercept."""
    return K + 1.0 if fit_intercept else K


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", slow_after(1, [0.05, 1.0]))
def test_all_examples_in_every_sample(fit_intercept, C):
    """Cuts are below the objective, and at the end by at most epsilon of the mean loss."""
    forest, y = problem(5, 80)
    signs, epsilon = 2.0 * y - 1, 1e-3
    result = train(
        forest, y, C=C, fit_intercept=fit_intercept, sample_size=80, epsilon=epsilon, max_rounds=1000
    )
    assert result["converged"]
    K = add_intercept_constant(TreeKernel()(forest), fit_intercept)
    _, optimum = solve_dual(K, signs, np.full(80, C), "hinge", gap=1e-6)
    allowed = 80 * C * epsilon
    assert optimum - 1.05 * allowed <= result["dual_objective"] <= optimum * (1 + 1e-6)
    assert result["objective"] <= optimum * (1 + 1e-6) + 0.05 * allowed
    coefficients = result["coefficients"]
    scores = K @ coefficients
    primal = 0.5 * coefficients @ scores + C * np.maximum(0.0, 1.0 - signs * scores).sum()
    assert optimum * (1 - 1e-6) <= primal <= result["objective"] + 1.05 * allowed
    assert result["intercept"] == pytest.approx(coefficients.sum() if fit_intercept else 0.0, abs=1e-9)


@few_examples(6, print_blob=True)
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(2, 50),
    C=st.floats(0.01, 20),
    kind=st.sampled_from(KINDS),
    fit_intercept=st.booleans(),
)
def test_cuts_are_below_the_problem(seed, rows, C, kind, fit_intercept):
    forest, y = problem(seed, rows, noise=0.4)
    result = train(
        forest,
        y,
        C=C,
        fit_intercept=fit_intercept,
        sample_size=rows,
        kernel=ExampleKernel(kind),
        epsilon=1e-2,
        max_rounds=300,
    )
    K = add_intercept_constant(TreeKernel(kind)(forest), fit_intercept)
    _, optimum = solve_dual(K, 2.0 * y - 1, np.full(rows, C), "hinge", gap=1e-5)
    assert result["dual_objective"] <= optimum * (1 + 1e-5)
    assert result["converged"]
    assert result["dual_objective"] >= optimum * (1 - 1e-5) - 1.05 * rows * C * 1e-2


def test_sampled_training_comes_near_the_exact_solution():
    texts, y = make_problem(6, 800)
    test_texts, test_labels = make_problem(7, 400)
    exact = TreeSVC(C=0.1).fit(texts, y)
    sampled = TreeSVC(C=0.1, solver="sampled", sample_size=400, tol=1e-2, random_state=0).fit(texts, y)
    assert sampled.solver_ == "sampled"
    assert sampled.n_support_ <= 800
    assert abs(exact.score(test_texts, test_labels) - sampled.score(test_texts, test_labels)) < 0.03
    scores = sampled.decision_function(texts)
    assert np.corrcoef(scores, exact.decision_function(texts))[0, 1] > 0.97


# --- Sampling in proportion to cost -----------------------------------------------------------------


def test_examples_of_cost_zero_are_never_drawn():
    forest, y = problem(8, 100)
    costs = np.ones(100)
    costs[::3] = 0.0
    costs[:2] = 1.0
    result = train(forest, y, costs=costs, max_rounds=15)
    coefficients = np.asarray(result["coefficients"])
    assert (coefficients[costs == 0] == 0).all()
    assert np.count_nonzero(coefficients[costs > 0]) > 20


def test_examples_are_drawn_in_proportion_to_their_cost():
    """With a single cut, the coefficient of an example is proportional to its number of draws."""
    forest, y = problem(9, 60)
    costs = np.where(np.arange(60) % 2, 3.0, 1.0)
    result = train(forest, y, costs=costs, max_rounds=1, sample_size=40_000, fit_intercept=False)
    draws = np.abs(np.asarray(result["coefficients"]))
    share = draws / draws.sum()
    # 40,000 draws: a share of 1/40 has a standard deviation of 3%, and there are 60 of them
    np.testing.assert_allclose(share, costs / costs.sum(), rtol=0.15)


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_weights_scale_as_c_does(solver):
    texts, y = make_problem(10, 100)
    options = {"solver": solver, "random_state": 3, "sample_size": 100, "tol": 1e-3}
    by_c = TreeSVC(C=0.5, **options).fit(texts, y)
    by_sample_weight = TreeSVC(C=0.125, **options).fit(texts, y, np.full(100, 4.0))
    by_class_weight = TreeSVC(C=0.125, class_weight={0: 4.0, 1: 4.0}, **options).fit(texts, y)
    for scaled in (by_sample_weight, by_class_weight):
        assert scaled.objective_ == pytest.approx(by_c.objective_, rel=1e-9)
        np.testing.assert_allclose(scaled.decision_function(texts), by_c.decision_function(texts), atol=1e-9)


# --- Vectors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("combination", ["vectors", "sum", "product"])
def test_vectors_are_cut_by_their_kernels(combination):
    texts, y = make_problem(11, 80)
    vectors = np.random.default_rng(0).normal(size=(80, 3)).round(2)
    forest = Forest(texts, vectors=vectors)
    kernel = ExampleKernel(combination=combination, tree_weight=0.5, vector=Kernel("rbf", gamma=0.5))
    result = train(
        forest, y, kernel=kernel, method="kernels", sample_size=80, fit_intercept=False, C=0.2, max_rounds=500
    )
    tree_kernel, vector_kernel = (
        TreeKernel()(Forest(texts)),
        Kernel("rbf", gamma=0.5).matrix(vectors, vectors),
    )
    K = {
        "vectors": vector_kernel,
        "sum": 0.5 * tree_kernel + vector_kernel,
        "product": tree_kernel * vector_kernel,
    }[combination]
    _, optimum = solve_dual(K, 2.0 * y - 1, np.full(80, 0.2), "hinge", gap=1e-5)
    assert result["converged"]
    assert optimum - 1.05 * 80 * 0.2 * 1e-3 <= result["dual_objective"] <= optimum * (1 + 1e-5)


# --- The estimator ----------------------------------------------------------------------------------


def test_the_estimator_draws_by_its_random_state():
    texts, y = make_problem(12, 300, classes=3)
    options = {"solver": "sampled", "sample_size": 100, "tol": 1e-2}
    first, repeated, multi_threaded = (
        TreeSVC(random_state=1, n_jobs=jobs, **options).fit(texts, y) for jobs in (1, 1, 2)
    )
    other_seed = TreeSVC(random_state=2, **options).fit(texts, y)
    for refitted in (repeated, multi_threaded):
        assert np.array_equal(refitted.model_.coefficients, first.model_.coefficients)
        assert np.array_equal(refitted.model_.intercept, first.model_.intercept)
    assert not np.array_equal(other_seed.decision_function(texts), first.decision_function(texts))
    seeded = TreeSVC(random_state=np.random.RandomState(1), **options).fit(texts, y)
    assert np.array_equal(seeded.model_.intercept, first.model_.intercept)


def test_fitted_attributes_describe_the_end_of_training():
    texts, y = make_problem(13, 100)
    clf = TreeSVC(solver="sampled", sample_size=100, tol=1e-2, random_state=0).fit(texts, y)
    assert clf.n_iter_ > 1
    assert 0 <= clf.gap_ < 0.05
    assert clf.objective_ > 0
    assert clf.to_model().origin["solver"] == "sampled"


@pytest.mark.parametrize(
    "name, value", [("C", "1"), ("max_rounds", 1.5), ("fit_intercept", 1), ("seed", -1), ("method", None)]
)
def test_options_of_other_types_are_refused(name, value):
    with pytest.raises(TypeError, match=f"option '{name}' must be"):
        train(Forest(["(A b)", "(A c)"]), [0, 1], **{name: value})
