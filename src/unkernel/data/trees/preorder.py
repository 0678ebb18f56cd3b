"""Represent trees as lists of labels and arities; the core reads trees of other libraries in this form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Preorder(NamedTuple):
    """A tree as a list of its nodes: parents first, children from left to right.

    Attributes
    ----------
    labels : list of str
        The label of each node. A label may be any text, also an empty one; brackets and spaces in it are not
        escaped.
    arities : list of int
        The number of children of each node; leaves have 0.

    Examples
    --------
    The tree ``(NP (DT the) (NN dog))``:

    >>> from unkernel.data.trees.preorder import Preorder
    >>> tree = Preorder(["NP", "DT", "the", "NN", "dog"], [2, 1, 0, 1, 0])
    """

    labels: list[str]
    arities: list[int]


class _SubtreeEnd(NamedTuple):
    """Marks the end of a node's subtree on the stack."""

    node: Any


def list_nodes(root: Any, expand: Callable[[Any], tuple[str, Sequence[Any]]]) -> Preorder:
    """List the nodes of a tree of any depth; `expand` returns the label and the children of a node.

    A tree that contains itself raises a ``ValueError``.
    """
    labels: list[str] = []
    arities: list[int] = []
    stack: list[Any] = [root]
    ancestors: set[int] = set()  # ids of the ancestors of the current node
    while stack:
        node = stack.pop()
        if isinstance(node, _SubtreeEnd):
            ancestors.discard(id(node.node))
            continue
        label, children = expand(node)
        if children:
            if id(node) in ancestors:
                raise ValueError(f"the tree contains itself, below a node {label!r}")
            ancestors.add(id(node))
            stack.append(_SubtreeEnd(node))
        labels.append(label)
        arities.append(len(children))
        stack.extend(reversed(children))
    return Preorder(labels, arities)
