"""Decisions for several outputs: several labels per row, or several targets.

The scores of a model of several outputs are those of its outputs, one after the other, and each output has
its own :class:`~unkernel.models.Decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from unkernel.models.decision import Decision

Scores = NDArray[np.float64]

MULTI_LABEL, MULTI_OUTPUT = "multi_label", "multi_output"
_OUTPUT_SCHEMES = ("binary", "one_vs_rest", "one_vs_one", "regression", "calibrated")


def check_outputs(decision: Decision) -> None:
    """Raise a ``ValueError`` unless the outputs of a decision fit its scheme and each other."""
    outputs = decision.outputs
    if decision.scheme not in (MULTI_LABEL, MULTI_OUTPUT):
        if outputs:
            raise ValueError(f"scheme {decision.scheme!r} has a single output")
        return
    if not outputs:
        raise ValueError(f"scheme {decision.scheme!r} needs a decision for each output")
    for output in outputs:
        if output.scheme not in _OUTPUT_SCHEMES or output.ranking:
            raise ValueError(f"an output cannot have the scheme {output.scheme!r}, or rank rows")
    if decision.probability is not None:
        raise ValueError("probabilities belong to single outputs")
    if len({output.scheme == "regression" for output in outputs}) > 1:
        raise ValueError("the outputs must be all classes, or all numbers")
    if decision.scheme == MULTI_OUTPUT:
        if len(decision.classes):
            raise ValueError("scheme 'multi_output' has the classes of its outputs")
        return
    if len(decision.classes) != len(outputs) or len(outputs) < 2:
        raise ValueError("scheme 'multi_label' has at least two labels, and a decision for each of them")
    if any(output.classes.tolist() != [0, 1] for output in outputs):
        raise ValueError("the decisions of labels have the classes 0 and 1")


def list_score_ranges(outputs: Sequence[Decision]) -> list[tuple[int, int]]:
    """Return the begin and the end of each output's scores."""
    ends = np.cumsum([0, *(output.n_scores for output in outputs)]).tolist()
    return list(pairwise(ends))


def split_scores(outputs: Sequence[Decision], scores: Scores) -> Iterator[tuple[Decision, Scores]]:
    """Yield each output together with its scores, of shape (rows, scores of the output)."""
    for output, (begin, end) in zip(outputs, list_score_ranges(outputs), strict=True):
        yield output, scores[:, begin:end]


def have_signs(outputs: Sequence[Decision]) -> bool:
    """Return whether each output is class 1 where its single score is above 0, and class 0 elsewhere."""
    return all(
        output.chooses_by_sign and not output.zero_is_positive and output.classes.tolist() == [0, 1]
        for output in outputs
    )


def decide(decision: Decision, scores: Scores) -> Scores:
    """Return the numbers of ``decision_function``: those of each output, or one number per label."""
    if decision.decides_by_scores:
        return scores
    parts = [
        output.decide(part).reshape(len(scores), -1)
        for output, part in split_scores(decision.outputs, scores)
    ]
    if decision.scheme == MULTI_LABEL:  # of two probabilities, take that of the label
        parts = [part[:, -1:] for part in parts]
    return np.concatenate(parts, axis=1)


def choose(decision: Decision, scores: Scores) -> NDArray[Any]:
    """Return predictions of shape (rows, outputs); for labels, 1 where the row has the label, otherwise 0."""
    if decision.scheme == MULTI_LABEL and have_signs(decision.outputs):
        return (scores > 0).astype(np.int64)
    parts = [output.choose(part) for output, part in split_scores(decision.outputs, scores)]
    return np.ascontiguousarray(np.asarray(parts).T)


def compute_probabilities(decision: Decision, scores: Scores) -> Scores:
    """Return the probability of each label, or of each class of each output in turn."""
    parts = [output.probabilities(part) for output, part in split_scores(decision.outputs, scores)]
    if decision.scheme == MULTI_LABEL:
        parts = [part[:, 1:] for part in parts]
    return np.concatenate(parts, axis=1)


def divide_probabilities(decision: Decision, probabilities: Scores) -> Any:
    """Return the probabilities as scikit-learn arranges them: one array per output unless they are labels."""
    if decision.scheme != MULTI_OUTPUT:
        return probabilities
    ends = np.cumsum([len(output.classes) for output in decision.outputs])
    return [np.ascontiguousarray(part) for part in np.split(probabilities, ends[:-1], axis=1)]


def find_output(outputs: Sequence[Decision], score: int) -> tuple[int, int]:
    """Return the output that has a score, and the index of the score among those of the output."""
    for number, (begin, end) in enumerate(list_score_ranges(outputs)):
        if score < end:
            return number, score - begin
    raise IndexError(f"there is no score {score}")


def list_explained(decision: Decision) -> list[Any]:
    """Return the arguments `of` of explanations: the classes or labels, or else the numbers of outputs."""
    if decision.scheme == MULTI_OUTPUT:
        return list(range(len(decision.outputs)))
    return list(decision.classes.tolist())


def name_columns(decision: Decision, name: Callable[[Decision], list[str]], *single: str) -> list[str]:
    """Return names for numbers of all outputs in turn, given a function that names those of one output.

    A label has one number, named after the label. The names of other outputs begin with the number of the
    output; names in `single`, of an output with one number, are left out.
    """
    if decision.scheme == MULTI_LABEL:
        return [str(label) for label in decision.classes.tolist()]
    return [
        f"{number} {one}" if len(names) > 1 or one not in single else str(number)
        for number, names in enumerate(map(name, decision.outputs))
        for one in names
    ]


def list_predictions(decision: Decision, chosen: NDArray[Any]) -> list[list[Any]]:
    """Return the predictions of each row as a list: its labels, or the answer of each output in turn."""
    rows: list[list[Any]] = chosen.tolist()
    if decision.scheme != MULTI_LABEL:
        return rows
    labels = decision.classes.tolist()
    return [[label for label, is_set in zip(labels, row, strict=True) if is_set] for row in rows]
