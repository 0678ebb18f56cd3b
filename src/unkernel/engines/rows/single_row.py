"""Score and classify single rows with little overhead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unkernel._core import Engine, Worker
from unkernel.engines.single_answers import AnswerOne, SingleCalls, make_predict_one, make_score_one
from unkernel.models import Decision


class RowCalls(SingleCalls):
    """Makes functions of the ids and values of a row; each function calls a worker in the core once."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def score(self) -> AnswerOne:
        return self._worker.score_one

    def sum_votes(self, n_classes: int) -> AnswerOne:
        call = self._worker.sum_votes_of_one
        return lambda ids, values=None: call(ids, values, n_classes)

    def choose(self, labels: list[Any], zero_is_positive: bool) -> AnswerOne:
        call = self._worker.choose_one
        return lambda ids, values=None: labels[call(ids, values, zero_is_positive)]

    def choose_by_pairs(self, labels: list[Any], by_sums: bool) -> AnswerOne:
        call, count = self._worker.choose_one_by_pairs, len(labels)
        return lambda ids, values=None: labels[call(ids, values, count, by_sums)]

    def convert(self, function: Callable[[Any], Any]) -> AnswerOne:
        call = self._worker.score_one
        return lambda ids, values=None: function(call(ids, values))


class OneRowScorer:
    """Scorer of single rows with its own buffers; use one per thread.

    ``CompiledClassifier.worker`` makes such scorers.

    Parameters
    ----------
    engine : Engine
        The compiled engine.
    decision : Decision
        The rule that turns scores into predictions.

    Attributes
    ----------
    score_one : callable
        ``score_one(ids, values=None)`` computes the decision function of one row.
    predict_one : callable
        ``predict_one(ids, values=None)`` predicts the class of one row.

    See Also
    --------
    unkernel.CompiledClassifier.worker : Make a scorer.

    Examples
    --------
    >>> from unkernel import PolySVC, compile
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> worker = compile(PolySVC(C=10, gamma=1).fit(X, y)).worker()
    >>> worker.predict_one([1])
    1
    """

    def __init__(self, engine: Engine, decision: Decision) -> None:
        calls = RowCalls(engine.worker())
        self.score_one = make_score_one(calls, decision)
        self.predict_one = make_predict_one(calls, decision)
