"""``unkernel inspect``: what is in a model file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from unkernel.cli.inputs.models import (
    Opened,
    OpenedTrees,
    describe,
    describe_trees,
    exactness,
    facts_of,
    facts_of_trees,
    first_index,
    open_model,
    strongest,
    trie_of,
    trie_words,
    zones,
)
from unkernel.cli.inputs.names import read_names, shown
from unkernel.cli.inputs.parsers import describe_parser, is_parser, open_parser, parser_facts, print_parts
from unkernel.cli.options import shared as options
from unkernel.cli.render.console import many, on_one_line, print_facts, print_json, results, size
from unkernel.cli.render.decisions import check_options_of_rows, heaviest_of_parser, print_heaviest
from unkernel.cli.render.progress import Display
from unkernel.cli.render.tables import candidates_to_json, new_table, print_candidates, print_table
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.build import LARGEST_EXPANDED_DEGREE
from unkernel.engines.tables import CONJUNCTIONS
from unkernel.models import ConjunctionModel, Decision, KernelModel


@dataclass(frozen=True)
class _Heaviest:
    """Conjunctions by weight: features as the user knows them, and what is not among them."""

    entries: list[dict[str, Any]]
    sets: bool
    note: str | None


def inspect(
    model: options.AnyModelFile,
    top: options.Top = 0,
    features: options.Features = None,
    json: options.Json = False,
) -> None:
    """Show what is in a model file, of unkernel or of another program.

    Features are shown as the training file numbers them: from 1, unless it
    was zero-based; or by their names, with --features. The weight of a
    conjunction is what it adds to the score of a row in which all its
    features have the value 1; that of a fragment of trees, what it adds to
    the score of a tree that has it once, before the tree's norm.

    \b
    [dim]$[/dim] unkernel inspect model.uk
    [dim]$[/dim] unkernel inspect model.uk --top 20 --features names.txt
    [dim]$[/dim] unkernel inspect libsvm.model
    [dim]$[/dim] unkernel inspect parser.uk --top 20
    [dim]$[/dim] unkernel inspect model.uk --json | jq .conjunctions_by_order
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if is_parser(model):
        _inspect_parser(model, top, features, json=json)
        return
    opened = open_model(model)
    if isinstance(opened, OpenedTrees):
        _inspect_trees(opened, top, features, json=json)
        return
    names = read_names(features, first_index(opened.model))
    found = _describe(model, opened)
    heaviest = _heaviest(opened, top, names, json) if top else None
    if json:
        listed = {} if heaviest is None else {"top": heaviest.entries, "top_note": heaviest.note}
        print_json(found | listed)
        return
    _print(found, opened)
    if heaviest is not None and heaviest.entries:
        _print_heaviest(heaviest, opened)


def _inspect_parser(path: Path, top: int, features: str | None, *, json: bool) -> None:
    check_options_of_rows(path, {"--features": features})
    parser = open_parser(path)
    found: dict[str, Any] = {"file": str(path), "file_bytes": path.stat().st_size} | describe_parser(parser)
    heaviest = heaviest_of_parser(parser, top, quiet=json) if top else {}
    if json:
        print_json(found | ({"top": heaviest} if top else {}))
        return
    facts = parser_facts(found)
    facts["bytes"] = f"{size(found['file_bytes'])} in the file, {size(found['compiled_bytes'])} compiled"
    print_facts(found["file"], facts)
    chosen = {name: value for name, value in found["parameters"].items() if value is not None}
    print_facts("parameters", {name: _short(value) for name, value in chosen.items()})
    print_parts(found["parts"])
    complete = all(part.engine != "split" and part.exact for part in parser.parts_.values())
    print_heaviest(heaviest, complete=complete or not top)


