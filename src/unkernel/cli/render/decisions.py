"""Output of ``unkernel explain`` and ``unkernel inspect --top`` for parsers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten, print_facts, results
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.engines.explain.explanation import AND
from unkernel.measures.number_format import format_count


def print_decisions(result: dict[str, Any]) -> None:
    """Print every decision on a sentence."""
    decisions = result["decisions"]
    facts = {"text": flatten(result["text"]), "decisions": format_count(len(decisions), "decision")}
    print_facts(f"{result['data']}, sentence {result['row']:,}", facts)
    for decision in decisions:
        _print_decision(decision)


def _print_decision(decision: dict[str, Any]) -> None:
    chosen, runner_up = decision["chosen"], decision["runner_up"]
    names = [chosen, runner_up] if runner_up else [chosen]
    table = new_table(*(number_column(Text(flatten(name))) for name in names), "features")

    def add_row(values: Sequence[float], label: str, style: str = "") -> None:
        cells = [f"{value:+.6g}" for value in values[: 1 + bool(runner_up)]]
        table.add_row(*cells, Text(flatten(label)), style=style)

    def get_values(part: dict[str, Any]) -> tuple[float, float]:
        return part["chosen"], part["runner_up"]

    add_row(get_values(decision["intercept"]), "(intercept)", "dim")
    for part in decision["evidence"]:
        add_row(get_values(part), AND.join(part["features"]))
    n_others = decision["n_conjunctions"] - len(decision["evidence"])
    if n_others:
        add_row(get_values(decision["rest"]), f"({format_count(n_others, 'other')})", "dim")
    add_row((decision["scores"][chosen], decision["scores"].get(runner_up, 0.0)), "(score)", "bold")
    barred = f"; not possible: {', '.join(decision['barred'])}" if decision["barred"] else ""
    print_table(flatten(f"{decision['kind']} of {decision['question']}: {chosen}{barred}"), table)


def print_heaviest(by_kind: dict[str, list[dict[str, Any]]], note: str | None) -> None:
    """Print a table of conjunctions for each kind of decision, and a note if conjunctions are missing."""
    for kind, entries in by_kind.items():
        table = new_table("features", number_column("weight"), name_column("class"), name_column("part"))
        for entry in entries:
            features = Text(flatten(AND.join(entry["features"])))
            table.add_row(features, f"{entry['weight']:+.6g}", Text(flatten(entry["class"])), entry["part"])
        print_table(f"heaviest conjunctions of {kind}", table)
    if note is not None:
        results().print(Text(f"  {note}", style="dim"))
