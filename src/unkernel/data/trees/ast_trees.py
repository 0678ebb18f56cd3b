"""Python's syntax trees in a form that tree kernels can compare."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, NamedTuple

from unkernel.data.trees.preorder import Preorder

# Fields for type checkers alone, or redundant: an interpolation's `str` repeats the rest of the tree.
_LEFT_OUT = frozenset({"type_comment", "type_ignores", "str"})
_USUAL = {"level": 0, "is_async": 0, "simple": 1, "conversion": -1}
# Optional children of the same kind: the tree has to say which of them is present.
_TOLD_APART = frozenset({"lower", "upper", "step", "vararg", "kwarg", "bound", "default_value"})

_NOTHING = "-"
_LONG = "..."
_LONGEST_TEXT = 24
_LARGEST_NUMBER_BITS = 64


class _Field(NamedTuple):
    """A node that is named after a field, not after a class."""

    label: str
    children: list[_Node]


class _Done(NamedTuple):
    """Marks the end of a node's subtree on the stack."""

    identity: int


_Node = ast.AST | _Field | str


def from_ast(node: ast.AST) -> Preorder:
    """Turn a Python syntax tree into the form that the core reads.

    ``def area(self, r=1): self.a = PI * r`` becomes ::

        (FunctionDef (name: area)
          (arguments (args: (arg (arg: self)) (arg (arg: r))) (defaults: (Constant (int: 1))))
          (body: (Assign (targets: (Attribute (Name (id: self)) (attr: a) Store))
                         (BinOp (Name (id: PI)) Mult (Name (id: r))))))

    - A node is labelled by its class. A class that has no fields is a leaf (``Mult``, ``Pass``); one that
      has fields, all of them empty, has the single leaf ``-``: ``return`` is ``(Return -)``. So no class is
      a leaf here and a node with children there, which productions could not tell apart.
    - Names, and whatever else is text or a number, become ``(field: value)``. The colon keeps the field
      ``arg:`` from the class ``arg``. The name itself can be left out of a fragment: ``(Attribute (Name id:)
      attr:)`` is any attribute of any variable.
    - A list becomes a node ``(field: item ...)``, unless it is empty. Two functions then have a production
      in common however many statements they have, and an ``else`` is not a longer ``if``. An item that is
      not there is ``-``, as the key is in ``{**more}``.
    - Any other child stands directly below its node. Where its place would not say what it is, it is below a
      node of its own: the ``lower:``, ``upper:`` and ``step:`` of a slice, the ``vararg:`` and ``kwarg:`` of
      a function, the ``bound:`` and ``default_value:`` of a type parameter.
    - A constant is ``(Constant (type: text))``, with the text that ``repr`` gives, or ``...`` if that is
      long (more than 24 characters, the quotes counted): what a docstring says is seldom said twice. In a
      pattern, ``case None`` is ``(MatchSingleton (NoneType: None))``.
    - Of the contexts, ``Store`` and ``Del`` are kept, as the last child: they say in a fragment of a single
      node whether a variable is set or read. ``Load``, a quarter of what ``ast.parse`` makes, is not.
    - Flags and numbers with their usual value are left out (``level`` 0, ``is_async`` 0, ``simple`` 1,
      ``conversion`` -1), and so are type comments, the ``u`` of ``u"text"``, and all positions in the file.

    The same code gives the same tree in every version of Python that parses it alike.

    Parameters
    ----------
    node : ast.AST
        What ``ast.parse`` returns, or any node below, of any depth. It is left as it is.

    Returns
    -------
    Preorder

    Raises
    ------
    ValueError
        A node, made by hand, has a field that holds something else than nodes, text or numbers, or contains
        itself.
    TypeError
        It is no node at all.

    Notes
    -----
    Names are spelt as they are, so that one spelt like a class (``Tuple``) has the label of that class.
    Kernels that compare productions are not misled, as no class stands where names do (below ``id:``, say);
    the partial tree kernel, which compares single labels, sees a small likeness.

    Examples
    --------
    >>> import ast
    >>> from unkernel.data.trees.ast_trees import from_ast
    >>> from_ast(ast.parse("x = 1").body[0]).labels
    ['Assign', 'targets:', 'Name', 'id:', 'x', 'Store', 'Constant', 'int:', '1']
    """
    if not isinstance(node, ast.AST):
        raise TypeError(f"expected an ast node, got {type(node).__name__}; ast.parse(text) makes one")
    labels: list[str] = []
    arities: list[int] = []
    waiting: list[_Node | _Done] = [node]
    above: set[int] = set()  # the ancestors of the present node
    while waiting:
        opened = waiting.pop()
        if isinstance(opened, _Done):
            above.discard(opened.identity)
            continue
        label, children = _expand(opened)
        if isinstance(opened, ast.AST) and children:
            if id(opened) in above:
                raise ValueError(f"the tree contains itself, below a node {label}")
            above.add(id(opened))
            waiting.append(_Done(id(opened)))
        labels.append(label)
        arities.append(len(children))
        waiting.extend(reversed(children))
    return Preorder(labels, arities)


def _expand(node: _Node) -> tuple[str, list[_Node]]:
    if isinstance(node, str):
        return node, []
    if isinstance(node, _Field):
        return node
    if isinstance(node, ast.Constant | ast.MatchSingleton):
        return type(node).__name__, [_constant(node)]
    children = [child for field in node._fields for child in _children(node, field)]
    return type(node).__name__, children or ([_NOTHING] if node._fields else [])


def _children(node: ast.AST, field: str) -> Iterator[_Node]:
    """What a field adds to its node: one child or none."""
    value = getattr(node, field, None)
    match value:
        case None | [] | ast.Load():
            return
        case _ if field in _LEFT_OUT or value == _USUAL.get(field):
            return
        case ast.AST() if field not in _TOLD_APART:
            yield value
        case list():
            yield _Field(f"{field}:", [_item(node, field, item) for item in value])
        case _:
            yield _Field(f"{field}:", [_item(node, field, value)])


def _item(node: ast.AST, field: str, value: Any) -> _Node:
    match value:
        case None:
            return _NOTHING
        case ast.AST() | str():
            return value
        case int():
            return str(value)
    raise ValueError(
        f"the field {field!r} of a {type(node).__name__} holds {type(value).__name__}; "
        "fields hold nodes, text and numbers, or lists of nodes and text"
    )


def _constant(node: ast.Constant | ast.MatchSingleton) -> _Field:
    value = getattr(node, "value", None)
    return _Field(f"{type(value).__name__}:", [_text(value)])


def _text(value: Any) -> str:
    """Return the text of a constant, if it is short; long ones are not formatted only to be measured."""
    match value:
        case str() | bytes() if len(value) > _LONGEST_TEXT:
            return _LONG
        case int() if value.bit_length() > _LARGEST_NUMBER_BITS:
            return _LONG
        case str() | bytes() | int() | float() | complex() | None | EllipsisType():
            text = repr(value)
            return text if len(text) <= _LONGEST_TEXT else _LONG
    return _LONG
