"""Exact, compact forms of vectors for exchange between machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def count_bytes(payload: Any, scalar_bytes: int = 0) -> int:
    """Return the bytes of the arrays in a payload, which may be nested, and of its scalars."""
    if isinstance(payload, dict):
        payload = list(payload.values())
    if isinstance(payload, list | tuple):
        return sum(count_bytes(item, scalar_bytes) for item in payload)
    return int(getattr(payload, "nbytes", scalar_bytes))


class Payload:
    """Base of dataclasses whose fields are arrays to send."""

    @property
    def nbytes(self) -> int:
        """Return the approximate number of bytes to send."""
        return count_bytes(vars(self))

    def __sizeof__(self) -> int:
        """Return the size that Dask uses to decide what to move."""
        return self.nbytes + 64


@dataclass(frozen=True, eq=False)
class PackedVector(Payload):
    """A vector of doubles, stored whole or as its nonzero entries and their indices, whichever is smaller.

    It has 8 bytes per entry, or 12 per nonzero entry (16 from 2^32 entries on).
    """

    length: int
    values: Vector
    places: NDArray[Any] | None

    def add_to(self, total: Vector) -> None:
        """Add this vector to another."""
        if self.places is None:
            total += self.values
        else:
            total[self.places] += self.values

    def unpack(self) -> Vector:
        if self.places is None:
            return self.values
        result = np.zeros(self.length)
        result[self.places] = self.values
        return result


def pack_vector(vector: Vector) -> PackedVector:
    """Pack a vector in the form that takes less memory."""
    place_type = np.dtype(np.uint32 if len(vector) <= 2**32 else np.int64)
    used = int(np.count_nonzero(vector))
    if used * (vector.itemsize + place_type.itemsize) >= vector.nbytes:
        return PackedVector(len(vector), np.ascontiguousarray(vector), None)
    places = np.flatnonzero(vector)
    return PackedVector(len(vector), vector[places], places.astype(place_type))


@dataclass(frozen=True, eq=False)
class Answer:
    """A vector from one or several parts, or the numbers of the parts that have lost their state."""

    vector: PackedVector | None
    unprepared: tuple[int, ...] = ()


def add_answers(*answers: Answer) -> Answer:
    """Return the sum of answers, added in order."""
    unprepared = tuple(number for answer in answers for number in answer.unprepared)
    if unprepared or len(answers) == 1:
        return answers[0] if len(answers) == 1 else Answer(None, unprepared)
    vectors = [answer.vector for answer in answers if answer.vector is not None]
    total = np.zeros(vectors[0].length)
    for vector in vectors:
        vector.add_to(total)
    return Answer(pack_vector(total))
