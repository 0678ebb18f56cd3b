"""Files of trees: brackets, SVM-light-TK's ``.dat``, KeLP's ``.klp`` and CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Forest as SubtreeTable
from unkernel._core import TreeLines
from unkernel.data.files import Source, name_of, read_blocks
from unkernel.data.rows.csr import CsrRows
from unkernel.data.text.conll import read_conllu
from unkernel.data.trees.forest import Forest, Vectors
from unkernel.errors import FormatError

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_LARGEST_EXACT_INTEGER = 2**53
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FORMATS = ("auto", "brackets", "lines", "conllu")


@dataclass(frozen=True, eq=False)
class TreeData:
    """Contents of a file of trees; unpack them with ``X, y = read_trees(path)``.

    Attributes
    ----------
    X : Forest
        The trees.
    y : ndarray, or None
        The labels: numbers if all of them are, otherwise strings. None if the format has no labels.
    qid : ndarray of int64, or None
        The query numbers, if the lines have them.

    See Also
    --------
    unkernel.read_trees : Read a file of trees.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_trees
    >>> data = read_trees(io.BytesIO(b"(S (NP dogs) (VP bark))"))
    >>> len(data.X), data.y is None
    (1, True)
    """

    X: Forest
    y: NDArray[Any] | None
    qid: NDArray[np.int64] | None

    def __iter__(self) -> Iterator[Any]:
        """Yield X and y, always these two."""
        return iter((self.X, self.y))


def read_trees(source: Source, *, format: str = "auto", shape: str = "grct") -> TreeData:
    r"""Read trees and their labels from a file.

    Parameters
    ----------
    source : path or file object
        Plain text, or text compressed by gzip, xz, bzip2 or Zstandard; the contents decide, not the name.
    format : {"auto", "brackets", "lines", "conllu"}, default="auto"
        Format of the file.

        - "brackets": trees one after another, as in constituency treebanks; no labels.
        - "lines": one example per line, in the format of SVM-light-TK (``1 |BT| (tree) |ET| 1:0.5``) or KeLP
          (``LABEL |BT:name| (tree) |ET|``), with any number of trees and vectors.
        - "conllu": dependency trees; no labels.
        - "auto" decides by the file name, then by the first character.
    shape : {"grct", "lct", "loct"}, default="grct"
        How to turn a dependency tree into a tree for kernels.

    Returns
    -------
    TreeData
        The trees, labels and query numbers.

    Raises
    ------
    FormatError
        If the file is malformed; the error names the line and the column.

    See Also
    --------
    Forest : A collection of trees.
    TreeSVC : Train a classifier on trees.

    Examples
    --------
    >>> import io
    >>> from unkernel import read_trees
    >>> X, y = read_trees(io.BytesIO(b"1 |BT| (S (NP dogs) (VP bark)) |ET|\n-1 |BT| (S (VP go)) |ET|\n"))
    >>> y, str(X[1])
    (array([ 1, -1]), '(S (VP go))')
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    name = name_of(source)
    if format == "conllu" or (format == "auto" and ".conllu" in PurePath(name).suffixes):
        sentences = read_conllu(source, trees=True)
        if not sentences:
            raise FormatError(name, 0, 0, "there are no sentences in it")
        return TreeData(Forest.from_sentences(sentences, shape), None, None)
    blocks = read_blocks(source)
    first = _read_first_text(name, blocks)
    if format == "brackets" or (format == "auto" and first.lstrip()[:1] == b"("):
        table = SubtreeTable()
        roots = np.asarray(table.read_brackets(name, b"".join([first, *blocks])))
        return TreeData(Forest._of(table, {"0": roots}, {}), None, None)
    return _read_lines(name, first, blocks)


def _read_first_text(name: str, blocks: Iterator[bytes]) -> bytes:
    """Return the beginning of the file, up to the first block with text."""
    begin = b""
    for block in blocks:
        begin += block
        if begin.strip():
            return begin.removeprefix(_BYTE_ORDER_MARK)
    raise FormatError(name, 0, 0, "the file is empty")


