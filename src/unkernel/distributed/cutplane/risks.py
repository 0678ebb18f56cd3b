"""Risks whose rows are on the workers of a cluster, as the one-slack loop asks about them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unkernel._core import Bundle, Oracle, minimise_distant
from unkernel.cutplane.options import LoopOptions
from unkernel.cutplane.rankings import NO_PAIR, PairWeight
from unkernel.distributed.cluster.coordinator import Cluster, Interrupted, Spread
from unkernel.distributed.cluster.packed_vectors import Answer, Vector, packed
from unkernel.distributed.cluster.row_tasks import (
    PartProblem,
    Problem,
    Round,
    combination_of,
    cut_at,
    look_ahead,
    restore,
    scores_of,
    values_along,
)
from unkernel.distributed.cutplane.line_search import STEPS_AT_ONCE, points_in_table
from unkernel.distributed.cutplane.ranking_tasks import (
    GroupedRows,
    RankedRows,
    count_rows,
    gradient_on_grid,
    mean_row,
    pair_totals,
)
from unkernel.distributed.cutplane.score_grids import (
    Grid,
    GridRisk,
    Table,
    coarser_counts,
    inner_product,
    risk_on_grid,
)

Points = list[tuple[float, float]]

_FEW_ROWS = 1 << 14  # in a part: their scores are fewer bytes than counts are

# Grids of scores: cells are 1/64 wide up to 16 margins from the mean, unless there are many ranks, and wider
# up to 240 and, where there are such scores, beyond.
_WIDTH = 16.0
_FIRST_CELLS = 1024
_FEWEST_CELLS = 64
_FEWEST_LEVELS = 4
_MOST_LEVELS = 1000
_FIRST_ENTRIES = 1 << 18  # ranks x edges
_MOST_ENTRIES = 1 << 22

# Steps on a line: the first guess of the best one; by how much guesses beside it differ; how far from the
# best one to the end of the line the solver takes cuts; and by how much of that a cut may be elsewhere.
_FIRST_STEP = 0.25
_NEAR = 1.8
_TOWARDS_END = 0.1
_NEARBY = 0.3


class GroupRisk:
    """Losses that are sums over parts, such as those of pairs in groups that are whole in some part.

    Parts remember the scores at both ends of the line. A round asks for values and slopes on the line, the
    first time with the new weights and around the best step of the round before, and for the gradient at the
    step that was chosen.
    """

    steps_at_once = 1
    line_accuracy = 0.3  # a tenth of what the line search could gain is lost at most

    def __init__(self, cluster: Cluster, problem: PartProblem, dimension: int) -> None:
        self._cluster = cluster
        self._here = np.zeros(dimension)
        self._there = np.zeros(dimension)
        self._round = Round(problem, 0, 0.0)
        self._moved: float | None = None  # since the round began
        self._news: Spread | None = None  # weights that the parts do not know yet
        self._last_step = _FIRST_STEP

    def first_steps(self) -> list[float]:
        """Steps to ask for at once: best ones are often alike from one round to the next."""
        return [0.0, self._last_step, 2.0 * self._last_step]

    def aim(self, weights: Vector) -> None:
        """Begin a round. Nothing is sent before the first question."""
        self._round = replace(self._round, number=self._round.number + 1, moved=self._moved or 0.0)
        self._there = weights
        self._moved = None
        self._news = self._cluster.spread(weights, "weights")

    def along(self, steps: Vector) -> Points:
        """Values and slopes on the line."""
        self._begin()
        values, slopes = self._asked(values_along, (steps, self._news), "line").reshape(2, -1)
        return list(zip(values.tolist(), slopes.tolist(), strict=True))

    def cut(self, step: float) -> tuple[float, Vector]:
        """Offset and gradient."""
        self._begin()
        found = self._asked(cut_at, (step, self._news), "gradient")
        return float(found[-1]), np.ascontiguousarray(found[:-1])

    def move(self, step: float) -> None:
        """Follow the line. The parts are told when the next round begins."""
        self._here = self._here + step * (self._there - self._here)
        self._moved = step
        self._last_step = min(step, 1.0)

    def _begin(self) -> None:
        """A question before the first round, or after a move: the line has one point."""
        if self._round.number == 0 or self._moved is not None:
            self.aim(self._here)

    def _asked(self, task: Callable[..., Answer], arguments: tuple[Any, ...], purpose: str) -> Vector:
        while True:
            answer = self._cluster.sums(task, lambda _: (self._round, *arguments), purpose)
            self._news = None
            if answer.vector is not None:
                return answer.vector.unpacked()
            self._restore(answer.unprepared)

    def _restore(self, parts: tuple[int, ...]) -> None:
        """Give parts that were made again the scores of this round: two passes over them alone."""
        here, there = packed(self._here), packed(self._there)
        self._cluster.traffic["restored"] += (here.nbytes + there.nbytes) * len(parts)
        self._cluster.each(restore, lambda _: (self._round, here, there), parts)


class SeparableRisk(GroupRisk):
    """Losses that count each row on its own: two questions per round.

    The first takes the new weights to the parts, and returns the table of the losses on the line to them
    (line.py): the line search needs no more. The second returns the gradient at the step that was chosen.
    """

    steps_at_once = STEPS_AT_ONCE
    line_accuracy = 0.1

    def __init__(self, cluster: Cluster, problem: Problem, dimension: int) -> None:
        super().__init__(cluster, problem, dimension)
        self._table = np.empty(0)

    def first_steps(self) -> list[float]:
        """Nothing is to be guessed."""
        return [0.0, 1.0]

    def aim(self, weights: Vector) -> None:
        """Begin a round."""
        super().aim(weights)
        self._table = self._asked(look_ahead, (self._news,), "line")

    def along(self, steps: Vector) -> Points:
        """Values and slopes on the line."""
        self._begin()
        points = points_in_table(self._table, steps)
        return super().along(steps) if points is None else points


@dataclass(frozen=True, eq=False)
class _Counted:
    """What was counted at a step, and the risk that this says."""

    step: float
    grid: Grid
    outside: int  # rows that are not on the grid
    counts: Table
    changes: Table | None
    risk: GridRisk

    def levels_in_use(self) -> int:
        """How many levels have rows."""
        used = np.flatnonzero(self.counts.any(axis=0))
        farthest = np.abs(used - self.grid.size // 2).max(initial=0)
        return int(-(-farthest // self.grid.cells))


class PairRisk(GroupRisk):
    """Pairs of rows in any two parts, from counts on grids of scores (grids.py): no message grows with them.

    Most rounds ask two questions. The first is for counts at some steps around the best one of the round
    before: one of them is good enough for the line search, and another for the cut. The second is for the
    gradient there. Grids become wider until all rows are on them, and finer until the risk is accurate
    enough, as it seems from every other edge. That decides what is sent, not what is true: the risk is an
    upper bound anyway.
    """

    def __init__(self, cluster: Cluster, problem: RankedRows, dimension: int, C: float) -> None:
        super().__init__(cluster, problem, dimension)
        self._problem = problem
        self._C = C
        self._cells = _first_cells(problem.rank_count)
        self._levels = _FEWEST_LEVELS
        self._found: list[_Counted] = []  # on the line of this round
        answer = cluster.sums(mean_row, lambda _: (), "gradient")
        assert answer.vector is not None
        found = answer.vector.unpacked()
        self._mean = found[:-1] / found[-1]

    def aim(self, weights: Vector) -> None:
        """Begin a round."""
        super().aim(weights)
        self._found = []

    def move(self, step: float) -> None:
        """Follow the line."""
        super().move(step)
        self._found = []

    def first_steps(self) -> list[float]:
        """Some more steps, one of which is for the cut."""
        last = self._last_step
        return sorted({0.0, last / _NEAR, last, _NEAR * last, last + _TOWARDS_END * (1.0 - last)})

    def along(self, steps: Vector) -> Points:
        """Values and slopes on the line."""
        found = self._counted(steps.tolist(), with_changes=True)
        self._found += found
        return [(one.risk.value, one.risk.slope(one.changes)) for one in found if one.changes is not None]

    def cut(self, step: float) -> tuple[float, Vector]:
        """Offset and gradient, there or where rows were counted nearby: cuts are true anywhere."""
        nearby = [one for one in self._found if abs(one.step - step) <= _NEARBY * step]
        if nearby:
            found = min(nearby, key=lambda one: abs(one.step - step))
        else:
            (found,) = self._counted([step], with_changes=False)
        table = self._cluster.spread(found.risk.coefficients.ravel(), "coefficients")
        gradient = self._asked(gradient_on_grid, ((found.step, found.grid), table), "gradient")
        return found.risk.offset, gradient

    def _counted(self, steps: list[float], *, with_changes: bool) -> list[_Counted]:
        """Counts that are good enough."""
        self._begin()
        while True:
            found = self._counted_once(steps, with_changes=with_changes)
            if any(one.outside for one in found):
                self._widen()
            elif not any(self._too_coarse(one) for one in found) or not self._refine():
                self._narrow(found)
                return found

    def _counted_once(self, steps: list[float], *, with_changes: bool) -> list[_Counted]:
        points = [(step, self._grid_at(step)) for step in steps]
        answer = self._asked(count_rows, (points, with_changes, self._news), "counts")
        found = []
        for (step, grid), numbers in zip(points, answer.reshape(len(points), -1), strict=True):
            tables = numbers[1:].reshape(-1, self._problem.rank_count, grid.size)
            risk = risk_on_grid(grid, tables[0], self._problem.pair_weights)
            changes = tables[1] if with_changes else None
            found.append(_Counted(step, grid, int(numbers[0]), tables[0], changes, risk))
        return found

    def _grid_at(self, step: float) -> Grid:
        return Grid(inner_product(self._weights_at(step), self._mean), _WIDTH, self._cells, self._levels)

    def _weights_at(self, step: float) -> Vector:
        return self._here + step * (self._there - self._here)

    def _widen(self) -> None:
        if self._levels == _MOST_LEVELS:
            raise ValueError(
                "the scores are not finite: scale the features, or lower C or the sample weights"
            )
        self._levels = min(2 * self._levels, _MOST_LEVELS)
        while not self._fits(self._cells) and self._cells > 2:
            self._cells //= 2

    def _narrow(self, found: list[_Counted]) -> None:
        """Give up levels that no row is in: many are needed only where the line begins far from its end."""
        if self._levels > _FEWEST_LEVELS:
            self._levels = max(_FEWEST_LEVELS, *(one.levels_in_use() for one in found))

    def _fits(self, cells: int) -> bool:
        size = Grid(0.0, _WIDTH, cells, self._levels).size
        return size * self._problem.rank_count <= _MOST_ENTRIES

    def _too_coarse(self, found: _Counted) -> bool:
        # The error of the risk is a quarter of that on every other edge, as it falls with the square.
        coarse = risk_on_grid(found.grid.coarser(), coarser_counts(found.counts), self._problem.pair_weights)
        error = (coarse.value - found.risk.value) / 3.0
        weights = self._weights_at(found.step)
        objective = found.risk.value + inner_product(weights, weights) / (2.0 * self._C)
        return bool(error > self._problem.accuracy * objective)

    def _refine(self) -> bool:
        """Whether there is a finer grid."""
        if self._fits(2 * self._cells):
            self._cells *= 2
            return True
        warnings.warn(
            "tol is smaller than what counts of scores can certify: the gap may stay above it",
            ConvergenceWarning,
            stacklevel=2,
        )
        return False


def _first_cells(ranks: int) -> int:
    """Finer grids for fewer ranks: a power of 2."""
    most = max(_FIRST_ENTRIES // (2 * ranks * _FEWEST_LEVELS), _FEWEST_CELLS)
    return min(1 << (most.bit_length() - 1), _FIRST_CELLS)


class JointRisk:
    """Losses that look at all rows together: scores come to the client, coefficients go back.

    8 bytes per row each way and round, less where coefficients are 0. Workers remember nothing.
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
        """Fetch the scores of these weights."""
        self._there = gathered_scores(self._cluster, weights)

    def along(self, steps: Vector) -> Points:
        """Values and slopes on the line."""
        return [self._oracle.along(self._here, self._there, step, self._threads) for step in steps.tolist()]

    def cut(self, step: float) -> tuple[float, Vector]:
        """Offset and gradient."""
        offset, coefficients = self._oracle.cut(self._here, self._there, step, self._threads)
        pieces = [packed(piece) for piece in np.split(np.asarray(coefficients), self._bounds[1:-1])]
        self._cluster.traffic["coefficients"] += sum(piece.nbytes for piece in pieces)
        answer = self._cluster.sums(combination_of, lambda k: (pieces[k],), "gradient")
        assert answer.vector is not None
        return float(offset), answer.vector.unpacked()

    def move(self, step: float) -> None:
        """Follow the line."""
        self._here = self._here + step * (self._there - self._here)


