"""Trees that share one table of subtrees."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Forest as SubtreeTable
from unkernel.data.rows.csr import CsrRows, canonical_rows, is_sparse
from unkernel.data.text.conll_sentence import Sentence
from unkernel.data.trees.ast_trees import from_ast
from unkernel.data.trees.conllu_trees import from_sentence
from unkernel.data.trees.nltk_trees import from_nltk
from unkernel.data.trees.preorder import Preorder

Roots = NDArray[np.int32]
_NO_TREE = -1
_EXTENDING = threading.Lock()
_FREE_TEXT_BYTES = 1 << 12  # the first bytes of each tree's text, which do not count towards the limit
_ONLY_CHANNEL = "0"  # name of the channel if the caller gives none


@dataclass(frozen=True, eq=False)
class Vectors:
    """A sparse vector for each example.

    Attributes
    ----------
    matrix : CsrRows of shape (examples, features)
    present : (examples,) bool
        Whether the example has a vector. A vector without entries counts as a vector.
    """

    matrix: CsrRows
    present: NDArray[np.bool_]

    def __getitem__(self, selection: Any) -> Vectors:
        return Vectors(self.matrix[selection], self.present[selection])


class Forest:
    """A collection of trees that stores every distinct subtree once.

    A forest is a sequence of examples. You can index a forest like an array, by slices, masks and numbers.
    You can also pass it to :class:`~unkernel.TreeSVC` and :class:`~unkernel.TreeKernel` in place of a list of
    trees. Selections share the table of subtrees with the whole forest.

    Parameters
    ----------
    trees : iterable of trees, or mapping of str to iterables of trees, default=()
        A tree is a string in brackets, an ``nltk.Tree``, an ``ast`` node, a sentence of
        :func:`~unkernel.read_conllu` (converted to the shape "grct"), or an example of another forest. With a
        mapping, each example has several trees, one per *channel*. None means that an example has no tree in
        a channel.
    vectors : array or sparse matrix, or mapping of str to arrays or sparse matrices, default=None
        One vector per example, in addition to the trees. A mapping has one entry per channel.

    Attributes
    ----------
    features : list of str or None
        Names of the columns of the vectors; None if the columns have no names.

    See Also
    --------
    read_trees : Read trees from a file.
    TreeSVC : Train a classifier on trees.

    Examples
    --------
    >>> from unkernel import Forest
    >>> forest = Forest(["(S (NP dogs) (VP bark))", "(S (NP cats) (VP bark))"])
    >>> len(forest), forest.nodes
    (2, 8)
    >>> print(forest[1])
    (S (NP cats) (VP bark))
    """

    def __init__(self, trees: Any = (), *, vectors: Any = None) -> None:
        tree_channels = trees if isinstance(trees, Mapping) else {_ONLY_CHANNEL: trees}
        vector_channels = {} if vectors is None else vectors
        if not isinstance(vector_channels, Mapping):
            vector_channels = {_ONLY_CHANNEL: vectors}
        self._table = SubtreeTable()
        self._trees: dict[str, Roots] = {str(name): self._add(roots) for name, roots in tree_channels.items()}
        self._vectors = {str(name): _check_vectors(matrix) for name, matrix in vector_channels.items()}
        self.features: list[str] | None = None
        self._check()

    @classmethod
    def _from_table(
        cls,
        table: SubtreeTable,
        trees: dict[str, Roots],
        vectors: dict[str, Vectors],
        features: list[str] | None = None,
    ) -> Forest:
        forest = cls.__new__(cls)
        forest._table, forest._trees, forest._vectors, forest.features = table, trees, vectors, features
        forest._check()
        return forest

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], shape: Any = "grct", **options: Any) -> Forest:
        """Make a forest from the dependency trees of sentences.

        Parameters
        ----------
        sentences : iterable of Sentence
            Sentences of a treebank, as from :func:`~unkernel.read_conllu`.
        shape : {"grct", "lct", "loct"}, default="grct"
            Shape of the trees: centred on grammatical relations, centred on words, or of words only.
        **options
            Options ``lexical`` and ``pos`` of the conversion.

        Returns
        -------
        Forest
            One tree per sentence.
        """
        return cls([from_sentence(sentence, shape, **options) for sentence in sentences])

    def _check(self) -> None:
        """Check that all channels have equally many examples, and that no column lacks a name."""
        lengths = {len(roots) for roots in self._trees.values()}
        lengths |= {len(vectors.present) for vectors in self._vectors.values()}
        if len(lengths) > 1:
            raise ValueError(f"all channels must have equally many examples, got {sorted(lengths)}")
        widest = max((vectors.matrix.shape[1] for vectors in self._vectors.values()), default=0)
        if self.features is not None and len(self.features) < widest:
            raise ValueError(f"there are {len(self.features)} names of features for {widest} columns")

    # --- As a sequence --------------------------------------------------------------------------------

    def __len__(self) -> int:
        for roots in self._trees.values():
            return len(roots)
        return next((len(vectors.present) for vectors in self._vectors.values()), 0)

    @overload
    def __getitem__(self, selection: int | np.integer[Any]) -> TreeExample: ...

    @overload
    def __getitem__(self, selection: slice | Sequence[int] | NDArray[Any]) -> Forest: ...

    def __getitem__(self, selection: Any) -> Forest | TreeExample:
        if isinstance(selection, int | np.integer) and not isinstance(selection, bool):
            if not -len(self) <= selection < len(self):
                raise IndexError(f"example {selection} of {len(self)}")
            return TreeExample(self, int(selection) % len(self))
        if not isinstance(selection, slice):
            selection = np.asarray(selection)
            if selection.ndim != 1 or (selection.size and selection.dtype.kind not in "biu"):
                raise IndexError("examples are selected by a number, a slice, a list of numbers or a mask")
            if selection.size == 0:
                selection = selection.astype(np.intp)
        trees = {name: roots[selection] for name, roots in self._trees.items()}
        vectors = {name: channel[selection] for name, channel in self._vectors.items()}
        return self._from_table(self._table, trees, vectors, self.features)

    def __iter__(self) -> Iterator[TreeExample]:
        return (TreeExample(self, i) for i in range(len(self)))

    def __repr__(self) -> str:
        extra = f", vectors={list(self._vectors)}" if self._vectors else ""
        channels = f", trees={list(self._trees)}" if list(self._trees) != [_ONLY_CHANNEL] else ""
        return f"Forest({len(self)} examples, {self.nodes} subtrees{channels}{extra})"

    def extend(self, trees: Iterable[Any]) -> None:
        """Append trees to a forest with one channel and no vectors.

        Other forests that share the table of subtrees do not change. This method waits for threads that are
        reading the table.

        Parameters
        ----------
        trees : iterable of trees
            The trees to append.
        """
        if self._vectors or len(self._trees) != 1:
            raise ValueError("only a forest with one channel and no vectors can be extended")
        (name,) = self._trees
        added = self._add(trees)
        with _EXTENDING:
            self._trees[name] = np.concatenate([self._trees[name], added])

    # --- Contents -----------------------------------------------------------------------------------

    @property
    def nodes(self) -> int:
        """Number of distinct subtrees."""
        return int(self._table.nodes)

    @property
    def labels(self) -> int:
        """Number of distinct labels."""
        return int(self._table.labels)

    @property
    def productions(self) -> int:
        """Number of distinct productions. A production is a label with the labels of its children."""
        return int(self._table.productions)

    @property
    def nbytes(self) -> int:
        """Size of the table of subtrees in bytes."""
        return int(self._table.nbytes)

    @property
    def table(self) -> SubtreeTable:
        """The table of subtrees."""
        return self._table

    @property
    def trees(self) -> dict[str, Roots]:
        """For each channel, the node number of each example's root in the table; -1 means no tree."""
        return self._trees

    @property
    def vectors(self) -> dict[str, Vectors]:
        """For each channel, the vectors of the examples."""
        return self._vectors

    def brackets(self, channel: str | None = None, *, bracket_leaves: bool = False) -> list[str]:
        """Return the trees of a channel as strings in brackets.

        Parameters
        ----------
        channel : str, default=None
            Name of the channel; None means the first channel.
        bracket_leaves : bool, default=False
            Whether leaves are in brackets, too.

        Returns
        -------
        list of str
            One string per example; an empty string means no tree.
        """
        if not self._trees:
            return [""] * len(self)
        roots = next(iter(self._trees.values())) if channel is None else self._trees[channel]
        return bracket_texts(self._table, roots, bracket_leaves=bracket_leaves)

    def compact(self) -> Forest:
        """Return a copy whose table contains only the subtrees of its own examples.

        Returns
        -------
        Forest
            The same examples.
        """
        table = SubtreeTable()
        trees = {name: np.asarray(table.absorb(self._table, roots)) for name, roots in self._trees.items()}
        return self._from_table(table, trees, dict(self._vectors), self.features)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "arrays": dict(self._table.arrays()),
            "trees": self._trees,
            "vectors": self._vectors,
            "features": self.features,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._table = SubtreeTable.from_arrays(**state["arrays"])
        self._trees, self._vectors, self.features = state["trees"], state["vectors"], state["features"]

    def roots_like(self, other: Forest) -> list[Roots]:
        """Return the trees of this forest in the order of another forest's channels.

        If both forests have a single channel, its name does not matter. Examples have no trees in channels
        that this forest lacks.

        Parameters
        ----------
        other : Forest
            The forest that defines the channels and their order.

        Returns
        -------
        list of ndarray of int32
            For each channel of the other forest, the roots of the trees of this forest.
        """
        if len(self._trees) == 1 and len(other._trees) == 1:
            return list(self._trees.values())
        _check_other_names("trees", list(self._trees), list(other._trees))
        nothing = np.full(len(self), _NO_TREE, np.int32)
        return [self._trees.get(name, nothing) for name in other._trees]

    def vectors_like(self, other: Forest, *, every: bool = False) -> list[Vectors | None]:
        """Return the vectors of this forest with the channels and columns of another forest.

        Parameters
        ----------
        other : Forest
            The forest that defines the channels and columns.
        every : bool, default=False
            Whether to return all channels of this forest, whatever their names.

        Returns
        -------
        list of Vectors or None
            For each channel, the vectors; None for channels that this forest lacks.
        """
        if every or (len(self._vectors) == 1 and len(other._vectors) == 1):
            return [self._with_columns_of(other, vectors) for vectors in self._vectors.values()]
        _check_other_names("vectors", list(self._vectors), list(other._vectors))
        channels = [self._vectors.get(name) for name in other._vectors]
        return [None if vectors is None else self._with_columns_of(other, vectors) for vectors in channels]

    def _with_columns_of(self, other: Forest, vectors: Vectors) -> Vectors:
        """Return vectors whose named features are in the same columns as in another forest.

        Names that the other forest lacks get additional columns, which affect only norms.
        """
        if self is other or self.features == other.features:
            return vectors
        if self.features is None or other.features is None:
            raise ValueError(
                "features have names on one side and numbers on the other: both must have the same"
            )
        column_of = {name: column for column, name in enumerate(other.features)}
        columns = np.array(
            [column_of.setdefault(name, len(column_of)) for name in self.features], dtype=np.int32
        )
        matrix = vectors.matrix
        moved = CsrRows.of(matrix.indptr, columns[matrix.indices], matrix.data, len(column_of))
        return Vectors(moved.sort_columns(), vectors.present)

    # --- Adding ---------------------------------------------------------------------------------------

    def _add(self, trees: Iterable[Any], first: int = 0) -> Roots:
        """Add trees to the table and return their roots; error messages number trees from `first` on."""
        if isinstance(trees, str):
            raise TypeError("expected a list of trees, got a single string; wrap it in a list")
        trees = list(trees)
        if trees and all(isinstance(tree, str) for tree in trees):
            return np.asarray(self._table.add_brackets([str(tree) for tree in trees], first))
        roots = np.full(len(trees), _NO_TREE, np.int32)
        for index, tree in enumerate(trees):
            if tree is not None:
                roots[index] = self._add_one(tree, first + index)
        return roots

    def _add_one(self, tree: Any, index: int) -> int:
        if isinstance(tree, str):
            return int(np.asarray(self._table.add_brackets([str(tree)], index))[0])
        if isinstance(tree, TreeExample):
            if tree.forest.vectors or len(tree.forest.trees) != 1:
                raise ValueError(
                    f"trees[{index}] has several trees, or vectors, which would be lost; select examples of "
                    "its forest instead: forest[[0, 3]]"
                )
            return int(np.asarray(self._table.absorb(tree.forest.table, tree.roots()))[0])
        preorder = _convert_to_preorder(tree, index)
        return int(self._table.add_preorder(preorder.labels, preorder.arities))


