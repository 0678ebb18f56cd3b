"""Vectors on their way between machines: exact, and as few bytes as that allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PackedVector:
    """A vector of doubles; only those that are not 0, with their places, where that is smaller.

    8 bytes per entry, or 12 (16 from 2^32 entries on) per nonzero entry.
    """

    length: int
    values: Vector
    places: NDArray[Any] | None

    @property
    def nbytes(self) -> int:
        """What is sent, but for a few bytes."""
        return int(self.values.nbytes + (0 if self.places is None else self.places.nbytes))

    def __sizeof__(self) -> int:
        """For Dask, which weighs what it moves."""
        return self.nbytes + 64

    def add_to(self, total: Vector) -> None:
        """Add this vector to another."""
        if self.places is None:
            total += self.values
        else:
            total[self.places] += self.values

    def unpacked(self) -> Vector:
        """The vector itself."""
        if self.places is None:
            return self.values
        result = np.zeros(self.length)
        result[self.places] = self.values
        return result


def packed(vector: Vector) -> PackedVector:
    """The smaller one of the two forms."""
    place_type = np.dtype(np.uint32 if len(vector) <= 2**32 else np.int64)
    used = int(np.count_nonzero(vector))
    if used * (vector.itemsize + place_type.itemsize) >= vector.nbytes:
        return PackedVector(len(vector), np.ascontiguousarray(vector), None)
    places = np.flatnonzero(vector)
    return PackedVector(len(vector), vector[places], places.astype(place_type))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a part, or several together, say; or which parts have nothing to say because they were lost."""

    vector: PackedVector | None
    unprepared: tuple[int, ...] = ()


def added(*answers: Answer) -> Answer:
    """The sum, in the order of the arguments."""
    unprepared = tuple(number for answer in answers for number in answer.unprepared)
    if unprepared or len(answers) == 1:
        return answers[0] if len(answers) == 1 else Answer(None, unprepared)
    vectors = [answer.vector for answer in answers if answer.vector is not None]
    total = np.zeros(vectors[0].length)
    for vector in vectors:
        vector.add_to(total)
    return Answer(packed(total))
