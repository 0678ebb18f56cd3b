"""What workers hold and do for tree kernels: parts of the trees, and the functions that tasks call on them.

As with rows (worker_tasks.py), a part is made by a pure function of blocks that Dask can make again. Beside
its trees a part remembers the cuts of the problem at hand, which all parts know in the same order; a part
that came back has none, says so, and is given them again. A task names how many cuts there are, so one that
runs twice does no harm.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.distributed import get_worker
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from unkernel._core import Forest as SubtreeTable
from unkernel._core import TreeCuts, example_machine, self_kernels
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.trees.forest import Forest, as_forest, has_trees
from unkernel.data.trees.tree_files import read_trees
from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.errors import FormatError
from unkernel.models import ExampleKernel

Places = NDArray[np.int32]  # of examples in their part
WeightedSubtrees = tuple[SubtreeTable, NDArray[np.float64]]  # weights are channels x subtrees

# --- Blocks of trees, as they come -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """Trees and what belongs to them; `number` is the place of the block among all blocks.

    Weights are checked where all of them are known: those of one block may be all 0.
    """

    number: int
    forest: Forest
    y: NDArray[Any]
    weights: NDArray[Any] | None


def tree_block_of(number: int, trees: Any, y: Any, weights: Any = None, *, first: int = 0) -> TreeBlock:
    """A checked block of trees and labels; errors count trees from `first` on."""
    check_inputs(y, weights)
    if y is None:
        raise ValueError("trees need labels: give y, or blocks (trees, y)")
    forest = as_forest(trees, first) if len(trees) else Forest()
    labels = column_or_1d(np.asarray(y))
    given = None if weights is None else column_or_1d(np.asarray(weights))
    check_consistent_length(forest, labels, given)
    return TreeBlock(number, forest, labels, given)


def tree_block_of_tuple(number: int, block: Any) -> TreeBlock:
    """A block of (trees, y[, weights])."""
    with _naming(f"block {number}"):
        if not isinstance(block, tuple | list) or not 2 <= len(block) <= 3:
            raise ValueError(f"a block is a tuple (trees, y[, weights]), got {type(block).__name__}")
        return tree_block_of(number, *block)


def tree_block_of_pairs(number: int, partition: Iterable[Any]) -> TreeBlock:
    """A block of the pairs (tree, label) in a partition of a bag."""
    pairs = list(partition)
    with _naming(f"partition {number}"):
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise ValueError("a bag of trees has pairs (tree, label)")
        return tree_block_of(number, [tree for tree, _ in pairs], [label for _, label in pairs])


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Errors say in which block they are."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{place}, {error.file}", error.line, error.column, error.reason) from error
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{place}: {error}") from error


def read_tree_block(number: int, path: str) -> TreeBlock:
    """A file of trees and labels of this machine, or one that fsspec can open."""
    if "://" in path:
        import fsspec

        with fsspec.open(path, "rb") as file:
            found = read_trees(file)
    else:
        found = read_trees(path)
    if found.y is None:
        raise ValueError(f"{path} has trees without labels")
    return TreeBlock(number, found.X, found.y, None)


# --- What must be known of all parts before training ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreeSurvey:
    """What the client must know of the examples of a block."""

    number: int
    labels: NDArray[Any]  # each once
    codes: NDArray[Any]  # for each example: its label among them
    weights: NDArray[Any] | None
    tree_channels: list[str]
    vector_channels: list[str]
    has_trees: bool


def survey_trees(blocks: list[TreeBlock]) -> list[TreeSurvey]:
    """Look over the blocks of a part."""
    found = []
    for block in blocks:
        labels, codes = np.unique(block.y, return_inverse=True)
        small = codes.astype(np.min_scalar_type(len(labels)))
        channels = list(block.forest.trees), list(block.forest.vectors)
        about = (*channels, has_trees(block.forest))
        found.append(TreeSurvey(block.number, labels, small, block.weights, *about))
    return found


# --- Parts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreePacking:
    """How blocks become a part."""

    number: int
    kernel: ExampleKernel
    channels: list[str]
    threads: int | None  # None is as many as the worker has


@dataclass(frozen=True, eq=False)
class KnownCuts:
    """The cuts that a part must know when it is asked."""

    problem: str  # tells it from others
    count: int


class TreePart:
    """Examples on a worker. They stay there: Dask makes them again elsewhere rather than moving them."""

    def __init__(self, blocks: list[TreeBlock], packing: TreePacking) -> None:
        self.number = packing.number
        self.forest = _joined_forest(blocks, packing.channels)
        self.threads = packing.threads or int(get_worker().state.nthreads)
        self.kernel = packing.kernel
        self.examples = packing.kernel.examples(self.forest, threads=self.threads)
        self._problem = ""
        self._cuts: TreeCuts | None = None
        self._own_piece: tuple[CutExamples, WeightedSubtrees] | None = None  # of the cut that is to come
        self.lock = threading.Lock()

    def __sizeof__(self) -> int:
        """For Dask's account of memory."""
        return int(self.forest.nbytes) + 512 * len(self.forest)

    def __reduce__(self) -> Any:
        raise TypeError("a part of the training trees stays on its worker")

    def cuts_of(self, problem: str) -> TreeCuts:
        """The cuts of a problem that the part knows; those of another are forgotten."""
        if self._cuts is None or self._problem != problem:
            self.forget_cuts(problem)
        assert self._cuts is not None
        return self._cuts

    def forget_cuts(self, problem: str) -> None:
        """Begin a problem."""
        self._problem, self._cuts = problem, TreeCuts(self.kernel.core(), self.examples)

    def own_piece(self, own: CutExamples) -> WeightedSubtrees:
        """What the part contributes to a cut; the last is remembered, as it is asked for twice."""
        if self._own_piece is None or not self._own_piece[0].same_as(own):
            table, weights = self.cuts_of(self._problem).weighted_trees(own.places, own.coefficients)
            self._own_piece = own, (table, np.asarray(weights))
        return self._own_piece[1]


