"""Give solvers access to training trees on the workers of a cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.distributed import Client, Future
from numpy.typing import NDArray

from unkernel._core import ExampleSet, train_exact_remote_trees, train_sampled_remote_trees
from unkernel._core import Forest as SubtreeTable
from unkernel.data.trees.forest import Forest
from unkernel.distributed.cluster.coordinator import Arguments, Broadcast, Cluster
from unkernel.distributed.cluster.gathered_blocks import place_blocks
from unkernel.distributed.cluster.interruption import run_interruptibly
from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.distributed.cluster.row_sources import Sources
from unkernel.distributed.cluster.workers import fetch_results
from unkernel.distributed.tree.tree_tasks import (
    ChosenPlaces,
    CutExamples,
    CutPiece,
    KnownCuts,
    Places,
    SampleShare,
    Support,
    TreePacking,
    TreePart,
    TreeSurvey,
    add_cut,
    compute_self_kernels,
    count_forest_bytes,
    make_cut_piece,
    restore_cuts,
    score_chosen,
    score_sample,
    select_trees,
    survey_trees,
)
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_weights
from unkernel.models import ExampleKernel
from unkernel.tree.options import ExactOptions, SampledOptions
from unkernel.tree.training_trees import NO_TREES, TreeTargets

# --- Places of examples ------------------------------------------------------------------------------------


class ExamplePlaces:
    """Maps each example, numbered in the original order, to its part and its index in this part."""

    def __init__(self, surveys: list[list[TreeSurvey]]) -> None:
        self.parts = len(surveys)
        blocks = []  # tuples: block number, number of examples, part, and index of the first example in it
        for part, part_surveys in enumerate(surveys):
            begin = 0
            for survey in part_surveys:
                blocks.append((survey.number, len(survey.codes), part, begin))
                begin += len(survey.codes)
        _, sizes, self._part, self._begin = (np.array(column) for column in zip(*sorted(blocks), strict=True))
        self._first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.examples = int(sizes.sum())

    def group_by_part(self, examples: NDArray[Any]) -> list[tuple[NDArray[np.intp], Places]]:
        """Return, for each part, the positions of its examples in `examples`, and their indices there."""
        block = np.searchsorted(self._first, examples, side="right") - 1
        places = (examples - self._first[block] + self._begin[block]).astype(np.int32)
        positions_of_parts = [np.flatnonzero(self._part[block] == part) for part in range(self.parts)]
        return [(positions, places[positions]) for positions in positions_of_parts]


def reorder_answers(
    places: list[tuple[NDArray[np.intp], Places]], answers: list[NDArray[Any]]
) -> NDArray[Any]:
    """Concatenate the responses of all parts in the order of the examples, given by `group_by_part`."""
    values = np.empty(
        (sum(len(positions) for positions, _ in places), *answers[0].shape[1:]), answers[0].dtype
    )
    for (positions, _), answer in zip(places, answers, strict=True):
        values[positions] = answer
    return values


# --- The cuts of a problem ---------------------------------------------------------------------------------


class ClusterCuts:
    """Cuts whose examples are on the workers: two requests per round.

    The first request returns, for each part, the scores of its examples in the sample, and its piece of the
    next cut: the weighted subtrees of its examples inside the margin. The second request sends each part the
    pieces of all other parts. The part returns the inner products of its own piece with all cuts. The sums
    over all parts are the inner products of the new cut with all cuts.
    """

    def __init__(self, cluster: Cluster, places: ExamplePlaces) -> None:
        self._cluster = cluster
        self._places = places
        self._problem = uuid.uuid4().hex
        self._cuts: list[list[CutPiece]] = []  # all cuts, to send to rebuilt parts
        self._pieces: list[CutPiece] = []  # the pieces of the next cut, from the last sample

    def score(
        self,
        alphas: Vector,
        examples: NDArray[np.int32],
        labels: NDArray[np.int8],
        intercept: float,
    ) -> Vector:
        """Return the score of each example of a sample; `alphas` has the coefficients of the cuts."""
        split = self._places.group_by_part(examples)
        shares = [
            SampleShare(places, labels[positions], intercept, 1 / len(examples))
            for positions, places in split
        ]
        answers = self._ask(score_sample, lambda k: (alphas, shares[k]))
        self._pieces = [piece for _, piece in answers]
        self._count_traffic("samples", examples.nbytes + labels.nbytes + alphas.nbytes * self._places.parts)
        self._count_traffic("scores", 8 * len(examples))
        return reorder_answers(split, [scores for scores, _ in answers])

    def add(self, examples: NDArray[np.int32], coefficients: Vector) -> Vector:
        """Add a cut; return its inner products with all cuts, itself last."""
        split = self._places.group_by_part(examples)
        part_examples = [CutExamples(places, coefficients[positions]) for positions, places in split]
        pieces, self._pieces = self._pieces, []
        if [piece.examples for piece in pieces] != [
            len(part.places) for part in part_examples
        ]:  # the pieces are not from this sample
            pieces = self._cluster.ask_directly(make_cut_piece, lambda k: (part_examples[k],))
        products: Vector = np.sum(
            self._ask(add_cut, lambda k: (_omit_own_piece(pieces, k), part_examples[k])), axis=0
        )
        self._cuts.append(pieces)
        received = sum(piece.nbytes for piece in pieces)
        self._count_traffic("cuts", 12 * len(examples) + received * self._places.parts)
        self._count_traffic("products", products.nbytes * self._places.parts)
        return products

    def _ask(self, task: Callable[..., Any], arguments: Arguments) -> list[Any]:
        """Run a task with all parts, after restoring the cuts of parts that have lost them."""
        known = KnownCuts(self._problem, len(self._cuts))

        def restore(parts: Sequence[int]) -> None:
            self._cluster.ask_directly(restore_cuts, lambda _: (known, self._cuts), parts)
            cut_bytes = sum(piece.nbytes for cut in self._cuts for piece in cut)
            self._count_traffic("restored", len(parts) * cut_bytes)

        return self._cluster.ask_directly(task, lambda k: (known, *arguments(k)), restore=restore)

    def _count_traffic(self, purpose: str, nbytes: int) -> None:
        self._cluster.traffic[purpose] += nbytes


def _omit_own_piece(pieces: list[CutPiece], part: int) -> list[CutPiece | None]:
    """Return the pieces with None in place of the part's own piece, which need not be sent."""
    return [None if k == part else piece for k, piece in enumerate(pieces)]


