"""Calibration: of the examples with a probability of 70 % for a class, 70 % should belong to the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.intervals import compute_wilson_interval
from unkernel.measures.number_format import format_number, format_percent
from unkernel.report.figures import COLOURS, GREY, SQUARE, add_legend, draw_shares, open_axes, render_svg
from unkernel.report.markup import Html, figure, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section

_BINS = 10


@dataclass(frozen=True)
class Bin:
    """Examples with similar probabilities."""

    predicted: float  # their mean probability
    observed: float  # the share of them that belongs to the class
    low: float  # the ends of the interval of `observed`
    high: float
    count: int


def make_calibration_section(measured_models: Sequence[ClassMeasures]) -> Section:
    """Show the calibration curve of each model with probabilities."""
    probabilistic_models = [model for model in measured_models if model.predictions.probabilities is not None]
    if not probabilistic_models:
        return Section(
            "Calibration", paragraph("There are no probabilities, so there is no calibration to show.")
        )
    bins_by_model = {
        model.predictions.name: make_bins(*_get_predicted_and_observed(model))
        for model in probabilistic_models
    }
    positive = probabilistic_models[0].predictions.positive
    subject = "the answer" if positive is None else str(probabilistic_models[0].predictions.classes[positive])
    parts = [
        _draw_bins(bins_by_model, subject),
        *(_list_bins(name, model_bins, subject) for name, model_bins in bins_by_model.items()),
    ]
    return Section("Calibration", join_parts([side_by_side(parts), _describe_errors(bins_by_model)]))


def _get_predicted_and_observed(model: ClassMeasures) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return probabilities and outcomes of the positive class or, for several classes, the predicted one."""
    predictions = model.predictions
    assert predictions.probabilities is not None
    if predictions.positive is not None:
        return predictions.probabilities[:, predictions.positive], predictions.gold == predictions.positive
    return predictions.probabilities.max(axis=1), predictions.gold == predictions.probabilities.argmax(axis=1)


def make_bins(predicted: NDArray[np.float64], observed: NDArray[np.bool_]) -> list[Bin]:
    """Divide examples by probability into ten bins of about equal size; equal probabilities share a bin."""
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bin_of_example = np.searchsorted(edges, predicted, side="left")
    model_bins = []
    for group in np.unique(bin_of_example).tolist():
        in_bin = bin_of_example == group
        hits, count = int(observed[in_bin].sum()), int(in_bin.sum())
        model_bins.append(
            Bin(float(predicted[in_bin].mean()), hits / count, *compute_wilson_interval(hits, count), count)
        )
    return model_bins


def compute_expected_error(model_bins: Sequence[Bin]) -> float:
    """Return the mean absolute difference between predicted and observed probabilities."""
    total = sum(bin.count for bin in model_bins)
    return sum(bin.count * abs(bin.predicted - bin.observed) for bin in model_bins) / total


def _draw_bins(bins_by_model: dict[str, list[Bin]], subject: str) -> Html:
    with open_axes(SQUARE) as axes:
        axes.plot([0, 1], [0, 1], linestyle=":", color=GREY)
        for (name, model_bins), colour in zip(bins_by_model.items(), COLOURS, strict=False):
            shares = [(bin.observed, bin.low, bin.high) for bin in model_bins]
            draw_shares(axes, [bin.predicted for bin in model_bins], shares, colour, name)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set(xlabel="predicted probability", ylabel="observed frequency")
        if len(bins_by_model) > 1:
            add_legend(axes, loc="upper left")
        return figure(
            render_svg(axes, f"Calibration curve for {subject}; the table beside it has the numbers"),
            f"Calibration for {subject}: tenths of the examples by probability, with Wilson's 95 % "
            "intervals. On the dotted line, probabilities are right.",
        )


def _list_bins(name: str, model_bins: Sequence[Bin], subject: str) -> Html:
    rows = [
        [format_percent(bin.predicted, 1), format_percent(bin.observed, 1), f"{bin.count:,}"]
        for bin in model_bins
    ]
    return table(["predicted", "observed", "examples"], rows, caption=f"{name}: calibration for {subject}")


def _describe_errors(bins_by_model: dict[str, list[Bin]]) -> Html:
    errors = "; ".join(
        f"{name} {format_number(compute_expected_error(model_bins), 3)}"
        for name, model_bins in bins_by_model.items()
    )
    return paragraph(f"Expected calibration error (mean distance over the tenths): {errors}.")
