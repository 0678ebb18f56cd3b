"""Trees as two lists: the form in which the adapters hand a tree to the core."""

from __future__ import annotations

from typing import NamedTuple


class Preorder(NamedTuple):
    """A tree, its nodes listed parents first and children from left to right.

    Attributes
    ----------
    labels : list of str
        What stands at each node. Any text, the empty one as well: nothing is escaped.
    arities : list of int
        How many children each node has; 0 is a leaf.

    Examples
    --------
    The tree ``(NP (DT the) (NN dog))``:

    >>> from unkernel.data.trees.preorder import Preorder
    >>> tree = Preorder(["NP", "DT", "the", "NN", "dog"], [2, 1, 0, 1, 0])
    """

    labels: list[str]
    arities: list[int]