# --- The examples of the exact learner ---------------------------------------------------------------------


class FetchedTrees:
    """Fetches examples from the workers, each example only once."""

    def __init__(self, cluster: Cluster, places: ExamplePlaces) -> None:
        self._cluster = cluster
        self._places = places
        self._table = SubtreeTable()
        self._roots: dict[str, NDArray[np.int32]] = {}
        # The index of each example in `_roots`; -1 if the example has not been fetched.
        self._number = np.full(places.examples, -1, np.int32)
        self._count = 0

    def select(self, examples: NDArray[Any]) -> Forest:
        """Return a forest of these examples. Its table may also contain subtrees of other examples."""
        unknown = np.unique(examples[self._number[examples] < 0])
        if len(unknown):
            self._fetch(unknown)
        numbers = self._number[examples]
        return Forest._from_table(
            self._table, {name: roots[numbers] for name, roots in self._roots.items()}, {}
        )

    def _fetch(self, examples: NDArray[Any]) -> None:
        """Fetch examples that have not been fetched yet, and add them to the table."""
        split = self._places.group_by_part(examples)
        forests = self._cluster.ask_directly(select_trees, lambda k: (split[k][1],))
        for name in forests[0].trees:
            new_roots = [
                np.asarray(self._table.absorb(forest.table, forest.trees[name])) for forest in forests
            ]
            roots = self._roots.get(name, np.empty(0, np.int32))
            self._roots[name] = np.concatenate([roots, reorder_answers(split, new_roots)])
        self._number[examples] = np.arange(self._count, self._count + len(examples))
        self._count += len(examples)
        self._cluster.traffic["trees"] += sum(map(count_forest_bytes, forests))


class ClusterExamples:
    """Examples on the workers, with the methods that the exact learner calls.

    The workers score all examples; this work takes most of the time. The client fetches the examples in the
    learner's working set, and computes their kernels.
    """

    def __init__(self, cluster: Cluster, places: ExamplePlaces, kernel: ExampleKernel, trees: FetchedTrees):
        self._cluster = cluster
        self._places = places
        self._kernel = kernel
        self._trees = trees

    def self_kernels(self) -> Vector:
        """Return the kernel value of each example with itself."""
        all_examples = self._places.group_by_part(np.arange(self._places.examples))
        self._cluster.traffic["scores"] += 8 * self._places.examples
        return reorder_answers(all_examples, self._cluster.ask(compute_self_kernels, lambda _: ()))

    def here(self, examples: NDArray[np.int32]) -> ExampleSet:
        """Fetch the given examples to the client, to compute their kernels there."""
        return self._kernel.examples(self._trees.select(examples), indexed=True)

    def scores(
        self, support: NDArray[np.int32], coefficients: NDArray[np.float64], examples: NDArray[np.int32]
    ) -> Vector:
        """Return the scores of examples, given support examples: (examples, problems), flattened."""
        cluster = self._cluster
        split = self._places.group_by_part(examples)
        chosen = [
            ChosenPlaces.from_places(places, size)
            for (_, places), size in zip(split, cluster.rows, strict=True)
        ]
        support_trees = Broadcast(cluster, Support(self._trees.select(support).compact(), coefficients))
        answers = cluster.ask(score_chosen, lambda k: (support_trees, chosen[k]))
        cluster.traffic["support"] += support_trees.message.nbytes * len(cluster.workers)
        cluster.traffic["places"] += sum(part.listed.nbytes for part in chosen)
        cluster.traffic["scores"] += sum(answer.nbytes for answer in answers)
        return reorder_answers(split, answers).ravel()


