"""Output of ``unkernel explain``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten, print_facts
from unkernel.cli.terminal.tables import new_table, number_column, print_table
from unkernel.engines.explain.explanation import AND
from unkernel.measures.number_format import format_count


def print_explanation(result: dict[str, Any]) -> None:
    """Print the contributions to a score."""
    if "decisions" in result:
        from unkernel.cli.render.decisions import print_decisions

        print_decisions(result)
    elif "complete" in result:
        _print_tree(result)
    else:
        _print_row(result)


def _print_tree(result: dict[str, Any]) -> None:
    facts = {"prediction": str(result["prediction"]), "explained": f"the score of {result['of']}"}
    if result["against"] is not None:
        facts["explained"] += f" against {result['against']}"
    if result["label"] is not None:
        facts["label in the file"] = str(result["label"])
    if not result["complete"]:
        facts["note"] = "the search is incomplete: there may be fragments with a larger contribution"
    print_facts(f"{result['data']}, tree {result['row']:,}", facts)
    table = new_table(number_column("adds"), "fragment")
    table.add_row(f"{result['intercept']:+.6g}", "(intercept)", style="dim")
    for part in result["contributions"]:
        table.add_row(f"{part['value']:+.6g}", Text(flatten(part["fragment"])))
    table.add_row(f"{result['rest']:+.6g}", "(all others)", style="dim")
    table.add_row(f"{result['score']:+.6g}", "(score)", style="bold")
    print_table("contributions", table)


def _print_row(result: dict[str, Any]) -> None:
    facts = {"prediction": str(result["prediction"])}
    if result["label"] is not None:
        facts["label in the file"] = str(result["label"])
    n_conjunctions = result["conjunctions"]
    if "for_output" in result:
        facts["explained"] = f"output {result['for_output']}"
    facts["conjunctions"] = (
        f"{n_conjunctions:,} {'contributes' if n_conjunctions == 1 else 'contribute'} to the score"
    )
    if not result["exact"]:
        facts["note"] = "the explanation is of the exact model; this file is pruned and approximates it"
    row = "" if result["row"] is None else f", {result.get('unit', 'row')} {result['row']:,}"
    print_facts(f"{result['data']}{row}", facts)
    _print_parts(result)


def _print_parts(result: dict[str, Any]) -> None:
    separator = AND if result["basis"] == "sets" else " · "
    titles = [Text(flatten(title)) for title in _list_titles(result)]
    table = new_table(*map(number_column, titles), "conjunction")

    def add_row(numbers: Sequence[float], label: str, style: str = "") -> None:
        table.add_row(*(f"{number:+.6g}" for number in numbers), Text(flatten(label)), style=style)

    shown = result["shown"]
    add_row(shown["intercept"], "(intercept)", "dim")
    for part in result["contributions"]:
        add_row(part["shown"], separator.join(part["names"]))
    n_others = result["conjunctions"] - len(result["contributions"])
    if n_others:
        add_row(shown["rest"], f"({format_count(n_others, 'other')})", "dim")
    add_row(shown["score"], "(score)", "bold")
    print_table("contributions", table)


def _list_titles(result: dict[str, Any]) -> list[str]:
    """Return the title of each score: the class that it supports."""
    if result["for_class"] is None:
        return ["adds"]
    if len(result["shown"]["score"]) > 1:
        return [f"for {result['for_class']}", f"for {result['against']}"]
    against = "" if result["against"] is None else f" against {result['against']}"
    return [f"for {result['for_class']}{against}"]