def bracket_texts(table: SubtreeTable, roots: Iterable[int], *, bracket_leaves: bool) -> list[str]:
    """Return the trees with these roots as text; a missing tree becomes the empty string.

    Repeated subtrees are stored once, so a table of a few nodes can describe a tree of any size. If texts are
    too long for the size of the table, a ``ValueError`` is raised.
    """
    texts: list[str] = []
    bytes_left = int(table.longest_text)
    for root in roots:
        text = table.brackets(int(root), bracket_leaves)
        bytes_left -= max(len(text) - _FREE_TEXT_BYTES, 0)
        if bytes_left < 0:
            raise ValueError(
                f"the trees cannot be written: after {len(texts)} of them, their text is longer than "
                f"{int(table.longest_text):,} bytes, as they repeat the same subtrees very often"
            )
        texts.append(text)
    return texts


class TreeExample:
    """One example of a :class:`~unkernel.Forest`; ``str(example)`` is its first tree in brackets.

    All parameters are also attributes.

    Parameters
    ----------
    forest : Forest
        The forest.
    place : int
        Index of the example in the forest.

    See Also
    --------
    unkernel.Forest : A collection of trees.

    Examples
    --------
    >>> from unkernel import Forest
    >>> str(Forest(["(S (NP dogs) (VP bark))"])[0])
    '(S (NP dogs) (VP bark))'
    """

    __slots__ = ("forest", "place")

    def __init__(self, forest: Forest, place: int) -> None:
        self.forest = forest
        self.place = place

    def roots(self) -> Roots:
        """Return the node number of each channel's root in the table of the forest.

        Returns
        -------
        ndarray of int32
            The roots; -1 means no tree.
        """
        return np.array([roots[self.place] for roots in self.forest.trees.values()], np.int32)

    def __str__(self) -> str:
        roots = self.roots()
        return self.forest.table.brackets(int(roots[0]), False) if len(roots) else ""

    def __repr__(self) -> str:
        return f"<tree {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeExample) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def as_forest(trees: Any, first: int = 0) -> Forest:
    """Return trees as a forest. A forest is returned unchanged, examples of a forest as a selection of it.

    Error messages number trees from `first` on.
    """
    if isinstance(trees, Forest):
        return trees
    if isinstance(trees, Mapping):
        return Forest(trees)
    if isinstance(trees, str | bytes) or not hasattr(trees, "__iter__"):
        raise TypeError(f"expected a list of trees or a Forest, got {type(trees).__name__}")
    trees = list(trees)
    if not trees:
        raise ValueError("there are no trees")
    for index, tree in enumerate(trees, first):
        if tree is None:
            raise ValueError(f"trees[{index}] is None, not a tree; give a Forest if examples have no tree")
    example = trees[0]
    if isinstance(example, TreeExample) and all(
        isinstance(tree, TreeExample) and tree.forest is example.forest for tree in trees
    ):
        return example.forest[np.array([tree.place for tree in trees], np.intp)]
    forest = Forest()
    forest._trees[_ONLY_CHANNEL] = forest._add(trees, first)
    return forest


