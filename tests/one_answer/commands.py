"""Predictions by the command line: CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from one_answer.answers import Answer, row_of_labels
from one_answer.limits import CannotExpressError, Limit, csv_value
from one_answer.requests import express_in_json, write_escaped_json, write_plain_json
from one_answer.ways import Record, Session, Way, list_columns, make_arrow_table
from unkernel import cli
from unkernel.records.files.columns import infer_column_types, list_read_columns


def run_here(arguments: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its exit code and stderr."""
    errors = io.StringIO()
    with redirect_stderr(errors), redirect_stdout(io.StringIO()):
        code = cli.main(arguments)
    return code, errors.getvalue()


def run_apart(arguments: list[str]) -> tuple[int, str]:
    """Run a command in a separate process."""
    completed = subprocess.run(
        [sys.executable, "-m", "unkernel", *arguments], capture_output=True, check=False
    )
    return completed.returncode, completed.stderr.decode()


def predict(session: Session, data: Path, run: Any, answers: str = "answers.jsonl") -> list[Answer]:
    """Return the answers in the file that ``unkernel predict`` writes."""
    output = session.folder / answers
    arguments = ["predict", str(session.file), str(data), "-o", str(output), "--scores", "--force", "-q"]
    code, message = run(arguments + (["--probability"] if session.has_probabilities else []))
    if code:
        raise ValueError(_reason(message, data))
    rows = _rows_of(output)
    result = []
    for row in rows:
        label = _read_prediction(session.model, row)
        scores = [value for name, value in row.items() if name.startswith("score")]
        shares = [value for name, value in row.items() if name.startswith("probability")]
        result.append(Answer.from_parts(label, scores, shares if session.has_probabilities else None))
    return result


def _read_prediction(model: Any, row: dict[str, Any]) -> Any:
    """Return the prediction in a line of CSV or JSON as `predict_one` returns it."""
    decision = model.decision
    if not decision.outputs:
        label = row["prediction"]
        classes = {str(label): label for label in decision.classes.tolist()}
        return classes[str(label)] if classes else float(label)  # regressions have no classes
    if "prediction" in row:  # JSON
        return row_of_labels(model, row["prediction"])
    cells = [value for name, value in row.items() if name.startswith("prediction ")]
    if decision.predicts_numbers:
        return list(map(float, cells))
    classes_of_outputs = [output.classes.tolist() for output in decision.outputs]
    return [
        {str(label): label for label in classes}[cell]
        for classes, cell in zip(classes_of_outputs, cells, strict=True)
    ]


def _rows_of(output: Path) -> list[dict[str, Any]]:
    if output.suffix == ".jsonl":
        return [json.loads(line) for line in output.read_text().splitlines()]
    with output.open(newline="") as file:
        return [
            {name: cell if name.startswith("prediction") else float(cell) for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]


def _reason(message: str, data: Path) -> str:
    """Return the reason in a command's message, without the names of the command and the file."""
    words = " ".join(message.split())
    return words.removeprefix("unkernel: ").removeprefix("error: ").removeprefix(f"{data}:")


def _read_columns(session: Session, records: list[Record]) -> list[str]:
    """Return all columns of the model and of the records, which tables must have."""
    return list(dict.fromkeys([*list_read_columns(session.model.plan), *list_columns(records)]))


# --- CSV ----------------------------------------------------------------------------------------------


def express_in_csv(session: Session, records: list[Record]) -> list[Record]:
    """Return the records as read from CSV: cells are texts, and the type of a column gives their meaning.

    An empty cell is missing.
    """
    types = infer_column_types(session.model.plan)
    names = _read_columns(session, records)
    return [{name: csv_value(record.get(name), types.get(name)) for name in names} for record in records]


def _write_csv(path: Path, records: list[Record]) -> None:
    names = list_columns(records)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(
            [["" if record[name] is None else record[name] for name in names] for record in records]
        )


def _ask_csv(session: Session, records: list[Record]) -> list[Answer]:
    path = session.folder / "records.csv"
    _write_csv(path, records)
    return predict(session, path, run_here, "answers.csv")


# --- JSON lines ---------------------------------------------------------------------------------------


def _ask_lines(session: Session, records: list[Record], run: Any = run_here) -> list[Answer]:
    path = session.folder / "records.jsonl"
    lines = [
        (write_escaped_json if number % 2 else write_plain_json)(record)
        for number, record in enumerate(records)
    ]
    path.write_bytes(b"\n".join(lines))
    return predict(session, path, run)


# --- Parquet ------------------------------------------------------------------------------------------


def _write_parquet(session: Session, records: list[Record]) -> Path:
    names = _read_columns(session, records)
    table = make_arrow_table([{name: record.get(name) for name in names} for record in records])
    path = session.folder / "records.parquet"
    try:
        pq.write_table(table, path)
    except (pa.ArrowException, UnicodeEncodeError):
        raise CannotExpressError(Limit.LIBRARY) from None
    return path


def express_in_parquet(session: Session, records: list[Record]) -> list[Record]:
    result: list[Record] = pq.read_table(_write_parquet(session, records)).to_pylist()
    return result


def _ask_parquet(session: Session, records: list[Record]) -> list[Answer]:
    return predict(session, _write_parquet(session, records), run_here)


WAYS_OF_THE_COMMAND_LINE = [
    Way("predict of CSV", _ask_csv, express_in_csv, none_is_nan=True),
    Way("predict of JSON lines", _ask_lines, express_in_json, none_is_nan=True),
    Way("predict of Parquet", _ask_parquet, express_in_parquet, none_is_nan=True),
]
APART = Way(
    "predict in a process of its own",
    lambda session, records: _ask_lines(session, records, run_apart),
    express_in_json,
    none_is_nan=True,
)
