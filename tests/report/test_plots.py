"""The points that a plot joins by lines, and the points with labels."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

from unkernel.engines import Candidate
from unkernel.measures.number_format import format_bytes
from unkernel.report import search_plot
from unkernel.report.tuning_plot import draw_tuning, group_lines


def test_lines_join_engines_that_differ_only_in_their_trie():
    base = Candidate("split", rare=8, head_bytes=4e6, nbytes=10, microseconds=5.0)
    tries = [
        Candidate("split", rare=8, head_bytes=4e6, trie_nodes=n, nbytes=10 + n, microseconds=4.0)
        for n in (300, 30)
    ]
    other_engines = [
        Candidate("split", rare=8, head_bytes=4e6, fused=4, nbytes=9, microseconds=3.0),
        Candidate("split", rare=8, head_bytes=4e6, grouped=64, nbytes=9, microseconds=3.0),
        Candidate("expanded", head_bytes=4e6, nbytes=9, microseconds=3.0),
    ]
    assert search_plot.group_trie_sizes([*other_engines, base, *tries]) == [[base, tries[1], tries[0]]]
    assert search_plot.group_trie_sizes([*other_engines, base]) == []
    assert search_plot.group_trie_sizes([*other_engines, tries[0]]) == []  # one point is not a line


def test_only_engines_that_no_other_beats_are_labelled():
    def make_candidate(nbytes: int, microseconds: float) -> Candidate:
        return Candidate("expanded", nbytes=nbytes, microseconds=microseconds)

    smallest, between, slow, fastest = (
        make_candidate(1, 9.0),
        make_candidate(3, 5.0),
        make_candidate(4, 6.0),
        make_candidate(5, 1.0),
    )
    assert search_plot.find_frontier([fastest, slow, between, smallest, make_candidate(5, 2.0)]) == [
        smallest,
        between,
        fastest,
    ]
    assert search_plot.find_frontier([]) == []


def make_setting(mean: float, **parameters: object) -> dict[str, object]:
    return {**parameters, "measures": {"accuracy": {"mean": mean, "std": 0.1}}}


def test_lines_join_settings_that_differ_in_one_parameter():
    settings = [make_setting(0.5, degree=d, C=c) for c in (1.0, 0.1) for d in (1, 2)]
    result = group_lines(["degree", "C"], "C", settings)
    assert [label for label, _ in result] == ["degree 1", "degree 2"]
    assert [[each["C"] for each in line_settings] for _, line_settings in result] == [[0.1, 1.0]] * 2
    lines = group_lines(
        ["loss"], "loss", [make_setting(0.5, loss="hinge"), make_setting(0.6, loss="squared_hinge")]
    )
    assert [[each["loss"] for each in settings] for _, settings in lines] == [["hinge", "squared_hinge"]]


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize(
    ("parameters", "settings"),
    [
        (["C", "degree"], [make_setting(0.5, C=c, degree=d) for c in (0.1, 10.0) for d in (1, 2)]),
        (["loss"], [make_setting(0.5, loss="hinge"), make_setting(0.6, loss="squared_hinge")]),
        ([], [make_setting(0.5, C=1.0)]),
    ],
)
def test_every_tuning_can_be_drawn(tmp_path, parameters, settings):
    result = {"parameters": parameters, "settings": settings, "best": 0, "criterion": "accuracy"}
    draw_tuning(tmp_path / "t.svg", {**result, "folds": 3, "data": "rows_$x$.svm"})
    assert "accuracy, mean of 3 folds" in (tmp_path / "t.svg").read_text()


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize("spread", [1.0, 1.1, 6.0, 40.0, 1e4])
def test_ticks_are_round_numbers_in_words(spread):
    figure = search_plot.new_figure(1)
    axes = figure.add_subplot()
    values = [3e5, 3e5 * spread]
    axes.scatter(values, [6.0, 7.0])
    search_plot.set_log_scale(axes, "x", values, format_bytes)
    search_plot.set_log_scale(axes, "y", [6.0, 7.0], "{:g}".format)
    figure.draw_without_rendering()
    visible = [
        tick.label1.get_text()
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim()))
        for tick in axis.get_major_ticks()
        if low <= tick.get_loc() <= high
    ]
    assert len(visible) >= 4
    assert all(re.fullmatch(r"[0-9.]+( [kMG]?B)?", words) for words in visible), visible
    assert not any(label.get_text() for label in axes.get_xticklabels(minor=True))


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_numbers_and_names_cover_no_point():
    generator = np.random.default_rng(0)
    candidates = [
        Candidate("split", rare=k, nbytes=int(n), microseconds=float(t), chosen=k == 3)
        for k, (n, t) in enumerate(np.exp(generator.random((12, 2)) * 4) * [1e5, 1.0])
    ]
    axes = search_plot.new_figure(1).add_subplot()
    search_plot._draw_all(axes, candidates, [])
    axes.figure.draw_without_rendering()
    points = axes.transData.transform(
        [(candidate.nbytes, candidate.microseconds) for candidate in candidates]
    )
    legend = axes.get_legend().get_window_extent()
    assert len(axes.texts) == len(search_plot.find_frontier(candidates)) > 2
    boxes = [legend, *(text.get_window_extent() for text in axes.texts)]
    assert not any(box.contains(*point) for box in boxes for point in points.tolist())
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len([name for name in names if name.startswith("split, rare")]) >= len(axes.texts) - 1
