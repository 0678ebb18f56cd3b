"""Training trees on the workers of a cluster, as the solvers ask about them."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.distributed import Client, Future
from numpy.typing import NDArray

from unkernel._core import Forest as SubtreeTable
from unkernel._core import train_sampled_trees_distant
from unkernel.data.trees.forest import Forest
from unkernel.distributed.cluster import Arguments, Cluster, placed_blocks
from unkernel.distributed.risks import interruptible
from unkernel.distributed.sources import Sources
from unkernel.distributed.tree_tasks import (
    CutExamples,
    CutPiece,
    KnownCuts,
    Places,
    TreePacking,
    TreePart,
    TreeSurvey,
    add_cut,
    piece_of_cut,
    restore_cuts,
    score_sample,
    survey_trees,
    trees_at,
)
from unkernel.distributed.wire import Vector
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_weights
from unkernel.models import ExampleKernel
from unkernel.tree.options import ExactOptions, SampledOptions
from unkernel.tree.training_trees import NO_TREES, TreeTargets

# --- Which example is where ------------------------------------------------------------------------------


class ExamplePlaces:
    """Where the examples are. They are numbered in the order in which they were given, block after block."""

    def __init__(self, surveys: list[list[TreeSurvey]]) -> None:
        self.parts = len(surveys)
        blocks = []  # number, examples, part, and where it begins in the part
        for part, found in enumerate(surveys):
            begins = itertools.accumulate((len(block.codes) for block in found), initial=0)
            blocks += [(block.number, len(block.codes), part, begin) for block, begin in zip(found, begins)]  # noqa: B905
        _, sizes, self._part, self._begin = (np.array(column) for column in zip(*sorted(blocks), strict=True))
        self._first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.examples = int(sizes.sum())

    def by_part(self, examples: NDArray[Any]) -> list[tuple[NDArray[np.intp], Places]]:
        """For each part, which of these examples it has, and where."""
        block = np.searchsorted(self._first, examples, side="right") - 1
        places = (examples - self._first[block] + self._begin[block]).astype(np.int32)
        chosen = [np.flatnonzero(self._part[block] == part) for part in range(self.parts)]
        return [(which, places[which]) for which in chosen]


def in_order(places: list[tuple[NDArray[np.intp], Places]], answers: list[Vector]) -> Vector:
    """What parts say about examples, in the order of the examples."""
    values = np.empty(sum(len(which) for which, _ in places))
    for (which, _), answer in zip(places, answers, strict=True):
        values[which] = answer
    return values


# --- The cuts of a problem ---------------------------------------------------------------------------------


class ClusterCuts:
    """Cuts whose examples are on the workers, three questions per round.

    The first returns the scores of a sample, of which each part has some. The others make the cut known: the
    subtrees of its examples are gathered from the parts that have them and sent to all, and each part returns
    the products of its share of the cut with all cuts, whose sum is the cut's.
    """

    def __init__(self, cluster: Cluster, places: ExamplePlaces) -> None:
        self._cluster = cluster
        self._places = places
        self._problem = uuid.uuid4().hex
        self._cuts: list[list[CutPiece]] = []  # for parts that are made again

    def score(self, alphas: Vector, examples: NDArray[np.int32]) -> Vector:
        """The score of each example, for the cuts with these coefficients."""
        split = self._places.by_part(examples)
        self._count("samples", examples.nbytes + alphas.nbytes * self._places.parts)
        self._count("scores", 8 * len(examples))
        return in_order(split, self._asked(score_sample, lambda k: (alphas, split[k][1])))

    def add(self, examples: NDArray[np.int32], coefficients: Vector) -> Vector:
        """The products of a new cut with all cuts, it being the last."""
        own = [CutExamples(at, coefficients[which]) for which, at in self._places.by_part(examples)]
        pieces = self._cluster.directly(piece_of_cut, lambda k: (self._known(), own[k]))
        products: Vector = np.sum(self._asked(add_cut, lambda k: (pieces, own[k])), axis=0)
        self._cuts.append(pieces)
        received = sum(piece.nbytes for piece in pieces)
        self._count("cuts", 24 * len(examples) + received * (1 + self._places.parts))
        self._count("products", products.nbytes * self._places.parts)
        return products

    def _known(self) -> KnownCuts:
        return KnownCuts(self._problem, len(self._cuts))

    def _asked(self, task: Callable[..., Vector | None], arguments: Arguments) -> list[Vector]:
        """Ask until all parts know all cuts."""
        known = self._known()
        while True:
            answers = self._cluster.directly(task, lambda k: (known, *arguments(k)))
            lost = [part for part, answer in enumerate(answers) if answer is None]
            if not lost:
                return answers
            self._cluster.directly(restore_cuts, lambda _: (known, self._cuts), lost)
            self._count("restored", len(lost) * sum(piece.nbytes for cut in self._cuts for piece in cut))

    def _count(self, purpose: str, sent: int) -> None:
        self._cluster.traffic[purpose] += sent


# --- The examples ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GatheredTrees:
    """Blocks of trees on the workers, one list per part, and what was seen of them."""

    client: Client
    blocks: list[Future]
    surveys: list[list[TreeSurvey]]

    def in_order(self) -> list[TreeSurvey]:
        """What was seen of the blocks, in the order in which they were given."""
        return sorted((seen for part in self.surveys for seen in part), key=lambda seen: seen.number)

    def labels(self) -> NDArray[Any]:
        """The label of each example."""
        found = [seen.labels[seen.codes] for seen in self.in_order() if len(seen.codes)]
        if len({labels.dtype.kind in "OUS" for labels in found}) > 1:
            raise ValueError("the labels of some blocks are numbers, and those of others are text")
        return np.concatenate(found)

    def weights(self) -> Vector | None:
        """The weight of each example, if they have weights, checked."""
        found = [seen.weights for seen in self.in_order() if len(seen.codes)]
        given = [weights for weights in found if weights is not None]
        if given and len(given) < len(found):
            raise ValueError("some blocks have weights and some have none: all have them, or none has")
        return check_weights(np.concatenate(given), self.labels()) if given else None

    def tree_channels(self) -> list[str]:
        """The channels of trees that any block has; examples with vectors are refused."""
        filled = [seen for seen in self.in_order() if len(seen.codes)]
        if any(seen.vector_channels for seen in filled):
            raise ValueError(
                "the examples have vectors, and only trees can be compared on a cluster: leave the vectors "
                "out, or train a TreeSVC on one machine"
            )
        if not any(seen.has_trees for seen in filled):
            raise ValueError(NO_TREES)
        return list(dict.fromkeys(name for seen in filled for name in seen.tree_channels))

    def to_parts(self, kernel: ExampleKernel, threads: int | None) -> Cluster:
        """Count the subtrees of the blocks, which are forgotten."""
        channels = self.tree_channels()
        parts = []
        for number, blocks in enumerate(self.blocks):
            packing = TreePacking(number, kernel, channels, threads)
            parts.append(self.client.submit(TreePart, blocks, packing, pure=False))
        return Cluster(self.client, parts, [sum(len(seen.codes) for seen in part) for part in self.surveys])


def gather_trees(client: Client, sources: Sources) -> GatheredTrees:
    """Have the workers read, check and survey their blocks."""
    blocks = placed_blocks(client, sources)
    surveys = client.gather([client.submit(survey_trees, part, pure=False) for part in blocks])
    filled = [k for k, part in enumerate(surveys) if any(len(seen.codes) for seen in part)]
    if not filled:
        raise ValueError("there are no trees to train on")
    return GatheredTrees(client, [blocks[k] for k in filled], [surveys[k] for k in filled])


@dataclass(frozen=True, eq=False)
class ClusterTrees:
    """Examples on the workers; the client has their labels and weights."""

    cluster: Cluster
    places: ExamplePlaces
    kernel: ExampleKernel
    targets: TreeTargets

    def __len__(self) -> int:
        return self.places.examples

    def sampled(self, options: SampledOptions, positive: int, on_progress: OnProgress) -> dict[str, Any]:
        """Solve one problem."""
        cuts = ClusterCuts(self.cluster, self.places)
        return interruptible(
            lambda: dict(
                train_sampled_trees_distant(
                    options,
                    cuts=cuts,
                    codes=self.targets.codes,
                    costs=self.targets.importance,
                    positive=positive,
                    on_progress=on_progress,
                )
            ),
            self.cluster.stopped,
        )

    def exact(self, options: ExactOptions, C: float, on_progress: OnProgress) -> list[dict[str, Any]]:
        """Not on a cluster: the whole problem is solved on one machine."""
        raise NotImplementedError

    def chosen(self, places: NDArray[Any]) -> Forest:
        """Some of the examples, fetched from the workers."""
        split = self.places.by_part(places)
        found = self.cluster.directly(trees_at, lambda k: (split[k][1],))
        table = SubtreeTable()
        roots = {name: np.empty(len(places), np.int32) for name in found[0].trees}
        for (which, _), forest in zip(split, found, strict=True):
            for name, own in forest.trees.items():
                roots[name][which] = np.asarray(table.absorb(forest.table, own))
        return Forest._of(table, roots, {})
