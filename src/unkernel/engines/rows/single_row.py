"""Single rows: what a worker of the core and the decision of a model make of their scores, fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unkernel._core import Engine, Worker
from unkernel.models import Decision

_BY_SCORES = ("binary", "one_class", "one_vs_rest")  # the sign of the score, or the largest one, decides


class OneRowScorer:
    """Scorer of single rows with its own buffers; use one per thread.

    ``CompiledClassifier.worker`` makes such scorers.

    Parameters
    ----------
    engine : Engine
        The compiled engine.
    decision : Decision
        How scores become predictions.

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
        self._worker = engine.worker()
        self.score_one = score_by(self._worker, decision)
        self.predict_one = predict_by(self._worker, decision)


def score_by(worker: Worker, decision: Decision) -> Callable[..., Any]:
    """The function of ids and values that gives what ``decision_function`` says of the row."""
    score = worker.score_one
    if decision.decides_by_scores:
        found: Callable[..., Any] = score
        return found
    if decision.scheme == "one_vs_one":
        sums, count = worker.sum_votes_of_one, len(decision.classes)
        return lambda ids, values=None: sums(ids, values, count)
    return lambda ids, values=None: decision.decide(_as_table(score(ids, values)))[0].tolist()


def predict_by(worker: Worker, decision: Decision) -> Callable[..., Any]:
    """The function of ids and values that gives the class of the row."""
    classes = decision.classes.tolist()
    if decision.scheme in _BY_SCORES:
        choose, zero = worker.choose_one, bool(decision.zero_is_positive)
        return lambda ids, values=None: classes[choose(ids, values, zero)]
    if decision.scheme == "one_vs_one":
        by_pairs, count, by_sums = worker.choose_one_by_pairs, len(classes), decision.breaks_ties
        return lambda ids, values=None: classes[by_pairs(ids, values, count, by_sums)]
    score = worker.score_one
    if decision.scheme == "regression":
        found: Callable[..., Any] = score
        return found
    return lambda ids, values=None: decision.choose(_as_table(score(ids, values))).tolist()[0]


def _as_table(scores: Any) -> Any:
    return np.array([scores], dtype=np.float64).reshape(1, -1)
