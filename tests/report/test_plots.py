"""Which points a plot joins by lines, and which it puts words on."""

from __future__ import annotations

import importlib.util

import pytest

from unkernel.engines import Candidate
from unkernel.report import plots
from unkernel.report.tuning import draw_tuning, lines_of


def test_lines_of_a_plot_join_what_differs_in_its_trie_alone():
    base = Candidate("split", rare=8, head_bytes=4e6, nbytes=10, microseconds=5.0)
    tries = [
        Candidate("split", rare=8, head_bytes=4e6, trie_nodes=n, nbytes=10 + n, microseconds=4.0)
        for n in (300, 30)
    ]
    others = [
        Candidate("split", rare=8, head_bytes=4e6, fused=4, nbytes=9, microseconds=3.0),
        Candidate("split", rare=8, head_bytes=4e6, grouped=64, nbytes=9, microseconds=3.0),
        Candidate("expanded", head_bytes=4e6, nbytes=9, microseconds=3.0),
    ]
    assert plots.trie_lines([*others, base, *tries]) == [[base, tries[1], tries[0]]]
    assert plots.trie_lines([*others, base]) == []
    assert plots.trie_lines([*others, tries[0]]) == []  # one point is no line


def test_words_are_for_what_nothing_else_beats():
    def measured(nbytes: int, microseconds: float) -> Candidate:
        return Candidate("expanded", nbytes=nbytes, microseconds=microseconds)

    small, between, slow, fast = measured(1, 9.0), measured(3, 5.0), measured(4, 6.0), measured(5, 1.0)
    assert plots.frontier([fast, slow, between, small, measured(5, 2.0)]) == [small, between, fast]
    assert plots.frontier([]) == []


def setting(mean: float, **parameters: object) -> dict[str, object]:
    return {**parameters, "measures": {"accuracy": {"mean": mean, "std": 0.1}}}


def test_lines_of_a_tuning_join_what_differs_in_one_parameter_alone():
    settings = [setting(0.5, degree=d, C=c) for c in (1.0, 0.1) for d in (1, 2)]
    found = lines_of(["degree", "C"], "C", settings)
    assert [words for words, _ in found] == ["degree 1", "degree 2"]
    assert [[one["C"] for one in line] for _, line in found] == [[0.1, 1.0]] * 2
    words = lines_of(["loss"], "loss", [setting(0.5, loss="hinge"), setting(0.6, loss="squared_hinge")])
    assert [[one["loss"] for one in line] for _, line in words] == [["hinge", "squared_hinge"]]


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize(
    ("parameters", "settings"),
    [
        (["C", "degree"], [setting(0.5, C=c, degree=d) for c in (0.1, 10.0) for d in (1, 2)]),
        (["loss"], [setting(0.5, loss="hinge"), setting(0.6, loss="squared_hinge")]),
        ([], [setting(0.5, C=1.0)]),
    ],
)
def test_every_tuning_can_be_drawn(tmp_path, parameters, settings):
    result = {"parameters": parameters, "settings": settings, "best": 0, "criterion": "accuracy"}
    draw_tuning(tmp_path / "t.svg", {**result, "folds": 3, "data": "rows_$x$.svm"})
    assert "accuracy, mean of 3 folds" in (tmp_path / "t.svg").read_text()
