"""Output of ``unkernel explain`` and ``unkernel inspect --top`` for parsers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten, print_facts, results
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.engines.explain.explanation import AND
from unkernel.measures.number_format import many


def print_decisions(found: dict[str, Any]) -> None:
    """Print every decision on a sentence."""
    decisions = found["decisions"]
    facts = {"text": flatten(found["text"]), "decisions": many(len(decisions), "decision")}
    print_facts(f"{found['data']}, sentence {found['row']:,}", facts)
    for one in decisions:
        _print(one)


def _print(one: dict[str, Any]) -> None:
    chosen, runner_up = one["chosen"], one["runner_up"]
    names = [chosen, runner_up] if runner_up else [chosen]
    table = new_table(*(number_column(Text(flatten(name))) for name in names), "features")

    def add(values: Sequence[float], words: str, style: str = "") -> None:
        cells = [f"{value:+.6g}" for value in values[: 1 + bool(runner_up)]]
        table.add_row(*cells, Text(flatten(words)), style=style)

    def both(part: dict[str, Any]) -> tuple[float, float]:
        return part["chosen"], part["runner_up"]

    add(both(one["intercept"]), "(intercept)", "dim")
    for part in one["evidence"]:
        add(both(part), AND.join(part["features"]))
    if others := one["n_conjunctions"] - len(one["evidence"]):
        add(both(one["rest"]), f"({many(others, 'other')})", "dim")
    add((one["scores"][chosen], one["scores"].get(runner_up, 0.0)), "(score)", "bold")
    barred = f"; not possible: {', '.join(one['barred'])}" if one["barred"] else ""
    print_table(flatten(f"{one['kind']} of {one['question']}: {chosen}{barred}"), table)


def print_heaviest(found: dict[str, list[dict[str, Any]]], note: str | None) -> None:
    """Print a table of conjunctions for each kind of decision, and a note on missing ones."""
    for kind, entries in found.items():
        table = new_table("features", number_column("weight"), name_column("class"), name_column("part"))
        for entry in entries:
            words = Text(flatten(AND.join(entry["features"])))
            table.add_row(words, f"{entry['weight']:+.6g}", Text(flatten(entry["class"])), entry["part"])
        print_table(f"heaviest conjunctions of {kind}", table)
    if note is not None:
        results().print(Text(f"  {note}", style="dim"))
