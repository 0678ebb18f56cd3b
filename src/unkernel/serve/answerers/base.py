"""The interface between the server and all kinds of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from unkernel._core import JsonShape

Json = dict[str, Any]
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True)
class Tensor:
    """An input or an output of the Open Inference Protocol.

    Attributes
    ----------
    name : str
    datatype : str
        Of the protocol, such as ``"FP64"`` or ``"BYTES"``.
    shape : tuple of int
        -1 where any number may stand.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]

    def to_json(self) -> Json:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


class Answerer(ABC):
    """A loaded model, as requests see it.

    Attributes
    ----------
    input : str
        What one input is, for people and for the page: ``"record"``, ``"row"``, ``"tree"``, ``"text"``,
        ``"sentences"``.
    quick : bool
        Whether an input is answered in microseconds, so that no other thread is needed for a few.
    """

    input: str
    quick = False

    @abstractmethod
    def describe(self) -> Json:
        """A description of the model, for ``GET /models/{name}``."""

    @property
    @abstractmethod
    def item_schema(self) -> Json:
        """What one input is, as a schema of OpenAPI."""

    @property
    @abstractmethod
    def answer_schema(self) -> Json:
        """What one answer is, as a schema of OpenAPI."""

    @property
    @abstractmethod
    def example(self) -> Any:
        """An input that can be answered."""

    @abstractmethod
    def one(self, item: Any) -> Json:
        """The answer to one input; a ValueError or TypeError says what is wrong with it."""

    def many(self, items: Sequence[Any]) -> list[Json]:
        """The answers to several inputs; an :class:`ItemError` names the one that is wrong."""
        found = []
        for number, item in enumerate(items):
            try:
                found.append(self.one(item))
            except (ValueError, TypeError) as error:
                raise ItemError(number, error) from error
        return found

    def json_of(self, items: Sequence[Any], shape: JsonShape) -> bytes:
        """The answers to inputs as JSON of a shape; an :class:`ItemError` names the input that is wrong."""
        return encode_answers(self.many(items), shape)

    def json_of_json(self, text: bytes, shape: JsonShape, most: int) -> bytes | None:
        """The same of inputs as JSON: no objects are made in between.

        None where that is not possible, or if there are more than `most`: then :meth:`json_of` gives the
        same answers to the objects, or says what is wrong.
        """
        return None

    @abstractmethod
    def explain(self, item: Any, top: int, of: str | None) -> Json:
        """What decided for one input."""

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
    def infer(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outputs for inputs, both by name: arrays, with the items along the first axis."""


def check_characters(text: str) -> None:
    """Raise a ValueError if a text has a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        words = f"character {error.start} of the text is a lone surrogate, which is no character"
        raise ValueError(words) from None


def encode_answers(answers: Sequence[Json], shape: JsonShape) -> bytes:
    """Answers as JSON of a shape."""
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
