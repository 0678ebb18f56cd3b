"""The training of the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unkernel.measures.number_format import format_number
from unkernel.measures.predictions import ModelPredictions
from unkernel.models.history import History
from unkernel.report.figures import (
    COLOURS,
    add_legend,
    make_line_label,
    make_logarithmic,
    open_axes,
    render_svg,
)
from unkernel.report.markup import Html, facts, figure, join_parts, paragraph, side_by_side
from unkernel.report.model_summary import describe_training, merge_facts
from unkernel.report.page import Section

_WIDE_RANGE = 10.0  # if largest / smallest value exceeds this ratio, the axis is logarithmic


def make_training_section(predictions: Sequence[ModelPredictions]) -> Section | None:
    """Describe the training of the models; return None if no model stores a description."""
    facts_of_models = [describe_training(model.inner.model) for model in predictions]
    if not any(facts_of_models):
        return None
    names = [model.name for model in predictions]
    summary = facts(names, merge_facts(facts_of_models), caption="Training")
    return Section("Training", join_parts([summary, *_draw_histories(predictions)]))


def _draw_histories(predictions: Sequence[ModelPredictions]) -> list[Html]:
    histories = {
        model.name: History.from_json(model.inner.model.origin.get("history")) for model in predictions
    }
    histories_to_draw = {
        name: history
        for name, history in histories.items()
        if history is not None and len(history.passes) > 1
    }
    if not histories_to_draw:
        return []
    note = paragraph(
        "A pass is one over the training data, a step of Newton's method or a round of cutting planes, by "
        "learner. Some solvers estimate the objective until the last pass.",
        note=True,
    )
    return [
        side_by_side(
            [
                *(_draw_objective(*history) for history in histories_to_draw.items()),
                _draw_gaps(histories_to_draw),
            ]
        ),
        note,
    ]


def _draw_objective(name: str, history: History) -> Html:
    with open_axes() as axes:
        _draw_line(axes, history, history.objective, color=COLOURS[0], label="objective")
        _draw_line(axes, history, history.bound, color=COLOURS[1], linestyle="--", label="lower bound")
        minimum = min(history.objective.min(), history.bound.min())
        if history.objective.max() > _WIDE_RANGE * minimum > 0:
            make_logarithmic(axes)
        axes.set(xlabel="pass", ylabel="objective")
        add_legend(axes, loc="best")
        description = (
            f"{name}: the objective by pass, down to {format_number(history.objective[-1], 6)}, and the "
            f"lower bound of the optimum, up to {format_number(history.bound[-1], 6)}"
        )
        return figure(render_svg(axes, description), f"{description}.")


def _draw_gaps(histories: Mapping[str, History]) -> Html:
    with open_axes() as axes:
        for (name, history), colour in zip(histories.items(), COLOURS, strict=False):
            _draw_line(axes, history, history.gap, color=colour, label=make_line_label(name))
        make_logarithmic(axes)
        axes.set(xlabel="pass", ylabel="relative gap")
        if len(histories) > 1:
            add_legend(axes, loc="best")
        last = "; ".join(f"{name} {format_number(history.gap[-1], 2)}" for name, history in histories.items())
        return figure(
            render_svg(axes, f"Relative gap by pass; after the last one: {last}"),
            "The relative gap between the objective and its lower bound limits what other weights can gain.",
        )


def _draw_line(axes: Any, history: History, values: Any, **style: Any) -> None:
    axes.plot(history.passes, values, marker="o", markersize=2.5, **style)
    axes.xaxis.get_major_locator().set_params(integer=True)
