"""The parts of the demo, on little data."""

from __future__ import annotations

import pytest
from sklearn.svm import LinearSVC

from unkernel import PolySVC, demo


@pytest.mark.parametrize("kind", [PolySVC, LinearSVC])
def test_everything_is_measured(kind):
    measured = demo.measure(kind(C=1.0, random_state=0), demo.binary_rows(count=300))
    assert 0.4 < measured.accuracy <= 1.0
    assert min(measured.training_seconds, measured.latency_seconds, measured.rows_per_second) > 0
    assert measured.pickle_bytes > 100
    assert (measured.file_bytes is not None) == (kind is PolySVC)


def test_the_digits_are_scaled():
    rows = demo.digits()
    assert (rows.train.min(), rows.train.max()) == (0.0, 1.0)
    assert rows.train.shape[0] + rows.test.shape[0] == 1797


def test_linear_learners_reach_the_same_objective():
    cuts, dual, theirs, ranker = demo.linear_fits(demo.binary_rows(count=600))
    assert max(fit.gap for fit in (cuts, dual, theirs, ranker)) <= 1e-3
    assert cuts.objective == pytest.approx(dual.objective, rel=1e-3)
    assert cuts.objective == pytest.approx(theirs.objective, rel=1e-3)
    assert min(fit.roc_area for fit in (cuts, dual, theirs, ranker)) > 0.6


def test_ranking_orders_most_pairs():
    pairs, ours, theirs = demo.diabetes_order()
    assert pairs > 40_000
    assert min(ours, theirs) > 0.7


def test_what_would_take_too_long_is_left_out(capsys, monkeypatch):
    rows = demo.binary_rows(count=60)
    contestants = [
        demo.Contestant("PolySVC", PolySVC),
        demo.Contestant("slow", PolySVC, lambda before: before["PolySVC"].training_seconds + 1e6),
    ]
    monkeypatch.setattr(demo, "_tables", lambda: [("title", rows, contestants, ["a remark"])])
    monkeypatch.setenv("COLUMNS", "120")
    demo.main()
    shown = capsys.readouterr().out
    assert "left out" in shown
    assert "a remark" in shown
    assert "of this machine and this run" in shown
    assert "ROC area" in shown
    assert "diabetes" in shown
