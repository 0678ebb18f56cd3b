"""Facts about the models, and their speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unkernel.engines import CompiledClassifier
from unkernel.engines.search.candidates import Candidate, describe_layout
from unkernel.measures.number_format import number, size
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.markup import Html, facts, join_parts, paragraph, table
from unkernel.report.model_summary import classifier_facts, facts_by_model
from unkernel.report.page import Section


def models(predictions: Sequence[ModelPredictions]) -> Section:
    return describe_models({one.name: classifier_facts(one.classifier) for one in predictions})


def describe_models(known: Mapping[str, dict[str, str]]) -> Section:
    """Return the facts of models or parsers, by name."""
    caption = "The model" if len(known) == 1 else "The models"
    shown = facts(list(known), facts_by_model(list(known.values())), caption=caption)
    return Section("Model" if len(known) == 1 else "Models", shown)


def engines(predictions: Sequence[ModelPredictions]) -> Section:
    """Show time and memory of the engine in use, and of the others tried when the model was compiled."""
    unit = predictions[0].examples.unit
    rows = [
        [one.name, one.inner.engine, size(one.inner.nbytes), f"{number(one.microseconds, 3)} µs"]
        for one in predictions
    ]
    head = ["model", "engine", "memory", f"CPU time per {unit}"]
    measured = table(head, rows, caption=f"Time and memory on these {unit}s", texts=[1])
    note = paragraph(
        f"The CPU time of scoring all {unit}s at once, without reading and encoding them, in one run.",
        note=True,
    )
    tried = [_describe_search(one) for one in predictions if _candidates(one)]
    return Section("Time and memory", join_parts([measured, note, *tried]))


def _candidates(predictions: ModelPredictions) -> Sequence[Candidate]:
    return predictions.inner.candidates if isinstance(predictions.inner, CompiledClassifier) else ()


def _describe_search(predictions: ModelPredictions) -> Html:
    found = _candidates(predictions)
    rows = [
        [
            one.engine,
            describe_layout(one),
            size(one.nbytes) if one.nbytes >= 0 else "",
            number(one.microseconds, 3) if one.microseconds >= 0 else "",
            ", ".join(filter(None, ["chosen" if one.chosen else "", one.note])),
        ]
        for one in found
    ]
    return table(
        ["engine", "layout", "memory", "µs per row", ""],
        rows,
        caption=f"Engines that were tried when {predictions.name} was compiled, on the rows given then",
        texts=[1, 4],
        marked=[place for place, one in enumerate(found) if one.chosen],
    )
