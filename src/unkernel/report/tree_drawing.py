"""Draw trees given in brackets, with each node above its children."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from unkernel.report.markup import Html, escape_html

_TOKEN = re.compile(r"[()]|[^\s()]+")
_MAX_NODES = 250
_LETTER_WIDTH, _GAP, _LEVEL_HEIGHT, _MARGIN = 7.2, 14.0, 38.0, 8.0  # in pixels
_LINE = "#8a949e"


@dataclass(eq=False)
class Node:
    """A node and its position."""

    label: str
    children: list[Node] = field(default_factory=list)
    x: float = 0.0
    depth: int = 0

    @property
    def width(self) -> float:
        """Return the width of the label, in pixels."""
        return max(len(self.label), 1) * _LETTER_WIDTH + _GAP


def parse_tree(text: str) -> Node | None:
    """Parse a tree in brackets; return None if the text is not a tree, or is too large to draw."""
    tokens = _TOKEN.findall(text)
    if not 0 < len(tokens) <= 3 * _MAX_NODES:
        return None
    super_root = Node("")  # the parent of the root
    path = [super_root]
    expects_label = False  # whether the next token is the label of a node with children
    for token in tokens:
        if token == "(":
            if expects_label:  # the previous node has no label
                path.append(_add_child(path[-1], ""))
            expects_label = True
        elif token == ")":
            if expects_label or len(path) < 2:
                return None
            path.pop()
        else:
            node = _add_child(path[-1], token)
            if expects_label:
                path.append(node)
            expects_label = False
    is_complete = len(path) == 1 and not expects_label
    return super_root.children[0] if is_complete and len(super_root.children) == 1 else None


def _add_child(parent: Node, label: str) -> Node:
    node = Node(label, depth=parent.depth + 1)
    parent.children.append(node)
    return node


def draw_tree(text: str) -> Html | None:
    """Return a drawing of a tree; None if it cannot be drawn."""
    root = parse_tree(text)
    if root is None:
        return None
    nodes = _list_nodes(root)
    width = _place_nodes(nodes)
    height = max(node.depth for node in nodes) * _LEVEL_HEIGHT + 2 * _MARGIN - _LEVEL_HEIGHT + 16
    lines = [_draw_line(node, child) for node in nodes for child in node.children]
    labels = [
        f'<text x="{node.x:.1f}" y="{_compute_y(node):.1f}">{escape_html(node.label)}</text>'
        for node in nodes
    ]
    return Html(
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape_html(text)}" font-size="13" text-anchor="middle" fill="currentColor">'
        f'<g stroke="{_LINE}" stroke-width="1.2">{"".join(lines)}</g>{"".join(labels)}</svg>'
    )


def _draw_line(parent: Node, child: Node) -> str:
    begin = f'x1="{parent.x:.1f}" y1="{_compute_y(parent) + 6:.1f}"'
    return f'<line {begin} x2="{child.x:.1f}" y2="{_compute_y(child) - 13:.1f}"/>'


def _compute_y(node: Node) -> float:
    """Return the vertical position of the label of a node, in pixels."""
    return _MARGIN + 12 + (node.depth - 1) * _LEVEL_HEIGHT


def _list_nodes(root: Node) -> list[Node]:
    """Return all nodes, each before its children."""
    nodes, stack = [], [root]
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack += reversed(node.children)
    return nodes


def _place_nodes(nodes: list[Node]) -> float:
    """Place leaves side by side, and other nodes above the middle of their children; return the total width.

    A label that is wider than its children pushes later nodes to the right.
    """
    ends: dict[int, float] = {}  # the right end of the last label at each depth; at key 0, of all labels
    for node in reversed(_list_reversed(nodes)):
        middle = sum((node.children[0].x, node.children[-1].x)) / 2 if node.children else 0.0
        left_limit = max(ends.get(node.depth, _MARGIN), 0.0 if node.children else ends.get(0, _MARGIN))
        node.x = max(middle, left_limit + node.width / 2)
        if node.x > middle and node.children:
            _shift_descendants(node, node.x - middle)
        ends[node.depth] = node.x + node.width / 2
        ends[0] = max(
            ends.get(0, 0.0), *(descendant.x + descendant.width / 2 for descendant in _list_nodes(node))
        )
    return ends[0] + _MARGIN


def _list_reversed(nodes: list[Node]) -> list[Node]:
    """Return the nodes such that the reversed list has children, from left to right, before parents."""
    ordered, stack = [], [nodes[0]]
    while stack:
        node = stack.pop()
        ordered.append(node)
        stack += node.children
    return ordered


def _shift_descendants(node: Node, distance: float) -> None:
    for descendant in _list_nodes(node)[1:]:
        descendant.x += distance
