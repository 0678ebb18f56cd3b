"""Answerers for models of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines import TreeClassifier
from unkernel.serve.answerers.base import Json, Tensor, check_characters
from unkernel.serve.answerers.classifier_scores import AnswerFormat, ScoreAnswerer

_MAX_TREE_NODES = 10_000  # the time of a kernel grows with the square of the number of nodes


class TreeAnswerer(ScoreAnswerer):
    """Answers for a model of trees. An input is a tree in bracket notation."""

    input = "tree"

    def __init__(self, model: TreeClassifier) -> None:
        self._model = model
        self.decision = model.decision
        self._format = AnswerFormat(model.decision)
        self._channels = list(model.model.support.trees)

    def describe(self) -> Json:
        return {
            "description": "a classifier of trees",
            "engine": self._model.engine,
            "kernel": self._model.model.kernel.words(),
            "channels": self._channels,
        } | self._format.describe()

    @property
    def item_schema(self) -> Json:
        return {"type": "string", "examples": [self.example]}

    @property
    def example(self) -> Any:
        return "(S (NP (N dogs)) (VP (V bark)))"

    def _compute_scores(self, items: Sequence[Any]) -> NDArray[np.float64]:
        return self._model.raw_scores([_check_tree(item) for item in items])

    def explain(self, item: Any, top: int, of: str | None) -> Json:
        explanation = self._model.explain(_check_tree(item), max(top, 1), of=self._format.find_class(of))
        return self.answer_one(item) | {
            "for_class": explanation.for_class,
            "against": explanation.against,
            "intercept": float(explanation.intercept),
            "contributions": [
                {"label": fragment.text, "names": [fragment.text], "value": float(fragment.value)}
                for fragment in explanation.fragments[:top]
            ],
            "rest": float(explanation.rest + sum(fragment.value for fragment in explanation.fragments[top:])),
            "total": float(explanation.score),
            "complete": explanation.complete,
        }

    @property
    def inputs(self) -> list[Tensor]:
        return [Tensor("tree", "BYTES", (-1,))]

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._format.make_tensors(self._score_items(inputs["tree"].reshape(-1).tolist()))


def _check_tree(item: Any) -> str:
    if not isinstance(item, str):
        raise ValueError('a tree is a string of brackets, such as "(S (NP dogs) (VP bark))"')
    check_characters(item)
    if item.count("(") > _MAX_TREE_NODES:
        raise ValueError(f"a tree has more than {_MAX_TREE_NODES:,} nodes, the server's limit")
    return item
