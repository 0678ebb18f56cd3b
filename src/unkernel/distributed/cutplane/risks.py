"""The risks of rows on the workers of a cluster, with the methods that the one-slack loop calls.

In each round, the loop searches the line from the current weights (step 0) to new weights (step 1) for the
best step, takes this step, and adds a cutting plane of the risk, made at a step near it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unkernel._core import Bundle, Oracle, minimise_remote_risk
from unkernel.cutplane.options import LoopOptions
from unkernel.cutplane.rankings import NO_PAIR, PairWeight
from unkernel.cutplane.solver_run import TrainingRows
from unkernel.distributed.cluster.coordinator import Broadcast, Cluster
from unkernel.distributed.cluster.interruption import run_interruptibly
from unkernel.distributed.cluster.packed_vectors import Answer, Vector, pack_vector
from unkernel.distributed.cluster.row_parts import combine_rows, score_rows
from unkernel.distributed.cutplane.line_search import STEPS_AT_ONCE, look_up_steps
from unkernel.distributed.cutplane.ranking_tasks import (
    GroupedRows,
    RankedRows,
    compute_grid_gradient,
    count_rows,
    sum_part_weights,
    sum_rows,
)
from unkernel.distributed.cutplane.round_tasks import (
    PartProblem,
    Problem,
    Round,
    compute_cut_at_step,
    compute_losses_at_steps,
    restore_scores,
    tabulate_losses,
)
from unkernel.distributed.cutplane.score_grids import (
    Grid,
    GridRisk,
    Table,
    coarsen_counts,
    compute_grid_risk,
    compute_inner_product,
)

Points = list[tuple[float, float]]

_MAX_SCORED_ROWS = 1 << 14  # up to this many rows per part, scores take fewer bytes than counts

# Grids of scores. Up to 16 margins from the mean, cells are 1/64 of a margin wide, or wider for many ranks.
# Cells farther away are wider. The grid extends to 240 margins, or farther if there are scores.
_INNER_WIDTH = 16.0  # in margins
_MAX_FIRST_CELLS = 1024
_MIN_FIRST_CELLS = 64
_MIN_LEVELS = 4
_MAX_LEVELS = 1000
_FIRST_ENTRIES = 1 << 18  # entries (ranks x edges) of the first grid
_MAX_ENTRIES = 1 << 22

# Steps on a line.
_FIRST_STEP = 0.25  # the first guess of the best step
_GUESS_RATIO = 1.8  # ratio of successive guesses
_CUT_SHARE_TO_END = 0.1  # cuts are made at this share of the way from the best step to the end of the line
_CUT_TOLERANCE = 0.3  # a cut may be made at a counted step that differs from the requested one by this share


class GroupRisk:
    """Losses that are sums over parts, such as losses of pairs if each group is in a single part.

    Parts store the scores at both ends of the line. The first request of a round sends the new weights, and
    returns values and slopes around the best step of the previous round. Further requests may return more
    values. The last request returns the gradient at the chosen step.
    """

    steps_at_once = 1
    line_accuracy = 0.3  # relative; loses at most a tenth of the gain of an exact line search

    def __init__(self, cluster: Cluster, problem: PartProblem, dimension: int) -> None:
        self._cluster = cluster
        self._here = np.zeros(dimension)
        self._there = np.zeros(dimension)
        self._round = Round(problem, 0, 0.0)
        self._moved: float | None = None  # the step taken at the end of the round; None during the round
        self._unsent_weights: Broadcast | None = None  # weights to send with the next request
        self._last_step = _FIRST_STEP

    def first_steps(self) -> list[float]:
        """Return the first steps to request, near the best step of the previous round."""
        return [0.0, self._last_step, 2.0 * self._last_step]

    def aim(self, weights: Vector) -> None:
        """Begin a round towards `weights`, which the first request will send."""
        self._round = replace(self._round, number=self._round.number + 1, moved=self._moved or 0.0)
        self._there = weights
        self._moved = None
        self._unsent_weights = self._cluster.broadcast(weights, "weights")

    def along(self, steps: Vector) -> Points:
        """Return the value and the slope at each step on the line."""
        self._begin()
        values, slopes = self._ask(compute_losses_at_steps, (steps, self._unsent_weights), "line").reshape(
            2, -1
        )
        return list(zip(values.tolist(), slopes.tolist(), strict=True))

    def cut(self, step: float) -> tuple[float, Vector]:
        """Return the offset and the gradient of the cut at a step."""
        self._begin()
        answer = self._ask(compute_cut_at_step, (step, self._unsent_weights), "gradient")
        return float(answer[-1]), np.ascontiguousarray(answer[:-1])

    def move(self, step: float) -> None:
        """Take a step on the line; the next round sends the step to the parts."""
        self._here = self._here + step * (self._there - self._here)
        self._moved = step
        self._last_step = min(step, 1.0)

    def _begin(self) -> None:
        """Unless a round is under way, begin one on a line that consists of the current point."""
        if self._round.number == 0 or self._moved is not None:
            self.aim(self._here)

    def _ask(self, task: Callable[..., Answer], arguments: tuple[Any, ...], purpose: str) -> Vector:
        total = self._cluster.sum_answers(
            task, lambda _: (self._round, *arguments), purpose, self._restore_scores
        )
        self._unsent_weights = None
        return total

    def _restore_scores(self, parts: Sequence[int]) -> None:
        """Let rebuilt parts compute their scores at both ends of the line, in two passes over their rows."""
        here, there = pack_vector(self._here), pack_vector(self._there)
        self._cluster.traffic["restored"] += (here.nbytes + there.nbytes) * len(parts)
        self._cluster.ask(restore_scores, lambda _: (self._round, here, there), parts)


class SeparableRisk(GroupRisk):
    """Losses that are sums over rows: two requests per round.

    The first request sends the new weights. It returns the table of the losses on the line to these weights,
    and the table suffices for the line search (``line_search.py``). The second request returns the gradient
    at the chosen step.
    """

    steps_at_once = STEPS_AT_ONCE
    line_accuracy = 0.1

    def __init__(self, cluster: Cluster, problem: Problem, dimension: int) -> None:
        super().__init__(cluster, problem, dimension)
        self._table = np.empty(0)

    def first_steps(self) -> list[float]:
        """Return the ends of the line; a request returns the table of the whole line anyway."""
        return [0.0, 1.0]

    def aim(self, weights: Vector) -> None:
        """Begin a round towards `weights`, and fetch its table."""
        super().aim(weights)
        self._table = self._ask(tabulate_losses, (self._unsent_weights,), "line")

    def along(self, steps: Vector) -> Points:
        """Return the value and the slope at each step on the line."""
        self._begin()
        points = look_up_steps(self._table, steps)
        return super().along(steps) if points is None else points


@dataclass(frozen=True, eq=False)
class _StepCounts:
    """The counts of rows at a step, and their risk."""

    step: float
    grid: Grid
    outside: int  # number of rows outside the grid
    counts: Table
    changes: Table | None
    risk: GridRisk

    def levels_in_use(self) -> int:
        """Return the number of levels of the grid that have rows."""
        used = np.flatnonzero(self.counts.any(axis=0))
        farthest = np.abs(used - self.grid.size // 2).max(initial=0)
        return int(-(-farthest // self.grid.cells))


class PairRisk(GroupRisk):
    """Losses of pairs across parts, from counts on grids of scores: no message grows with the rows.

    Most rounds make two requests. The first returns counts at several steps around the best step of the
    previous round; usually they suffice for the line search and the cut. The second returns the gradient of
    the cut. Grids are made wider until they contain all rows, and finer until the risk is accurate enough.
    The error of the risk is estimated by comparison with the grid of every other edge (``score_grids.py``).
    The risk on a grid is an upper bound of the true risk.
    """

    def __init__(self, cluster: Cluster, problem: RankedRows, dimension: int, C: float) -> None:
        super().__init__(cluster, problem, dimension)
        self._problem = problem
        self._C = C
        self._cells = _choose_first_cells(problem.rank_count)
        self._levels = _MIN_LEVELS
        self._counted_steps: list[_StepCounts] = []  # the counts of this round
        total = cluster.sum_answers(sum_rows, lambda _: (), "gradient")
        self._mean = total[:-1] / total[-1]

    def aim(self, weights: Vector) -> None:
        """Begin a round."""
        super().aim(weights)
        self._counted_steps = []

    def move(self, step: float) -> None:
        """Take a step on the line."""
        super().move(step)
        self._counted_steps = []

    def first_steps(self) -> list[float]:
        """Return steps around the last step; at one of them, the cut will probably be made."""
        last = self._last_step
        return sorted(
            {0.0, last / _GUESS_RATIO, last, _GUESS_RATIO * last, last + _CUT_SHARE_TO_END * (1.0 - last)}
        )

    def along(self, steps: Vector) -> Points:
        """Return the value and the slope at each step on the line."""
        counted = self._count(steps.tolist(), with_changes=True)
        self._counted_steps += counted
        return [(at.risk.value, at.risk.slope(at.changes)) for at in counted if at.changes is not None]

    def cut(self, step: float) -> tuple[float, Vector]:
        """Return the offset and the gradient of the cut at a step, or at a nearby step that has counts."""
        nearby = [
            counts for counts in self._counted_steps if abs(counts.step - step) <= _CUT_TOLERANCE * step
        ]
        if nearby:
            counts = min(nearby, key=lambda counts: abs(counts.step - step))
        else:
            (counts,) = self._count([step], with_changes=False)
        table = self._cluster.broadcast(counts.risk.coefficients.ravel(), "coefficients")
        gradient = self._ask(compute_grid_gradient, ((counts.step, counts.grid), table), "gradient")
        return counts.risk.offset, gradient

    def _count(self, steps: list[float], *, with_changes: bool) -> list[_StepCounts]:
        """Return counts at the steps, on grids that are wide and fine enough."""
        self._begin()
        while True:
            counted = self._count_once(steps, with_changes=with_changes)
            if any(counts.outside for counts in counted):
                self._widen()
            elif not any(self._is_too_coarse(counts) for counts in counted) or not self._refine():
                self._narrow(counted)
                return counted

    def _count_once(self, steps: list[float], *, with_changes: bool) -> list[_StepCounts]:
        """Return counts at the steps on grids of the current size."""
        points = [(step, self._make_grid(step)) for step in steps]
        answer = self._ask(count_rows, (points, with_changes, self._unsent_weights), "counts")
        counted = []
        for (step, grid), numbers in zip(points, answer.reshape(len(points), -1), strict=True):
            tables = numbers[1:].reshape(-1, self._problem.rank_count, grid.size)
            risk = compute_grid_risk(grid, tables[0], self._problem.pair_weights)
            changes = tables[1] if with_changes else None
            counted.append(_StepCounts(step, grid, int(numbers[0]), tables[0], changes, risk))
        return counted

    def _make_grid(self, step: float) -> Grid:
        """Return a grid around the mean score at a step."""
        return Grid(
            compute_inner_product(self._compute_weights(step), self._mean),
            _INNER_WIDTH,
            self._cells,
            self._levels,
        )

    def _compute_weights(self, step: float) -> Vector:
        return self._here + step * (self._there - self._here)

    def _widen(self) -> None:
        """Double the number of levels; if the grid would be too large, make the cells wider."""
        if self._levels == _MAX_LEVELS:
            raise ValueError(
                "the scores are not finite: scale the features, or lower C or the sample weights"
            )
        self._levels = min(2 * self._levels, _MAX_LEVELS)
        while not self._fits(self._cells) and self._cells > 2:
            self._cells //= 2

    def _narrow(self, counted: list[_StepCounts]) -> None:
        """Drop the empty outer levels of the grid: few lines need many levels."""
        if self._levels > _MIN_LEVELS:
            self._levels = max(_MIN_LEVELS, *(counts.levels_in_use() for counts in counted))

    def _fits(self, cells: int) -> bool:
        size = Grid(0.0, _INNER_WIDTH, cells, self._levels).size
        return size * self._problem.rank_count <= _MAX_ENTRIES

    def _is_too_coarse(self, counts: _StepCounts) -> bool:
        # The error is proportional to the square of the cell width. With every other edge, it is four times
        # as large: the difference between the two risks is three times the error.
        coarse = compute_grid_risk(
            counts.grid.coarser(), coarsen_counts(counts.counts), self._problem.pair_weights
        )
        error = (coarse.value - counts.risk.value) / 3.0
        weights = self._compute_weights(counts.step)
        objective = counts.risk.value + compute_inner_product(weights, weights) / (2.0 * self._C)
        return bool(error > self._problem.accuracy * objective)

    def _refine(self) -> bool:
        """Choose a finer grid; return whether there is one."""
        if self._fits(2 * self._cells):
            self._cells *= 2
            return True
        warnings.warn(
            "counts of scores cannot certify a gap as small as tol: the gap may stay above it",
            ConvergenceWarning,
            stacklevel=2,
        )
        return False


def _choose_first_cells(ranks: int) -> int:
    """Return the initial number of cells, a power of 2, which is larger for fewer ranks."""
    max_cells = max(_FIRST_ENTRIES // (2 * ranks * _MIN_LEVELS), _MIN_FIRST_CELLS)
    return min(1 << (max_cells.bit_length() - 1), _MAX_FIRST_CELLS)


class JointRisk:
    """Losses that are not sums over rows or parts: the client gathers scores, and sends coefficients.

    A round sends 8 bytes per row in each direction, or fewer if many coefficients are 0. Workers keep no
    state.
    """

    steps_at_once = 1

    def __init__(self, cluster: Cluster, oracle: Oracle, dimension: int, threads: int) -> None:
        self._cluster = cluster
        self._oracle = oracle
        self._threads = threads
        self._bounds = np.cumsum([0, *cluster.rows])
        self._here = np.zeros(self._bounds[-1])
        self._there = np.zeros(self._bounds[-1])

    def aim(self, weights: Vector) -> None:
        """Begin a round, and gather the scores of all rows for the new weights."""
        self._there = gather_scores(self._cluster, weights)

    def along(self, steps: Vector) -> Points:
        """Return the value and the slope at each step on the line."""
        return [self._oracle.along(self._here, self._there, step, self._threads) for step in steps.tolist()]

    def cut(self, step: float) -> tuple[float, Vector]:
        """Return the offset and the gradient of the cut at a step."""
        offset, coefficients = self._oracle.cut(self._here, self._there, step, self._threads)
        pieces = [pack_vector(piece) for piece in np.split(np.asarray(coefficients), self._bounds[1:-1])]
        self._cluster.traffic["coefficients"] += sum(piece.nbytes for piece in pieces)
        return float(offset), self._cluster.sum_answers(combine_rows, lambda k: (pieces[k],), "gradient")

    def move(self, step: float) -> None:
        """Take a step on the line."""
        self._here = self._here + step * (self._there - self._here)


def is_counting_cheaper(cluster: Cluster) -> bool:
    """Return whether counts take fewer bytes than the scores of all rows."""
    return max(cluster.rows) > _MAX_SCORED_ROWS


def compute_pair_scale(cluster: Cluster, pair_weight: PairWeight | None) -> float:
    """Return the total weight of all rows, divided by the total weight of all pairs within groups."""
    total, pairs = cluster.sum_answers(sum_part_weights, lambda _: (pair_weight,), "line")
    if not pairs > 0:
        raise ValueError(NO_PAIR)
    return float(total / pairs)


def gather_scores(cluster: Cluster, weights: Vector) -> Vector:
    """Return the scores of all rows, concatenated in the order of the parts."""
    message = cluster.broadcast(weights, "weights")
    scores = np.concatenate(cluster.ask(score_rows, lambda _: (message,)))
    cluster.traffic["scores"] += scores.nbytes
    return scores


@dataclass(frozen=True, eq=False)
class ClusterMinimiser:
    """The one-slack loop for rows on a cluster. Losses are computed on the workers or on the client."""

    cluster: Cluster
    rows: TrainingRows
    intercept: float = 0.0

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the rows, which a checkpoint must match."""
        return self.rows.identity

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return self.rows.n_features + (self.intercept != 0)

    def new_bundle(self, most_cuts: int) -> Bundle:
        return Bundle(self.dimension, most_cuts, of_rows=False)

    def run(
        self,
        oracle: Oracle | PartProblem,
        bundle: Bundle,
        start: Vector,
        options: LoopOptions,
        **observers: Any,
    ) -> dict[str, Any]:
        """Return the result of the core's ``minimise_remote_risk``."""

        def minimise() -> dict[str, Any]:
            risk = self._make_risk(oracle, options)
            return dict(
                minimise_remote_risk(
                    options,
                    risk=risk,
                    steps_at_once=risk.steps_at_once,
                    bundle=bundle,
                    start=start,
                    **observers,
                )
            )

        return run_interruptibly(minimise, self.cluster.stopped)

    def _make_risk(self, oracle: Oracle | PartProblem, options: LoopOptions) -> GroupRisk | JointRisk:
        """Return the risk whose messages suit the problem."""
        if isinstance(oracle, Problem):
            return SeparableRisk(self.cluster, oracle, self.dimension)
        if isinstance(oracle, RankedRows):
            return PairRisk(self.cluster, oracle, self.dimension, options.C)
        if isinstance(oracle, GroupedRows):
            return GroupRisk(self.cluster, oracle, self.dimension)
        assert isinstance(oracle, Oracle)
        return JointRisk(self.cluster, oracle, self.dimension, options.threads)

    def scores(self, weights: Vector, threads: int) -> Vector:
        """Return the score of each row. `threads` is ignored: the workers use their own number of threads."""
        return gather_scores(self.cluster, weights)
