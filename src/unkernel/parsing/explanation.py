"""Explain the decisions of parsers by the evidence for the chosen class and for the runner-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines.explain.explanation import AND, Heavy
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.engines.tables.compiled_tables import CONJUNCTIONS


@dataclass(frozen=True)
class Evidence:
    """Contribution of a conjunction of features to the scores of two classes.

    Attributes
    ----------
    features : tuple of str
        Names of the features, such as ``("stack.xpos=NN", "input.word=of")``.
    chosen : float
        Contribution to the score of the chosen class.
    runner_up : float
        Contribution to the score of the runner-up.

    See Also
    --------
    ExplainedDecision : A decision with its evidence.

    Examples
    --------
    >>> from unkernel.parsing import Evidence
    >>> print(Evidence(("stack.xpos=NN", "input.word=of"), chosen=1.5, runner_up=-0.5))
    +1.5 -0.5  stack.xpos=NN & input.word=of
    """

    features: tuple[str, ...]
    chosen: float
    runner_up: float

    def __str__(self) -> str:
        return f"{self.chosen:+.6g} {self.runner_up:+.6g}  {' & '.join(self.features)}"


@dataclass(frozen=True)
class HeavyConjunction(Heavy):
    """A conjunction of features with a large weight in a parser.

    Attributes
    ----------
    label : str
        Names of the features, joined by "and".
    weight : float
        The weight.
    for_class : str
        The class whose score the conjunction changes most.
    columns : tuple of int or None, default=None
        Columns of the features.
    against : str, default=None
        The other class, if the score compares two classes.
    channel : str or None, default=None
        Not used by parsers.
    output : int or None, default=None
        Not used by parsers.
    features : tuple of str, default=()
        Names of the features, such as ``("stack.xpos=NN", "input.word=of")``.
    part : str, default=""
        Name of the classifier in ``parts_``.

    See Also
    --------
    ArcEagerModel.heaviest : List the largest weights of a parser.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import Chunker
    >>> text = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    >>> heavy = Chunker(degree=1).fit(text).heaviest(1)[0]
    >>> heavy.part, len(heavy.features)
    ('tags', 1)
    """

    features: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class ExplainedDecision:
    """A decision of a parser and the conjunctions of features that led to it.

    ``intercept``, ``evidence`` and ``rest`` add up to the scores of the chosen class and the runner-up.

    Attributes
    ----------
    sentence : int
        Number of the sentence, counted from 0.
    kind : {"move", "label", "dependency", "tag"}
        Kind of the decision.
    words : tuple of int
        The words (or bunsetsu) that the decision concerns, counted from 1: the top of the stack and the next
        word for a move; head and dependent for a label; modifier and candidate for a dependency; the word for
        a tag.
    forms : tuple of str
        The words as they are written.
    part : str
        Name of the classifier in ``parts_``.
    chosen : str
        The chosen class.
    runner_up : str
        The class with the next highest score among the possible classes; empty if there is none. For tags,
        only classes with lower scores than the chosen class count.
    scores : dict of str to float
        Scores of all classes. With two classes, the scores have opposite signs and the same absolute value.
    barred : tuple of str
        Classes that scored higher than the chosen class but were not possible.
    evidence : list of Evidence
        The conjunctions, sorted by the difference between the two contributions, largest first.
    intercept : Evidence
        Constant contribution to every decision.
    rest : Evidence
        Sum of the contributions of the conjunctions that are not listed.
    n_conjunctions : int
        Number of conjunctions, listed or not.

    See Also
    --------
    ArcEagerModel.explain : Explain the decisions of a parser.
    Evidence : Contribution of one conjunction.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import Chunker
    >>> text = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    >>> decision = Chunker().fit(text).explain([["She", "saw"]], tags=[["PRP", "VBD"]])[0]
    >>> decision.forms, decision.chosen, decision.runner_up
    (('She',), 'B-NP', 'B-VP')
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
        """The words that the decision concerns."""
        joint = {"move": " | ", "label": " → ", "dependency": " → "}.get(self.kind, " ")
        return joint.join(self.forms)

    @property
    def answer(self) -> str:
        """The chosen class and the runner-up, with their scores."""
        words = f"{self.chosen} {self.scores[self.chosen]:+.6g}"
        return words + (f", {self.runner_up} {self.scores[self.runner_up]:+.6g}" if self.runner_up else "")

    def __str__(self) -> str:
        others = self.n_conjunctions - len(self.evidence)
        lines = [f"{self.question}: {self.answer}", f"  {self.intercept}(intercept)"]
        lines += [f"  {evidence}" for evidence in self.evidence]
        return "\n".join([*lines, f"  {self.rest}({others:,} others)"])


@dataclass(frozen=True)
class Decision:
    """A decision of a parser: the words, the classifier and the chosen class."""

    sentence: int
    kind: str
    words: tuple[int, ...]
    forms: tuple[str, ...]
    part: str
    chosen: int  # index of the class
    # Takes the index of a class and returns whether the class was possible. If None, the possible classes are
    # those with lower scores than `chosen`.
    possible: Callable[[int], bool] | None