# --- The examples ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GatheredTrees:
    """Blocks of trees on the workers, one list per part, and a survey of each block."""

    client: Client
    blocks: list[Future]
    surveys: list[list[TreeSurvey]]

    def sort_surveys(self) -> list[TreeSurvey]:
        """Return the surveys of the blocks in their original order."""
        return sorted((survey for part in self.surveys for survey in part), key=lambda survey: survey.number)

    def labels(self) -> NDArray[Any]:
        label_arrays = [survey.labels[survey.codes] for survey in self.sort_surveys() if len(survey.codes)]
        if len({labels.dtype.kind in "OUS" for labels in label_arrays}) > 1:
            raise ValueError("the labels of some blocks are numbers, and those of others are text")
        return np.concatenate(label_arrays)

    def weights(self) -> Vector | None:
        """Return the checked weight of each example, or None if there are no weights."""
        weight_arrays = [survey.weights for survey in self.sort_surveys() if len(survey.codes)]
        present = [weights for weights in weight_arrays if weights is not None]
        if present and len(present) < len(weight_arrays):
            raise ValueError("some blocks have weights and some have none: all have them, or none has")
        return check_weights(np.concatenate(present), self.labels()) if present else None

    def tree_channels(self) -> list[str]:
        """Return the names of all channels of trees; raise an error for examples with vectors."""
        nonempty = [survey for survey in self.sort_surveys() if len(survey.codes)]
        if any(survey.vector_channels for survey in nonempty):
            raise ValueError(
                "the examples have vectors, but a cluster compares only trees: leave the vectors out, or "
                "train a TreeSVC on one machine"
            )
        if not any(survey.has_trees for survey in nonempty):
            raise ValueError(NO_TREES)
        return list(dict.fromkeys(name for survey in nonempty for name in survey.tree_channels))

    def pack_parts(self, kernel: ExampleKernel, threads: int | None) -> Cluster:
        """Make a part from each list of blocks, and count its subtrees."""
        channels = self.tree_channels()
        parts = []
        for number, blocks in enumerate(self.blocks):
            packing = TreePacking(number, kernel, channels, threads)
            parts.append(self.client.submit(TreePart, blocks, packing, pure=False))
        return Cluster(
            self.client, parts, [sum(len(survey.codes) for survey in part) for part in self.surveys]
        )


def gather_trees(client: Client, sources: Sources) -> GatheredTrees:
    """Let the workers read, check and survey their blocks."""
    blocks = [worker_blocks for _, worker_blocks in place_blocks(client, sources)]
    surveys = fetch_results(client, [client.submit(survey_trees, part, pure=False) for part in blocks])
    nonempty = [k for k, part in enumerate(surveys) if any(len(survey.codes) for survey in part)]
    if not nonempty:
        raise ValueError("there are no trees to train on")
    return GatheredTrees(client, [blocks[k] for k in nonempty], [surveys[k] for k in nonempty])


@dataclass(frozen=True, eq=False)
class ClusterTrees:
    """Examples on the workers, with their labels and weights on the client."""

    cluster: Cluster
    places: ExamplePlaces
    kernel: ExampleKernel
    targets: TreeTargets
    fetched: FetchedTrees

    def __len__(self) -> int:
        return self.places.examples

    def train_sampled(
        self, options: SampledOptions, positive: int, on_progress: OnProgress
    ) -> dict[str, Any]:
        """Solve one problem by sampled cuts."""
        cuts = ClusterCuts(self.cluster, self.places)
        return run_interruptibly(
            lambda: dict(
                train_sampled_remote_trees(
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

    def train_exact(self, options: ExactOptions, C: float, on_progress: OnProgress) -> list[dict[str, Any]]:
        """Solve all problems exactly."""
        examples = ClusterExamples(self.cluster, self.places, self.kernel, self.fetched)
        solved = run_interruptibly(
            lambda: {
                "problems": train_exact_remote_trees(
                    options,
                    kernel=self.kernel.core(),
                    examples=examples,
                    codes=self.targets.codes,
                    costs=C * self.targets.importance,
                    positives=self.targets.positives,
                    on_progress=on_progress,
                )
            },
            self.cluster.stopped,
        )
        return [dict(solution) for solution in solved["problems"]]

    def select(self, places: NDArray[Any]) -> Forest:
        """Fetch the given examples from the workers."""
        return self.fetched.select(places).compact()
