"""ROC and precision–recall curves, and the distribution of scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.detection import Curve, Detection
from unkernel.measures.number_format import format_number
from unkernel.report.figures import COLOURS, GREY, SQUARE, add_legend, make_line_label, open_axes, render_svg
from unkernel.report.markup import Html, figure, side_by_side
from unkernel.report.page import Section

_MAX_POINTS = 300
_MAX_LINES = len(COLOURS)
_BINS = 40


def make_curves_section(measured_models: Sequence[ClassMeasures]) -> Section:
    """Show ROC and precision–recall curves and, for two classes, the distribution of scores."""
    lines = list(_list_curves(measured_models))
    parts = [_draw_roc(lines), _draw_precision_recall(lines)]
    if measured_models[0].predictions.positive is not None:
        parts += [_draw_distribution(model) for model in measured_models]
    return Section("Curves", side_by_side(parts))


def _list_curves(measured_models: Sequence[ClassMeasures]) -> Iterator[tuple[str, Curve]]:
    """Yield (name, curve): one per model for two classes, otherwise one per model and frequent class."""
    for model in measured_models:
        predictions = model.predictions
        if predictions.positive is not None:
            yield predictions.name, predictions.detection.curve()
            continue
        counts = np.bincount(predictions.gold, minlength=len(predictions.classes))
        n_classes = max(1, _MAX_LINES // len(measured_models))
        for code in np.argsort(-counts, kind="stable")[:n_classes].tolist():
            if 0 < counts[code] < len(predictions.gold):
                detection = Detection(predictions.evidence[:, code], predictions.gold == code)
                name = (
                    predictions.classes[code]
                    if len(measured_models) == 1
                    else f"{predictions.name}: {predictions.classes[code]}"
                )
                yield str(name), detection.curve()


def _draw_roc(lines: Sequence[tuple[str, Curve]]) -> Html:
    with open_axes(SQUARE) as axes:
        axes.plot([0, 1], [0, 1], linestyle=":", color=GREY)
        for (name, curve), colour in zip(lines, COLOURS, strict=False):
            points = _choose_points(len(curve.true_positives))
            false_positive_rates = np.concatenate([[0.0], curve.false_positive_rate[points]])
            recalls = np.concatenate([[0.0], curve.recall[points]])
            axes.plot(
                false_positive_rates,
                recalls,
                color=colour,
                label=f"{make_line_label(name)}: {format_number(curve.roc_area())}",
            )
        axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        add_legend(axes, loc="lower right", title="area")
        areas = "; ".join(f"{name} {format_number(curve.roc_area())}" for name, curve in lines)
        return figure(
            render_svg(axes, f"ROC curves. Areas: {areas}"),
            "ROC curve: the true positive rate against the false positive rate, for all thresholds. "
            "Dotted: chance.",
        )


def _draw_precision_recall(lines: Sequence[tuple[str, Curve]]) -> Html:
    with open_axes(SQUARE) as axes:
        for (name, curve), colour in zip(lines, COLOURS, strict=False):
            points = _choose_points(len(curve.true_positives))
            area = format_number(curve.average_precision())
            axes.plot(
                curve.recall[points],
                curve.precision[points],
                color=colour,
                label=f"{make_line_label(name)}: {area}",
            )
            if len(lines) <= 2:  # dotted lines for more curves would hide the legend
                share = curve.positives / (curve.positives + curve.negatives)
                axes.axhline(share, linestyle=":", color=colour, linewidth=1.0)
        axes.set(xlabel="recall", ylabel="precision", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        add_legend(axes, loc="lower left", title="average precision")
        areas = "; ".join(f"{name} {format_number(curve.average_precision())}" for name, curve in lines)
        return figure(
            render_svg(axes, f"Precision–recall curves. Average precision: {areas}"),
            "Precision against recall."
            + (
                " Dotted: the precision of random answers, the share of the class." if len(lines) <= 2 else ""
            ),
        )


def _draw_distribution(model: ClassMeasures) -> Html:
    predictions = model.predictions
    positive = predictions.positive
    assert positive is not None
    scores = predictions.evidence[:, positive]
    edges = _choose_edges(scores)
    with open_axes() as axes:
        for code, colour in zip((1 - positive, positive), COLOURS, strict=False):
            class_scores = scores[predictions.gold == code]
            axes.hist(
                np.clip(class_scores, edges[0], edges[-1]),
                bins=edges,
                color=colour,
                alpha=0.55,
                label=make_line_label(predictions.classes[code]),
            )
        quantity = "probability" if predictions.probabilities is not None else "score"
        axes.set(
            xlabel=f"{quantity} for {make_line_label(predictions.classes[positive])}",
            ylabel=f"{predictions.examples.unit}s",
        )
        axes.yaxis.get_major_locator().set_params(integer=True)
        add_legend(axes, loc="best", title="true class")
        return figure(
            render_svg(axes, f"Histogram of the {quantity} by true class, {predictions.name}"),
            f"Number of {predictions.examples.unit}s by {quantity} and true class: {predictions.name}.",
        )


def _choose_edges(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges of bins between the percentiles 0.5 and 99.5; the end bins take all other scores."""
    low, high = np.percentile(scores, [0.5, 99.5])
    return np.linspace(low, high if high > low else low + 1.0, _BINS + 1)


def _choose_points(count: int) -> NDArray[np.intp]:
    """Return the indices of at most ``_MAX_POINTS`` points, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, _MAX_POINTS)).astype(np.intp))
