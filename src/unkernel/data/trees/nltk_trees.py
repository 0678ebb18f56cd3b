"""Trees of the Natural Language Toolkit, which is not imported: what behaves like its ``Tree`` is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from unkernel.data.trees.preorder import Preorder


class NltkTree(Protocol):
    """The interface of ``nltk.Tree`` and its subclasses (``ParentedTree``, ``ImmutableTree``, ...)."""

    def label(self) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class _Done(NamedTuple):
    """Marks the end of a node's subtree on the stack."""

    identity: int


def from_nltk(tree: NltkTree) -> Preorder:
    """Turn an ``nltk.Tree`` into the form that the core reads.

    A node's label is its ``label()``; a string among the children is a leaf, and so is a tree without
    children: ``Tree("NN", [])`` stands for ``(NN)``.

    Parameters
    ----------
    tree : nltk.Tree
        Of any depth. It is left as it is.

    Returns
    -------
    Preorder

    Raises
    ------
    ValueError
        A label or a leaf is not a string, such as the pairs ``("dog", "NN")`` of tagged text; or the tree
        contains itself.
    TypeError
        It is no tree at all.

    Examples
    --------
    >>> from nltk import Tree  # doctest: +SKIP
    >>> from_nltk(Tree.fromstring("(NP (DT the) (NN dog))"))  # doctest: +SKIP
    Preorder(labels=['NP', 'DT', 'the', 'NN', 'dog'], arities=[2, 1, 0, 1, 0])
    """
    if not _is_tree(tree):
        raise TypeError(f"expected an nltk.Tree, got {_describe(tree)}{_advice_on_root(tree)}")
    labels: list[str] = []
    arities: list[int] = []
    waiting: list[Any] = [tree]
    above: set[int] = set()  # the ancestors of the present node
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Done):
            above.discard(node.identity)
            continue
        if not isinstance(node, str):
            if id(node) in above:
                raise ValueError(f"the tree contains itself, below its node {_describe(_label(node))}")
            above.add(id(node))
            waiting.append(_Done(id(node)))
        children = [] if isinstance(node, str) else list(node)
        labels.append(node if isinstance(node, str) else _label(node))
        arities.append(len(children))
        waiting.extend(_check_child(child, labels[-1]) for child in reversed(children))
    return Preorder(labels, arities)


def _is_tree(node: Any) -> bool:
    return callable(getattr(node, "label", None)) and hasattr(node, "__iter__")


def _label(node: NltkTree) -> str:
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
        f"a leaf must be a string, got {_describe(child)} below the node {parent!r}; {_advice_on_leaf(child)}"
    )


def _advice_on_leaf(leaf: Any) -> str:
    match leaf:
        case (str(word), str(tag)):
            return f"make a tagged word a tree: Tree({tag!r}, [{word!r}])"
        case _:
            return "give its text, str(...)"


def _advice_on_root(node: Any) -> str:
    return "; text in brackets becomes one by Tree.fromstring(text)" if isinstance(node, str) else ""


def _describe(value: Any) -> str:
    """Return the type of a value and, as far as it is short, the value."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
