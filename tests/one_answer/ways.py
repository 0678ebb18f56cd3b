"""Interfaces of models in Python: one record, lists, columns, frames, Arrow tables, Dask partitions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import unkernel
from one_answer.answers import Answer, Outcome, flat_shares, list_answers, read_refusal
from one_answer.limits import CannotExpressError, Limit
from one_answer.server import ServedModel
from one_answer.subjects import Subject
from one_answer.values import ORDINARY
from unkernel.engines.records.classifier import RecordClassifier

Record = dict[str, Any]


class Session:
    """A model, its file, the model loaded from the file, and a server of the file."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self.subject = subject
        self.model = subject.model
        self.folder = folder
        self.file = folder / "model.uk"
        self.model.save(self.file)

    @cached_property
    def reloaded(self) -> RecordClassifier:
        return unkernel.load(self.file)

    @cached_property
    def of_files(self) -> RecordClassifier:
        """Return the model with null as NaN, which is how files and requests use it."""
        return RecordClassifier(self.model.plan.with_none_as_nan(), self.model.classifier)

    @cached_property
    def explains(self) -> bool:
        """Return whether the model can be explained at all."""
        record = {name: ORDINARY[kind] for name, kind in self.subject.kinds.items()}
        try:
            self.model.explain_one(*self.items([record]))
        except ValueError:
            return False
        return True

    @cached_property
    def server(self) -> ServedModel:
        return ServedModel(self.file, self.model)

    @property
    def has_probabilities(self) -> bool:
        return bool(self.model.decision.has_probabilities)

    def items(self, records: list[Record]) -> list[Any]:
        """Return the arguments of ``predict_one``: the records, or their texts if the model takes texts."""
        return [record["text"] for record in records] if self.subject.whole else records

    def close(self) -> None:
        if "server" in self.__dict__:
            self.server.close()


def ask_one(model: Any, item: Any) -> Outcome:
    """Return the answer of the methods for one record, the reference for all interfaces."""
    try:
        shares = model.predict_proba_one(item) if hasattr(model, "predict_proba_one") else None
        return Answer.from_parts(model.predict_one(item), model.score_one(item), flat_shares(shares))
    except (ValueError, TypeError) as error:
        return read_refusal(error)


def ask_many(model: Any, X: Any, **options: Any) -> list[Answer]:
    """Return the answers of the methods for tables."""
    shares = model.predict_proba(X, **options) if hasattr(model, "predict_proba") else None
    labels, scores = model.predict(X, **options), model.decision_function(X, **options)
    return list_answers(model, labels, scores, shares)


@dataclass(frozen=True)
class Way:
    """An interface.

    Attributes
    ----------
    name : str
    ask : callable
        Returns the answers to records in the form of ``express``, or raises an error.
    express : callable
        Returns the records after a round trip through the interface's format, read by a reader that is not
        ours; raises a CannotExpressError if the format cannot express a record.
    none_is_nan : bool
        Whether the interface reads null as NaN where the model distinguishes None and NaN.
    takes_whole : bool
        Whether the interface supports models of texts without columns.
    """

    name: str
    ask: Callable[[Session, list[Record]], list[Answer]]
    express: Callable[[Session, list[Record]], list[Record]]
    none_is_nan: bool = False
    takes_whole: bool = False


# --- Records as formats express them ------------------------------------------------------------------


def express_as_it_is(session: Session, records: list[Record]) -> list[Record]:
    return records


