"""Explain the score of a tree by its fragments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unkernel._core import ExampleMachine, ExampleSet, decisive_fragments, heaviest_fragments
from unkernel.data.frames import frame_of
from unkernel.data.repr_html import HtmlRepr

MAX_FRAGMENTS_EXAMINED = 1_000_000


@dataclass(frozen=True)
class Fragment:
    """A fragment of a tree that the kernel counts, and its contribution.

    Attributes
    ----------
    text : str
        The fragment in brackets; ``(NN ...)`` is a node whose children do not belong to it.
    value : float
        Contribution to the score or, in a list of weights, the weight.
    weight : float
        Contribution of one occurrence before normalisation of the tree.
    occurrences : float
        Number of occurrences in the tree, divided by the norm of the tree. In a list of weights, 0.
    channel : str
        Channel of the tree that contains the fragment; an example may have one tree per named channel.

    See Also
    --------
    TreeExplanation : Explanation of the score of a tree.

    Examples
    --------
    >>> from unkernel import TreeSVC
    >>> clf = TreeSVC().fit(["(Q (WP who) (VBD wrote))", "(Q (WRB where) (VBZ is))"], ["person", "place"])
    >>> clf.explain("(Q (WP who) (VBZ was))", top=1).fragments[0].text
    '(WP who)'
    """

    text: str
    value: float
    weight: float
    occurrences: float
    channel: str


@dataclass(frozen=True)
class TreeExplanation(HtmlRepr):
    """Explanation of the score of a tree: the fragments that contributed to it.

    ``intercept``, the values of ``fragments`` and ``rest`` add up to ``score``.

    Attributes
    ----------
    score : float
        Score of ``for_class``, minus the score of ``against`` if there are more than two classes.
    for_class : label
        The class that the score supports.
    against : label or None
        The class that ``for_class`` is compared with: the other of two classes, or the runner-up.
    intercept : float
        Constant contribution to every tree.
    fragments : list of Fragment
        The fragments, largest absolute value first.
    rest : float
        Sum of the contributions of other fragments and of vectors.
    complete : bool
        Whether the search has proved that no other fragment has a larger contribution.
    scores : list of float
        All scores of the model.

    See Also
    --------
    unkernel.TreeClassifier.explain : Explain a prediction.
    Explanation : Explanation of the score of a row.

    Examples
    --------
    >>> from unkernel import TreeSVC
    >>> clf = TreeSVC().fit(["(Q (WP who) (VBD wrote))", "(Q (WRB where) (VBZ is))"], ["person", "place"])
    >>> explained = clf.explain("(Q (WP who) (VBZ was))", top=1)
    >>> explained.for_class, explained.against
    ('person', 'place')
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
        """Return the contributions as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per fragment, and rows for the intercept and the rest.
        """
        parts = [(fragment.text, fragment.value) for fragment in self.fragments]
        parts += [("(intercept)", self.intercept), ("(others)", self.rest)]
        return frame_of([{"part": text, f"for {self.for_class}": value} for text, value in parts])

    def __str__(self) -> str:
        other = "" if self.against is None else f" against {self.against}"
        lines = [f"{self.score:+.4f}  for {self.for_class}{other}", f"{self.intercept:+.4f}  (intercept)"]
        lines += [f"{fragment.value:+.4f}  {fragment.text}" for fragment in self.fragments]
        return "\n".join([*lines, f"{self.rest:+.4f}  (all others)"])


@dataclass(frozen=True, eq=False)
class Search:
    """Searches the support trees of a model for the fragments with the largest weights."""

    machine: ExampleMachine
    channels: list[str]
    factor: float  # weight of the tree kernel in a sum with a vector kernel

    def find_heaviest(self, top: int, score: int) -> tuple[list[Fragment], bool]:
        """Return the fragments with the largest weights, and whether the search has proved this."""
        results_by_channel = [
            heaviest_fragments(self.machine, number, top, MAX_FRAGMENTS_EXAMINED, score)
            for number in range(len(self.channels))
        ]
        parts = [[(text, weight, weight, 0.0) for text, weight, *_ in rows] for rows, _ in results_by_channel]
        return self._choose_largest(parts, top), all(proven for _, proven in results_by_channel)

    def find_decisive(self, examples: ExampleSet, top: int, score: int) -> tuple[list[Fragment], bool]:
        """Return the fragments that contribute most to the first example, and whether this is proved."""
        results_by_channel = [
            decisive_fragments(self.machine, examples, 0, number, top, MAX_FRAGMENTS_EXAMINED, score)
            for number in range(len(self.channels))
        ]
        parts = [
            [(text, value, weight, occurrences) for text, weight, occurrences, value, _ in rows]
            for rows, _ in results_by_channel
        ]
        return self._choose_largest(parts, top), all(proven for _, proven in results_by_channel)

    def _choose_largest(self, parts: list[list[tuple[str, float, float, float]]], top: int) -> list[Fragment]:
        """Return the fragments with the largest values.

        For each channel, `parts` lists fragments by text, value, weight and occurrences.
        """
        fragments = [
            Fragment(text, self.factor * value, self.factor * weight, occurrences, channel)
            for channel, rows in zip(self.channels, parts, strict=True)
            for text, value, weight, occurrences in rows
        ]
        return sorted(fragments, key=lambda fragment: -abs(fragment.value))[:top]
