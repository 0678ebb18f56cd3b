"""Score and classify single records with little overhead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from unkernel._core import RecordScorer
from unkernel.engines.single_answers import (
    AnswerOne,
    SingleCalls,
    make_predict_one,
    make_predict_proba_one,
    make_score_one,
)
from unkernel.models import Decision


class PartialRecordScorer:
    """Scores records that share some columns, by adding the shared columns to each record.

    Parameters
    ----------
    scorer : RecordScorer
        The scorer of whole records.
    shared : dict
        The shared columns.
    """

    def __init__(self, scorer: RecordScorer, shared: dict[str, Any]) -> None:
        self._scorer = scorer
        self._shared = shared

    def score(self, columns: Any) -> Any:
        return self._scorer.score(self._merge(columns))

    def choose(self, columns: Any, zero_is_positive: bool) -> int:
        """Return the index of the largest score."""
        return int(self._scorer.choose(self._merge(columns), zero_is_positive))

    def choose_by_pairs(self, columns: Any, n_classes: int, by_sums: bool) -> int:
        """Return the index of the class with the most votes of pairs."""
        return int(self._scorer.choose_by_pairs(self._merge(columns), n_classes, by_sums))

    def sum_votes(self, columns: Any, n_classes: int) -> Any:
        """Return one number per class, computed from the votes and scores of pairs."""
        return self._scorer.sum_votes(self._merge(columns), n_classes)

    def _merge(self, columns: Any) -> dict[str, Any]:
        if not isinstance(columns, Mapping):
            raise TypeError(
                "a record is a dict of the columns that are not bound, not a value of type "
                f"{type(columns).__name__}"
            )
        check_not_shared(columns, self._shared)
        return self._shared | dict(columns)


class RecordCalls(SingleCalls):
    """Makes functions of a record; each function calls a scorer in the core once."""

    def __init__(self, scorer: RecordScorer | PartialRecordScorer) -> None:
        self._scorer = scorer

    @property
    def score(self) -> AnswerOne:
        return self._scorer.score

    def sum_votes(self, n_classes: int) -> AnswerOne:
        call = self._scorer.sum_votes
        return lambda record: call(record, n_classes)

    def choose(self, labels: list[Any], zero_is_positive: bool) -> AnswerOne:
        call = self._scorer.choose
        return lambda record: labels[call(record, zero_is_positive)]

    def choose_by_pairs(self, labels: list[Any], by_sums: bool) -> AnswerOne:
        call, count = self._scorer.choose_by_pairs, len(labels)
        return lambda record: labels[call(record, count, by_sums)]

    def convert(self, function: Callable[[Any], Any]) -> AnswerOne:
        call = self._scorer.score
        return lambda record: function(call(record))


def check_probabilities(classifier: RecordAnswers) -> None:
    """Raise an ``AttributeError`` with the reason if the classifier has no probabilities."""
    _ = classifier._row_classifier.predict_proba


class RecordAnswers:
    """Base class of classifiers that score and classify single records."""

    decision: Decision

    @property
    def _row_classifier(self) -> Any:
        """The compiled classifier of rows."""
        raise NotImplementedError

    @property
    def _scorer(self) -> RecordScorer | PartialRecordScorer:
        """The scorer of records."""
        raise NotImplementedError

    @cached_property
    def score_one(self) -> AnswerOne:
        """Compute the decision function of one record: ``score_one(record)``.

        A record is a dict, or a list of one value per column. After ``bind``, a record is a dict of the
        columns that are not shared. The parameter ``unknown_keys`` of :func:`unkernel.compile` determines
        whether unknown columns are ignored or raise an error.
        """
        return make_score_one(RecordCalls(self._scorer), self.decision)

    @cached_property
    def predict_one(self) -> AnswerOne:
        """Predict the class of one record: ``predict_one(record)``.

        For several labels or outputs, the result is a list, as a row of ``predict``.
        """
        return make_predict_one(RecordCalls(self._scorer), self.decision)

    @cached_property
    def predict_proba_one(self) -> AnswerOne:
        """Predict the probability of each class for one record: ``predict_proba_one(record)``.

        The probabilities are a list in the order of ``classes_``, or for several outputs one such list for
        each output. If a model has no probabilities, it does not have this attribute.
        """
        check_probabilities(self)
        return make_predict_proba_one(RecordCalls(self._scorer), self.decision)


def check_not_shared(names: Any, shared: dict[str, Any]) -> None:
    """Raise a ``ValueError`` if one of the names is a shared column."""
    for name in names:
        if name in shared:
            raise ValueError(f"the column {name!r} is bound already: records must not have it")
