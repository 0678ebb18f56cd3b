"""Read files of trees: brackets, SVM-light-TK's ``.dat``, KeLP's ``.klp`` and CoNLL-U."""

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
        The labels: numbers if all of them are numbers, otherwise strings. None if the format has no labels.
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
        """Yield X and y, but not the query numbers."""
        return iter((self.X, self.y))


def read_trees(source: Source, *, format: str = "auto", shape: str = "grct") -> TreeData:
    r"""Read trees and their labels from a file.

    Parameters
    ----------
    source : path or file object
        Plain text, or text compressed by gzip, xz, bzip2 or Zstandard. The compression is detected from the
        content, not from the name.
    format : {"auto", "brackets", "lines", "conllu"}, default="auto"
        Format of the file.

        - "brackets": trees one after another, as in constituency treebanks; no labels.
        - "lines": one example per line, in the format of SVM-light-TK (``1 |BT| (tree) |ET| 1:0.5``) or KeLP
          (``LABEL |BT:name| (tree) |ET|``), with any number of trees and vectors.
        - "conllu": dependency trees; no labels.
        - "auto" decides by the file name, then by the first character.
    shape : {"grct", "lct", "loct"}, default="grct"
        Shape of the trees that are made from dependency trees (see :meth:`Forest.from_sentences`).

    Returns
    -------
    TreeData
        The trees, labels and query numbers.

    Raises
    ------
    FormatError
        If the file is malformed. The message names the line and the column.

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
        return TreeData(Forest._from_table(table, {"0": roots}, {}), None, None)
    return _read_lines(name, first, blocks)


def _read_first_text(name: str, blocks: Iterator[bytes]) -> bytes:
    """Return the beginning of the file, up to and including the first block with text."""
    begin = b""
    for block in blocks:
        begin += block
        if begin.strip():
            return begin.removeprefix(_BYTE_ORDER_MARK)
    raise FormatError(name, 0, 0, "the file is empty")


def _read_lines(name: str, first: bytes, blocks: Iterator[bytes]) -> TreeData:
    forest, results = read_example_lines(name, chain([first], blocks))
    if not len(forest):
        raise FormatError(name, 0, 0, "the file has no examples")
    if not results["tree_channels"] and not results["vector_channels"]:
        raise FormatError(name, 0, 0, "the file has labels only: trees stand between |BT| and |ET|")
    queries = results["queries"] if len(results["queries"]) else None
    return TreeData(forest, convert_labels(results["label_names"])[results["labels"]], queries)


def read_example_lines(name: str, blocks: Iterable[bytes]) -> tuple[Forest, dict[str, Any]]:
    """Read examples from blocks of lines; return the forest, and all results of the core's reader."""
    table = SubtreeTable()
    lines = TreeLines(name, table)
    for block in blocks:
        lines.feed(block)
    lines.finish()
    results: dict[str, Any] = dict(lines.take())
    trees = {
        channel: _collect_roots(results, number) for number, channel in enumerate(results["tree_channels"])
    }
    if not trees and not results["vector_channels"]:
        trees = {"0": _collect_roots(results, 0)}  # without trees, but with one example per line
    vectors = {
        channel: _collect_vectors(name, results, number)
        for number, channel in enumerate(results["vector_channels"])
    }
    return Forest._from_table(table, trees, vectors, list(results["features"]) or None), results


def convert_labels(names: list[str]) -> NDArray[Any]:
    """Return labels as integers if all are integers, as floats if all are numbers, otherwise as text."""
    if not all(_NUMBER.fullmatch(name) for name in names):
        return np.array(names)
    numbers = np.array([float(name) for name in names])
    if not (np.abs(numbers) < _LARGEST_EXACT_INTEGER).all():
        return np.array(names)
    integers = numbers.astype(np.int64)
    return integers if np.array_equal(integers, numbers) else numbers


def _find_examples(ends: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the example of each item; `ends` has the end of each example's items."""
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _collect_roots(results: dict[str, Any], channel: int) -> NDArray[np.int32]:
    """Return the root of each example's tree in a channel; -1 if the example has none."""
    examples = len(results["labels"])
    roots = np.full(examples, -1, np.int32)
    is_in_channel = results["tree_channel"] == channel
    roots[_find_examples(results["tree_ends"])[is_in_channel]] = results["roots"][is_in_channel]
    return roots


def _collect_vectors(name: str, results: dict[str, Any], channel: int) -> Vectors:
    """Return the vector of each example in a channel. Columns without names are numbered from 1 in files."""
    examples = len(results["labels"])
    has_names = bool(results["features"])
    is_in_channel = results["vector_channel"] == channel
    example_of_vector = _find_examples(results["vector_ends"])
    present = np.zeros(examples, bool)
    present[example_of_vector[is_in_channel]] = True
    entry_vector = _find_examples(results["entry_ends"])
    is_chosen_entry = is_in_channel[entry_vector] if len(is_in_channel) else np.zeros(0, bool)
    indices = results["indices"] - (0 if has_names else 1)
    width = len(results["features"]) if has_names else int(indices.max(initial=-1)) + 1
    matrix = _sum_repeated_entries(
        example_of_vector[entry_vector[is_chosen_entry]],
        indices[is_chosen_entry],
        results["values"][is_chosen_entry],
        examples,
        width,
    )
    if not np.isfinite(matrix.data).all():
        raise FormatError(name, 0, 0, "the values of a repeated feature add up to infinity")
    return Vectors(matrix, present)


def _sum_repeated_entries(
    example_of_entry: NDArray[Any],
    columns: NDArray[Any],
    values: NDArray[np.float64],
    examples: int,
    width: int,
) -> CsrRows:
    """Return rows made from entries in any order; values with the same row and column are added up."""
    order = np.lexsort((columns, example_of_entry))
    example_of_entry, columns, values = example_of_entry[order], columns[order], values[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (example_of_entry[1:] != example_of_entry[:-1]) | (columns[1:] != columns[:-1])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(values, np.flatnonzero(is_first)) if len(values) else values
    indptr = np.concatenate([[0], np.cumsum(np.bincount(example_of_entry[is_first], minlength=examples))])
    return CsrRows.of(indptr, columns[is_first], sums, width)
