"""Output of ``unkernel inspect``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.render.candidates import print_candidates
from unkernel.cli.render.models import format_exactness, format_trie, model_facts
from unkernel.cli.render.records import print_columns, print_importances, print_values
from unkernel.cli.terminal.console import flatten, format_size, format_value, print_facts, results
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.engines.explain.explanation import AND
from unkernel.measures.number_format import format_count


def print_model(description: dict[str, Any]) -> None:
    """Print the content of a model file."""
    if "parts" in description:
        _print_parser(description)
    elif "support_trees" in description:
        _print_trees(description)
    else:
        if "columns" in description:
            print_columns("columns", description["columns"], description["target"])
        if "importances" in description:
            print_importances(description["importances"])
        if "values" in description:
            print_values(description["values"])
        _print_rows(description)


def _format_bytes(description: dict[str, Any]) -> str:
    compiled = (
        f", {format_size(description['compiled_bytes'])} compiled" if "compiled_bytes" in description else ""
    )
    no_digests = ", without digests" if description.get("digests") is False else ""
    return f"{format_size(description['file_bytes'])} in the file{no_digests}{compiled}"


_ONLY_IN_JSON = ("parameters", "feature_names", "records", "history")  # these entries are too long to print


def _print_origin(origin: dict[str, Any]) -> None:
    facts = {
        name.replace("_", " "): format_value(value, 8)
        for name, value in origin.items()
        if name not in _ONLY_IN_JSON
    }
    if facts:
        print_facts("training", facts)


# --- Parsers and trees --------------------------------------------------------------------------------


def _print_parser(description: dict[str, Any]) -> None:
    from unkernel.cli.render.decisions import print_heaviest
    from unkernel.cli.render.parsers import parser_facts, print_parts

    print_facts(description["file"], parser_facts(description) | {"bytes": _format_bytes(description)})
    parameters = {name: value for name, value in description["parameters"].items() if value is not None}
    print_facts("parameters", {name: format_value(value, 8) for name, value in parameters.items()})
    print_parts(description["parts"])
    if "top" in description:
        print_heaviest(description["top"], description["top_note"])


def _print_trees(description: dict[str, Any]) -> None:
    print_facts(description["file"], model_facts(description) | {"bytes": _format_bytes(description)})
    _print_origin(description["origin"])
    if not description.get("top"):
        return
    table = new_table("fragment", number_column("weight"), name_column("speaks for"))
    for fragment in description["top"]:
        table.add_row(
            Text(flatten(fragment["fragment"])), f"{fragment['weight']:+.6g}", Text(fragment["speaks_for"])
        )
    print_table("heaviest fragments", table)


# --- Rows ---------------------------------------------------------------------------------------------


def _print_rows(description: dict[str, Any]) -> None:
    facts = model_facts(description)
    if "basis" in description:
        facts = {"kind": facts.pop("kind"), "degree": str(description["degree"])} | facts
    facts["features"] = _format_features(description)
    if description.get("compiled"):
        facts["engine"] = f"{description['engine']}, {format_exactness(description['exact'])}"
        facts["zones"] = _format_zones(description["zones"])
        if description["trie"]:
            facts["trie"] = format_trie(description["trie"])
    if "conjunctions" in description:
        facts["conjunctions"] = _format_conjunctions(description)
    facts["bytes"] = _format_bytes(description)
    if "feature_map" in description:
        facts["feature map"] = _format_feature_map(description)
    print_facts(description["file"], facts)
    _print_origin(description["origin"])
    if description.get("candidates"):
        print_candidates(description["candidates"])
    if description.get("top"):
        _print_heaviest(description)


def _format_features(description: dict[str, Any]) -> str:
    used = description["used_features"]
    if "basis" in description:
        return f"{description['features']:,}, of which {used:,} occurred in training"
    width = "" if description["fixed_width"] else "; rows may have more"
    return f"{description['features']:,}, of which {used:,} contribute to scores{width}"


def _format_zones(parts: dict[str, int]) -> str:
    """Return a text about how the tables store features, given the result of ``count_zones``."""
    if "dense" in parts:
        layout = f"{parts['grouped']:,} grouped" if parts["grouped"] else f"{parts['fused']:,} fused"
        return (
            f"{parts['dense']:,} features in the dense table ({layout}), "
            f"{parts['used'] - parts['dense'] - parts['rare']:,} hashed, {parts['rare']:,} rare"
        )
    if "as_bits" in parts:
        return f"{parts['as_bits']:,} features as bits, {parts['as_lists']:,} as lists"
    return f"{parts['used']:,} features as lists"


def _format_conjunctions(description: dict[str, Any]) -> str:
    by_order = ", ".join(
        f"{count:,} of {format_count(order, 'feature')}"
        for order, count in enumerate(description["conjunctions_by_order"], 1)
    )
    return f"{description['conjunctions']:,}: {by_order}"


def _format_feature_map(description: dict[str, Any]) -> str:
    if description["feature_map"] != "kernel":
        return str(description["feature_map"])
    return f"kernel ({description['gamma']:g} ⟨x, z⟩ + {description['coef0']:g})^{description['degree']}"


def _print_heaviest(description: dict[str, Any]) -> None:
    separator = AND if description["top_basis"] == "sets" else " · "
    table = new_table("features", number_column("weight"), name_column("speaks for"))
    for entry in description["top"]:
        features = separator.join(map(str, entry.get("names", entry["features"])))
        table.add_row(Text(features), f"{entry['weight']:+.6g}", Text(entry["speaks_for"]))
    print_table("heaviest conjunctions", table)
    if description["top_note"]:
        results().print(Text(f"  {description['top_note']}", style="dim"))
