"""Names of features that are made when they are asked for: there may be millions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import overload


class _Names(Sequence[str]):
    """Names that are equal to a list of the same."""

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._name(number) for number in range(*place.indices(len(self)))]
        number = place + len(self) if place < 0 else place
        if not 0 <= number < len(self):
            raise IndexError(f"there is no feature {place}")
        return self._name(number)

    def _name(self, number: int) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(own == theirs for own, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class NumberedNames(_Names):
    """A name and a number for each feature, such as ``"hash 17"``."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size

    def __len__(self) -> int:
        return self.size

    def _name(self, number: int) -> str:
        return f"{self.name} {number}"


class JoinedNames(_Names):
    """The names of several vectors, one after the other."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self.parts = parts
        self._ends = list(accumulate(map(len, parts), initial=0))[1:]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _name(self, number: int) -> str:
        part = bisect_right(self._ends, number)
        return self.parts[part][number - (self._ends[part - 1] if part else 0)]
