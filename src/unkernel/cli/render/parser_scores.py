"""Accuracy of a parser, as text."""

from __future__ import annotations

import math
from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.measures.number_format import many
from unkernel.parsing.text.result import TITLES


def result_facts(found: dict[str, Any]) -> dict[str, str]:
    """Return the main measures of :func:`~unkernel.cli.inputs.parsers.describe_result`."""
    if "tokens" in found and "words" in found:
        return _text_facts(found)
    if "uas" in found:
        return _tree_facts(found)
    if "all" in found:
        return _tag_facts(found)
    if "per_type" in found:
        return _chunk_facts(found)
    return {
        "dependencies": f"{found['dependency_accuracy']:.2f} % of {found['n_dependencies']:,}",
        "sentences": f"{found['sentence_accuracy']:.2f} % of {found['n_sentences']:,} without a mistake",
        "speed": f"{found['sentences_per_second']:,.0f} sentences/s",
    }


def _tree_facts(found: dict[str, Any]) -> dict[str, str]:
    return {
        "UAS": f"{found['uas']:.2f} % of {many(found['n_words'], 'word')}, "
        f"{found['uas_no_punct']:.2f} % without punctuation",
        "LAS": f"{found['las']:.2f} %, {found['las_no_punct']:.2f} % without punctuation",
        "sentences": f"{found['exact']:.2f} % of {found['n_sentences']:,} without a mistake",
        "speed": _format_speed(found, found["words_per_second"]),
    }


def _text_facts(found: dict[str, Any]) -> dict[str, str]:
    facts = {
        title: f"{found[name]['f1']:.2f} % F1 of {found[name]['n_gold']:,}"
        for name, title in TITLES.items()
        if name in found
    }
    return facts | {"speed": f"{found['words_per_second']:,.0f} words/s"}


def _tag_facts(found: dict[str, Any]) -> dict[str, str]:
    facts = {name: f"{share:.2f} %" for name, share in found["accuracy"].items()}
    facts["all"] = f"{found['all']:.2f} % of {many(found['n_words'], 'word')}"
    return facts | {"speed": f"{found['words_per_second']:,.0f} words/s"}


def _chunk_facts(found: dict[str, Any]) -> dict[str, str]:
    return {
        "F1": f"{found['f1']:.2f} (precision {found['precision']:.2f} %, recall {found['recall']:.2f} %)",
        "chunks": f"{found['right']:,}, of which {found['correct']:,} are among the {found['found']:,} found",
        "tags": f"{found['accuracy']:.2f} % of {found['tokens']:,} right",
        "speed": _format_speed(found, found["tokens_per_second"]),
    }


def _format_speed(found: dict[str, Any], words_per_second: float) -> str:
    return f"{found['sentences_per_second']:,.0f} sentences/s, {words_per_second:,.0f} words/s"


def print_labels(found: dict[str, Any]) -> None:
    """Print one line per relation or type of chunk; bunsetsu have none."""
    if "per_label" in found:
        _print_relations(found["per_label"])
    elif "per_type" in found:
        _print_types(found["per_type"])


def _print_relations(relations: list[dict[str, Any]]) -> None:
    table = new_table(name_column("relation"), *map(number_column, ("words", "precision", "recall")))
    for one in relations:
        shares = _share(one["precision"]), _share(one["recall"])
        table.add_row(Text(flatten(one["label"])), f"{one['count']:,}", *shares)
    print_table("relations", table)


def _print_types(types: dict[str, dict[str, Any]]) -> None:
    table = new_table(name_column("type"), *map(number_column, ("chunks", "precision", "recall", "F1")))
    for name, one in sorted(types.items(), key=lambda item: (-item[1]["right"], item[0])):
        shares = _share(one["precision"]), _share(one["recall"]), f"{one['f1']:.2f}"
        table.add_row(Text(flatten(name or "(no type)")), f"{one['right']:,}", *shares)
    print_table("types", table)


def _share(percentage: float) -> str:
    return f"{percentage:.2f} %" if math.isfinite(percentage) else "–"
