"""Facts about the models, and their speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unkernel.engines import CompiledClassifier
from unkernel.engines.search.candidates import Candidate, describe_layout
from unkernel.measures.number_format import format_bytes, format_number
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.markup import Html, facts, join_parts, paragraph, table
from unkernel.report.model_summary import describe_classifier, merge_facts
from unkernel.report.page import Section


def make_models_section(predictions: Sequence[ModelPredictions]) -> Section:
    return make_facts_section({model.name: describe_classifier(model.classifier) for model in predictions})


def make_facts_section(facts_of_models: Mapping[str, dict[str, str]]) -> Section:
    """Return a section with the facts about models or parsers, given by name."""
    caption = "The model" if len(facts_of_models) == 1 else "The models"
    content = facts(list(facts_of_models), merge_facts(list(facts_of_models.values())), caption=caption)
    return Section("Model" if len(facts_of_models) == 1 else "Models", content)


def make_engines_section(predictions: Sequence[ModelPredictions]) -> Section:
    """Show the time and memory of the engine, and of the engines that ``compile`` tried."""
    unit = predictions[0].examples.unit
    rows = [
        [
            model.name,
            model.inner.engine,
            format_bytes(model.inner.nbytes),
            f"{format_number(model.microseconds, 3)} µs",
        ]
        for model in predictions
    ]
    head = ["model", "engine", "memory", f"CPU time per {unit}"]
    times = table(head, rows, caption=f"Time and memory on these {unit}s", texts=[1])
    note = paragraph(
        f"The CPU time of scoring all {unit}s at once, without reading and encoding them, in one run.",
        note=True,
    )
    searches = [_describe_search(model) for model in predictions if _get_candidates(model)]
    return Section("Time and memory", join_parts([times, note, *searches]))


def _get_candidates(predictions: ModelPredictions) -> Sequence[Candidate]:
    return predictions.inner.candidates if isinstance(predictions.inner, CompiledClassifier) else ()


def _describe_search(predictions: ModelPredictions) -> Html:
    candidates = _get_candidates(predictions)
    rows = [
        [
            candidate.engine,
            describe_layout(candidate),
            format_bytes(candidate.nbytes) if candidate.nbytes >= 0 else "",
            format_number(candidate.microseconds, 3) if candidate.microseconds >= 0 else "",
            ", ".join(filter(None, ["chosen" if candidate.chosen else "", candidate.note])),
        ]
        for candidate in candidates
    ]
    return table(
        ["engine", "layout", "memory", "µs per row", ""],
        rows,
        caption=f"Engines that were tried when {predictions.name} was compiled, on the rows given then",
        texts=[1, 4],
        marked=[row for row, candidate in enumerate(candidates) if candidate.chosen],
    )
