"""How good a parser is, for people and for JSON."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rich.text import Text

from unkernel.cli.render.console import many, on_one_line
from unkernel.cli.render.tables import new_table, print_table
from unkernel.parsing import BunsetsuResult, ChunkResult, TreeResult

Result = TreeResult | BunsetsuResult | ChunkResult


def describe_result(result: Result) -> dict[str, Any]:
    """All numbers, for JSON."""
    found = dataclasses.asdict(result)
    for name in ("sentences_per_second", "words_per_second"):
        if hasattr(result, name):
            found[name] = getattr(result, name)
    if isinstance(result, ChunkResult):
        found["per_type"] = {
            name: {"f1": one.f1, "precision": one.precision, "recall": one.recall} | dataclasses.asdict(one)
            for name, one in result.per_type.items()
        }
    return found


def result_facts(result: Result) -> dict[str, str]:
    """What matters most, for people."""
    if isinstance(result, TreeResult):
        return _tree_facts(result)
    if isinstance(result, ChunkResult):
        return _chunk_facts(result)
    return {
        "dependencies": f"{result.dependency_accuracy:.2f} % of {result.n_dependencies:,}",
        "sentences": f"{result.sentence_accuracy:.2f} % of {result.n_sentences:,} without a mistake",
        "speed": f"{result.sentences_per_second:,.0f} sentences/s",
    }


def _tree_facts(result: TreeResult) -> dict[str, str]:
    return {
        "UAS": f"{result.uas:.2f} % of {many(result.n_words, 'word')}, "
        f"{result.uas_no_punct:.2f} % without punctuation",
        "LAS": f"{result.las:.2f} %, {result.las_no_punct:.2f} % without punctuation",
        "sentences": f"{result.exact:.2f} % of {result.n_sentences:,} without a mistake",
        "speed": f"{result.sentences_per_second:,.0f} sentences/s, {result.words_per_second:,.0f} words/s",
    }


def _chunk_facts(result: ChunkResult) -> dict[str, str]:
    return {
        "F1": f"{result.f1:.2f} (precision {result.precision:.2f} %, recall {result.recall:.2f} %)",
        "chunks": f"{result.right:,}, of which {result.correct:,} are among the {result.found:,} found",
        "tags": f"{result.accuracy:.2f} % of {result.tokens:,} right",
        "speed": f"{result.sentences_per_second:,.0f} sentences/s, {result.tokens_per_second:,.0f} words/s",
    }


def print_labels(result: Result) -> None:
    """A line for each relation or type of chunk; bunsetsu have none."""
    if isinstance(result, TreeResult):
        _print_relations(result)
    elif isinstance(result, ChunkResult):
        _print_types(result)


def _print_relations(result: TreeResult) -> None:
    table = _table("relation", "words", "precision", "recall")
    for one in result.per_label:
        table.add_row(
            Text(on_one_line(one.label)), f"{one.count:,}", _share(one.precision), _share(one.recall)
        )
    print_table("relations", table)


def _print_types(result: ChunkResult) -> None:
    table = _table("type", "chunks", "precision", "recall", "F1")
    for name, one in sorted(result.per_type.items(), key=lambda item: (-item[1].right, item[0])):
        shares = _share(one.precision), _share(one.recall), f"{one.f1:.2f}"
        table.add_row(Text(on_one_line(name or "(no type)")), f"{one.right:,}", *shares)
    print_table("types", table)


def _table(name: str, *numbers: str) -> Any:
    table = new_table()
    table.add_column(name, no_wrap=True)
    for number in numbers:
        table.add_column(number, no_wrap=True, justify="right")
    return table


def _share(percentage: float) -> str:
    return f"{percentage:.2f} %" if math.isfinite(percentage) else "–"