def counting_pays(cluster: Cluster) -> bool:
    """Whether counts are fewer bytes than the scores of all rows."""
    return max(cluster.rows) > _FEW_ROWS


def scale_of_pairs(cluster: Cluster, pair_weight: PairWeight | None) -> float:
    """What makes the mean over pairs in groups as large as a sum over rows."""
    answer = cluster.sums(pair_totals, lambda _: (pair_weight,), "line")
    assert answer.vector is not None
    total, pairs = answer.vector.unpacked()
    if not pairs > 0:
        raise ValueError(NO_PAIR)
    return float(total / pairs)


def gathered_scores(cluster: Cluster, weights: Vector) -> Vector:
    """The score of each row, part after part."""
    message = cluster.spread(weights, "weights")
    scores = np.concatenate(cluster.each(scores_of, lambda _: (message,)))
    cluster.traffic["scores"] += scores.nbytes
    return scores


@dataclass(frozen=True, eq=False)
class ClusterMinimiser:
    """The one-slack loop on the rows of a cluster. An oracle is a problem of parts, or one of the client."""

    cluster: Cluster
    dimension: int

    def new_bundle(self, most_cuts: int) -> Bundle:
        """No cuts yet."""
        return Bundle(self.dimension, most_cuts, of_rows=False)

    def run(
        self,
        oracle: Oracle | PartProblem,
        bundle: Bundle,
        start: Vector,
        options: LoopOptions,
        **observers: Any,
    ) -> dict[str, Any]:
        """What the core's ``minimise_distant`` returns."""

        def minimised() -> dict[str, Any]:
            risk = self._risk(oracle, options)
            together = risk.steps_at_once
            return dict(
                minimise_distant(
                    options, risk=risk, steps_at_once=together, bundle=bundle, start=start, **observers
                )
            )

        return interruptible(minimised, self.cluster.stopped)

    def _risk(self, oracle: Oracle | PartProblem, options: LoopOptions) -> GroupRisk | JointRisk:
        if isinstance(oracle, Problem):
            return SeparableRisk(self.cluster, oracle, self.dimension)
        if isinstance(oracle, RankedRows):
            return PairRisk(self.cluster, oracle, self.dimension, options.C)
        if isinstance(oracle, GroupedRows):
            return GroupRisk(self.cluster, oracle, self.dimension)
        assert isinstance(oracle, Oracle)
        return JointRisk(self.cluster, oracle, self.dimension, options.threads)

    def scores(self, weights: Vector, threads: int) -> Vector:
        """The score of each row; how many threads there are, the workers know."""
        return gathered_scores(self.cluster, weights)


def interruptible(work: Callable[[], dict[str, Any]], stopped: threading.Event) -> dict[str, Any]:
    """Do it on another thread. Ctrl-C reaches only this one, also while the other waits for a cluster."""
    ended: dict[str, Any] = {}
    finished = threading.Event()

    def run() -> None:
        try:
            ended["result"] = work()
        except BaseException as error:
            ended["error"] = error
        finally:
            finished.set()

    worker = threading.Thread(target=run, name="unkernel-distributed", daemon=True)
    worker.start()
    try:
        while not finished.wait(0.1):
            pass
    except BaseException:
        stopped.set()
        finished.wait()  # not join: a thread whose join was interrupted counts as ended in Python 3.11
        raise
    if "error" in ended and not isinstance(ended["error"], Interrupted):
        raise ended["error"]
    result: dict[str, Any] = ended["result"]
    return result
