"""The tasks of tree kernels: parts of the trees, and requests to them.

Like a part of rows, a part of trees is a pure function of blocks that Dask can recreate. A part also stores
the cuts of the current problem, in the same order as all other parts. A rebuilt part has no cuts; it reports
this, and receives the cuts again. Each task contains the expected number of cuts, so a repeated task does not
add its cut twice.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from unkernel._core import Forest as SubtreeTable
from unkernel._core import TreeCuts, example_machine, self_kernels
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.trees.forest import Forest, as_forest, has_trees
from unkernel.data.trees.tree_files import read_trees
from unkernel.distributed.cluster.packed_vectors import Payload, Vector
from unkernel.distributed.cluster.row_blocks import open_if_remote
from unkernel.distributed.cluster.row_parts import get_worker_threads
from unkernel.errors import FormatError
from unkernel.models import ExampleKernel

Places = NDArray[np.int32]  # indices of examples in their part
WeightedSubtrees = tuple[SubtreeTable, NDArray[np.float64]]  # weights are channels x subtrees

# --- Blocks of trees ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """Trees with their labels and weights; `number` is the index of the block among all blocks.

    The client checks the weights of all blocks together, because the weights of one block may all be zero.
    """

    number: int
    forest: Forest
    y: NDArray[Any]
    weights: NDArray[Any] | None


def make_tree_block(number: int, trees: Any, y: Any, weights: Any = None, *, first: int = 0) -> TreeBlock:
    """Return a checked block of trees and labels; error messages number the trees from `first` on."""
    check_inputs(y, weights)
    if y is None:
        raise ValueError("trees need labels: give y, or blocks (trees, y)")
    forest = as_forest(trees, first) if len(trees) else Forest()
    labels = column_or_1d(np.asarray(y))
    weight_array = None if weights is None else column_or_1d(np.asarray(weights))
    check_consistent_length(forest, labels, weight_array)
    return TreeBlock(number, forest, labels, weight_array)


def make_tree_block_of_tuple(number: int, block: Any) -> TreeBlock:
    """Return the block of a tuple (trees, y[, weights])."""
    with _locate_errors(f"block {number}"):
        if not isinstance(block, tuple | list) or not 2 <= len(block) <= 3:
            raise ValueError(f"a block is a tuple (trees, y[, weights]), got {type(block).__name__}")
        return make_tree_block(number, *block)


def make_tree_block_of_pairs(number: int, partition: Iterable[Any]) -> TreeBlock:
    """Return the block of the pairs (tree, label) in a partition of a bag."""
    pairs = list(partition)
    with _locate_errors(f"partition {number}"):
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise ValueError("a bag of trees has pairs (tree, label)")
        return make_tree_block(number, [tree for tree, _ in pairs], [label for _, label in pairs])


@contextmanager
def _locate_errors(location: str) -> Iterator[None]:
    """Add the name of a block or partition to error messages."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{location}, {error.file}", error.line, error.column, error.reason) from error
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{location}: {error}") from error


def read_tree_block(number: int, path: str) -> TreeBlock:
    """Read a file of trees and labels from any address that fsspec can open."""
    with open_if_remote(path) as file:
        data = read_trees(file)
    if data.y is None:
        raise ValueError(f"{path} has trees without labels")
    return TreeBlock(number, data.X, data.y, None)


@dataclass(frozen=True, eq=False)
class TreeSurvey:
    """Facts about the examples of a block that the client needs before training."""

    number: int
    labels: NDArray[Any]  # the distinct labels
    codes: NDArray[Any]  # for each example, the index of its label
    weights: NDArray[Any] | None
    tree_channels: list[str]
    vector_channels: list[str]
    has_trees: bool


def survey_trees(blocks: list[TreeBlock]) -> list[TreeSurvey]:
    """Survey each block of a part."""
    surveys = []
    for block in blocks:
        labels, codes = np.unique(block.y, return_inverse=True)
        small_codes = codes.astype(np.min_scalar_type(len(labels)))
        forest = block.forest
        surveys.append(
            TreeSurvey(
                block.number,
                labels,
                small_codes,
                block.weights,
                list(forest.trees),
                list(forest.vectors),
                has_trees(forest),
            )
        )
    return surveys


# --- Parts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreePacking:
    """The parameters of packing blocks into a part."""

    number: int
    kernel: ExampleKernel
    channels: list[str]
    threads: int | None  # None means all of the worker's threads


