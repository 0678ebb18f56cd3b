"""The interface through which the server uses models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from unkernel._core import JsonShape
from unkernel.models import Decision
from unkernel.records.plan import Plan

Json = dict[str, Any]
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True)
class Tensor:
    """An input or an output of the Open Inference Protocol.

    Attributes
    ----------
    name : str
    datatype : str
        Name of the type in the protocol, such as ``"FP64"`` or ``"BYTES"``.
    shape : tuple of int
        The size of each axis; -1 means any size.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]

    def to_json(self) -> Json:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


class Answerer(ABC):
    """A loaded model that answers requests.

    Attributes
    ----------
    input : str
        The kind of each input: ``"record"``, ``"row"``, ``"tree"``, ``"text"`` or ``"sentences"``.
    quick : bool
        Whether an answer takes only microseconds. If so, short requests are answered on the event loop.
    decision : Decision or None
        How scores become answers; None for parsers.
    plan : Plan or None
        How records are encoded; None for other inputs.
    """

    input: str
    quick = False
    decision: Decision | None = None
    plan: Plan | None = None

    @abstractmethod
    def describe(self) -> Json:
        """Describe the model for ``GET /models/{name}``."""

    @property
    @abstractmethod
    def item_schema(self) -> Json:
        """OpenAPI schema of an input."""

    @property
    @abstractmethod
    def answer_schema(self) -> Json:
        """OpenAPI schema of an answer."""

    @property
    @abstractmethod
    def example(self) -> Any:
        """A valid input."""

    @abstractmethod
    def answer_one(self, item: Any) -> Json:
        """Answer one input; raise a ValueError or TypeError if it is invalid."""

    def answer_many(self, items: Sequence[Any]) -> list[Json]:
        """Answer several inputs; raise an :class:`ItemError` for the first invalid input."""
        answers = []
        for number, item in enumerate(items):
            try:
                answers.append(self.answer_one(item))
            except (ValueError, TypeError) as error:
                raise ItemError(number, error) from error
        return answers

    def answer_items(self, items: Sequence[Any], shape: JsonShape) -> bytes:
        """Return the answers as JSON of the given shape; raise an :class:`ItemError` for invalid input."""
        return encode_answers(self.answer_many(items), shape)

    def answer_json(self, text: bytes, shape: JsonShape, limit: int) -> bytes | None:
        """Answer inputs given as JSON without creating Python objects.

        Return None if the model does not support this, if an input is invalid, or if there are more than
        `limit` inputs. The caller then uses :meth:`answer_items`, which returns answers or raises an error.
        """
        return None

    @abstractmethod
    def explain(self, item: Any, top: int, of: str | None) -> Json:
        """Explain the score of class `of`, or else of the predicted class, by its `top` contributions."""

    # --- The Open Inference Protocol ------------------------------------------------------------------

    @property
    @abstractmethod
    def inputs(self) -> list[Tensor]:
        """The input tensors of the protocol."""

    @property
    @abstractmethod
    def outputs(self) -> list[Tensor]:
        """The output tensors of the protocol."""

    @abstractmethod
    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the output arrays, given the input arrays, by name. The first axis counts the items."""


def check_characters(text: str) -> None:
    """Raise a ValueError if a text has a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"character {error.start} of the text is a lone surrogate, which is no character"
        raise ValueError(message) from None


def encode_answers(answers: Sequence[Json], shape: JsonShape) -> bytes:
    """Return answers as JSON: as lines, as a list, or the only answer as an object."""
    if shape is JsonShape.LINES:
        return _ENCODER.encode_lines(answers)
    return _ENCODER.encode(answers if shape is JsonShape.LIST else answers[0])


class FieldError(ValueError):
    """An error in a named part of an input, or in a parameter."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


class ItemError(FieldError):
    """An error in one of several inputs."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(error.field if isinstance(error, FieldError) else "", str(error))
        self.number = number
