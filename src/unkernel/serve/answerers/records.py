"""Answerers for models of records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import JsonShape
from unkernel.engines import RecordClassifier
from unkernel.records.files.columns import infer_column_kinds, infer_column_types
from unkernel.records.plan import Plan
from unkernel.serve.answerers.base import Json, Tensor
from unkernel.serve.answerers.classifier_scores import ScoreAnswerer, explanation_to_json
from unkernel.serve.answerers.several_outputs import make_answer_format

_MAX_LISTED_CHOICES = 1000  # largest number of categories to list per column
_TYPES = {"number": "number", "binned": "number", "strings": "array", "dict": "object"}  # JSON types of kinds


class RecordAnswerer(ScoreAnswerer):
    """Answers for a model of records that have columns."""

    input = "record"
    quick = True

    def __init__(self, model: RecordClassifier) -> None:
        self.plan = self._plan = model.plan.with_none_as_nan()  # JSON has no NaN
        self.decision = model.decision
        self._model = RecordClassifier(self._plan, model.classifier)
        self._format = make_answer_format(model.decision)
        self._scorer = self._model._scorer
        self._score = self._scorer.score
        self._n_scores = model.decision.n_scores

    @cached_property
    def columns(self) -> list[Json]:
        """Name, kind, JSON type and known categories of each column."""
        types, choices = infer_column_types(self._plan), _list_choices(self._plan)
        return [
            {
                "name": name,
                "kind": kind,
                "type": _TYPES.get(kind, types[name]),
                "choices": choices.get(name, []),
            }
            for name, kind in infer_column_kinds(self._plan).items()
        ]

    def describe(self) -> Json:
        return {
            "description": "a classifier of records",
            "engine": self._model.engine,
            "columns": self.columns,
        } | self._format.describe()

    @property
    def item_schema(self) -> Json:
        schema: Json = {
            "type": "object",
            "properties": {column["name"]: _make_column_schema(column) for column in self.columns},
            "additionalProperties": self._plan.ignores_unknown_keys,
        }
        return schema | (
            {"required": [column["name"] for column in self.columns]} if self._plan.required else {}
        )

    @property
    def example(self) -> Any:
        values = _find_middle_values(self._plan) | dict(self._plan.example)
        return {column["name"]: values.get(column["name"], _make_example(column)) for column in self.columns}

    def _compute_scores(self, items: Sequence[Any]) -> NDArray[np.float64]:
        scores = [self._score(item) for item in items]
        return np.array(scores, dtype=np.float64).reshape(len(items), self._n_scores)

    def _encode_answers(self, items: Sequence[Any], shape: JsonShape) -> bytes:
        writer = self._format.json_writer
        if writer is None:
            return super()._encode_answers(items, shape)
        return self._scorer.answer_records(list(items), writer, shape)

    def answer_json(self, text: bytes, shape: JsonShape, limit: int) -> bytes | None:
        writer = self._format.json_writer
        if writer is not None:
            return self._scorer.answer_json(text, writer, shape, limit)
        raw = self._scorer.score_json(text, shape, limit)
        return None if raw is None else self._format.encode(np.asarray(raw), shape)

    def explain(self, item: Any, top: int, of: str | None) -> Json:
        explanation = self._model.explain_one(item, top, of=self._format.find_class(of))
        return explanation_to_json(explanation, self.answer_one(item))

    @property
    def inputs(self) -> list[Tensor]:
        return [
            Tensor(column["name"], "FP64" if column["type"] == "number" else "BYTES", (-1,))
            for column in self.columns
        ]

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        columns = {name: values.reshape(-1).tolist() for name, values in inputs.items()}
        return self._format.make_tensors(self._model.classifier.score_csr(self._plan.encode(columns), 1))


class TextAnswerer(RecordAnswerer):
    """Answers for a model whose records are texts, such as a pipeline that begins with a vectorizer."""

    input = "text"

    def describe(self) -> Json:
        return {
            "description": "a classifier of texts",
            "engine": self._model.engine,
        } | self._format.describe()

    @property
    def item_schema(self) -> Json:
        return {"type": "string"}

    @property
    def example(self) -> Any:
        return "Some words."

    @property
    def inputs(self) -> list[Tensor]:
        return [Tensor("text", "BYTES", (-1,))]

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        texts = inputs["text"].reshape(-1).tolist()
        return self._format.make_tensors(self._model.classifier.score_csr(self._plan.encode(texts), 1))


def make_record_answerer(model: RecordClassifier) -> RecordAnswerer:
    return TextAnswerer(model) if model.plan.whole else RecordAnswerer(model)


def _make_column_schema(column: Json) -> Json:
    kind = column["type"]
    # Columns of bools have the categories 0 and 1.
    may_be_bool = column["choices"] and {0, 1}.issuperset(column["choices"])
    schema: Json = {"type": [kind, *(["boolean"] if may_be_bool else []), "null"]}
    if kind == "array":
        schema["items"] = {"type": "string"}
    return schema | ({"examples": column["choices"][:5]} if column["choices"] else {})


def _make_example(column: Json) -> Any:
    if column["choices"]:
        return column["choices"][0]
    if column["kind"] == "date":
        return "2026-11-17"
    return {"number": 0, "array": [], "object": {}}.get(column["type"], "")


def _find_middle_values(plan: Plan) -> dict[str, float]:
    """Return the middle edge of each binned column."""
    values: dict[str, float] = {}
    for step in plan.steps:
        if step.kind != "bins" or plan.steps[int(step.table["input"])].kind != "numbers":
            continue
        numbers = plan.steps[int(step.table["input"])].table
        begins, edges = step.table["begins"].tolist(), step.table["edges"].tolist()
        for index, column in enumerate(numbers["columns"].tolist()):
            column_edges = edges[begins[index] : begins[index + 1]]
            if column_edges:
                values[plan.columns[column]] = _round_edge(column_edges[len(column_edges) // 2], column_edges)
    return values


def _round_edge(edge: float, edges: list[float]) -> float:
    """Return an edge; round an edge such as 43.5 up if all edges suggest that the numbers are whole."""
    return math.ceil(edge) if all((2 * other).is_integer() for other in edges) else edge


def _list_choices(plan: Plan) -> dict[str, list[Any]]:
    """Return the categories of each column by name; the list is empty if there are too many categories."""
    choices: dict[str, list[Any]] = {}
    for step in plan.steps:
        for index, table in enumerate(step.table.get("categories", ())):
            name = plan.columns[int(step.table["columns"][index])]
            count = len(table["string_ends"]) + len(table["numbers"])
            choices[name] = _decode_categories(table) if count <= _MAX_LISTED_CHOICES else []
    return choices


def _decode_categories(table: Mapping[str, Any]) -> list[Any]:
    """Return the categories of a column: strings, stored as joined UTF-8 with their ends, and numbers."""
    data, begin = table["strings"].tobytes(), 0
    categories: list[Any] = []
    for end in table["string_ends"].tolist():
        categories.append(data[begin:end].decode("utf-8", "replace"))
        begin = end
    return [*categories, *table["numbers"].tolist()]
