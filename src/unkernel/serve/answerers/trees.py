"""Models of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines import TreeClassifier
from unkernel.serve.answerers.base import Json, Tensor, check_characters
from unkernel.serve.answerers.classifier_scores import Answers, ScoreAnswerer

_MOST_NODES = 10_000  # kernels take time with the square of nodes: no request may hold up all others


class TreeAnswerer(ScoreAnswerer):
    """A model of trees in brackets: one tree, or several by the names of the model's channels."""

    input = "tree"

    def __init__(self, model: TreeClassifier) -> None:
        self._model = model
        self._answers = Answers(model.decision)
        self._channels = list(model.model.support.trees)

    def describe(self) -> Json:
        return {
            "description": "a classifier of trees",
            "engine": self._model.engine,
            "kernel": self._model.model.kernel.words(),
            "channels": self._channels,
        } | self._answers.describe()

    @property
    def item_schema(self) -> Json:
        return {"type": "string", "examples": [self.example]}

    @property
    def example(self) -> Any:
        return "(S (NP (N dogs)) (VP (V bark)))"

    def _raw(self, items: Sequence[Any]) -> NDArray[np.float64]:
        return self._model.raw_scores([_tree(item) for item in items])

    def explain(self, item: Any, top: int, of: str | None) -> Json:
        found = self._model.explain(_tree(item), max(top, 1), of=self._answers.class_called(of))
        return self.one(item) | {
            "for_class": found.for_class,
            "against": found.against,
            "intercept": float(found.intercept),
            "contributions": [
                {"label": fragment.text, "names": [fragment.text], "value": float(fragment.value)}
                for fragment in found.fragments[:top]
            ],
            "rest": float(found.rest + sum(fragment.value for fragment in found.fragments[top:])),
            "total": float(found.score),
            "complete": found.complete,
        }

    @property
    def inputs(self) -> list[Tensor]:
        return [Tensor("tree", "BYTES", (-1,))]

    def infer(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._answers.tensors(self._raw_of_many(given["tree"].reshape(-1).tolist()))


def _tree(item: Any) -> str:
    if not isinstance(item, str):
        raise ValueError('a tree is a string of brackets, such as "(S (NP dogs) (VP bark))"')
    check_characters(item)
    if item.count("(") > _MOST_NODES:
        raise ValueError(f"a tree has more than {_MOST_NODES:,} nodes, the server's limit")
    return item
