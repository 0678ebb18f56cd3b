"""Why a parser decided as it did: what spoke for the winner, and what for the runner-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines.classifier import CompiledClassifier
from unkernel.engines.contributions import contributions_of_ones
from unkernel.engines.explaining import AND, Heavy
from unkernel.engines.tables import CONJUNCTIONS


@dataclass(frozen=True)
class Evidence:
    """What a conjunction of features added to two scores.

    Attributes
    ----------
    features : tuple of str
        Such as ``("stack.xpos=NN", "input.word=of")``.
    chosen, runner_up : float
        What it added to the score of the winner and of the runner-up.
    """

    features: tuple[str, ...]
    chosen: float
    runner_up: float

    def __str__(self) -> str:
        return f"{self.chosen:+.6g} {self.runner_up:+.6g}  {' & '.join(self.features)}"


@dataclass(frozen=True)
class HeavyConjunction(Heavy):
    """A conjunction of features with a large weight in a parser.

    Its ``label`` is such as ``"stack.xpos=NN & input.word=of"``, and ``for_class`` the name of the class
    whose score it changes most.

    Attributes
    ----------
    features : tuple of str
        The names of its features, such as ``("stack.xpos=NN", "input.word=of")``.
    part : str
        The classifier of ``parts_`` that has it.
    """

    features: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class ExplainedDecision:
    """A decision of a parser. ``intercept``, ``evidence`` and ``rest`` add up to the two scores.

    Attributes
    ----------
    sentence : int
        Counted from 0.
    kind : {"move", "label", "dependency", "tag"}
    words : tuple of int
        The words (or bunsetsu) in question, counted from 1: the top of the stack and the next word of a move;
        head and dependent of a label; modifier and candidate of a dependency; the word of a tag.
    forms : tuple of str
        How they are written.
    part : str
        Which classifier of ``parts_`` decided.
    chosen, runner_up : str
        The winner, and the best of the others that were possible (of tags: that scored less); an empty text
        if there was none.
    scores : dict of str to float
        Of all classes. Two classes have one score: that of the first is its negative.
    barred : tuple of str
        Classes of a higher score that were not possible.
    evidence : list of Evidence
        The largest differences first.
    intercept, rest : Evidence
        What every decision gets, and the sum of all that is not listed; they have no features.
    n_conjunctions : int
        How many there are, listed or not.
    """

    sentence: int
    kind: str
    words: tuple[int, ...]
    forms: tuple[str, ...]
    part: str
    chosen: str
    runner_up: str
    scores: dict[str, float]
    barred: tuple[str, ...]
    evidence: list[Evidence] = field(repr=False)
    intercept: Evidence
    rest: Evidence
    n_conjunctions: int

    @property
    def question(self) -> str:
        """The words, as what they are to each other."""
        joint = {"move": " | ", "label": " → ", "dependency": " → "}.get(self.kind, " ")
        return joint.join(self.forms)

    @property
    def answer(self) -> str:
        """The winner and the runner-up, with their scores."""
        words = f"{self.chosen} {self.scores[self.chosen]:+.6g}"
        return words + (f", {self.runner_up} {self.scores[self.runner_up]:+.6g}" if self.runner_up else "")

    def __str__(self) -> str:
        others = self.n_conjunctions - len(self.evidence)
        lines = [f"{self.question}: {self.answer}", f"  {self.intercept}(intercept)"]
        lines += [f"  {one}" for one in self.evidence]
        return "\n".join([*lines, f"  {self.rest}({others:,} others)"])


@dataclass(frozen=True)
class Decided:
    """What was asked, and what the parser answered."""

    sentence: int
    kind: str
    words: tuple[int, ...]
    forms: tuple[str, ...]
    part: str
    chosen: int  # its place among the classes
    possible: Callable[[int], bool] | None  # by place; None: what has a lower score than the winner


def explained(
    decided: Decided,
    classifier: CompiledClassifier,
    row: NDArray[np.int32],
    classes: Sequence[str],
    feature_name: Callable[[int], str],
    *,
    top: int | None,
) -> ExplainedDecision:
    """A decision on this row of features."""
    if not classifier.exact:
        raise ValueError("a pruned parser decides approximately, and what it decides by does not add up")
    found = contributions_of_ones(classifier.model, np.asarray(row, np.int64))
    values, intercept = _by_class(found.values), _by_class(found.intercept[None, :])[0]
    scores = intercept + values.sum(axis=0)
    chosen, second, barred = _ranked(scores, decided)
    pair = np.zeros((len(values), 2))
    pair[:, 0] = values[:, chosen]
    if second is not None:
        pair[:, 1] = values[:, second]
    order = _by_difference(pair)
    listed = order if top is None else order[:top]
    columns = [sorted(c for c in found.columns[place].tolist() if c >= 0) for place in listed]
    rest = pair.sum(axis=0) - pair[listed].sum(axis=0)
    return ExplainedDecision(
        sentence=decided.sentence,
        kind=decided.kind,
        words=decided.words,
        forms=decided.forms,
        part=decided.part,
        chosen=classes[chosen],
        runner_up="" if second is None else classes[second],
        scores=dict(zip(classes, scores.tolist(), strict=True)),
        barred=tuple(classes[place] for place in barred),
        evidence=[
            Evidence(tuple(map(feature_name, own)), *pair[place].tolist())
            for own, place in zip(columns, listed, strict=True)
        ],
        intercept=Evidence((), float(intercept[chosen]), 0.0 if second is None else float(intercept[second])),
        rest=Evidence((), *rest.tolist()),
        n_conjunctions=len(order),
    )


def heavy_conjunctions(
    part: str,
    classifier: CompiledClassifier,
    classes: Sequence[str],
    feature_name: Callable[[int], str],
    top: int,
) -> list[HeavyConjunction]:
    """The conjunctions with the largest weights in a classifier's tables.

    Those of rare features that an engine did not expand are not among them.
    """
    if classifier._tables.layout != CONJUNCTIONS:
        classifier = expanded(classifier.model)
    listing = classifier._tables.heaviest_conjunctions(top)
    found = []
    for padded, weights in zip(listing["columns"].tolist(), listing["weights"].tolist(), strict=True):
        by_class = [-weights[0], weights[0]] if len(weights) == 1 else weights
        place = max(range(len(by_class)), key=lambda k: (abs(by_class[k]), by_class[k]))
        columns = tuple(sorted(column for column in padded if column >= 0))
        try:
            names = tuple(map(feature_name, columns))
        except IndexError as error:
            reason = f"the classifier {part!r} has a column that no feature has: its file is damaged"
            raise ValueError(reason) from error
        label = AND.join(names)
        found.append(
            HeavyConjunction(label, by_class[place], classes[place], columns, features=names, part=part)
        )
    return found


def expanded(model: Any) -> CompiledClassifier:
    """A classifier of a model of support vectors whose conjunctions have weights."""
    from unkernel.engines.compiling import compile

    made = compile(model, "expanded", measure=False)
    assert isinstance(made, CompiledClassifier)
    return made


def _by_class(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """One column per class; a model of two classes has one score, that of the second."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def _ranked(scores: NDArray[np.float64], decided: Decided) -> tuple[int, int | None, list[int]]:
    """The winner, the runner-up, and those that would have won if they had been possible."""
    chosen, possible = decided.chosen, decided.possible
    others = [place for place in np.argsort(-scores, kind="stable").tolist() if place != chosen]
    barred = [place for place in others if scores[place] > scores[chosen]]
    if possible is not None:
        barred = [place for place in barred if not possible(place)]
        others = [place for place in others if possible(place)]
    left = [place for place in others if place not in barred]
    return chosen, left[0] if left else None, barred


def _by_difference(pair: NDArray[np.float64]) -> list[int]:
    """Where anything was added, the largest differences first."""
    sizes = np.abs(pair[:, 0] - pair[:, 1])
    order = np.lexsort((np.arange(len(pair)), -np.abs(pair).max(axis=1, initial=0.0), -sizes))
    found: list[int] = order[pair[order].any(axis=1)].tolist()
    return found
