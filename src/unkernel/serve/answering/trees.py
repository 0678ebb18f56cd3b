"""Models of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unkernel.engines import TreeClassifier
from unkernel.serve.answering.base import Answerer, Json, Tensor
from unkernel.serve.answering.classifying import Answers

_MOST_NODES = 10_000  # kernels take time with the square of nodes: no request may hold up all others


class TreeAnswerer(Answerer):
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
    def answer_schema(self) -> Json:
        return self._answers.schema

    @property
    def example(self) -> Any:
        return "(S (NP (N dogs)) (VP (V bark)))"

    def one(self, item: Any) -> Json:
        return self._answers.of_rows(self._model.raw_scores([_tree(item)]))[0]

    def many(self, items: Sequence[Any]) -> list[Json]:
        try:
            return self._answers.of_rows(self._model.raw_scores([_tree(item) for item in items]))
        except ValueError:
            super().many(items)  # which says where
            raise

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

    @property
    def outputs(self) -> list[Tensor]:
        return self._answers.outputs

    def infer(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        trees = [_tree(item) for item in given["tree"].reshape(-1).tolist()]
        return self._answers.tensors(self._model.raw_scores(trees))


def _tree(item: Any) -> str:
    if not isinstance(item, str):
        raise ValueError('a tree is a string of brackets, such as "(S (NP dogs) (VP bark))"')
    if item.count("(") > _MOST_NODES:
        raise ValueError(f"a tree has more than {_MOST_NODES:,} nodes, the server's limit")
    return item
