"""Accuracies of Table 5 of Chang et al., and a natural-language task that is too large for their code."""

from __future__ import annotations

import numpy as np
import pytest

from reference import real_data
from reference.processes import run_program
from unkernel import PolySVC


def load(name, positive):
    train, test = real_data.load(name), real_data.load(name, "test")
    return train.X, np.isin(train.y, positive), test.X, np.isin(test.y, positive)


def accuracy(clf, X, y, X_test, y_test):
    return 100 * clf.fit(X, y).score(X_test, y_test)


def test_a9a():
    clf = PolySVC(2, C=8, gamma=0.03125, random_state=0)
    assert accuracy(clf, *load("a9a", [1])) == pytest.approx(85.06, abs=0.15)
    assert clf.gap_ <= clf.tol


@pytest.mark.slow
def test_covtype_gains_three_points_over_the_linear_model():
    rows = load("covtype68k", [2])
    linear = accuracy(PolySVC(1, C=16, gamma=1, random_state=0), *rows)
    assert accuracy(PolySVC(2, C=0.01, gamma=8, random_state=0), *rows) >= linear + 3


@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "expected"), [(0.3125, 99.29), (0.03125, 99.40)])
def test_mnist38(gamma, expected):
    X, y, X_test, y_test = load("mnist38", [1])
    clf = PolySVC(2, C=2, gamma=gamma, random_state=0)
    assert accuracy(clf, X / 255, y, X_test / 255, y_test) == pytest.approx(expected, abs=0.15)


@pytest.mark.slow
def test_covtype_at_the_papers_parameters_converges():
    X, y, _, _ = load("covtype68k", [2])
    assert PolySVC(2, C=2, gamma=8, random_state=0).fit(X, y).gap_ <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "C", "gigabytes"), [(2, 0.01, 2.0), (3, 0.001, 12.0)])
def test_parser_decisions_with_the_whole_vocabulary(degree, C, gigabytes):
    load("arc_eager_ewt", [3, 4])
    printed = run_program(f"""
        import numpy as np, resource
        from unkernel import PolySVC, datasets
        train, test = datasets.load("arc_eager_ewt"), datasets.load("arc_eager_ewt", "test")
        clf = PolySVC({degree}, C={C}, gamma=1, random_state=0).fit(train.X, train.y >= 3)
        print(clf.score(test.X, test.y >= 3), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    """)
    score, peak = map(float, printed.split())
    assert score > 0.953
    assert peak < gigabytes * 1e9