def has_trees(forest: Forest) -> bool:
    """Return whether any example has a tree, in any channel."""
    return any(bool((roots != _NO_TREE).any()) for roots in forest.trees.values())


def _check_other_names(kind: str, names: list[str], other_names: list[str]) -> None:
    """Raise an error if each of two forests has names that the other lacks: then a name must be wrong."""
    if set(names) - set(other_names) and set(other_names) - set(names):
        raise ValueError(
            f"the {kind} are called {', '.join(names)} on one side and {', '.join(other_names)} on the "
            "other: give both the same names"
        )


def _convert_to_preorder(tree: Any, index: int) -> Preorder:
    if isinstance(tree, Preorder):
        return tree
    if isinstance(tree, ast.AST):
        return from_ast(tree)
    if isinstance(tree, Sentence):
        return from_sentence(tree)
    if hasattr(tree, "label") and hasattr(tree, "__iter__"):
        return from_nltk(tree)
    raise TypeError(
        f"trees[{index}] is of type {type(tree).__name__}; expected a string in brackets, an nltk.Tree, an "
        "ast node, a CoNLL-U sentence, or an example of a Forest"
    )


def _check_vectors(matrix: Any) -> Vectors:
    """Return a checked copy of vectors, one per example."""
    rows = canonical_rows(matrix if is_sparse(matrix) else np.atleast_2d(np.asarray(matrix, np.float64)))
    if not np.isfinite(rows.data).all():
        raise ValueError("vectors must be finite")
    return Vectors(rows.copy(), np.ones(rows.shape[0], bool))  # the caller may change the original
