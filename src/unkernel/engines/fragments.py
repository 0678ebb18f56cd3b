"""Why a tree got its score: the fragments that decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unkernel._core import ExampleMachine, ExampleSet, decisive_fragments, heaviest_fragments
from unkernel.data.frames import frame_of
from unkernel.data.showing import Shown

MOST_LOOKED_AT = 1_000_000


@dataclass(frozen=True)
class Fragment:
    """A piece of a tree that the kernel counts, and its part in a model or a decision.

    Attributes
    ----------
    text : str
        In brackets; a node whose children do not belong to it is ``(NN ...)``.
    value : float
        What it added to the score; of a model, its weight.
    weight : float
        What one occurrence adds, before the tree's norm.
    occurrences : float
        How often the tree has it, divided by the tree's norm; 0 for a model.
    channel : str
        Which of the example's trees it is in.
    """

    text: str
    value: float
    weight: float
    occurrences: float
    channel: str


@dataclass(frozen=True)
class TreeExplanation(Shown):
    """A score and what it is made of: ``intercept``, the values of ``fragments`` and ``rest`` add up to it.

    Attributes
    ----------
    score : float
        Of ``for_class``; where ``against`` is one of more than two classes, less the score of that.
    for_class : object
        The class that the score speaks for.
    against : object
        The class that it is compared with: the other one of two, or the runner-up; None if there is none.
    intercept : float
        What every tree gets.
    fragments : list of Fragment
        The largest in size first.
    rest : float
        The sum of those that are not listed, and of the vectors where there are any.
    complete : bool
        Whether no other fragment has a larger part; False where the search had to give up.
    scores : list of float
        All scores of the model.
    """

    score: float
    for_class: Any
    against: Any
    intercept: float
    fragments: list[Fragment]
    rest: float
    complete: bool
    scores: list[float]

    def to_frame(self) -> Any:
        """The parts as a frame of pandas: the fragments, the intercept and the rest."""
        parts = [(one.text, one.value) for one in self.fragments]
        parts += [("(intercept)", self.intercept), ("(others)", self.rest)]
        return frame_of([{"part": text, f"for {self.for_class}": value} for text, value in parts])

    def __str__(self) -> str:
        other = "" if self.against is None else f" against {self.against}"
        lines = [f"{self.score:+.4f}  for {self.for_class}{other}", f"{self.intercept:+.4f}  (intercept)"]
        lines += [f"{fragment.value:+.4f}  {fragment.text}" for fragment in self.fragments]
        return "\n".join([*lines, f"{self.rest:+.4f}  (all others)"])


@dataclass(frozen=True, eq=False)
class Search:
    """A model's trees, and where their fragments are looked for."""

    machine: ExampleMachine
    channels: list[str]
    factor: float  # of the trees in a sum with vectors

    def heaviest(self, top: int, score: int) -> tuple[list[Fragment], bool]:
        """The fragments of the largest weight."""
        found: list[Fragment] = []
        complete = True
        for number, channel in enumerate(self.channels):
            rows, proven = heaviest_fragments(self.machine, number, top, MOST_LOOKED_AT, score)
            complete = complete and proven
            found += [
                Fragment(text, self.factor * weight, self.factor * weight, 0.0, channel)
                for text, weight, *_ in rows
            ]
        return _largest(found, top), complete

    def decisive(self, examples: ExampleSet, top: int, score: int) -> tuple[list[Fragment], bool]:
        """The fragments with the largest part in the score of the first example."""
        found: list[Fragment] = []
        complete = True
        for number, channel in enumerate(self.channels):
            rows, proven = decisive_fragments(self.machine, examples, 0, number, top, MOST_LOOKED_AT, score)
            complete = complete and proven
            found += [
                Fragment(text, self.factor * part, self.factor * weight, occurrences, channel)
                for text, weight, occurrences, part, _ in rows
            ]
        return _largest(found, top), complete


def _largest(fragments: list[Fragment], top: int) -> list[Fragment]:
    return sorted(fragments, key=lambda fragment: -abs(fragment.value))[:top]
