"""Describe the accuracy of a parser in text."""

from __future__ import annotations

import math
from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.measures.number_format import format_count
from unkernel.parsing.text.result import TITLES


def result_facts(result: dict[str, Any]) -> dict[str, str]:
    """Return texts with the main measures in a result of ``describe_result``."""
    if "tokens" in result and "words" in result:
        return _text_facts(result)
    if "uas" in result:
        return _tree_facts(result)
    if "all" in result:
        return _tag_facts(result)
    if "per_type" in result:
        return _chunk_facts(result)
    return {
        "dependencies": f"{result['dependency_accuracy']:.2f} % of {result['n_dependencies']:,}",
        "sentences": f"{result['sentence_accuracy']:.2f} % of {result['n_sentences']:,} without a mistake",
        "speed": f"{result['sentences_per_second']:,.0f} sentences/s",
    }


def _tree_facts(result: dict[str, Any]) -> dict[str, str]:
    return {
        "UAS": f"{result['uas']:.2f} % of {format_count(result['n_words'], 'word')}, "
        f"{result['uas_no_punct']:.2f} % without punctuation",
        "LAS": f"{result['las']:.2f} %, {result['las_no_punct']:.2f} % without punctuation",
        "sentences": f"{result['exact']:.2f} % of {result['n_sentences']:,} without a mistake",
        "speed": _format_speed(result, result["words_per_second"]),
    }


def _text_facts(result: dict[str, Any]) -> dict[str, str]:
    facts = {
        title: f"{result[name]['f1']:.2f} % F1 of {result[name]['n_gold']:,}"
        for name, title in TITLES.items()
        if name in result
    }
    return facts | {"speed": f"{result['words_per_second']:,.0f} words/s"}


def _tag_facts(result: dict[str, Any]) -> dict[str, str]:
    facts = {name: f"{share:.2f} %" for name, share in result["accuracy"].items()}
    facts["all"] = f"{result['all']:.2f} % of {format_count(result['n_words'], 'word')}"
    return facts | {"speed": f"{result['words_per_second']:,.0f} words/s"}


def _chunk_facts(result: dict[str, Any]) -> dict[str, str]:
    return {
        "F1": f"{result['f1']:.2f} (precision {result['precision']:.2f} %, recall {result['recall']:.2f} %)",
        "chunks": f"{result['right']:,}, of which {result['correct']:,} are among the "
        f"{result['found']:,} found",
        "tags": f"{result['accuracy']:.2f} % of {result['tokens']:,} right",
        "speed": _format_speed(result, result["tokens_per_second"]),
    }


def _format_speed(result: dict[str, Any], words_per_second: float) -> str:
    return f"{result['sentences_per_second']:,.0f} sentences/s, {words_per_second:,.0f} words/s"


def print_labels(result: dict[str, Any]) -> None:
    """Print one line per relation or chunk type; print nothing for bunsetsu, which have no labels."""
    if "per_label" in result:
        _print_relations(result["per_label"])
    elif "per_type" in result:
        _print_types(result["per_type"])


def _print_relations(relations: list[dict[str, Any]]) -> None:
    table = new_table(name_column("relation"), *map(number_column, ("words", "precision", "recall")))
    for relation in relations:
        shares = _format_share(relation["precision"]), _format_share(relation["recall"])
        table.add_row(Text(flatten(relation["label"])), f"{relation['count']:,}", *shares)
    print_table("relations", table)


def _print_types(types: dict[str, dict[str, Any]]) -> None:
    table = new_table(name_column("type"), *map(number_column, ("chunks", "precision", "recall", "F1")))
    for name, measures in sorted(types.items(), key=lambda item: (-item[1]["right"], item[0])):
        shares = (
            _format_share(measures["precision"]),
            _format_share(measures["recall"]),
            f"{measures['f1']:.2f}",
        )
        table.add_row(Text(flatten(name or "(no type)")), f"{measures['right']:,}", *shares)
    print_table("types", table)


def _format_share(percentage: float) -> str:
    return f"{percentage:.2f} %" if math.isfinite(percentage) else "–"
