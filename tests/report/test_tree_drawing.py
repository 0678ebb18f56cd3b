"""Drawings of trees: drawn and refused trees, and labels that do not overlap."""

from __future__ import annotations

from itertools import pairwise

import pytest

from reference.pages import Page
from unkernel.report.tree_drawing import _list_nodes, _place_nodes, draw_tree, parse_tree


def test_a_tree_and_its_parts():
    root = parse_tree("(S (NP dogs) (VP (V bark) ...))")
    assert root is not None
    assert [node.label for node in _list_nodes(root)] == ["S", "NP", "dogs", "VP", "V", "bark", "..."]
    page = Page(draw_tree("(S (NP <b>) (VP bark))"))
    assert page.texts["text"] == ["S", "NP", "<b>", "VP", "bark"]
    assert len(page.find_elements("line")) == 4
    assert page.find_elements("svg")[0]["aria-label"] == "(S (NP <b>) (VP bark))"


@pytest.mark.parametrize(
    "text", ["", "(", "(S (NP a)", "(S a))", "()", "(S ())", "a b", "(S " + "a " * 900 + ")"]
)
def test_text_that_is_not_a_tree_is_not_drawn(text):
    assert draw_tree(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "(S (A b) (C d) (E f))",
        "(S (averyverylonglabel b) (C d))",
        "(S (A (anotherratherlonglabel (x y))) (B (C (D e))) f)",
        "(aroot" + "longlabel" * 5 + " (A b) (C d))",
        "word",
    ],
)
def test_labels_of_one_level_do_not_overlap(text):
    root = parse_tree(text)
    assert root is not None
    nodes = _list_nodes(root)
    width = _place_nodes(nodes)
    for depth in {node.depth for node in nodes}:
        level = sorted((node for node in nodes if node.depth == depth), key=lambda node: node.x)
        for left, right in pairwise(level):
            assert left.x + left.width / 2 <= right.x - right.width / 2 + 1e-9
        assert level[0].x - level[0].width / 2 >= 0
        assert level[-1].x + level[-1].width / 2 <= width
