"""Write predictions for records as CSV, TSV, JSON lines, or one label per line."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.cli.inputs.models import name_decisions, name_probabilities
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM, stdout_bytes
from unkernel.data.files import open_writer
from unkernel.models import Decision
from unkernel.models.several_outputs import list_predictions, name_columns
from unkernel.records.files import format_of

_DELIMITERS = {"csv": ",", "tsv": "\t", "lines": " "}
_CONTROL_CHARACTERS = re.compile(  # including surrogates, which UTF-8 cannot encode
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]"
)
_OTHER_SUFFIXES = (".json", ".xlsx", ".xls", ".feather", ".arrow", ".html")
Numbers = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Answers:
    """The content and the format of the predictions to write."""

    decision: Decision
    format: str  # "csv", "tsv", "jsonl", or "lines" for labels without a header
    scores: bool
    probability: bool

    @staticmethod
    def format_for(output: str, input_format: str) -> str:
        """Return the format that the name of the output implies; stdout has the format of the input."""
        format = format_of(output)
        if format == "parquet":
            raise ValueError(f"{output}: predictions are written as CSV, TSV or JSON lines, not as Parquet")
        if format is not None:
            return format
        if PurePath(output).suffix.lower() in _OTHER_SUFFIXES:
            raise ValueError(
                f"{output}: predictions are written as CSV, TSV, JSON lines (.jsonl) or plain lines"
            )
        if output != STANDARD_STREAM:
            return "lines"
        return "csv" if input_format == "parquet" else input_format

    @cached_property
    def _columns(self) -> list[str]:
        columns = []
        if self.scores:
            names = name_decisions(self.decision)
            columns += ["score"] if len(names) == 1 else [f"score {name}" for name in names]
        if self.probability:
            columns += [f"probability {name}" for name in name_probabilities(self.decision)]
        return columns

    @property
    def _prediction_columns(self) -> list[str]:
        """Names of the columns of predictions: one, or one for each label or output."""
        if not self.decision.outputs:
            return ["prediction"]
        return [f"prediction {name}" for name in name_columns(self.decision, lambda _: [""], "")]

    def header(self) -> bytes:
        """Return the line with the names of columns; b"" for formats without such a line."""
        if self.format in ("jsonl", "lines"):
            return b""
        names = [*self._prediction_columns, *self._columns]
        return _format_line(names, _DELIMITERS[self.format]).encode()

    def lines(self, raw: Numbers) -> bytes:
        """Return one line per record, given scores of shape (records, scores)."""
        decision = self.decision
        numbers = [decision.decide(raw).reshape(len(raw), -1)] if self.scores else []
        numbers += [decision.probabilities(raw)] if self.probability else []
        if self.format == "jsonl":
            return self._format_objects(raw, numbers)
        lines = self._format_labels(raw)  # arrays of objects: + joins texts element by element
        for block in numbers:
            for column in block.astype("U32").astype(object).T:
                lines = lines + _DELIMITERS[self.format] + column
        return ("\n".join(lines.tolist()) + "\n").encode()

    def codes(self, raw: Numbers) -> NDArray[np.intp] | None:
        """Return the index of the predicted class of each record; None if the model has no classes."""
        decision = self._numbered_decision
        return None if decision is None else np.asarray(decision.choose(raw))

    @cached_property
    def _numbered_decision(self) -> Decision | None:
        """The decision with indices in place of the classes; None if the model has no classes."""
        if self.decision.scheme in ("regression", "one_class"):
            return None
        return dataclasses.replace(self.decision, classes=np.arange(len(self.decision.classes)))

    def _format_labels(self, raw: Numbers) -> NDArray[Any]:
        if self.decision.outputs:
            return self._format_outputs(raw)
        codes = self.codes(raw)
        if codes is None:
            return np.array([f"{value}" for value in self.decision.choose(raw).tolist()], object)
        return np.array(self._names, dtype=object)[codes]

    def _format_outputs(self, raw: Numbers) -> NDArray[Any]:
        """Return the predictions of all outputs, joined by the delimiter."""
        chosen = self.decision.choose(raw)
        values = class_labels(chosen).tolist() if not self.decision.predicts_numbers else chosen.tolist()
        delimiter = _DELIMITERS[self.format]
        names: dict[Any, str] = {}
        for row in values:
            for value in row:
                if value not in names:
                    (names[value],) = self._format_names([f"{value}"])
        return np.array([delimiter.join([names[value] for value in row]) for row in values], dtype=object)

    @cached_property
    def _names(self) -> list[str]:
        """The classes as texts, with the escapes or quotes that the format needs."""
        return self._format_names([f"{value}" for value in class_labels(self.decision.classes).tolist()])

    def _format_names(self, names: list[str]) -> list[str]:
        """Return labels as the format writes them."""
        if self.format == "lines":
            return list(map(_escape_controls, names))
        if self.format == "jsonl":
            return names
        return [_format_line([name], _DELIMITERS[self.format]).removesuffix("\n") for name in names]

    def _format_objects(self, raw: Numbers, numbers: list[Numbers]) -> bytes:
        """Return JSON lines; `numbers` has the scores and probabilities, of shape (records, columns) each."""
        chosen = self.decision.choose(raw)
        predictions: list[Any] = (
            list_predictions(self.decision, chosen)
            if self.decision.outputs
            else class_labels(chosen).tolist()
        )
        if not numbers and not self.decision.outputs:
            texts = {
                prediction: json.dumps({"prediction": prediction}, ensure_ascii=False)
                for prediction in set(predictions)
            }
            return ("\n".join([texts[prediction] for prediction in predictions]) + "\n").encode()
        columns = np.concatenate([np.empty((len(raw), 0)), *numbers], axis=1).tolist()
        lines = [
            json.dumps(
                {"prediction": prediction} | dict(zip(self._columns, values, strict=True)), ensure_ascii=False
            )
            for prediction, values in zip(predictions, columns, strict=True)
        ]
        return ("\n".join(lines) + "\n").encode()


def _escape_controls(label: str) -> str:
    """Return a label with escaped control characters, which could end a line or move a terminal's cursor."""
    return _CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), label)


def _format_line(fields: list[str], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(fields)
    return text.getvalue()


@contextmanager
def open_answers(output: str | None, answers: Answers | None) -> Iterator[Callable[[Numbers], None]]:
    """Yield a function that writes predictions to stdout, or to a file that appears when it is complete."""
    if output is None or answers is None:
        yield lambda _: None
        return
    stream = stdout_bytes() if output == STANDARD_STREAM else None
    with open_writer(output if stream is None else stream) as write:
        write(answers.header())

        def write_predictions(raw: Numbers) -> None:
            write(answers.lines(raw))
            if stream is not None:
                stream.flush()  # another process may be waiting for these lines

        yield write_predictions
