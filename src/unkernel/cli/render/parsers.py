"""Describe parsers in text."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.render.parser_scores import print_labels, result_facts
from unkernel.cli.terminal.console import format_seconds, format_size, print_facts
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.measures.number_format import format_count, format_labels, format_percent
from unkernel.models import registry

_KINDS_OF_PARTS = {"depends": "dependencies"}
_CHUNKER = "chunker"
_TEXT_PARSER_MODELS = ("tokenizer", "tagger", "parser")
_ERROR_RATES = {"moves": "wrong_moves", "labels": "wrong_labels", "sentences": "wrong_sentences"}


def parser_facts(description: dict[str, Any]) -> dict[str, str]:
    """Return texts about a parser, given its description; counts are summed over parts of the same kind."""
    parameters = description["parameters"]
    facts = {"kind": f"{registry.list_kinds()[description['kind']].description} ({description['parser']})"}
    if "degree" in parameters:
        facts["learner"] = f"{parameters.get('learner', 'online')}, degree {parameters['degree']}"
    if "templates" in parameters:
        facts["templates"] = _format_templates(parameters["templates"])
    facts["features"] = f"{description['features']:,}"
    if description["answers"] is not None:
        title = "chunk types" if description["kind"] == _CHUNKER else "relations"
        facts[title] = f"{len(description['answers']):,}: {format_labels(description['answers'])}"
    for kind in dict.fromkeys(part["name"].partition(".")[0] for part in description["parts"]):
        name = kind if kind in _TEXT_PARSER_MODELS else f"model of {_KINDS_OF_PARTS.get(kind, kind)}"
        facts[name] = _format_parts(
            [part for part in description["parts"] if part["name"].partition(".")[0] == kind]
        )
    return facts


def _format_templates(templates: Any) -> str:
    if templates is None:
        return "default"
    return templates if isinstance(templates, str) else format_count(len(templates), "template")


def _format_parts(parts: list[dict[str, Any]]) -> str:
    counts_in_words = [format_count(len(parts), "part")]
    for key, name in (("conjunctions", "conjunction"), ("support_vectors", "support vector")):
        counts = [part[key] for part in parts if part[key] is not None]
        counts_in_words += [format_count(sum(counts), name)] if counts else []
    return ", ".join([*counts_in_words, f"{format_size(sum(part['bytes'] for part in parts))} compiled"])


def print_parts(parts: list[dict[str, Any]]) -> None:
    """Print one line per part."""
    table = new_table(
        *map(name_column, ("part", "engine")),
        *map(number_column, ("classes", "conjunctions", "support vectors", "compiled")),
    )
    for part in parts:
        numbers = [part["classes"], part["conjunctions"], part["support_vectors"]]
        cells = ["" if number is None else f"{number:,}" for number in numbers]
        table.add_row(Text(part["name"]), part["engine"], *cells, format_size(part["bytes"]))
    print_table("parts", table)


def print_parser_training(result: dict[str, Any]) -> None:
    units = format_count(
        result["words"], result["unit"], "bunsetsu" if result["unit"] == "bunsetsu" else None
    )
    facts = {"data": f"{format_count(result['sentences'], 'sentence')}, {units}"} | parser_facts(result)
    if result["best_epochs"]:
        facts["epochs"] = _format_epochs(result)
    seconds = result["seconds"]
    facts["time"] = (
        f"{format_seconds(seconds['training'])} training, {format_seconds(seconds['total'])} in total"
    )
    if result["peak_memory_bytes"] is not None:
        facts["memory"] = f"{format_size(result['peak_memory_bytes'])} at its peak"
    facts["file"] = format_size(result["model_bytes"])
    print_facts(result["model"], facts)
    if result["dev"] is not None:
        print_facts(result["dev"]["file"], result_facts(result["dev"]))
        print_labels(result["dev"])


def _format_epochs(result: dict[str, Any]) -> str:
    """Return a text about the epochs that were kept, one per run."""
    best = result["best_epochs"]
    best_epochs = [epoch for epoch in result["epochs"] if best[epoch["run"] - 1] == epoch["epoch"]]
    error_rates = {
        noun: " and ".join(format_percent(epoch[key]) for epoch in best_epochs)
        for noun, key in _ERROR_RATES.items()
        if all(key in epoch for epoch in best_epochs)
    }
    las = " and ".join(f"{epoch['las']:.2f}" for epoch in best_epochs if "las" in epoch)
    epochs_per_run = len(result["epochs"]) // len(best)
    shares = ", ".join(f"{share} of {noun} wrong" for noun, share in error_rates.items())
    summary = f"{' and '.join(map(str, best))} of {epochs_per_run}: {shares}"
    return f"{summary}, dev LAS {las}" if las else summary
