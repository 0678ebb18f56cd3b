"""Fits of CuttingPlaneSVC that continue earlier fits, end early or are interrupted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from reference.linear_problems import large_problem, make_problem
from reference.selection import slow_after
from unkernel import CuttingPlaneSVC, RankSVM


@pytest.mark.parametrize("constant", [1.0, 20.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_warm_start_begins_at_the_last_weights(classes, constant):
    X, y = large_problem(classes, rows=400)
    options = {"tol": 1e-4, "intercept_scaling": constant}
    clf = CuttingPlaneSVC(warm_start=True, **options).fit(X, y)
    cold, objective = clf.n_iter_, clf.objective_
    clf.fit(X, y)
    assert clf.n_iter_ < cold
    assert clf.objective_ <= objective * (1 + 1e-12)
    clf.set_params(C=1.1).fit(X, y)
    assert clf.objective_ == pytest.approx(CuttingPlaneSVC(C=1.1, **options).fit(X, y).objective_, rel=2e-4)


def test_warm_start_takes_no_weights_that_do_not_fit():
    X, y = large_problem(3)
    expected = CuttingPlaneSVC(warm_start=True).fit(X[:, :50], y % 2)
    for problem in ((X, y), (X, y % 2), (X[:, :50], y), (X[:, :50], y % 2 + 5)):
        clf = CuttingPlaneSVC(warm_start=True).fit(*problem).fit(X[:, :50], y % 2)
        assert np.array_equal(clf.coef_, expected.coef_)
    no_intercept = CuttingPlaneSVC(warm_start=True, fit_intercept=False).fit(X[:, :50], y % 2)
    refitted = no_intercept.set_params(fit_intercept=True).fit(X[:, :50], y % 2)
    assert refitted.objective_ == pytest.approx(expected.objective_, rel=1e-3)


@pytest.mark.parametrize("options", [{}, {"loss": "squared_hinge"}, {"objective": "f1"}], ids=str)
@pytest.mark.parametrize("classes", slow_after(1, [2, 3]))
def test_a_path_equals_separate_fits_with_fewer_passes(classes, options):
    X, y = large_problem(classes, rows=600)
    Cs = [0.05, 0.1, 0.2, 0.4, 0.8]
    learner = CuttingPlaneSVC(C=77, solver="cutting_plane", tol=1e-4, **options)
    path = learner.path(X, y, iter(Cs))
    cold = [clone(learner).set_params(C=C).fit(X, y) for C in Cs]
    for of_path, separate, C in zip(path, cold, Cs, strict=True):
        assert of_path.C == C
        assert of_path.solver_ == "cutting_plane"
        assert of_path.gap_ <= 1e-4
        assert of_path.objective_ == pytest.approx(separate.objective_, rel=1.1e-4 * classes)
        assert np.mean(of_path.predict(X) == separate.predict(X)) > 0.98
        assert of_path.n_features_in_ == 400
    if classes == 2:  # n_iter_ is the largest over all problems, not their sum
        assert sum(of_path.n_iter_ for of_path in path) < sum(separate.n_iter_ for separate in cold)


def test_a_path_does_not_change_the_learner():
    X, y = make_problem(5)
    learner = CuttingPlaneSVC()
    learner.path(X, y, [0.1, 1.0])
    with pytest.raises(NotFittedError):
        learner.predict(X)
    learner.fit(X, y)
    learner.path(X[:, :3], y + 5, [0.1])
    assert set(learner.predict(X)) == {0, 1}
    assert learner.classes_.tolist() == [0, 1]
    assert learner.n_features_in_ == 6


def test_a_path_has_weights_and_refuses_bad_costs():
    X, y = make_problem(5)
    weights = np.random.default_rng(0).random(len(y))
    (of_path,) = CuttingPlaneSVC(tol=1e-5).path(X, y, [0.7], sample_weight=weights)
    separate = CuttingPlaneSVC(C=0.7, tol=1e-5, solver="cutting_plane").fit(X, y, weights)
    assert np.array_equal(of_path.coef_, separate.coef_)
    with pytest.raises(ValueError, match="'C' parameter"):
        CuttingPlaneSVC().path(X, y, [1.0, 0.0])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_few_cuts_are_enough(loss):
    X, y = large_problem()
    few_cuts = CuttingPlaneSVC(loss=loss, max_cuts=4, solver="cutting_plane", max_iter=5000).fit(X, y)
    many_cuts = CuttingPlaneSVC(loss=loss, solver="cutting_plane").fit(X, y)
    assert few_cuts.gap_ <= 1e-3
    assert few_cuts.objective_ == pytest.approx(many_cuts.objective_, rel=2e-3)


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
def test_fits_that_do_not_converge_warn(solver):
    X, y = large_problem()
    clf = CuttingPlaneSVC(C=100, solver=solver, max_iter=2, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .* raise max_iter") as caught:
        clf.fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning) as caught:
        clf.path(X, y, [100.0])
    assert caught[0].filename == __file__
    assert clf.gap_ > 1e-6
    assert clf.n_iter_ == 2
    assert clf.score(X, y) > 0.5


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
def test_an_interrupted_fit_leaves_no_attributes(solver):
    X, y = large_problem(rows=4000)

    def on_progress(_progress):
        raise KeyboardInterrupt

    clf = CuttingPlaneSVC(C=1e3, solver=solver, tol=1e-12, max_iter=10**6)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_reporting(X, y, None, on_progress=on_progress)
    for ask in (clf.predict, clf.decision_function):
        with pytest.raises(NotFittedError):
            ask(X)
    with pytest.raises(NotFittedError):
        clf.to_model()


def test_verbose_prints_the_end_of_training(capsys):
    X, y = make_problem(1)
    CuttingPlaneSVC(verbose=1).fit(X, y)
    assert "[CuttingPlaneSVC]" in capsys.readouterr().out


def test_slow_cutting_planes_name_the_other_solver():
    X, y = large_problem(rows=300)
    with pytest.warns(ConvergenceWarning, match="solver='dual'"):
        CuttingPlaneSVC(C=100, solver="cutting_plane", max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning) as caught:
        CuttingPlaneSVC(C=100, objective="f1", max_iter=2).fit(X, y)
    assert "dual" not in str(caught[0].message)


@pytest.mark.parametrize("estimator", [CuttingPlaneSVC, RankSVM])
@pytest.mark.parametrize("scale", [1e12, 1e50, 1e150])
def test_huge_values_are_refused(estimator, scale):
    """Rounding errors exceed the tolerance: the search would take minutes without a certified result."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(60, 5)) * scale, generator.integers(0, 2, 60)
    with pytest.raises(ValueError, match="scale the features"):
        estimator().fit(X, y)