def _inspect_trees(opened: OpenedTrees, top: int, features: str | None, *, json: bool) -> None:
    if features is not None:
        raise ValueError(f"{opened.path}: --features names the features of rows, and this model is of trees")
    found: dict[str, Any] = {"file": str(opened.path), "file_bytes": opened.path.stat().st_size}
    found |= describe_trees(opened.model)
    found |= {
        "engine": opened.classifier.engine,
        "exact": opened.classifier.exact,
        "compiled_bytes": opened.classifier.nbytes,
        "origin": opened.model.origin,
    }
    heaviest = _heaviest_fragments(opened, top, quiet=json) if top else []
    if json:
        print_json(found | ({"top": heaviest} if top else {}))
        return
    facts = facts_of_trees(opened.model)
    facts["bytes"] = f"{size(found['file_bytes'])} in the file, {size(found['compiled_bytes'])} compiled"
    print_facts(found["file"], facts)
    _print_origin(found["origin"])
    if heaviest:
        _print_fragments(heaviest, opened.model.decision)


def _heaviest_fragments(opened: OpenedTrees, top: int, *, quiet: bool) -> list[dict[str, Any]]:
    """Of each score, the last class speaking for both of two; then the largest of all."""
    classes = opened.model.classes.tolist()
    found: list[dict[str, Any]] = []
    with Display(quiet=quiet) as display, display.trying("looking for fragments") as watch:
        for label in classes if len(classes) > 2 else classes[-1:]:
            watch(str(label))
            try:
                fragments = opened.classifier.heaviest(top, of=label)
            except ValueError as error:
                raise ValueError(f"{opened.path}: {error}; leave out --top") from error
            found += [
                {"fragment": one.text, "tree": one.channel, "class": label, "weight": one.weight}
                for one in fragments
            ]
    return sorted(found, key=lambda one: -abs(one["weight"]))[:top]


def _print_fragments(fragments: list[dict[str, Any]], decision: Decision) -> None:
    classes = decision.classes.tolist()
    table = new_table()
    table.add_column("fragment")
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("speaks for", no_wrap=True)
    for one in fragments:
        against = f"not {one['class']}" if len(classes) > 2 else str(classes[0])
        spoken_for = str(one["class"]) if one["weight"] > 0 else against
        table.add_row(Text(on_one_line(one["fragment"])), f"{one['weight']:+.6g}", Text(spoken_for))
    print_table("heaviest fragments", table)


def _describe(path: Path, opened: Opened) -> dict[str, Any]:
    found = {"file": str(path), "file_bytes": path.stat().st_size} | describe(opened.model)
    if opened.classifier is not None:
        found |= _describe_tables(opened, opened.classifier)
    return found | {"origin": opened.model.origin}


def _describe_tables(opened: Opened, classifier: CompiledClassifier) -> dict[str, Any]:
    about: dict[str, Any] = {"compiled": opened.stored_tables, "compiled_bytes": classifier.nbytes}
    if opened.stored_tables:
        about |= {
            "engine": classifier.engine,
            "exact": classifier.exact,
            "zones": zones(classifier.tables or classifier._tables),
            "trie": trie_of(classifier),
            "candidates": candidates_to_json(classifier.candidates),
        }
    if classifier._tables.layout != CONJUNCTIONS:
        return about
    counts = classifier.heaviest(0)["counts"][1 : classifier._tables.parameters["degree"] + 1]
    return about | {"conjunctions": sum(counts), "conjunctions_by_order": counts}


def _heaviest(opened: Opened, top: int, names: dict[int, str], quiet: bool) -> _Heaviest:
    classifier, note = _with_conjunctions(opened, quiet)
    listing = classifier.heaviest(top)
    first = first_index(opened.model)
    entries = []
    for padded, weights in zip(listing["columns"].tolist(), listing["weights"].tolist(), strict=True):
        columns = sorted(column for column in padded if column >= 0)
        entry: dict[str, Any] = {"features": [column + first for column in columns], "weights": weights}
        entries.append(entry | ({"names": shown(columns, names, first)} if names else {}))
    return _Heaviest(entries, bool(classifier._tables.parameters["sets"]), note)


