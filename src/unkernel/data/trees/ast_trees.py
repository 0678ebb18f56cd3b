"""Convert syntax trees of Python to trees for tree kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, NamedTuple

from unkernel.data.trees.preorder import Preorder, list_nodes

# Fields to ignore: those for type checkers, and the source text of interpolations (`str`), whose content is
# in their subtree anyway.
_IGNORED_FIELDS = frozenset({"type_comment", "type_ignores", "str"})
# Usual values of fields, which are omitted.
_DEFAULTS = {"level": 0, "is_async": 0, "simple": 1, "conversion": -1}
# Optional children of the same kind. Each needs a label, because otherwise their roles would be ambiguous.
_LABELLED_FIELDS = frozenset({"lower", "upper", "step", "vararg", "kwarg", "bound", "default_value"})

_EMPTY = "-"
_LONG_TEXT = "..."
_MAX_TEXT_LENGTH = 24
_MAX_NUMBER_BITS = 64


class _Field(NamedTuple):
    """A node that is labelled with the name of a field, not of a class."""

    label: str
    children: list[_Node]


_Node = ast.AST | _Field | str


def from_ast(node: ast.AST) -> Preorder:
    """Convert a Python syntax tree to the form that the core reads.

    ``def area(self, r=1): self.a = PI * r`` becomes ::

        (FunctionDef (name: area)
          (arguments (args: (arg (arg: self)) (arg (arg: r))) (defaults: (Constant (int: 1))))
          (body: (Assign (targets: (Attribute (Name (id: self)) (attr: a) Store))
                         (BinOp (Name (id: PI)) Mult (Name (id: r))))))

    - A node is labelled with its class. A node of a class without fields is a leaf (``Mult``, ``Pass``). A
      node with only empty fields has the single leaf ``-``: ``return`` is ``(Return -)``. Nodes of one class
      are therefore either always leaves or never, as productions require.
    - Names, and all other text and numbers, become ``(field: value)``. The colon distinguishes the field
      ``arg:`` from the class ``arg``. A fragment can omit the name itself: ``(Attribute (Name id:) attr:)``
      matches any attribute of any variable.
    - A list becomes a node ``(field: item ...)``, unless it is empty. As a result, functions with different
      numbers of statements share a production, and an ``else`` differs from a longer ``if``. A missing item,
      such as the key in ``{**more}``, becomes ``-``.
    - Any other child is directly below its node. If the role of a child would be ambiguous, it gets a node
      in between: the ``lower:``, ``upper:`` and ``step:`` of a slice, the ``vararg:`` and ``kwarg:`` of a
      function, the ``bound:`` and ``default_value:`` of a type parameter.
    - A constant is ``(Constant (type: text))``, with the text that ``repr`` returns. A long text (more than
      24 characters, including quotes) becomes ``...``, because texts such as docstrings are rarely repeated.
      In a pattern, ``case None`` is ``(MatchSingleton (NoneType: None))``.
    - The contexts ``Store`` and ``Del`` are kept as the last child. They show whether a variable is set or
      read, even in a fragment of a single node. ``Load``, a quarter of all nodes, is omitted.
    - Flags and numbers with their usual value are omitted (``level`` 0, ``is_async`` 0, ``simple`` 1,
      ``conversion`` -1), and so are type comments, the ``u`` of ``u"text"``, and all positions in the file.

    The same code gives the same tree in all versions of Python that parse it in the same way.

    Parameters
    ----------
    node : ast.AST
        The result of ``ast.parse``, or any node in it, of any depth. It is not changed.

    Returns
    -------
    Preorder

    Raises
    ------
    ValueError
        If a field contains something other than nodes, text or numbers, or the tree contains itself.
    TypeError
        If the argument is not a node.

    Notes
    -----
    A name that is spelt like a class (``Tuple``) has the same label as the class. Kernels that compare
    productions are not affected, because classes never occur where names do (such as below ``id:``). The
    partial tree kernel, which compares single labels, counts this as a small similarity.

    Examples
    --------
    >>> import ast
    >>> from unkernel.data.trees.ast_trees import from_ast
    >>> from_ast(ast.parse("x = 1").body[0]).labels
    ['Assign', 'targets:', 'Name', 'id:', 'x', 'Store', 'Constant', 'int:', '1']
    """
    if not isinstance(node, ast.AST):
        raise TypeError(f"expected an ast node, got {type(node).__name__}; ast.parse(text) makes one")
    return list_nodes(node, _expand)


def _expand(node: _Node) -> tuple[str, list[_Node]]:
    """Return the label and the children of a node."""
    if isinstance(node, str):
        return node, []
    if isinstance(node, _Field):
        return node
    if isinstance(node, ast.Constant | ast.MatchSingleton):
        return type(node).__name__, [_convert_constant(node)]
    children = [child for field in node._fields for child in _list_children(node, field)]
    return type(node).__name__, children or ([_EMPTY] if node._fields else [])


def _list_children(node: ast.AST, field: str) -> Iterator[_Node]:
    """Yield the child that a field adds to its node, or nothing."""
    value = getattr(node, field, None)
    match value:
        case None | [] | ast.Load():
            return
        case _ if field in _IGNORED_FIELDS or value == _DEFAULTS.get(field):
            return
        case ast.AST() if field not in _LABELLED_FIELDS:
            yield value
        case list():
            yield _Field(f"{field}:", [_convert_item(node, field, item) for item in value])
        case _:
            yield _Field(f"{field}:", [_convert_item(node, field, value)])


def _convert_item(node: ast.AST, field: str, value: Any) -> _Node:
    """Return the node for the value of a field, or for one item of a list."""
    match value:
        case None:
            return _EMPTY
        case ast.AST() | str():
            return value
        case int():
            return str(value)
    raise ValueError(
        f"the field {field!r} of a {type(node).__name__} holds {type(value).__name__}; "
        "fields hold nodes, text and numbers, or lists of nodes and text"
    )


def _convert_constant(node: ast.Constant | ast.MatchSingleton) -> _Field:
    value = getattr(node, "value", None)
    return _Field(f"{type(value).__name__}:", [_format_constant(value)])


def _format_constant(value: Any) -> str:
    """Return the text of a constant, or ``...`` if the text is long; avoid formatting very long values."""
    match value:
        case str() | bytes() if len(value) > _MAX_TEXT_LENGTH:
            return _LONG_TEXT
        case int() if value.bit_length() > _MAX_NUMBER_BITS:
            return _LONG_TEXT
        case str() | bytes() | int() | float() | complex() | None | EllipsisType():
            text = repr(value)
            return text if len(text) <= _MAX_TEXT_LENGTH else _LONG_TEXT
    return _LONG_TEXT