def list_columns(records: list[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


def add_missing_cells(session: Session, records: list[Record]) -> list[Record]:
    """Return records with a value for every column of the table; missing values are None."""
    names = list_columns(records)
    if not names:
        raise CannotExpressError(Limit.NO_COLUMNS)
    return [{name: record.get(name) for name in names} for record in records]


def express_by_position(session: Session, records: list[Record]) -> list[Record]:
    """Return the records reduced to exactly the model's columns, so that they can be written as lists."""
    return [{name: record.get(name) for name in session.model.plan.columns} for record in records]


def make_frame(records: list[Record]) -> Any:
    """Return a frame whose columns have the types that pandas infers."""
    if not list_columns(records):
        raise CannotExpressError(Limit.NO_COLUMNS)
    try:
        return pd.DataFrame(records)
    except (OverflowError, ValueError, UnicodeEncodeError):
        raise CannotExpressError(Limit.LIBRARY) from None


def express_in_frame(session: Session, records: list[Record]) -> list[Record]:
    return _list_records(make_frame(records))


def _list_records(frame: Any) -> list[Record]:
    columns = {name: frame[name].astype(object).tolist() for name in frame.columns}
    return [{name: columns[name][row] for name in columns} for row in range(len(frame))]


def make_frame_of_objects(records: list[Record]) -> Any:
    names = list_columns(records)
    return pd.DataFrame(
        {name: pd.Series([record.get(name) for record in records], dtype=object) for name in names}
    )


def make_arrow_table(records: list[Record]) -> Any:
    names = list_columns(records)
    if not names:
        raise CannotExpressError(Limit.NO_COLUMNS)
    if any(isinstance(value, dict) for record in records for value in record.values()):
        raise CannotExpressError(Limit.STRUCT)
    lists = [value for record in records for value in record.values() if isinstance(value, list)]
    if not all(isinstance(item, str) for value in lists for item in value):
        raise CannotExpressError(Limit.LIST)
    try:
        return pa.table({name: pa.array([record.get(name) for record in records]) for name in names})
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
        raise CannotExpressError(Limit.LIBRARY) from None


def express_in_arrow(session: Session, records: list[Record]) -> list[Record]:
    result: list[Record] = make_arrow_table(records).to_pylist()
    return result


def vary_layout(table: Any) -> Any:
    """Return a table in two batches, with strings in other layouts of Arrow."""
    columns = {}
    for number, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_string(column.type):
            column = column.cast([pa.large_string(), pa.string_view(), column.type][number % 3])
            column = column if number % 3 < 2 else column.dictionary_encode()
        columns[name] = column
    table = pa.table(columns)
    return pa.concat_tables([table.slice(0, 1), table.slice(1)])


# --- Predictions --------------------------------------------------------------------------------------


def _ask_by_position(session: Session, records: list[Record]) -> list[Answer]:
    outcomes = [ask_one(session.model, list(record.values())) for record in records]
    return [_raise_outcome(outcome) for outcome in outcomes]


def _raise_outcome(outcome: Outcome) -> Answer:
    if not isinstance(outcome, Answer):
        raise ValueError(outcome.reason)
    return outcome


def _ask_reloaded(session: Session, records: list[Record]) -> list[Answer]:
    return [_raise_outcome(ask_one(session.reloaded, item)) for item in session.items(records)]


def _ask_pickled(session: Session, records: list[Record]) -> list[Answer]:
    return ask_many(pickle.loads(pickle.dumps(session.model)), session.items(records))


def _ask_cached(session: Session, records: list[Record]) -> list[Answer]:
    cached = session.model.with_cache(64)
    items = session.items(records)
    ask_many(cached, items)
    return [_raise_outcome(ask_one(cached, item)) for item in items]


def _ask_rows(session: Session, records: list[Record]) -> list[Answer]:
    rows = session.model.transform(session.items(records))
    return ask_many(session.model.classifier, rows)


def _ask_columns(session: Session, records: list[Record]) -> list[Answer]:
    columns = {name: [record.get(name) for record in records] for name in list_columns(records)}
    return ask_many(session.model, columns)


def _make_dask_frame(records: list[Record]) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(make_frame(records), npartitions=2)


def express_in_dask(session: Session, records: list[Record]) -> list[Record]:
    """Return the records like Dask, which converts objects to strings."""
    try:
        return _list_records(_make_dask_frame(records).compute(scheduler="synchronous"))
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError, OverflowError):
        raise CannotExpressError(Limit.LIBRARY) from None


def _ask_dask(session: Session, records: list[Record]) -> list[Answer]:
    lazy = _make_dask_frame(records)
    model = session.model
    collections = [model.predict(lazy), model.decision_function(lazy)]
    is_lazy = model.decision.scheme != "multi_output"  # then the probabilities are a list of arrays
    collections += [model.predict_proba(lazy)] if session.has_probabilities and is_lazy else []
    labels, scores, *shares = (collection.compute(scheduler="synchronous") for collection in collections)
    if session.has_probabilities and not is_lazy:
        shares = [model.predict_proba(make_frame(records))]
    return list_answers(model, labels, scores, shares[0] if shares else None)


WAYS_OF_PYTHON = [
    Way("a list of values", _ask_by_position, express_by_position),
    Way("a reloaded file", _ask_reloaded, express_as_it_is, takes_whole=True),
    Way("a pickled model", _ask_pickled, express_as_it_is, takes_whole=True),
    Way("a cache of scores", _ask_cached, express_as_it_is, takes_whole=True),
    Way(
        "a list of records",
        lambda session, records: ask_many(session.model, session.items(records)),
        express_as_it_is,
        takes_whole=True,
    ),
    Way(
        "a list of records, two threads",
        lambda session, records: ask_many(session.model, session.items(records), n_jobs=2),
        express_as_it_is,
        takes_whole=True,
    ),
    Way("encoded rows", _ask_rows, express_as_it_is, takes_whole=True),
    Way("a dict of columns", _ask_columns, add_missing_cells),
    Way(
        "a frame of objects",
        lambda session, records: ask_many(session.model, make_frame_of_objects(records)),
        add_missing_cells,
    ),
    Way("a frame", lambda session, records: ask_many(session.model, make_frame(records)), express_in_frame),
    Way(
        "an Arrow table",
        lambda session, records: ask_many(session.model, make_arrow_table(records)),
        express_in_arrow,
    ),
    Way(
        "an Arrow table of other layouts",
        lambda session, records: ask_many(session.model, vary_layout(make_arrow_table(records))),
        express_in_arrow,
    ),
]
DASK = Way("a Dask data frame", _ask_dask, express_in_dask)