def _read_lines(name: str, first: bytes, blocks: Iterator[bytes]) -> TreeData:
    forest, found = read_example_lines(name, chain([first], blocks))
    if not len(forest):
        raise FormatError(name, 0, 0, "the file has no examples")
    if not found["tree_channels"] and not found["vector_channels"]:
        raise FormatError(name, 0, 0, "the file has labels only: trees stand between |BT| and |ET|")
    queries = found["queries"] if len(found["queries"]) else None
    return TreeData(forest, convert_labels(found["label_names"])[found["labels"]], queries)


def read_example_lines(name: str, blocks: Iterable[bytes]) -> tuple[Forest, dict[str, Any]]:
    """Read examples from blocks of lines; return the forest and the native reader's other results."""
    table = SubtreeTable()
    lines = TreeLines(name, table)
    for block in blocks:
        lines.feed(block)
    lines.finish()
    found: dict[str, Any] = dict(lines.take())
    trees = {channel: _collect_roots(found, number) for number, channel in enumerate(found["tree_channels"])}
    if not trees and not found["vector_channels"]:
        trees = {"0": _collect_roots(found, 0)}  # one example per line
    vectors = {
        channel: _collect_vectors(name, found, number)
        for number, channel in enumerate(found["vector_channels"])
    }
    return Forest._of(table, trees, vectors, list(found["features"]) or None), found


def convert_labels(names: list[str]) -> NDArray[Any]:
    """Return labels as integers or numbers if all are, else as text."""
    if not all(_NUMBER.fullmatch(name) for name in names):
        return np.array(names)
    numbers = np.array([float(name) for name in names])
    if not (np.abs(numbers) < _LARGEST_EXACT_INTEGER).all():
        return np.array(names)
    whole = numbers.astype(np.int64)
    return whole if np.array_equal(whole, numbers) else numbers


def _find_examples(ends: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the example of each item, from the ends of the examples' lists."""
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _collect_roots(found: dict[str, Any], channel: int) -> NDArray[np.int32]:
    examples = len(found["labels"])
    roots = np.full(examples, -1, np.int32)
    own = found["tree_channel"] == channel
    roots[_find_examples(found["tree_ends"])[own]] = found["roots"][own]
    return roots


def _collect_vectors(name: str, found: dict[str, Any], channel: int) -> Vectors:
    examples = len(found["labels"])
    named = bool(found["features"])
    own = found["vector_channel"] == channel
    owner = _find_examples(found["vector_ends"])
    present = np.zeros(examples, bool)
    present[owner[own]] = True
    entry_vector = _find_examples(found["entry_ends"])
    entries = own[entry_vector] if len(own) else np.zeros(0, bool)
    indices = found["indices"] - (0 if named else 1)
    width = len(found["features"]) if named else int(indices.max(initial=-1)) + 1
    matrix = _sum_repeats(
        owner[entry_vector[entries]], indices[entries], found["values"][entries], examples, width
    )
    if not np.isfinite(matrix.data).all():
        raise FormatError(name, 0, 0, "the values of a repeated feature add up to infinity")
    return Vectors(matrix, present)


def _sum_repeats(
    owner: NDArray[Any], columns: NDArray[Any], values: NDArray[np.float64], examples: int, width: int
) -> CsrRows:
    """Return rows made of entries in any order; add up values of the same row and column."""
    order = np.lexsort((columns, owner))
    owner, columns, values = owner[order], columns[order], values[order]
    first = np.ones(len(order), bool)
    first[1:] = (owner[1:] != owner[:-1]) | (columns[1:] != columns[:-1])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(values, np.flatnonzero(first)) if len(values) else values
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[first], minlength=examples))])
    return CsrRows.of(indptr, columns[first], sums, width)
