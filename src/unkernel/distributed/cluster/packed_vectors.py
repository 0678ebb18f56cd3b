"""Pack vectors losslessly for messages between machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def count_bytes(payload: Any, scalar_bytes: int = 0) -> int:
    """Return the size in bytes of all arrays and scalars in a payload, which may be nested."""
    if isinstance(payload, dict):
        payload = list(payload.values())
    if isinstance(payload, list | tuple):
        return sum(count_bytes(item, scalar_bytes) for item in payload)
    return int(getattr(payload, "nbytes", scalar_bytes))


class Payload:
    """Base class of dataclasses with arrays to send as fields."""

    @property
    def nbytes(self) -> int:
        """Approximate number of bytes to send."""
        return count_bytes(vars(self))

    def __sizeof__(self) -> int:
        """Return the size in bytes; Dask uses it to decide which results to move."""
        return self.nbytes + 64


@dataclass(frozen=True, eq=False)
class PackedVector(Payload):
    """A vector of doubles, stored densely or as nonzero entries with their indices, whichever is smaller.

    The size is 8 bytes per entry, or 12 bytes per nonzero entry (16 if there are more than 2^32 entries).
    """

    length: int
    values: Vector
    indices: NDArray[Any] | None

    def add_to(self, total: Vector) -> None:
        """Add this vector to `total` in place."""
        if self.indices is None:
            total += self.values
        else:
            total[self.indices] += self.values

    def unpack(self) -> Vector:
        if self.indices is None:
            return self.values
        result = np.zeros(self.length)
        result[self.indices] = self.values
        return result


def pack_vector(vector: Vector) -> PackedVector:
    """Pack a vector in the form that takes less memory."""
    index_type = np.dtype(np.uint32 if len(vector) <= 2**32 else np.int64)
    n_nonzero = int(np.count_nonzero(vector))
    if n_nonzero * (vector.itemsize + index_type.itemsize) >= vector.nbytes:
        return PackedVector(len(vector), np.ascontiguousarray(vector), None)
    indices = np.flatnonzero(vector)
    return PackedVector(len(vector), vector[indices], indices.astype(index_type))


@dataclass(frozen=True, eq=False)
class Answer:
    """The response of one or several parts: a vector, or the numbers of parts that have lost their state."""

    vector: PackedVector | None
    unprepared: tuple[int, ...] = ()


def add_answers(*answers: Answer) -> Answer:
    """Return the sum of responses, added in the given order, or the numbers of all parts without state."""
    unprepared = tuple(number for answer in answers for number in answer.unprepared)
    if unprepared or len(answers) == 1:
        return answers[0] if len(answers) == 1 else Answer(None, unprepared)
    vectors = [answer.vector for answer in answers if answer.vector is not None]
    total = np.zeros(vectors[0].length)
    for vector in vectors:
        vector.add_to(total)
    return Answer(pack_vector(total))
