"""Answers and refusals, in a form that can be compared to the last bit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from unkernel.serve.errors import make_input_error

_PLACE = re.compile(r"^(\[\d+\]|row \d+|record \d+|\d+(:\d+)?): ?")
LONE_SURROGATE = "the string has a lone surrogate, which is no character"
TOO_LARGE = "the number is larger than any float"
# Messages about a record, a table and a file differ; these patterns map them to one reason.
_SAME_REASON = {
    r"(?:the record|the table|record \d+) has no column '(.*?)'": r"there is no column '\1'",
    r"columns are missing: ([^,]+).*": r"there is no column '\1'",
    r"(?:the record|the table|record \d+) has a column '(.*)' that the model does not know": r"unknown '\1'",
    r".*the model \S+ does not know the column '(.*)'": r"unknown '\1'",
    r".*lone surrogate.*": LONE_SURROGATE,  # with or without the name of a column
    r"inputs\[\d+\]\.data: a value does not fit FP64": TOO_LARGE,
    r"column '.*': the number is larger than any float": TOO_LARGE,
    r"column '(.*)': a list must hold strings.*": r"column '\1': a list must hold strings",
    r"a score is not finite: .*": "a score is not finite",
}


@dataclass(frozen=True)
class Answer:
    """A label, scores and probabilities; numbers are stored as text with all bits.

    For several labels or outputs, the label is a row of ``predict``.
    """

    label: Any
    scores: tuple[str, ...]
    probabilities: tuple[str, ...] | None

    @classmethod
    def from_parts(cls, label: Any, scores: Any, probabilities: Any) -> Answer:
        label = label.item() if isinstance(label, np.generic) else label
        return cls(label, _bits(scores), None if probabilities is None else _bits(probabilities))


@dataclass(frozen=True)
class Refusal:
    """The reason why a record has no answer, without its place in a table, a request or a file."""

    reason: str


Outcome = Answer | Refusal


def _bits(numbers: Any) -> tuple[str, ...]:
    return tuple(float(number).hex() for number in np.asarray(numbers, dtype=np.float64).reshape(-1))


def read_refusal(error: Exception | str) -> Refusal:
    """Return the refusal that an error or a message describes, in the words of errors about JSON."""
    # Commands replace unprintable characters, and print everything on one line.
    words = re.sub(r"[\t\r\n]", " ", str(error))
    words = "".join(word if word.isprintable() else repr(word)[1:-1] for word in words)
    words = " ".join(words.split())
    while match := _PLACE.match(words):
        words = words[match.end() :]
    words = make_input_error(ValueError(words)).reason
    for pattern, reason in _SAME_REASON.items():
        if match := re.fullmatch(pattern, words):
            return Refusal(match.expand(reason))
    return Refusal(words)


def list_answers(model: Any, labels: Any, scores: Any, probabilities: Any) -> list[Answer]:
    """Return the answers in arrays of one row per record."""
    labels = np.asarray(labels).tolist()
    scores = np.asarray(scores).reshape(len(labels), -1) if len(labels) else []
    if isinstance(probabilities, list):  # of several outputs
        probabilities = np.concatenate(probabilities, axis=1)
    shares = [None] * len(labels) if probabilities is None else list(np.asarray(probabilities))
    return [Answer.from_parts(*answer_parts) for answer_parts in zip(labels, scores, shares, strict=True)]


def answer_of_json(model: Any, answer: dict[str, Any]) -> Answer:
    """Return the answer from a JSON response of the server."""
    shares = answer.get("probabilities")
    if shares is not None:
        shares = _list_shares(shares, model.classes_)
    return Answer.from_parts(row_of_labels(model, answer["prediction"]), answer["score"], shares)


def _list_shares(shares: Any, classes: Any) -> list[float]:
    if isinstance(classes, list):  # of several outputs
        return [
            share for part, names in zip(shares, classes, strict=True) for share in _list_shares(part, names)
        ]
    return [shares[str(label)] for label in classes.tolist()]


def row_of_labels(model: Any, prediction: Any) -> Any:
    """Return a prediction in JSON as a row of ``predict``: labels become 0 or 1 for each label."""
    if model.decision.scheme != "multi_label":
        return prediction
    labels = model.classes_.tolist()
    assert set(prediction) <= set(labels)
    return [int(label in prediction) for label in labels]


def flat_shares(shares: Any) -> Any:
    """Return the probabilities of all outputs in one list."""
    has_outputs = bool(shares) and isinstance(shares[0], list)
    return [share for part in shares for share in part] if has_outputs else shares
