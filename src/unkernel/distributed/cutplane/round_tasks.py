"""The tasks of a round: losses on the line to new weights, and gradients of cuts.

A part stores its scores in the current round. A rebuilt part has no scores. It reports this, and then
receives the weights to recompute the scores from. Tasks may therefore run twice or late: a task either finds
the state of its round, or reports that the part does not have this state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Oracle, margin_oracle
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, pack_vector
from unkernel.distributed.cluster.row_parts import Part
from unkernel.distributed.cutplane.line_search import MarginDeficits, tabulate_line

_MAX_UPDATES = 32  # a gradient is recomputed after this many updates, which add rounding errors


class PartProblem(Protocol):
    """The facts about a problem that its parts need."""

    @property
    def name(self) -> str:
        """Return the unique name of the problem."""

    def losses_of(self, part: Part) -> Any:
        """Return the losses of the part's rows as functions of their scores."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss that is a sum over rows, for one positive class and the cost factors of all classes."""

    name: str
    classes: NDArray[Any]
    positive: int
    factors: Vector
    squared: bool

    def losses_of(self, part: Part) -> MarginLosses:
        """Return the losses of the rows."""
        codes = np.searchsorted(self.classes, part.labels).clip(max=len(self.classes) - 1)
        costs: Vector = np.where(codes == self.positive, 1.0, -1.0) * self.factors[codes]
        return MarginLosses(costs if part.weights is None else costs * part.weights, self.squared)


class MarginLosses:
    """Losses that are sums over rows. The sign of a row's cost is the row's label."""

    def __init__(self, signed_costs: Vector, squared: bool) -> None:
        self._signed_costs = signed_costs
        self._squared = squared
        oracle: Oracle = margin_oracle(signed_costs, squared=squared)
        self.along, self.cut = oracle.along, oracle.cut

    def table(self, here: Vector, there: Vector) -> Vector:
        """Return the table of the losses on a line."""
        return tabulate_line(MarginDeficits.between(here, there, self._signed_costs), self._squared)


@dataclass(frozen=True, eq=False)
class Round:
    """The round of a request: the line from the current weights to the new ones."""

    problem: PartProblem
    number: int  # counted from 1
    moved: float  # the step that was taken on the line of the previous round


@dataclass(eq=False)
class RoundState:
    """The scores of a part in a round, and its last gradient."""

    problem: PartProblem
    losses: Any  # the losses of the problem
    round: int
    here: Vector
    there: Vector
    coefficients: Vector | None = None  # the coefficients of the last cut
    gradient: Vector | None = None
    updates: int = 0


def tabulate_losses(part: Part, now: Round, there: PackedVector) -> Answer:
    """Begin a round with the new weights `there`; return the table of losses on the line to them."""
    with part.lock:
        state = find_state(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        return Answer(pack_vector(state.losses.table(state.here, state.there)))


def restore_scores(part: Part, now: Round, here: PackedVector, there: PackedVector) -> None:
    """Compute the scores at both ends of the line for a part that has lost them."""
    with part.lock:
        ends = part.scores(here.unpack()), part.scores(there.unpack())
        part.state = _new_state(part, now, *ends)


def compute_losses_at_steps(
    part: Part, now: Round, steps: Vector, there: PackedVector | None = None
) -> Answer:
    """Return the values, then the slopes, of the losses at the given steps. New weights begin a round."""
    with part.lock:
        state = find_state(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        points = [state.losses.along(state.here, state.there, step, part.threads) for step in steps.tolist()]
        return Answer(pack_vector(np.array(points).T.ravel()))


def compute_cut_at_step(part: Part, now: Round, step: float, there: PackedVector | None = None) -> Answer:
    """Return the gradient of the cut at a step, followed by its offset. New weights begin a round."""
    with part.lock:
        state = find_state(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        offset, coefficients = state.losses.cut(state.here, state.there, step, part.threads)
        gradient = _update_gradient(part, state, np.asarray(coefficients))
        return Answer(pack_vector(np.append(gradient, offset)))


def find_state(part: Part, now: Round, there: PackedVector | None = None) -> RoundState | None:
    """Return the state of a part in a round; None if its scores are lost. New weights begin the round."""
    state: RoundState | None = part.state
    if state is not None and state.problem.name != now.problem.name:
        state = None
    if state is not None and state.round == now.number:
        return state
    if there is None:
        return None
    if now.number == 1:  # training begins at w = 0
        part.state = state = _new_state(part, now, np.zeros(len(part.labels)), part.scores(there.unpack()))
        return state
    if state is None or state.round != now.number - 1:
        return None
    new_there = part.scores(there.unpack())
    state.here = state.here + now.moved * (state.there - state.here)
    state.there, state.round = new_there, now.number
    return state


def _new_state(part: Part, now: Round, here: Vector, there: Vector) -> RoundState:
    return RoundState(now.problem, now.problem.losses_of(part), now.number, here, there)


def _update_gradient(part: Part, state: RoundState, coefficients: Vector) -> Vector:
    """Return X'c. If few coefficients differ from those of the last cut, read only their rows."""
    last_coefficients, gradient = state.coefficients, state.gradient
    changes = None if last_coefficients is None else coefficients - last_coefficients
    if changes is not None and gradient is not None and _is_update_cheaper(state, changes, coefficients):
        gradient = gradient + part.combine(changes)
        state.updates += 1
    else:
        gradient = part.combine(coefficients)
        state.updates = 0
    state.coefficients, state.gradient = coefficients, gradient
    return gradient


def _is_update_cheaper(state: RoundState, changes: Vector, coefficients: Vector) -> bool:
    has_few_changes = np.count_nonzero(changes) < np.count_nonzero(coefficients)
    return bool(has_few_changes) and state.updates < _MAX_UPDATES
