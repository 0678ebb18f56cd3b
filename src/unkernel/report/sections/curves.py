"""ROC and precision–recall curves, and the distribution of scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.detection import Curve, Detection
from unkernel.measures.number_format import number
from unkernel.report.figures import COLOURS, GREY, SQUARE, drawing, legend, name_of_line, picture
from unkernel.report.markup import Html, figure, side_by_side
from unkernel.report.page import Section

_MOST_POINTS = 300
_MOST_LINES = len(COLOURS)
_BINS = 40


def curves(studied: Sequence[ClassMeasures]) -> Section:
    """Show how well scores separate classes, at every threshold."""
    lines = list(_list_curves(studied))
    parts = [_draw_roc(lines), _draw_precision_recall(lines)]
    if studied[0].answers.positive is not None:
        parts += [_draw_distribution(one) for one in studied]
    return Section("Curves", side_by_side(parts))


def _list_curves(studied: Sequence[ClassMeasures]) -> Iterator[tuple[str, Curve]]:
    """Yield a line for each model of two classes, or for each of the largest classes."""
    for one in studied:
        answers = one.answers
        if answers.positive is not None:
            yield answers.name, answers.detection.curve()
            continue
        counts = np.bincount(answers.right, minlength=len(answers.classes))
        few = max(1, _MOST_LINES // len(studied))
        for place in np.argsort(-counts, kind="stable")[:few].tolist():
            if 0 < counts[place] < len(answers.right):
                found = Detection(answers.evidence[:, place], answers.right == place)
                name = (
                    answers.classes[place]
                    if len(studied) == 1
                    else f"{answers.name}: {answers.classes[place]}"
                )
                yield str(name), found.curve()


def _draw_roc(lines: Sequence[tuple[str, Curve]]) -> Html:
    with drawing(SQUARE) as axes:
        axes.plot([0, 1], [0, 1], linestyle=":", color=GREY)
        for (name, curve), colour in zip(lines, COLOURS, strict=False):
            few = _choose_points(len(curve.hits))
            across = np.concatenate([[0.0], curve.false_alarm_rate[few]])
            up = np.concatenate([[0.0], curve.recall[few]])
            axes.plot(across, up, color=colour, label=f"{name_of_line(name)}: {number(curve.roc_area())}")
        axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        legend(axes, loc="lower right", title="area")
        words = "; ".join(f"{name} {number(curve.roc_area())}" for name, curve in lines)
        return figure(
            picture(axes, f"ROC curves. Areas: {words}"),
            "ROC curve: the true positive rate against the false positive rate, for all thresholds. "
            "Dotted: chance.",
        )


def _draw_precision_recall(lines: Sequence[tuple[str, Curve]]) -> Html:
    with drawing(SQUARE) as axes:
        for (name, curve), colour in zip(lines, COLOURS, strict=False):
            few = _choose_points(len(curve.hits))
            area = number(curve.average_precision())
            axes.plot(
                curve.recall[few], curve.precision[few], color=colour, label=f"{name_of_line(name)}: {area}"
            )
            if len(lines) <= 2:  # more curves would hide the names
                share = curve.positives / (curve.positives + curve.negatives)
                axes.axhline(share, linestyle=":", color=colour, linewidth=1.0)
        axes.set(xlabel="recall", ylabel="precision", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        legend(axes, loc="lower left", title="average precision")
        words = "; ".join(f"{name} {number(curve.average_precision())}" for name, curve in lines)
        return figure(
            picture(axes, f"Precision–recall curves. Average precision: {words}"),
            "Precision against recall."
            + (
                " Dotted: the precision of random answers, the share of the class." if len(lines) <= 2 else ""
            ),
        )


def _draw_distribution(one: ClassMeasures) -> Html:
    answers = one.answers
    place = answers.positive
    assert place is not None
    scores = answers.evidence[:, place]
    edges = _choose_edges(scores)
    with drawing() as axes:
        for k, colour in zip((1 - place, place), COLOURS, strict=False):
            own = scores[answers.right == k]
            axes.hist(
                np.clip(own, edges[0], edges[-1]),
                bins=edges,
                color=colour,
                alpha=0.55,
                label=name_of_line(answers.classes[k]),
            )
        what = "probability" if answers.probabilities is not None else "score"
        axes.set(
            xlabel=f"{what} for {name_of_line(answers.classes[place])}", ylabel=f"{answers.examples.unit}s"
        )
        axes.yaxis.get_major_locator().set_params(integer=True)
        legend(axes, loc="best", title="true class")
        return figure(
            picture(axes, f"Histogram of the {what} by true class, {answers.name}"),
            f"Number of {answers.examples.unit}s by {what} and true class: {answers.name}.",
        )


def _choose_edges(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return bins for all but the outermost scores, which join the first and the last bin."""
    low, high = np.percentile(scores, [0.5, 99.5])
    return np.linspace(low, high if high > low else low + 1.0, _BINS + 1)


def _choose_points(count: int) -> NDArray[np.intp]:
    """Return the indices of enough points to draw a curve, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(np.intp))