@dataclass(frozen=True, eq=False)
class KnownCuts:
    """The cuts that a part must have for a request."""

    problem: str  # unique name of the problem
    count: int


class TreePart:
    """Examples on a worker. A part is never sent: on another worker, Dask rebuilds it from its blocks."""

    def __init__(self, blocks: list[TreeBlock], packing: TreePacking) -> None:
        self.number = packing.number
        self.forest = _merge_forests(blocks, packing.channels)
        self.threads = get_worker_threads(packing.threads)
        self.kernel = packing.kernel
        self.examples = packing.kernel.examples(self.forest, threads=self.threads)
        self._problem = ""
        self._cuts: TreeCuts | None = None
        self._own_piece: tuple[CutExamples, WeightedSubtrees] | None = None  # the piece of the next cut
        self.lock = threading.Lock()

    def __sizeof__(self) -> int:
        """Return the size of the part in memory, for Dask."""
        return int(self.forest.nbytes) + 512 * len(self.forest)

    def __reduce__(self) -> Any:
        raise TypeError("a part of the training trees stays on its worker")

    def cuts_of(self, problem: str) -> TreeCuts:
        """Return the part's cuts of a problem; drop the cuts of any other problem."""
        if self._cuts is None or self._problem != problem:
            self.forget_cuts(problem)
        assert self._cuts is not None
        return self._cuts

    def forget_cuts(self, problem: str) -> None:
        """Begin a problem with an empty list of cuts."""
        self._problem, self._cuts = problem, TreeCuts(self.kernel.core(), self.examples)

    def make_piece(self, own: CutExamples) -> WeightedSubtrees:
        """Return the part's piece of a cut. The last piece is cached, because two requests need it."""
        if self._own_piece is None or not self._own_piece[0].same_as(own):
            table, weights = self.cuts_of(self._problem).weighted_trees(own.places, own.coefficients)
            self._own_piece = own, (table, np.asarray(weights))
        return self._own_piece[1]


def _merge_forests(blocks: list[TreeBlock], channels: list[str]) -> Forest:
    """Return the trees of all blocks as one forest that has all `channels`."""
    if len(blocks) == 1 and list(blocks[0].forest.trees) == channels:
        return blocks[0].forest
    table = SubtreeTable()
    roots: dict[str, list[Any]] = {name: [] for name in channels}
    for block in blocks:
        nothing = np.full(len(block.forest), -1, np.int32)
        for name in channels:
            part_roots = block.forest.trees.get(name, nothing)
            roots[name].append(np.asarray(table.absorb(block.forest.table, part_roots)))
    return Forest._from_table(
        table, {name: np.concatenate(root_arrays) for name, root_arrays in roots.items()}, {}
    )


# --- Tasks of the sampled learner --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CutPiece(Payload):
    """The contribution of one part's examples to a cut: distinct subtrees with their weights."""

    examples: int
    arrays: dict[str, NDArray[Any]]  # the arrays of the table of subtrees
    weights: NDArray[np.float64]  # channels x subtrees

    def unpack(self) -> WeightedSubtrees:
        """Return the piece in the form that the core reads."""
        return SubtreeTable.from_arrays(**self.arrays), self.weights


@dataclass(frozen=True, eq=False)
class CutExamples:
    """The examples of a cut that are in one part."""

    places: Places
    coefficients: Vector

    def same_as(self, other: CutExamples) -> bool:
        return np.array_equal(self.places, other.places) and np.array_equal(
            self.coefficients, other.coefficients
        )


@dataclass(frozen=True, eq=False)
class SampleShare:
    """The examples of a sample that are in one part; repeated examples are adjacent."""

    places: Places
    labels: NDArray[np.int8]
    intercept: float
    weight: float  # weight of each example: 1 / size of the whole sample

    def select_inside_margin(self, scores: Vector) -> CutExamples:
        """Return the distinct examples inside the margin; they make up the part's piece of the cut."""
        inside = np.flatnonzero(self.labels * (scores + self.intercept) < 1.0)
        places = self.places[inside]
        is_first = np.diff(places, prepend=-1) != 0
        coefficients = np.bincount(np.cumsum(is_first) - 1, self.labels[inside] * self.weight)
        return CutExamples(places[is_first], coefficients.astype(np.float64))


