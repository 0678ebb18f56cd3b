"""Print the columns of records as tables."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.engines.explain.explanation import AND

_MAX_PRINTED_TERMS = 20


def print_columns(title: str, columns: list[dict[str, Any]], target: str | None) -> None:
    """Print the kind of each column, and the number of its features."""
    table = new_table("column", name_column("kind"), number_column("features"))
    for column in columns:
        table.add_row(Text(flatten(column["column"])), column["kind"], f"{column['features']:,}")
    if target is not None:
        table.add_row(Text(flatten(target)), "target", "", style="bold")
    print_table(title, table)


def print_importances(importances: dict[str, Any]) -> None:
    """Print the largest shares of columns and pairs of columns in the variance of the score."""
    table = new_table("columns", number_column("share"))
    for term in importances["terms"][:_MAX_PRINTED_TERMS]:
        table.add_row(Text(flatten(AND.join(term["columns"]))), f"{100 * term['share']:.1f} %")
    print_table(f"share of the variance of the score, {importances['records']:,} records", table)


def print_values(values: dict[str, Any]) -> None:
    """Print the columns whose shares of missing and unknown values differ most from those in training."""
    table = new_table(
        "column",
        number_column("missing"),
        number_column("in training"),
        number_column("unknown"),
        number_column("in training"),
    )
    for shares in values["columns"][:_MAX_PRINTED_TERMS]:
        numbers = (shares[name] for name in ("missing", "training_missing", "unknown", "training_unknown"))
        table.add_row(Text(flatten(shares["column"])), *map(_format_share, numbers))
    print_table(f"values without a feature of their own, {values['records']:,} records", table)


def _format_share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
