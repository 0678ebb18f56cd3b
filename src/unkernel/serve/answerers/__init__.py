"""Adapters that let each kind of model answer the server's requests."""

from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.serve.answerers.base import Answerer, FieldError, ItemError, Json, Tensor
from unkernel.serve.answerers.records import make_record_answerer
from unkernel.serve.answerers.rows import RowAnswerer
from unkernel.serve.answerers.trees import TreeAnswerer


def make_answerer(model: Any) -> Answerer:
    """Return the answerer of a model; raise a ValueError if it cannot be served."""
    if isinstance(model, RecordClassifier):
        return make_record_answerer(model)
    if isinstance(model, CompiledClassifier):
        return RowAnswerer(model)
    if isinstance(model, TreeClassifier):
        return TreeAnswerer(model)
    # Import the module only here, because most servers have no parsers.
    from unkernel.serve.answerers.sentences import SentenceAnswerer, is_sentence_model

    if is_sentence_model(model):
        return SentenceAnswerer(model)
    raise ValueError(f"a {type(model).__name__} cannot be served: expected a classifier or a parser")


def check_servable(model: Any) -> None:
    """Raise a ValueError if a model cannot be served."""
    make_answerer(model)


__all__ = ["Answerer", "FieldError", "ItemError", "Json", "Tensor", "check_servable", "make_answerer"]