def score_sample(
    part: TreePart, known: KnownCuts, alphas: Vector, sample: SampleShare
) -> tuple[Vector, CutPiece] | None:
    """Return the scores of a sample, and the part's piece of the next cut; None if its cuts are lost.

    `alphas` has the coefficients of the cuts.
    """
    with part.lock:
        cuts = part.cuts_of(known.problem)
        if len(cuts) != known.count:
            return None
        scores = np.asarray(cuts.score(alphas, sample.places, part.threads))
        return scores, _pack_piece(part, sample.select_inside_margin(scores))


def make_cut_piece(part: TreePart, own: CutExamples) -> CutPiece:
    """Return the part's piece of a cut, packed."""
    with part.lock:
        return _pack_piece(part, own)


def _pack_piece(part: TreePart, own: CutExamples) -> CutPiece:
    table, weights = part.make_piece(own)
    return CutPiece(len(own.places), dict(table.arrays()), weights)


def add_cut(
    part: TreePart, known: KnownCuts, pieces: list[CutPiece | None], own: CutExamples
) -> Vector | None:
    """Add a cut; return the inner products of the part's piece with all cuts, the new cut last.

    In `pieces`, None stands for the part's own piece. The function returns None if the part has lost its
    cuts.
    """
    with part.lock:
        cuts = part.cuts_of(known.problem)
        if len(cuts) == known.count:
            own_piece = part.make_piece(own)
            cuts.add([own_piece if piece is None else piece.unpack() for piece in pieces])
        if len(cuts) != known.count + 1:
            return None
        return np.asarray(cuts.products(own.places, own.coefficients, part.threads))


def restore_cuts(part: TreePart, known: KnownCuts, all_pieces: list[list[CutPiece]]) -> None:
    """Restore all cuts of a part that has lost them."""
    with part.lock:
        part.forget_cuts(known.problem)
        cuts = part.cuts_of(known.problem)
        for pieces in all_pieces:
            cuts.add([piece.unpack() for piece in pieces])


# --- Tasks of the exact learner ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Support(Payload):
    """Support examples with one coefficient per problem, for scoring other examples."""

    forest: Forest
    coefficients: NDArray[np.float64]  # examples x problems

    @functools.cached_property
    def nbytes(self) -> int:
        """Approximate number of bytes to send."""
        return count_forest_bytes(self.forest) + self.coefficients.nbytes


@dataclass(frozen=True, eq=False)
class ChosenPlaces:
    """A selection of the examples of a part, stored as the shorter list: the selected or all others."""

    listed: Places
    is_complement: bool  # whether the selection is all examples except `listed`

    @classmethod
    def from_places(cls, places: Places, size: int) -> ChosenPlaces:
        """Select examples by ascending indices, in a part of `size` examples."""
        if 2 * len(places) <= size:
            return cls(places, False)
        return cls(np.setdiff1d(np.arange(size, dtype=np.int32), places, assume_unique=True), True)

    def places(self, size: int) -> Places:
        if not self.is_complement:
            return self.listed
        return np.setdiff1d(np.arange(size, dtype=np.int32), self.listed, assume_unique=True)


def compute_self_kernels(part: TreePart) -> Vector:
    """Return the kernel value of each example with itself."""
    return np.asarray(self_kernels(part.kernel.core(), part.examples, part.threads))


def score_chosen(part: TreePart, support: Support, chosen: ChosenPlaces) -> NDArray[np.float64]:
    """Return the scores of the chosen examples, of shape (examples, problems)."""
    indexed = part.kernel.examples(support.forest, indexed=True, threads=part.threads)
    numbers = np.arange(len(support.forest), dtype=np.int32)
    machine = example_machine(part.kernel.core(), indexed, numbers, support.coefficients)
    places = chosen.places(len(part.forest))
    return np.asarray(machine.score_chosen(part.examples, places, part.threads))


# --- Tasks of both learners --------------------------------------------------------------------------------


def select_trees(part: TreePart, places: Places) -> Forest:
    """Return a compact forest of the examples at these indices."""
    return part.forest[places].compact()


def count_forest_bytes(forest: Forest) -> int:
    """Return the approximate number of bytes for sending a forest."""
    arrays = (*forest.table.arrays().values(), *forest.trees.values())
    return sum(int(array.nbytes) for array in arrays)