def _joined_forest(blocks: list[TreeBlock], channels: list[str]) -> Forest:
    """All blocks as one forest, with the channels that all parts have."""
    if len(blocks) == 1 and list(blocks[0].forest.trees) == channels:
        return blocks[0].forest
    table = SubtreeTable()
    roots: dict[str, list[Any]] = {name: [] for name in channels}
    for block in blocks:
        nothing = np.full(len(block.forest), -1, np.int32)
        for name in channels:
            own = block.forest.trees.get(name, nothing)
            roots[name].append(np.asarray(table.absorb(block.forest.table, own)))
    return Forest._of(table, {name: np.concatenate(found) for name, found in roots.items()}, {})


# --- Tasks of the sampled learner --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CutPiece:
    """What the examples of one part contribute to a cut: distinct subtrees, with their weights."""

    examples: int
    arrays: dict[str, NDArray[Any]]  # of the table of subtrees
    weights: NDArray[np.float64]  # channels x subtrees

    @property
    def nbytes(self) -> int:
        """What is sent, but for a few bytes."""
        return int(self.weights.nbytes + sum(array.nbytes for array in self.arrays.values()))

    def __sizeof__(self) -> int:
        """For Dask, which weighs what it moves."""
        return self.nbytes + 64

    def unpacked(self) -> WeightedSubtrees:
        """As the core takes it."""
        return SubtreeTable.from_arrays(**self.arrays), self.weights


@dataclass(frozen=True, eq=False)
class CutExamples:
    """The examples of a cut that are in one part."""

    places: Places
    coefficients: Vector

    def same_as(self, other: CutExamples) -> bool:
        """Whether examples and coefficients are the same."""
        return np.array_equal(self.places, other.places) and np.array_equal(
            self.coefficients, other.coefficients
        )


@dataclass(frozen=True, eq=False)
class SampleShare:
    """The examples of a sample that are in one part, equal ones next to each other."""

    places: Places
    labels: NDArray[np.int8]
    intercept: float
    weight: float  # of an example in the whole sample

    def inside_margin(self, scores: Vector) -> CutExamples:
        """Those that belong to the cut, each once."""
        inside = np.flatnonzero(self.labels * (scores + self.intercept) < 1.0)
        places = self.places[inside]
        is_first = np.diff(places, prepend=-1) != 0
        coefficients = np.bincount(np.cumsum(is_first) - 1, self.labels[inside] * self.weight)
        return CutExamples(places[is_first], coefficients.astype(np.float64))


