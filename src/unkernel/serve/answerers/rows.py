"""Answerers for models of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import CompiledClassifier
from unkernel.engines.explain.explanation import get_feature_names
from unkernel.models.model_rows import check_width
from unkernel.serve.answerers.base import FieldError, Json, Tensor
from unkernel.serve.answerers.classifier_scores import ScoreAnswerer, explanation_to_json
from unkernel.serve.answerers.several_outputs import make_answer_format

_MAX_COLUMN = np.iinfo(np.int32).max
_SPARSE_ROW_KEYS = {"ids", "values"}


class RowAnswerer(ScoreAnswerer):
    """Answers for a model of rows of numbers.

    A row is a list of all values, or an object with the nonzero columns: ``[0, 1.5, 0]`` and
    ``{"ids": [1], "values": [1.5]}`` are the same row. If ``values`` is missing, each value is 1.
    """

    input = "row"
    quick = True

    def __init__(self, model: CompiledClassifier) -> None:
        self._model = model
        self.decision = model.decision
        self._format = make_answer_format(model.decision)

    def describe(self) -> Json:
        names = get_feature_names(self._model.model)
        return {
            "description": "a classifier of rows",
            "engine": self._model.engine,
            "features": self._model.n_features_in_,
            "feature_names": None if names is None else list(names),
        } | self._format.describe()

    @property
    def item_schema(self) -> Json:
        width = {"minItems": self._model.n_features_in_, "maxItems": self._model.n_features_in_}
        numbers = {"type": "array", "items": {"type": "number"}}
        ids = {"type": "array", "items": {"type": "integer", "minimum": 0}}
        return {
            "oneOf": [
                numbers | (width if self._model.model.fixed_width else {}),
                {"type": "object", "properties": {"ids": ids, "values": numbers}, "required": ["ids"]},
            ]
        }

    @property
    def example(self) -> Any:
        return {"ids": list(range(min(3, self._model.n_features_in_)))}

    def _compute_scores(self, items: Sequence[Any]) -> NDArray[np.float64]:
        sparse_rows = [self._read_row(item) for item in items]
        offsets = np.cumsum([0, *(len(ids) for ids, _ in sparse_rows)], dtype=np.int64)
        ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in sparse_rows)])
        values = np.concatenate([np.empty(0), *(values for _, values in sparse_rows)])
        rows = CsrRows.of(offsets, ids, values, self._count_columns(ids))
        check_width(rows, self._model.n_features_in_, self._model.model.fixed_width)
        return self._model.score_csr(rows, 1)

    def explain(self, item: Any, top: int, of: str | None) -> Json:
        ids, values = self._read_row(item)
        row = dict(zip(ids.tolist(), values.tolist(), strict=True))
        explanation = self._model.explain(row, top, of=self._format.find_class(of))
        return explanation_to_json(explanation, self.answer_one(item))

    @property
    def inputs(self) -> list[Tensor]:
        return [Tensor("rows", "FP64", (-1, self._model.n_features_in_))]

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = np.asarray(inputs["rows"], dtype=np.float64)
        return self._format.make_tensors(self._model.score_csr(self._model._check_rows(rows), 1))

    def _count_columns(self, ids: Any) -> int:
        return max(self._model.n_features_in_, int(ids.max(initial=-1)) + 1)

    def _read_row(self, item: Any) -> tuple[Any, Any]:
        """Return the columns of a row in ascending order, and their values."""
        if isinstance(item, list):
            return self._read_dense(item)
        if not isinstance(item, dict) or "ids" not in item or item.keys() - _SPARSE_ROW_KEYS:
            raise ValueError(
                'a row is a list of numbers, or an object such as {"ids": [3, 7], "values": [1, 0.5]}'
            )
        ids, values = item["ids"], item.get("values")
        if not isinstance(ids, list) or not all(
            type(column) is int and 0 <= column < _MAX_COLUMN for column in ids
        ):
            raise FieldError("ids", "ids must be a list of column numbers, counted from 0")
        numbers = _check_numbers([1.0] * len(ids) if values is None else values, "values")
        if len(numbers) != len(ids):
            raise FieldError(
                "values", f"expected one value per id, got {len(ids)} ids and {len(numbers)} values"
            )
        if len(set(ids)) < len(ids):
            raise FieldError("ids", "ids has a column twice")
        self._check_columns(ids)
        order = np.argsort(np.array(ids, np.int64))
        return np.array(ids, np.int32)[order], numbers[order]

    def _check_columns(self, ids: list[int]) -> None:
        width = self._model.n_features_in_
        if self._model.model.fixed_width and ids and max(ids) >= width:
            raise FieldError("ids", f"there is no column {max(ids)}: the model has {width}, counted from 0")

    def _read_dense(self, item: list[Any]) -> tuple[Any, Any]:
        numbers = _check_numbers(item, "the row")
        if self._model.model.fixed_width and len(numbers) != self._model.n_features_in_:
            raise ValueError(
                f"the row has {len(numbers)} values, but the model has {self._model.n_features_in_} columns"
            )
        columns = np.flatnonzero(numbers)
        return columns.astype(np.int32), numbers[columns]


def _check_numbers(values: Any, name: str) -> Any:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise ValueError(f"{name} must be a list of numbers")
    return np.array(values, np.float64)
