"""Training histories in estimators, model files and reports."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import unkernel
from reference.pages import Page
from unkernel import CuttingPlaneSVC, PolyLogisticRegression, PolySVC, RankSVM, TreeSVC
from unkernel.models.history import History

generator = np.random.default_rng(0)
X = (generator.random((90, 8)) < 0.4).astype(float)
y = generator.integers(0, 3, 90)
TREES = [f"(S (A {'b' * (k % 3 + 1)}) (C {'d' * (k % 2 + 1)}))" for k in range(90)]
LEARNERS = [
    PolySVC(degree=2, random_state=0),
    PolySVC(degree=2, storage="kernel", random_state=0),
    PolySVC(degree=2, penalty="l1", loss="squared_hinge", random_state=0),
    PolyLogisticRegression(degree=2, random_state=0),
    PolyLogisticRegression(degree=2, penalty="l2", random_state=0),
    CuttingPlaneSVC(solver="cutting_plane"),
    CuttingPlaneSVC(solver="dual", random_state=0),
    RankSVM(),
    TreeSVC(),
    TreeSVC(solver="sampled", random_state=0),
]


def fit_copy(learner, **parameters):
    copy = learner.__class__(**learner.get_params() | parameters)
    return copy.fit(TREES if isinstance(learner, TreeSVC) else X, y)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_the_history_ends_with_the_solution_and_is_reproducible(learner, tmp_path):
    model = fit_copy(learner)
    history = model.history_
    assert (np.diff(history.passes) > 0).all()
    assert history.passes[-1] <= model.n_iter_
    assert history.objective[-1] == pytest.approx(model.objective_, rel=1e-12)
    assert history.gap[-1] <= model.gap_ + 1e-12
    if model.get_params().get("solver") != "sampled":  # the bound holds only for the problem with its cuts
        assert (history.bound[-1] <= history.objective + 1e-9).all()
    repeated = fit_copy(learner, n_jobs=2).history_
    assert history.to_json() == repeated.to_json()
    model.save(tmp_path / "model.uk")
    assert type(model).load(tmp_path / "model.uk").history_.to_json() == history.to_json()


def test_summed_histories_keep_the_last_value_of_finished_problems():
    early = np.array([[0.0, 10.0, 0.0], [1.0, 4.0, 3.0]])
    late = np.array([[1.0, 7.0, 1.0], [3.0, 6.0, 5.0], [4.0, 5.5, 5.25]])
    history = History.sum_problems([early, late])
    assert history.passes.tolist() == [1, 3, 4]
    assert history.objective.tolist() == [11.0, 10.0, 9.5]
    assert history.bound.tolist() == [4.0, 8.0, 8.25]
    assert history.gap.tolist() == pytest.approx([7 / 11, 2 / 10, 1.25 / 9.5])


def test_long_histories_are_thinned_to_a_hundred_passes():
    passes = np.arange(5000.0)
    history = History.sum_problems([np.column_stack([passes, 1 / (passes + 1), np.zeros(5000)])])
    assert 50 < len(history.passes) <= 100
    assert history.passes[[0, -1]].tolist() == [0, 4999]
    assert history.objective.tolist() == pytest.approx((1 / (history.passes + 1)).tolist())


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"pass": [1], "objective": [1.0]},
        {"pass": [1, 2], "objective": [1.0], "bound": [0.0]},
        {"pass": ["1"], "objective": [1.0], "bound": [0.0]},
        {"pass": [1e300], "objective": [1.0], "bound": [0.0]},
        {"pass": [float("nan")], "objective": [1.0], "bound": [0.0]},
        {"pass": [], "objective": [], "bound": []},
    ],
)
def test_invalid_histories_are_ignored(stored):
    assert History.from_json(stored) is None


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_reports_draw_the_history():
    model = fit_copy(LEARNERS[0])
    for classifier in (model, unkernel.compile(model)):
        text = classifier.report(X, y).html()
        assert "mathdefault" not in text  # ticks of logarithmic axes would need markup
        pictures = Page(text).find_elements("svg")
        descriptions = [words for picture in pictures if "by pass" in (words := picture["aria-label"] or "")]
        assert len(descriptions) == 2
        assert descriptions[0].startswith(f"{type(classifier).__name__}: the objective by pass, down to ")
        assert descriptions[1].startswith("Relative gap by pass; after the last one: ")


def test_histories_become_frames():
    pytest.importorskip("pandas")
    frame = fit_copy(LEARNERS[0]).history_.to_frame()
    assert list(frame) == ["pass", "objective", "bound", "gap"]
