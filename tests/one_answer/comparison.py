"""Compares the answers of all interfaces to generated records."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from one_answer import values
from one_answer.answers import Outcome, Refusal, refusal_of
from one_answer.commands import APART, WAYS_OF_THE_COMMAND_LINE
from one_answer.limits import CannotSayError, is_utf8
from one_answer.requests import WAYS_OF_THE_SERVER
from one_answer.subjects import Subject, draw_subject
from one_answer.ways import DASK, WAYS_OF_PYTHON, Record, Session, Way, ask_one

RECORDS = 10  # per model
EVERY_DASK, EVERY_PROCESS = 10, 200  # one in this many models is predicted this way
WAYS = [*WAYS_OF_PYTHON, *WAYS_OF_THE_SERVER, *WAYS_OF_THE_COMMAND_LINE]


@dataclass(frozen=True)
class Difference:
    """A record with a different answer by one interface."""

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
    """Draw records for a model: some have wrong values, missing columns, or unknown ones."""
    awkward = rng.random() < 0.5
    missing, wrong = (0.15, 0.08) if awkward else (0.05, 0.0)
    dropped = {name for name in subject.kinds if awkward and rng.random() < 0.05}
    result = []
    for _ in range(RECORDS):
        record = {
            name: values.value(rng, kind, missing=missing, wrong=wrong)
            for name, kind in subject.kinds.items()
            if name not in dropped and (subject.whole or rng.random() > missing / 3)
        }
        if subject.whole:
            record = {"text": record.get("text", "")}
        elif awkward and rng.random() < 0.15:
            record["unknown é"] = values.value(
                rng, values.pick(rng, list(values.DRAWN)), missing=0.1, wrong=0.2
            )
        result.append(record)
    return result


def differences(session: Session, way: Way, records: list[Record]) -> Iterator[Difference]:
    """Yield the records, predicted together, whose answers differ from those of ``predict_one``."""
    if not records or (session.subject.whole and not way.takes_whole):
        return
    try:
        message = way.say(session, records)
    except CannotSayError:
        if len(records) > 1:  # possibly not neighbours
            for record in records:
                yield from differences(session, way, [record])
        return
    judge = session.of_files if way.none_is_nan else session.model
    expected = [ask_one(judge, item) for item in session.items(message)]
    refused = [one for one, answer in zip(records, expected, strict=True) if isinstance(answer, Refusal)]
    if refused and len(records) > 1:  # one refused record leaves the others without an answer
        for part in ([record for record in records if record not in refused], *([one] for one in refused)):
            yield from differences(session, way, part)
        return
    for record, wanted, found in zip(
        message, expected, predict_or_refuse(session, way, message), strict=True
    ):
        if wanted != found and not (
            isinstance(found, Refusal)
            and isinstance(wanted, Refusal)
            and found in all_refusals(judge, session, record)
        ):
            yield Difference(way.name, session.subject.name, record, len(message) - 1, wanted, found)


def all_refusals(judge: Any, session: Session, record: Record) -> list[Refusal]:
    """Return all faults of a record, because interfaces check columns in different orders.

    A refused column gets a valid value, until all other columns have been checked.
    """
    result: list[Refusal] = []
    for _ in range(len(session.subject.kinds) + len(record)):
        outcome = ask_one(judge, session.items([record])[0])
        if not isinstance(outcome, Refusal) or outcome in result:
            break
        result.append(outcome)
        named = _column_of(outcome, record)
        if named in session.subject.kinds:
            record = record | {named: values.ORDINARY[session.subject.kinds[named]]}
        else:
            record = {name: value for name, value in record.items() if name != named}
    return result


def _column_of(refusal: Refusal, record: Record) -> str | None:
    """Return the column that a refusal refers to."""
    if found := re.search(r"(?:column|unknown) '(.*?)'", refusal.reason):
        return found[1]
    if "lone surrogate" in refusal.reason:
        return next(
            (name for name, value in record.items() if isinstance(value, str) and not is_utf8(value)), None
        )
    large = (name for name, value in record.items() if isinstance(value, int) and abs(value) > 1e308)
    return next(large, None)


def predict_or_refuse(session: Session, way: Way, said: list[Record]) -> list[Outcome | str]:
    """Return the answers of an interface, or the reason why there are none."""
    try:
        return list(way.ask(session, said))
    except (ValueError, TypeError) as error:
        return [refusal_of(error)] * len(said)
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"] * len(said)


def smallest(session: Session, way: Way, records: list[Record]) -> Difference:
    """Return the first difference, reduced to as few records and columns, and as short texts, as possible."""
    found = next(differences(session, way, records))
    shrunk = True
    while shrunk:
        shrunk = False
        for fewer in _smaller(records):
            less = next(differences(session, way, fewer), None)
            if less is not None:
                found, records, shrunk = less, fewer, True
                break
    return found


def _smaller(records: list[Record]) -> Iterator[list[Record]]:
    for place, record in enumerate(records):
        others = records[:place], records[place + 1 :]
        if len(records) > 1:
            yield [*others[0], *others[1]]
        for name, value in record.items():
            if len(record) > 1:
                yield [*others[0], {key: record[key] for key in record if key != name}, *others[1]]
            if isinstance(value, str | list) and len(value) > 1:
                for half in (value[: len(value) // 2], value[len(value) // 2 :]):
                    yield [*others[0], record | {name: half}, *others[1]]


def run_model(number: int, seed: int = 0) -> Iterator[Difference]:
    """Compare the answers of one generated model to generated records by all interfaces.

    Parameters
    ----------
    number, seed : int
        These draw the same model and records again.

    Yields
    ------
    Difference
        At most one for each interface, as small as possible.
    """
    rng = np.random.default_rng([seed, number])
    subject = draw_subject(rng)
    records = draw_records(rng, subject)
    ways = [*WAYS, *[DASK] * (number % EVERY_DASK == 0), *[APART] * (number % EVERY_PROCESS == 1)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(subject, Path(folder))
        try:
            for way in ways:
                if next(differences(session, way, records), None) is not None:
                    yield smallest(session, way, records)
        finally:
            session.close()