def _with_conjunctions(opened: Opened, quiet: bool) -> tuple[CompiledClassifier, str | None]:
    """A classifier that has a table of conjunctions, and what is missing there."""
    classifier = opened.classifier
    if classifier is not None and classifier._tables.layout == CONJUNCTIONS:
        return classifier, _missing(classifier)
    assert isinstance(opened.model, KernelModel)
    kernel = opened.model.kernel
    few = kernel.name == "linear" or (
        kernel.name == "polynomial" and kernel.degree <= LARGEST_EXPANDED_DEGREE
    )
    if not few:
        degree = f" of degree {kernel.degree}" if kernel.name == "polynomial" else ""
        raise ValueError(
            f"{opened.path}: a model with the {kernel.name} kernel{degree} has no conjunctions to list; "
            f"linear ones and polynomial kernels up to degree {LARGEST_EXPANDED_DEGREE} have; leave out --top"
        )
    with Display(quiet=quiet) as display, display.trying("expanding") as watch:
        expanded = compile(opened.model, "expanded", on_progress=watch)
    assert isinstance(expanded, CompiledClassifier)  # as the model is not of trees
    return expanded, None


def _missing(classifier: CompiledClassifier) -> str | None:
    if classifier.engine == "split":
        return "conjunctions of rare features are not in the tables of engine split, and not listed"
    return None if classifier.exact else "conjunctions of small weight were dropped (engine pruned)"


def _print(found: dict[str, Any], opened: Opened) -> None:
    facts = facts_of(opened.model)
    if isinstance(opened.model, ConjunctionModel):
        facts = {"kind": facts.pop("kind"), "degree": str(found["degree"])} | facts
    facts["features"] = _feature_words(found, opened)
    if opened.stored_tables:
        facts["engine"] = f"{found['engine']}, {exactness(found['exact'])}"
        facts["zones"] = _zone_words(found["zones"])
        if found["trie"]:
            facts["trie"] = trie_words(found["trie"])
    if "conjunctions" in found:
        facts["conjunctions"] = _conjunction_words(found)
    compiled = f", {size(found['compiled_bytes'])} compiled" if "compiled_bytes" in found else ""
    facts["bytes"] = f"{size(found['file_bytes'])} in the file{compiled}"
    if "feature_map" in found:
        facts["feature map"] = _feature_map_words(found)
    print_facts(found["file"], facts)
    _print_origin(found["origin"])
    if opened.classifier is not None and opened.classifier.candidates:
        print_candidates(opened.classifier.candidates)


def _print_origin(origin: dict[str, Any]) -> None:
    if origin:
        print_facts("training", {name.replace("_", " "): _short(value) for name, value in origin.items()})


def _feature_words(found: dict[str, Any], opened: Opened) -> str:
    used = found["used_features"]
    if isinstance(opened.model, ConjunctionModel):
        return f"{found['features']:,}, of which {used:,} occurred in training"
    width = "" if found["fixed_width"] else "; rows may have more"
    return f"{found['features']:,}, of which {used:,} have a part in scores{width}"


def _zone_words(parts: dict[str, int]) -> str:
    if "dense" in parts:
        joined = f"{parts['grouped']:,} grouped" if parts["grouped"] else f"{parts['fused']:,} fused"
        return (
            f"{parts['dense']:,} features in the dense table ({joined}), "
            f"{parts['used'] - parts['dense'] - parts['rare']:,} hashed, {parts['rare']:,} rare"
        )
    if "as_bits" in parts:
        return f"{parts['as_bits']:,} features as bits, {parts['as_lists']:,} as lists"
    return f"{parts['used']:,} features as lists"


def _conjunction_words(found: dict[str, Any]) -> str:
    by_order = ", ".join(
        f"{count:,} of {many(order, 'feature')}"
        for order, count in enumerate(found["conjunctions_by_order"], 1)
    )
    return f"{found['conjunctions']:,}: {by_order}"


def _feature_map_words(found: dict[str, Any]) -> str:
    if found["feature_map"] != "kernel":
        return str(found["feature_map"])
    return f"kernel ({found['gamma']:g} ⟨x, z⟩ + {found['coef0']:g})^{found['degree']}"


def _short(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _print_heaviest(heaviest: _Heaviest, opened: Opened) -> None:
    joint = " ∧ " if heaviest.sets else " · "
    table = new_table()
    table.add_column("features")
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("speaks for", no_wrap=True)
    for entry in heaviest.entries:
        weight, label = strongest(opened.model.decision, entry["weights"])
        words = joint.join(map(str, entry.get("names", entry["features"])))
        table.add_row(Text(words), f"{weight:+.6g}", Text(label))
    print_table("heaviest conjunctions", table)
    if heaviest.note:
        results().print(Text(f"  {heaviest.note}", style="dim"))
