"""What ``unkernel explain`` prints, of its description."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.render.console import many, on_one_line, print_facts
from unkernel.cli.render.tables import new_table, print_table

_MOST_COLUMNS = 6  # of scores, side by side


def print_explanation(found: dict[str, Any]) -> None:
    """What a score is made of."""
    if "decisions" in found:
        from unkernel.cli.render.decisions import print_decisions

        print_decisions(found)
    elif "complete" in found:
        _print_tree(found)
    else:
        _print_row(found)


def _print_tree(result: dict[str, Any]) -> None:
    facts = {"prediction": str(result["prediction"]), "explained": f"the score of {result['of']}"}
    if result["label"] is not None:
        facts["label in the file"] = str(result["label"])
    if not result["complete"]:
        facts["note"] = "the search was given up: there may be fragments with a larger part"
    print_facts(f"{result['data']}, tree {result['row']:,}", facts)
    table = new_table()
    table.add_column("adds", justify="right", no_wrap=True)
    table.add_column("fragment")
    table.add_row(f"{result['constant']:+.6g}", "(constant)", style="dim")
    for part in result["contributions"]:
        table.add_row(f"{part['value']:+.6g}", Text(on_one_line(part["fragment"])))
    table.add_row(f"{result['rest']:+.6g}", "(all others)", style="dim")
    table.add_row(f"{result['score']:+.6g}", "(score)", style="bold")
    print_table("what adds up to it", table)


def _print_row(result: dict[str, Any]) -> None:
    facts = {
        "prediction": str(result["prediction"]),
        "label in the file": str(result["label"]),
        "conjunctions": f"{result['conjunctions']:,} have a part in the score",
    }
    if not result["exact"]:
        facts["note"] = "explained is the exact model; this file is pruned and answers approximately"
    print_facts(f"{result['data']}, row {result['row']:,}", facts)
    _print_parts(result)


def _print_parts(result: dict[str, Any]) -> None:
    joint = " ∧ " if result["basis"] == "sets" else " · "
    several = len(result["scores"]) > 1
    wide = several and len(result["scores"]) <= _MOST_COLUMNS
    table = new_table()
    for title in result["scores"] if wide else ["adds"]:
        table.add_column(Text(on_one_line(title)), justify="right", no_wrap=True)
    if several and not wide:
        table.add_column("most of all for", no_wrap=True)

    def add(
        value: float | list[float], strongest: dict[str, Any] | None, words: str, style: str = ""
    ) -> None:
        if strongest is not None and not wide:
            cells: list[str | Text] = [
                f"{strongest['value']:+.6g}",
                Text(on_one_line(strongest["speaks_for"])),
            ]
        else:
            cells = [f"{number:+.6g}" for number in (value if isinstance(value, list) else [value])]
        table.add_row(*cells, Text(on_one_line(words)), style=style)

    table.add_column("conjunction")
    whole = result["strongest"]
    add(result["constant"], whole["constant"], "(constant)", "dim")
    for part in result["contributions"]:
        add(part["value"], part["strongest"], joint.join(part["names"]))
    if others := result["conjunctions"] - len(result["contributions"]):
        add(result["rest"], whole["rest"], f"({many(others, 'other')})", "dim")
    add(result["score"], whole["score"], "(score)", "bold")
    print_table("what adds up to it", table)
