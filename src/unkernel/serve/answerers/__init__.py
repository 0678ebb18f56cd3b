"""How each kind of model answers requests."""

from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.serve.answerers.base import Answerer, FieldError, ItemError, Json, Tensor
from unkernel.serve.answerers.records import record_answerer
from unkernel.serve.answerers.rows import RowAnswerer
from unkernel.serve.answerers.trees import TreeAnswerer


def answerer_of(model: Any) -> Answerer:
    """The answerer of a model; a ValueError for models that cannot be served."""
    if isinstance(model, RecordClassifier):
        return record_answerer(model)
    if isinstance(model, CompiledClassifier):
        return RowAnswerer(model)
    if isinstance(model, TreeClassifier):
        return TreeAnswerer(model)
    from unkernel.serve.answerers.sentences import (
        SentenceAnswerer,
        is_sentence_model,
    )  # not all serve parsers

    if is_sentence_model(model):
        return SentenceAnswerer(model)
    raise ValueError(f"a {type(model).__name__} answers nothing: serve classifiers and parsers")


def check_servable(model: Any) -> None:
    """Raise a ValueError if a model cannot be served."""
    answerer_of(model)


__all__ = ["Answerer", "FieldError", "ItemError", "Json", "Tensor", "answerer_of", "check_servable"]