def explain_decision(
    decision: Decision,
    classifier: CompiledClassifier,
    row: NDArray[np.int32],
    classes: Sequence[str],
    feature_name: Callable[[int], str],
    *,
    top: int | None,
) -> ExplainedDecision:
    """Compute the contributions of a row's conjunctions to the chosen class and the runner-up.

    `row` holds the columns of the row's features, and `classes` the names of the classifier's classes.
    """
    if not classifier.exact:
        raise ValueError(
            "a pruned parser computes approximate scores, so its contributions do not add up to them"
        )
    contributions = classifier.split_scores(np.asarray(row, np.int64), np.ones(len(row)))
    values = _to_class_columns(contributions.values)
    intercept = _to_class_columns(contributions.intercept[None, :])[0]
    scores = intercept + values.sum(axis=0)
    chosen, second, barred = _rank_classes(scores, decision)
    pair = np.zeros((len(values), 2))  # contributions to the chosen class and to the runner-up
    pair[:, 0] = values[:, chosen]
    if second is not None:
        pair[:, 1] = values[:, second]
    order = _sort_by_difference(pair)
    listed = order if top is None else order[:top]
    columns = [sorted(c for c in contributions.columns[index].tolist() if c >= 0) for index in listed]
    unlisted = pair.sum(axis=0) - pair[listed].sum(axis=0)
    return ExplainedDecision(
        sentence=decision.sentence,
        kind=decision.kind,
        words=decision.words,
        forms=decision.forms,
        part=decision.part,
        chosen=classes[chosen],
        runner_up="" if second is None else classes[second],
        scores=dict(zip(classes, scores.tolist(), strict=True)),
        barred=tuple(classes[index] for index in barred),
        evidence=[
            Evidence(tuple(map(feature_name, features)), *pair[index].tolist())
            for features, index in zip(columns, listed, strict=True)
        ],
        intercept=Evidence((), float(intercept[chosen]), 0.0 if second is None else float(intercept[second])),
        rest=Evidence((), *unlisted.tolist()),
        n_conjunctions=len(order),
    )


def heavy_conjunctions(
    part: str,
    classifier: CompiledClassifier,
    classes: Sequence[str],
    feature_name: Callable[[int], str],
    top: int,
) -> list[HeavyConjunction]:
    """Return the `top` conjunctions with the largest absolute weights in the tables of a classifier.

    Tables may lack conjunctions of rare features (see ``rare`` in :func:`unkernel.compile`).
    """
    if classifier._tables.layout != CONJUNCTIONS:
        classifier = expand_model(classifier.model)
    listing = classifier._tables.heaviest_conjunctions(top)
    heaviest = []
    for padded_columns, weights in zip(listing["columns"].tolist(), listing["weights"].tolist(), strict=True):
        # A classifier of two classes has one weight, for the second class.
        by_class = [-weights[0], weights[0]] if len(weights) == 1 else weights
        heaviest_class = max(range(len(by_class)), key=lambda k: (abs(by_class[k]), by_class[k]))
        columns = tuple(sorted(column for column in padded_columns if column >= 0))
        try:
            names = tuple(map(feature_name, columns))
        except IndexError as error:
            reason = f"the classifier {part!r} has a column without a feature: its file is damaged"
            raise ValueError(reason) from error
        label = AND.join(names)
        heaviest.append(
            HeavyConjunction(
                label, by_class[heaviest_class], classes[heaviest_class], columns, features=names, part=part
            )
        )
    return heaviest


def expand_model(model: Any) -> CompiledClassifier:
    """Compile a model of support vectors into weights of conjunctions."""
    from unkernel.engines.compilation import compile

    classifier = compile(model, "expanded", measure=False)
    assert isinstance(classifier, CompiledClassifier)
    return classifier


def _to_class_columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one column per class. A model of two classes has one score; positive means the second class."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def _rank_classes(scores: NDArray[np.float64], decision: Decision) -> tuple[int, int | None, list[int]]:
    """Return the chosen class, the runner-up, and the impossible classes with higher scores."""
    chosen, possible = decision.chosen, decision.possible
    others = [index for index in np.argsort(-scores, kind="stable").tolist() if index != chosen]
    barred = [index for index in others if scores[index] > scores[chosen]]
    if possible is not None:
        barred = [index for index in barred if not possible(index)]
        others = [index for index in others if possible(index)]
    candidates = [index for index in others if index not in barred]
    return chosen, candidates[0] if candidates else None, barred


def _sort_by_difference(pair: NDArray[np.float64]) -> list[int]:
    """Return the indices of all pairs with a nonzero contribution, largest differences first."""
    sizes = np.abs(pair[:, 0] - pair[:, 1])
    order = np.lexsort((np.arange(len(pair)), -np.abs(pair).max(axis=1, initial=0.0), -sizes))
    nonzero: list[int] = order[pair[order].any(axis=1)].tolist()
    return nonzero
