"""Calibration of probabilities: of the examples with a probability of 70 %, 70 % should be of the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.intervals import wilson
from unkernel.measures.number_format import format_percent, number
from unkernel.report.figures import COLOURS, GREY, SQUARE, draw_shares, drawing, legend, picture
from unkernel.report.markup import Html, figure, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section

_BINS = 10


@dataclass(frozen=True)
class Bin:
    """Examples with similar probabilities."""

    said: float
    seen: float
    low: float
    high: float
    count: int


def calibration(studied: Sequence[ClassMeasures]) -> Section:
    """Show the calibration curve of each model with probabilities."""
    able = [one for one in studied if one.answers.probabilities is not None]
    if not able:
        return Section(
            "Calibration", paragraph("There are no probabilities, so there is no calibration to show.")
        )
    found = {one.answers.name: bins(*_get_said_and_seen(one)) for one in able}
    place = able[0].answers.positive
    what = "the answer" if place is None else str(able[0].answers.classes[place])
    parts = [_draw_bins(found, what), *(_list_bins(name, of_model, what) for name, of_model in found.items())]
    return Section("Calibration", join_parts([side_by_side(parts), _describe_errors(found)]))


def _get_said_and_seen(one: ClassMeasures) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return probabilities and outcomes: of the positive class for two classes, of the predicted class for
    more.
    """
    answers = one.answers
    assert answers.probabilities is not None
    if answers.positive is not None:
        return answers.probabilities[:, answers.positive], answers.right == answers.positive
    return answers.probabilities.max(axis=1), answers.right == answers.probabilities.argmax(axis=1)


def bins(said: NDArray[np.float64], seen: NDArray[np.bool_]) -> list[Bin]:
    """Return ten bins of equal size, by probability; equal probabilities stay together."""
    edges = np.unique(np.quantile(said, np.linspace(0, 1, _BINS + 1)[1:-1]))
    part = np.searchsorted(edges, said, side="left")
    found = []
    for k in np.unique(part).tolist():
        own = part == k
        hits, count = int(seen[own].sum()), int(own.sum())
        found.append(Bin(float(said[own].mean()), hits / count, *wilson(hits, count), count))
    return found


def compute_expected_error(found: Sequence[Bin]) -> float:
    """Return the mean distance between predicted and observed probabilities."""
    total = sum(one.count for one in found)
    return sum(one.count * abs(one.said - one.seen) for one in found) / total


def _draw_bins(found: dict[str, list[Bin]], what: str) -> Html:
    with drawing(SQUARE) as axes:
        axes.plot([0, 1], [0, 1], linestyle=":", color=GREY)
        for (name, of_model), colour in zip(found.items(), COLOURS, strict=False):
            shares = [(one.seen, one.low, one.high) for one in of_model]
            draw_shares(axes, [one.said for one in of_model], shares, colour, name)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set(xlabel="predicted probability", ylabel="observed frequency")
        if len(found) > 1:
            legend(axes, loc="upper left")
        return figure(
            picture(axes, f"Calibration curve for {what}; the table beside it has the numbers"),
            f"Calibration for {what}: tenths of the examples by probability, with Wilson's 95 % intervals. "
            "On the dotted line, probabilities are right.",
        )


def _list_bins(name: str, found: Sequence[Bin], what: str) -> Html:
    rows = [[format_percent(one.said, 1), format_percent(one.seen, 1), f"{one.count:,}"] for one in found]
    return table(["predicted", "observed", "examples"], rows, caption=f"{name}: calibration for {what}")


def _describe_errors(found: dict[str, list[Bin]]) -> Html:
    words = "; ".join(f"{name} {number(compute_expected_error(one), 3)}" for name, one in found.items())
    return paragraph(f"Expected calibration error (mean distance over the tenths): {words}.")
