"""Convert trees of NLTK, and other objects with the interface of ``nltk.Tree``, without importing NLTK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from unkernel.data.trees.preorder import Preorder, list_nodes


class NltkTree(Protocol):
    """The interface of ``nltk.Tree`` and its subclasses (``ParentedTree``, ``ImmutableTree``, ...)."""

    def label(self) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


def from_nltk(tree: NltkTree) -> Preorder:
    """Convert an ``nltk.Tree`` to the form that the core reads.

    The label of a node is its ``label()``. Leaves are strings, or trees without children: ``Tree("NN", [])``
    means ``(NN)``.

    Parameters
    ----------
    tree : nltk.Tree
        A tree of any depth. It is not changed.

    Returns
    -------
    Preorder

    Raises
    ------
    ValueError
        If a label or a leaf is not a string (tagged text, for example, has pairs such as ``("dog", "NN")``),
        or if the tree contains itself.
    TypeError
        If the argument is not a tree.

    Examples
    --------
    >>> from nltk import Tree  # doctest: +SKIP
    >>> from_nltk(Tree.fromstring("(NP (DT the) (NN dog))"))  # doctest: +SKIP
    Preorder(labels=['NP', 'DT', 'the', 'NN', 'dog'], arities=[2, 1, 0, 1, 0])
    """
    if not _is_tree(tree):
        advice = "; Tree.fromstring(text) reads text in brackets" if isinstance(tree, str) else ""
        raise TypeError(f"expected an nltk.Tree, got {_describe(tree)}{advice}")
    return list_nodes(tree, _expand)


def _expand(node: NltkTree | str) -> tuple[str, list[Any]]:
    """Return the label and the children of a node."""
    if isinstance(node, str):
        return node, []
    label = _get_label(node)
    return label, [_check_child(child, label) for child in node]


def _is_tree(node: Any) -> bool:
    return callable(getattr(node, "label", None)) and hasattr(node, "__iter__")


def _get_label(node: NltkTree) -> str:
    label = node.label()
    if not isinstance(label, str):
        raise ValueError(
            f"the label of a tree must be a string, got {_describe(label)}; use set_label(str(...))"
        )
    return label


def _check_child(child: Any, parent: str) -> Any:
    if isinstance(child, str) or _is_tree(child):
        return child
    raise ValueError(
        f"a leaf must be a string, got {_describe(child)} below the node {parent!r}; {_advise_on_leaf(child)}"
    )


def _advise_on_leaf(leaf: Any) -> str:
    match leaf:
        case (str(word), str(tag)):
            return f"make a tagged word a tree: Tree({tag!r}, [{word!r}])"
        case _:
            return "give its text, str(...)"


def _describe(value: Any) -> str:
    """Return the type of a value, and the value if it is short."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
