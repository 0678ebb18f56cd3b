"""Output of ``unkernel inspect``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.render.candidates import print_candidates
from unkernel.cli.render.models import format_exactness, format_trie, model_facts
from unkernel.cli.render.records import print_columns
from unkernel.cli.terminal.console import flatten, format_size, format_value, print_facts, results
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table
from unkernel.engines.explain.explanation import AND
from unkernel.measures.number_format import many


def print_model(found: dict[str, Any]) -> None:
    """Print the content of a model file."""
    if "parts" in found:
        _print_parser(found)
    elif "support_trees" in found:
        _print_trees(found)
    else:
        if "columns" in found:
            print_columns("columns", found["columns"], found["target"])
        _print_rows(found)


def _format_bytes(found: dict[str, Any]) -> str:
    compiled = f", {format_size(found['compiled_bytes'])} compiled" if "compiled_bytes" in found else ""
    undigested = ", without digests" if found.get("digests") is False else ""
    return f"{format_size(found['file_bytes'])} in the file{undigested}{compiled}"


_JSON_ONLY = ("parameters", "feature_names", "records", "history")  # too long to print


def _print_origin(origin: dict[str, Any]) -> None:
    facts = {
        name.replace("_", " "): format_value(value, 8)
        for name, value in origin.items()
        if name not in _JSON_ONLY
    }
    if facts:
        print_facts("training", facts)


# --- Parsers and trees --------------------------------------------------------------------------------


def _print_parser(found: dict[str, Any]) -> None:
    from unkernel.cli.render.decisions import print_heaviest
    from unkernel.cli.render.parsers import parser_facts, print_parts

    print_facts(found["file"], parser_facts(found) | {"bytes": _format_bytes(found)})
    chosen = {name: value for name, value in found["parameters"].items() if value is not None}
    print_facts("parameters", {name: format_value(value, 8) for name, value in chosen.items()})
    print_parts(found["parts"])
    if "top" in found:
        print_heaviest(found["top"], found["top_note"])


def _print_trees(found: dict[str, Any]) -> None:
    print_facts(found["file"], model_facts(found) | {"bytes": _format_bytes(found)})
    _print_origin(found["origin"])
    if not found.get("top"):
        return
    table = new_table("fragment", number_column("weight"), name_column("speaks for"))
    for one in found["top"]:
        table.add_row(Text(flatten(one["fragment"])), f"{one['weight']:+.6g}", Text(one["speaks_for"]))
    print_table("heaviest fragments", table)


# --- Rows ---------------------------------------------------------------------------------------------


def _print_rows(found: dict[str, Any]) -> None:
    facts = model_facts(found)
    if "basis" in found:
        facts = {"kind": facts.pop("kind"), "degree": str(found["degree"])} | facts
    facts["features"] = _format_features(found)
    if found.get("compiled"):
        facts["engine"] = f"{found['engine']}, {format_exactness(found['exact'])}"
        facts["zones"] = _format_zones(found["zones"])
        if found["trie"]:
            facts["trie"] = format_trie(found["trie"])
    if "conjunctions" in found:
        facts["conjunctions"] = _format_conjunctions(found)
    facts["bytes"] = _format_bytes(found)
    if "feature_map" in found:
        facts["feature map"] = _format_feature_map(found)
    print_facts(found["file"], facts)
    _print_origin(found["origin"])
    if found.get("candidates"):
        print_candidates(found["candidates"])
    if found.get("top"):
        _print_heaviest(found)


def _format_features(found: dict[str, Any]) -> str:
    used = found["used_features"]
    if "basis" in found:
        return f"{found['features']:,}, of which {used:,} occurred in training"
    width = "" if found["fixed_width"] else "; rows may have more"
    return f"{found['features']:,}, of which {used:,} contribute to scores{width}"


def _format_zones(parts: dict[str, int]) -> str:
    if "dense" in parts:
        joined = f"{parts['grouped']:,} grouped" if parts["grouped"] else f"{parts['fused']:,} fused"
        return (
            f"{parts['dense']:,} features in the dense table ({joined}), "
            f"{parts['used'] - parts['dense'] - parts['rare']:,} hashed, {parts['rare']:,} rare"
        )
    if "as_bits" in parts:
        return f"{parts['as_bits']:,} features as bits, {parts['as_lists']:,} as lists"
    return f"{parts['used']:,} features as lists"


def _format_conjunctions(found: dict[str, Any]) -> str:
    by_order = ", ".join(
        f"{count:,} of {many(order, 'feature')}"
        for order, count in enumerate(found["conjunctions_by_order"], 1)
    )
    return f"{found['conjunctions']:,}: {by_order}"


def _format_feature_map(found: dict[str, Any]) -> str:
    if found["feature_map"] != "kernel":
        return str(found["feature_map"])
    return f"kernel ({found['gamma']:g} ⟨x, z⟩ + {found['coef0']:g})^{found['degree']}"


def _print_heaviest(found: dict[str, Any]) -> None:
    joint = AND if found["top_basis"] == "sets" else " · "
    table = new_table("features", number_column("weight"), name_column("speaks for"))
    for entry in found["top"]:
        words = joint.join(map(str, entry.get("names", entry["features"])))
        table.add_row(Text(words), f"{entry['weight']:+.6g}", Text(entry["speaks_for"]))
    print_table("heaviest conjunctions", table)
    if found["top_note"]:
        results().print(Text(f"  {found['top_note']}", style="dim"))
