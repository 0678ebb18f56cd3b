"""The largest weights of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unkernel.engines.explain.explanation import AND, Heavy
from unkernel.measures.number_format import format_signed
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.explanation_tables import make_weight_table
from unkernel.report.markup import Html, element, figure, join_parts, paragraph, side_by_side
from unkernel.report.page import Section
from unkernel.report.tree_drawing import draw_tree

_MAX_DRAWN_FRAGMENTS = 12


def make_weights_section(predictions: Sequence[ModelPredictions], top: int) -> Section:
    """List the largest weights."""
    explanation = paragraph(
        "A weight is added to the score of every example that has all features of the conjunction; for "
        "features with values, their product times the weight."
    )
    lists = [_list_heaviest(model, top)[0] for model in predictions]
    return Section("Heaviest conjunctions", join_parts([explanation, side_by_side(lists)]))


def _list_heaviest(predictions: ModelPredictions, top: int) -> tuple[Html, list[Heavy]]:
    """Return a table of the largest weights and the weights; if there are none, the reason and []."""
    try:
        heaviest = [_name_features(weight, predictions) for weight in predictions.heaviest(top)]
    except ValueError as reason:
        return paragraph(f"{predictions.name}: {reason}"), []
    return make_weight_table(heaviest, f"{predictions.name}: the largest weights"), heaviest


def make_fragments_section(predictions: Sequence[ModelPredictions], top: int) -> Section:
    """Draw the fragments of trees with the largest weights."""
    explanation = paragraph(
        "The weight of a fragment is added to the score as often as a tree has it, before the norm."
    )
    return Section(
        "Heaviest fragments",
        join_parts([explanation, *(_draw_fragments(model, top) for model in predictions)]),
    )


def _draw_fragments(predictions: ModelPredictions, top: int) -> Html:
    table_of_weights, heaviest = _list_heaviest(predictions, top)
    if not heaviest:
        return table_of_weights
    pictures = [_draw_fragment(weight) for weight in heaviest[:_MAX_DRAWN_FRAGMENTS]]
    drawn = [picture for picture in pictures if picture is not None]
    return join_parts([table_of_weights, element("div", *drawn, class_="grid small")])


def _draw_fragment(weight: Heavy) -> Html | None:
    picture = draw_tree(weight.label)
    if picture is None:
        return None
    return figure(
        element("div", picture, class_="drawn"), f"{format_signed(weight.weight)} for {weight.for_class}"
    )


def _name_features(weight: Heavy, predictions: ModelPredictions) -> Heavy:
    """Return a weight labelled with the numbers of its features in files if these have no names."""
    if weight.columns is None or predictions.inner.model.origin.get("feature_names") is not None:
        return weight
    return replace(weight, label=AND.join(predictions.names[column] for column in weight.columns))
