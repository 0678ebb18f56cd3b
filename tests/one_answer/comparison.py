"""Compare the answers of all interfaces to generated records."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from one_answer import values
from one_answer.answers import Outcome, Refusal, read_refusal
from one_answer.commands import APART, WAYS_OF_THE_COMMAND_LINE
from one_answer.limits import CannotExpressError, is_utf8
from one_answer.requests import WAYS_OF_THE_SERVER
from one_answer.subjects import Subject, draw_subject
from one_answer.ways import DASK, WAYS_OF_PYTHON, Record, Session, Way, ask_one

RECORDS = 10  # per model
EVERY_DASK, EVERY_PROCESS = 10, 200  # one model in 10 is predicted by Dask, one in 200 by a process
WAYS = [*WAYS_OF_PYTHON, *WAYS_OF_THE_SERVER, *WAYS_OF_THE_COMMAND_LINE]


@dataclass(frozen=True)
class Difference:
    """A record to which one interface gives another answer than ``predict_one``."""

    way: str
    model: str
    record: Record
    beside: int
    expected: Outcome
    found: Outcome | str

    def __str__(self) -> str:
        return "\n  ".join(
            [
                f"{self.way}: another answer than predict_one's",
                f"record    {self.record!r}" + f", beside {self.beside} others" * (self.beside > 0),
                f"expected  {self.expected}",
                f"found     {self.found}",
                f"model     {self.model}",
            ]
        )


def draw_records(rng: values.Random, subject: Subject) -> list[Record]:
    """Draw records for a model; some have values of wrong types, missing columns or unknown columns."""
    is_awkward = rng.random() < 0.5
    p_missing, p_wrong = (0.15, 0.08) if is_awkward else (0.05, 0.0)
    dropped = {name for name in subject.kinds if is_awkward and rng.random() < 0.05}
    result = []
    for _ in range(RECORDS):
        record = {
            name: values.value(rng, kind, missing=p_missing, wrong=p_wrong)
            for name, kind in subject.kinds.items()
            if name not in dropped and (subject.whole or rng.random() > p_missing / 3)
        }
        if subject.whole:
            record = {"text": record.get("text", "")}
        elif is_awkward and rng.random() < 0.15:
            record["unknown é"] = values.value(
                rng, values.pick(rng, list(values.DRAWN)), missing=0.1, wrong=0.2
            )
        result.append(record)
    return result


def differences(session: Session, way: Way, records: list[Record]) -> Iterator[Difference]:
    """Yield the records, predicted together, whose answers differ from the answers of ``predict_one``."""
    if not records or (session.subject.whole and not way.takes_whole):
        return
    try:
        message = way.express(session, records)
    except CannotExpressError:
        if len(records) > 1:  # possibly not neighbours
            for record in records:
                yield from differences(session, way, [record])
        return
    reference_model = session.of_files if way.none_is_nan else session.model
    expected = [ask_one(reference_model, item) for item in session.items(message)]
    refused = [
        refused_record
        for refused_record, answer in zip(records, expected, strict=True)
        if isinstance(answer, Refusal)
    ]
    if refused and len(records) > 1:  # one refused record leaves the others without an answer
        for part in (
            [record for record in records if record not in refused],
            *([refused_record] for refused_record in refused),
        ):
            yield from differences(session, way, part)
        return
    for record, expected_answer, actual in zip(
        message, expected, predict_or_refuse(session, way, message), strict=True
    ):
        if expected_answer != actual and not (
            isinstance(actual, Refusal)
            and isinstance(expected_answer, Refusal)
            and actual in all_refusals(reference_model, session, record)
        ):
            yield Difference(
                way.name, session.subject.name, record, len(message) - 1, expected_answer, actual
            )


def all_refusals(reference_model: Any, session: Session, record: Record) -> list[Refusal]:
    """Return the refusals of all invalid columns, because interfaces check columns in different orders.

    A refused column gets a valid value, until all other columns have been checked.
    """
    result: list[Refusal] = []
    for _ in range(len(session.subject.kinds) + len(record)):
        outcome = ask_one(reference_model, session.items([record])[0])
        if not isinstance(outcome, Refusal) or outcome in result:
            break
        result.append(outcome)
        column = _find_column(outcome, record)
        if column in session.subject.kinds:
            record = record | {column: values.ORDINARY[session.subject.kinds[column]]}
        else:
            record = {name: value for name, value in record.items() if name != column}
    return result


def _find_column(refusal: Refusal, record: Record) -> str | None:
    """Return the column that a refusal refers to."""
    if match := re.search(r"(?:column|unknown) '(.*?)'", refusal.reason):
        return match[1]
    if "lone surrogate" in refusal.reason:
        return next(
            (name for name, value in record.items() if isinstance(value, str) and not is_utf8(value)), None
        )
    large = (name for name, value in record.items() if isinstance(value, int) and abs(value) > 1e308)
    return next(large, None)


def predict_or_refuse(session: Session, way: Way, records: list[Record]) -> list[Outcome | str]:
    """Return the answers of an interface, or the reason why there are none."""
    try:
        return list(way.ask(session, records))
    except (ValueError, TypeError) as error:
        return [read_refusal(error)] * len(records)
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"] * len(records)


def smallest(session: Session, way: Way, records: list[Record]) -> Difference:
    """Return the first difference, after removing all records, columns and text that it does not need."""
    difference = next(differences(session, way, records))
    has_shrunk = True
    while has_shrunk:
        has_shrunk = False
        for candidate in _smaller(records):
            smaller_difference = next(differences(session, way, candidate), None)
            if smaller_difference is not None:
                difference, records, has_shrunk = smaller_difference, candidate, True
                break
    return difference


def _smaller(records: list[Record]) -> Iterator[list[Record]]:
    for place, record in enumerate(records):
        neighbours = records[:place], records[place + 1 :]
        if len(records) > 1:
            yield [*neighbours[0], *neighbours[1]]
        for name, value in record.items():
            if len(record) > 1:
                yield [*neighbours[0], {key: record[key] for key in record if key != name}, *neighbours[1]]
            if isinstance(value, str | list) and len(value) > 1:
                for part in (value[: len(value) // 2], value[len(value) // 2 :]):
                    yield [*neighbours[0], record | {name: part}, *neighbours[1]]


def run_model(
    number: int, seed: int = 0, draw: Callable[[values.Random], Subject] = draw_subject
) -> Iterator[Difference]:
    """Compare the answers of one generated model to generated records by all interfaces.

    Parameters
    ----------
    number, seed : int
        These draw the same model and records again.
    draw : callable
        Draws the model.

    Yields
    ------
    Difference
        At most one for each interface, as small as possible.
    """
    rng = np.random.default_rng([seed, number])
    subject = draw(rng)
    records = draw_records(rng, subject)
    ways = [*WAYS, *[DASK] * (number % EVERY_DASK == 0), *[APART] * ((number + 1) % EVERY_PROCESS == 0)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(subject, Path(folder))
        try:
            for way in ways:
                if next(differences(session, way, records), None) is not None:
                    yield smallest(session, way, records)
        finally:
            session.close()
