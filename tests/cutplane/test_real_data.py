"""Cutting planes on real data: objectives compared with LIBLINEAR's, and measures that are optimised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.svm import LinearSVC

from reference import real_data
from reference.cutting_planes import margin_risk
from unkernel import CuttingPlaneSVC, RankSVM, datasets

pytestmark = pytest.mark.slow


def objective(clf, X, signs, C, *, squared):
    weights, constant = clf.coef_[0], clf.intercept_[0]
    risk = margin_risk(C * signs, X @ weights + constant, squared=squared)
    return 0.5 * (weights @ weights + constant**2) + risk


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a9a_is_solved_to_the_gap(loss, solver):
    train, test = real_data.load("a9a"), real_data.load("a9a", "test")
    clf = CuttingPlaneSVC(C=0.1, loss=loss, solver=solver, n_jobs=2, random_state=0).fit(train.X, train.y)
    peer = LinearSVC(C=0.1, loss=loss, dual=True, tol=1e-2, max_iter=20_000, random_state=0)
    peer.fit(train.X, train.y)
    squared = loss == "squared_hinge"
    objective_here = objective(clf, train.X, train.y, 0.1, squared=squared)
    peer_objective = objective(peer, train.X, train.y, 0.1, squared=squared)
    assert clf.gap_ <= 1e-3
    assert clf.objective_ == pytest.approx(objective_here, rel=1e-6)
    assert objective_here <= peer_objective * (1 + 1.1e-3)
    assert clf.score(test.X, test.y) == pytest.approx(peer.score(test.X, test.y), abs=2e-3)


def test_covtype_from_a_file_is_that_from_memory(tmp_path):
    train = real_data.load("covtype68k")
    result = CuttingPlaneSVC(C=0.01, n_jobs=2, cache=tmp_path / "rows").fit(datasets.path("covtype68k"))
    expected = CuttingPlaneSVC(C=0.01, n_jobs=2, solver="cutting_plane").fit(train.X, train.y)
    assert result.classes_.tolist() == expected.classes_.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert result.objective_ == pytest.approx(expected.objective_, rel=1e-3)
    assert np.mean(result.predict(train.X) == expected.predict(train.X)) > 0.99


def test_the_area_under_the_curve_is_larger_where_it_is_optimised():
    train, test = real_data.load("covtype68k"), real_data.load("covtype68k", "test")
    rare, rare_test = train.y == 7, test.y == 7
    hinge = CuttingPlaneSVC(C=0.1, n_jobs=2, random_state=0).fit(train.X, rare)
    roc = CuttingPlaneSVC(C=0.1, objective="roc_area", n_jobs=2).fit(train.X, rare)
    area, hinge_area = (roc_auc_score(rare_test, clf.decision_function(test.X)) for clf in (roc, hinge))
    assert area > hinge_area + 0.01


def test_the_f1_score_is_larger_where_it_is_optimised():
    train, test = real_data.load("a9a"), real_data.load("a9a", "test")
    hinge = CuttingPlaneSVC(C=0.1, n_jobs=2, random_state=0).fit(train.X, train.y)
    result = CuttingPlaneSVC(C=0.1, objective="f1", tol=1e-2, n_jobs=2).fit(train.X, train.y)
    assert f1_score(test.y, result.predict(test.X)) > f1_score(test.y, hinge.predict(test.X)) + 0.01


def test_letor_queries():
    train, test = real_data.load("mq2008.fold1"), real_data.load("mq2008.fold1", "test")
    ranker = RankSVM(C=0.01, n_jobs=2).fit(train.X, train.y, train.qid)
    assert ranker.gap_ <= 1e-3
    score = ranker.score(test.X, test.y, test.qid)
    assert score > 0.68
    assert score > ranker.score(test.X * 0, test.y, test.qid) + 0.15
    error = np.abs(ranker.fit_thresholds(train.X, train.y).predict(train.X) - train.y).mean()
    most_common = np.abs(np.median(train.y) - train.y).mean()
    assert error <= most_common


def test_imdb_ratings():
    train, test = real_data.load("imdb"), real_data.load("imdb", "test")
    ranker = RankSVM(C=0.001, n_jobs=2).fit(train.X, train.y)
    assert ranker.gap_ <= 1e-3
    assert ranker.score(test.X, test.y) > 0.79
    ranker.fit_thresholds(train.X, train.y)
    error = np.abs(ranker.predict(test.X) - test.y).mean()
    assert error < 0.6 * np.abs(np.median(train.y) - test.y).mean()
