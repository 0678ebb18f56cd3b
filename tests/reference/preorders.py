"""A stand-in for the trees of other libraries, and its text in brackets."""

from __future__ import annotations


class Tree(list):
    """A stand-in for nltk.Tree: a list of children with a label."""

    def __init__(self, label, children):
        super().__init__(children)
        self._label = label

    def label(self):
        return self._label

    def __repr__(self):
        return f"Tree({self._label!r}, ...)"


def brackets(tree):
    """Return the tree as text, with a leaf as a bare word."""
    finished = []
    for label, arity in zip(reversed(tree.labels), reversed(tree.arities), strict=True):
        children = [finished.pop() for _ in range(arity)]
        finished.append(f"({' '.join([label, *children])})" if children else label)
    assert len(finished) == 1
    return finished[0]
