"""Count the answers of a model by class or, for numbers, by interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np

from unkernel._core import JsonShape
from unkernel.models import Decision
from unkernel.models.several_outputs import MULTI_LABEL
from unkernel.records.training_counts import TrainingCounts

MAX_LABELS = 50  # largest number of classes, or of columns, with a time series of their own
OTHER_CLASSES = "(other classes)"
_encode = msgspec.json.Encoder().encode
_START = b'{"prediction":'  # the first bytes of every answer


class _Answer(msgspec.Struct):
    prediction: Any = None  # None if a line has an error instead of an answer


_decode_one = msgspec.json.Decoder(_Answer).decode
_decode_list = msgspec.json.Decoder(list[_Answer]).decode
_decode_lines = msgspec.json.Decoder(_Answer).decode_lines


class AnswerCounter(ABC):
    """Counts answers by label.

    Attributes
    ----------
    names : sequence of str
        The labels, a bounded number.
    training_shares : dict of str to float
        The share of each label among the targets of the training records; empty if it is unknown.
    """

    names: Sequence[str]
    training_shares: dict[str, float]

    @abstractmethod
    def count_predictions(self, predictions: Iterable[Any]) -> dict[str, int]:
        """Count predictions by label."""

    def count_json(self, text: bytes, shape: JsonShape) -> tuple[int, dict[str, int]]:
        """Return the number of answers in a response, and their numbers by label."""
        answers = {
            JsonShape.ONE: lambda: [_decode_one(text)],
            JsonShape.LIST: lambda: _decode_list(text),
            JsonShape.LINES: lambda: _decode_lines(text),
        }[shape]()
        predictions = [answer.prediction for answer in answers if answer.prediction is not None]
        return len(predictions), self.count_predictions(predictions)


class _ClassCounter(AnswerCounter):
    """Counts answers by class."""

    def __init__(self, decision: Decision, training: TrainingCounts | None) -> None:
        labels = decision.classes.tolist()
        counts = _get_class_counts(labels, training)
        listed = labels
        if len(labels) > MAX_LABELS:  # list the classes that were most frequent in training
            listed = sorted(labels, key=lambda label: -counts.get(str(label), 0))[: MAX_LABELS - 1]
        name_by_label = {label: str(label) for label in listed}
        self._name_by_label = {label: name_by_label.get(label, OTHER_CLASSES) for label in labels}
        self.names = list(dict.fromkeys(self._name_by_label.values()))
        self.training_shares = dict.fromkeys(self.names, 0.0) if counts else {}
        for label in labels if counts else ():
            self.training_shares[self._name_by_label[label]] += counts[str(label)] / sum(counts.values())
        self._second: bytes | None = None  # the start of an answer of the second of two classes
        if len(labels) == 2:
            self._first_name, self._second_name = map(str, labels)
            self._second = _START + _encode(labels[1]) + b","

    def count_predictions(self, predictions: Iterable[Any]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for label, count in Counter(predictions).items():
            name = self._name_by_label.get(label, OTHER_CLASSES)
            counts[name] = counts.get(name, 0) + count
        return counts

    def count_json(self, text: bytes, shape: JsonShape) -> tuple[int, dict[str, int]]:
        if self._second is None:
            return super().count_json(text, shape)
        # Search for the starts of answers, which is faster than decoding. No label contains such a start,
        # because JSON escapes its quotes.
        total, second = text.count(_START), text.count(self._second)
        return total, {self._first_name: total - second, self._second_name: second}


class _LabelCounter(_ClassCounter):
    """Counts labels. An answer has any number of labels, so labels are not shares of the answers."""

    def __init__(self, decision: Decision, training: TrainingCounts | None) -> None:
        super().__init__(decision, training)
        self._second = None

    def count_predictions(self, predictions: Iterable[Any]) -> dict[str, int]:
        return super().count_predictions(chain.from_iterable(predictions))


def _get_class_counts(labels: list[Any], training: TrainingCounts | None) -> dict[str, int]:
    """Return the number of training records of each class; nothing if other classes were counted."""
    counts = {} if training is None else dict(training.classes)
    return counts if counts.keys() == set(map(str, labels)) else {}


class _IntervalCounter(AnswerCounter):
    """Counts numbers by the intervals between the deciles of the training targets."""

    def __init__(self, training: TrainingCounts) -> None:
        self._bounds = np.array(training.bounds)
        edges = ["-inf", *map(_format_bound, training.bounds), "inf"]
        self.names = [f"({low}, {high}]" for low, high in pairwise(edges)]
        self.training_shares = {
            name: count / max(training.n_records, 1)
            for name, count in zip(self.names, training.interval_counts, strict=True)
        }

    def count_predictions(self, predictions: Iterable[Any]) -> dict[str, int]:
        places = np.searchsorted(self._bounds, np.fromiter(predictions, np.float64))
        counts = np.bincount(places, minlength=len(self.names)).tolist()
        return dict(zip(self.names, counts, strict=True))


class _PlainCounter(AnswerCounter):
    """Counts answers without labels."""

    names: Sequence[str] = ()

    def __init__(self) -> None:
        self.training_shares = {}

    def count_predictions(self, predictions: Iterable[Any]) -> dict[str, int]:
        return {}


def _format_bound(bound: float) -> str:
    """Return a number as text, without a point if it is whole."""
    return str(int(bound)) if bound.is_integer() and abs(bound) < 1e15 else repr(bound)


def make_answer_counter(decision: Decision, training: TrainingCounts | None) -> AnswerCounter:
    """Return a counter of a model's answers."""
    if decision.scheme == MULTI_LABEL:
        return _LabelCounter(decision, None)
    if len(decision.classes) and not decision.ranking:
        return _ClassCounter(decision, training)
    if training is not None and training.bounds and not decision.ranking and not decision.outputs:
        return _IntervalCounter(training)
    return _PlainCounter()
