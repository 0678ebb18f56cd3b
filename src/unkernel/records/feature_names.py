"""Sequences of feature names that are generated on demand, because there may be millions of names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import is_
from typing import TypeGuard, overload


class _GeneratedNames(Sequence[str]):
    """A sequence of generated names that equals any sequence of the same names."""

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._name(number) for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"there is no feature {index}")
        return self._name(number)

    def _name(self, number: int) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(name == other_name for name, other_name in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class NumberedNames(_GeneratedNames):
    """Feature names made of one common name and the feature's number, such as ``"hash 17"``."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size

    def __len__(self) -> int:
        return self.size

    def _name(self, number: int) -> str:
        return f"{self.name} {number}"


class JoinedNames(_GeneratedNames):
    """The names of several vectors, concatenated."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self.parts = parts
        self._ends = list(accumulate(map(len, parts), initial=0))[1:]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _name(self, number: int) -> str:
        names: Sequence[str] = self
        while isinstance(names, JoinedNames):  # parts may themselves be concatenations
            part = bisect_right(names._ends, number)
            number -= names._ends[part - 1] if part else 0
            names = names.parts[part]
        return names[number]


def have_same_names(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two sequences of names are equal; if their parts are identical, generate no names."""
    if first is second or (
        _is_joined(first) and _is_joined(second) and _are_identical(first.parts, second.parts)
    ):
        return True
    return len(first) == len(second) and all(
        name == other_name for name, other_name in zip(first, second, strict=True)
    )


def _is_joined(names: Sequence[str]) -> TypeGuard[JoinedNames]:
    return isinstance(names, JoinedNames)


def _are_identical(parts: Sequence[Sequence[str]], other_parts: Sequence[Sequence[str]]) -> bool:
    """Return whether the parts are pairwise the same objects."""
    return len(parts) == len(other_parts) and all(map(is_, parts, other_parts))