def score_sample(
    part: TreePart, known: KnownCuts, alphas: Vector, sample: SampleShare
) -> tuple[Vector, CutPiece] | None:
    """Scores, for the cuts with these coefficients, and what the part contributes to the cut of the sample.

    None if the part lacks cuts.
    """
    with part.lock:
        cuts = part.cuts_of(known.problem)
        if len(cuts) != known.count:
            return None
        scores = np.asarray(cuts.score(alphas, sample.places, part.threads))
        return scores, _sent_piece(part, sample.inside_margin(scores))


def piece_of_cut(part: TreePart, own: CutExamples) -> CutPiece:
    """What the part contributes to a cut."""
    with part.lock:
        return _sent_piece(part, own)


def _sent_piece(part: TreePart, own: CutExamples) -> CutPiece:
    table, weights = part.own_piece(own)
    return CutPiece(len(own.places), dict(table.arrays()), weights)


def add_cut(
    part: TreePart, known: KnownCuts, pieces: list[CutPiece | None], own: CutExamples
) -> Vector | None:
    """Add a cut; the products of what the part contributes to it with all cuts, it being the last.

    The part's own piece is not sent: it is None. The answer is None if the part lacks cuts.
    """
    with part.lock:
        cuts = part.cuts_of(known.problem)
        if len(cuts) == known.count:
            mine = part.own_piece(own)
            cuts.add([mine if piece is None else piece.unpacked() for piece in pieces])
        if len(cuts) != known.count + 1:
            return None
        return np.asarray(cuts.products(own.places, own.coefficients, part.threads))


def restore_cuts(part: TreePart, known: KnownCuts, all_pieces: list[list[CutPiece]]) -> None:
    """Give a part that has lost its cuts all of them."""
    with part.lock:
        part.forget_cuts(known.problem)
        cuts = part.cuts_of(known.problem)
        for pieces in all_pieces:
            cuts.add([piece.unpacked() for piece in pieces])


# --- Tasks of the exact learner ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Support:
    """Examples with a coefficient for each problem, which score all others."""

    forest: Forest
    coefficients: NDArray[np.float64]  # examples x problems

    @functools.cached_property
    def nbytes(self) -> int:
        """What is sent, but for a few bytes."""
        return sent_bytes(self.forest) + self.coefficients.nbytes

    def __sizeof__(self) -> int:
        """For Dask, which weighs what it moves."""
        return self.nbytes + 64


@dataclass(frozen=True, eq=False)
class ChosenPlaces:
    """Some examples of a part, named by those that are not chosen where these are fewer."""

    listed: Places
    others: bool  # whether all others are chosen

    @classmethod
    def of(cls, places: Places, size: int) -> ChosenPlaces:
        """These places, ascending, of a part of that size."""
        if 2 * len(places) <= size:
            return cls(places, False)
        return cls(np.setdiff1d(np.arange(size, dtype=np.int32), places, assume_unique=True), True)

    def places(self, size: int) -> Places:
        """The places themselves."""
        if not self.others:
            return self.listed
        return np.setdiff1d(np.arange(size, dtype=np.int32), self.listed, assume_unique=True)


def own_kernels(part: TreePart) -> Vector:
    """The kernel of each example with itself."""
    return np.asarray(self_kernels(part.kernel.core(), part.examples, part.threads))


def score_chosen(part: TreePart, support: Support, chosen: ChosenPlaces) -> NDArray[np.float64]:
    """The scores of some examples, examples x problems."""
    indexed = part.kernel.examples(support.forest, indexed=True, threads=part.threads)
    numbers = np.arange(len(support.forest), dtype=np.int32)
    machine = example_machine(part.kernel.core(), indexed, numbers, support.coefficients)
    places = chosen.places(len(part.forest))
    return np.asarray(machine.score_chosen(part.examples, places, part.threads))


# --- For both ----------------------------------------------------------------------------------------------


def trees_at(part: TreePart, places: Places) -> Forest:
    """Some examples, to be sent."""
    return part.forest[places].compact()


def sent_bytes(forest: Forest) -> int:
    """What is sent of a forest, but for a few bytes."""
    arrays = (*forest.table.arrays().values(), *forest.trees.values())
    return sum(int(array.nbytes) for array in arrays)
