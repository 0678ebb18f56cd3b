"""Adapters from each kind of model to the server's requests."""

from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.serve.answerers.base import Answerer, FieldError, ItemError, Json, Tensor
from unkernel.serve.answerers.records import record_answerer
from unkernel.serve.answerers.rows import RowAnswerer
from unkernel.serve.answerers.trees import TreeAnswerer


def answerer_of(model: Any) -> Answerer:
    """Return the answerer of a model; raise a ValueError if it cannot be served."""
    if isinstance(model, RecordClassifier):
        return record_answerer(model)
    if isinstance(model, CompiledClassifier):
        return RowAnswerer(model)
    if isinstance(model, TreeClassifier):
        return TreeAnswerer(model)
    # Imported here because most servers have no parsers.
    from unkernel.serve.answerers.sentences import SentenceAnswerer, is_sentence_model

    if is_sentence_model(model):
        return SentenceAnswerer(model)
    raise ValueError(f"a {type(model).__name__} cannot be served: expected a classifier or a parser")


def check_servable(model: Any) -> None:
    """Raise a ValueError if a model cannot be served."""
    answerer_of(model)


__all__ = ["Answerer", "FieldError", "ItemError", "Json", "Tensor", "answerer_of", "check_servable"]
