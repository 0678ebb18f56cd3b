"""Files of parsers: opening them, and saying what they are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.text import Text

from unkernel import load
from unkernel.cli.inputs.files import label_words
from unkernel.cli.render.console import many, size
from unkernel.cli.render.tables import new_table, print_table
from unkernel.engines import CompiledClassifier
from unkernel.engines.tables import CONJUNCTIONS
from unkernel.errors import FormatError
from unkernel.models import KernelModel, container, registry
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

_KINDS_OF_PARTS = {"depends": "dependencies"}
_LIFTED = "↑"  # marks the relations of lifted arcs, which are put back before anyone sees them
Parser = ArcEagerParser | BunsetsuParser | Chunker
_KINDS = {parser.kind for parser in (ArcEagerParser, BunsetsuParser, Chunker)}


def is_parser(path: Path) -> bool:
    """Whether a file is one of a parser; what comes from a pipe can be read only once, and is none."""
    if not path.is_file():
        return False
    try:
        return container.read(path)[0] in _KINDS
    except FormatError:
        return False


def open_parser(path: Path) -> Parser:
    """Read the file of a parser; a ``FormatError`` if it is none."""
    loaded = load(path)
    if not isinstance(loaded, Parser):
        raise FormatError(
            os.fspath(path), 0, 0, "a model of rows or trees, and no parser: unkernel predict answers with it"
        )
    return loaded


def describe_parser(parser: Parser) -> dict[str, Any]:
    """What a parser is, for JSON."""
    return {
        "kind": parser.kind,
        "parser": type(parser).__name__,
        "parameters": parser._stored_parameters(),
        "features": parser.n_features_,
        "answers": _answers(parser),
        "parts": [_describe_part(name, part) for name, part in parser.parts_.items()],
        "compiled_bytes": parser.nbytes,
    }


def _answers(parser: Parser) -> list[str] | None:
    if isinstance(parser, ArcEagerParser):
        return sorted(name for name in parser.labels_ if _LIFTED not in name)
    return parser.types_ if isinstance(parser, Chunker) else None


def _describe_part(name: str, part: CompiledClassifier) -> dict[str, Any]:
    tables, counts = part._tables, []
    if tables.layout == CONJUNCTIONS:
        counts = part.heaviest(0)["counts"][1 : tables.parameters["degree"] + 1]
    return {
        "name": name,
        "engine": part.engine,
        "classes": len(part.classes_),
        "conjunctions": sum(counts) if counts else None,
        "conjunctions_by_order": counts,
        "support_vectors": part.model.n_support if isinstance(part.model, KernelModel) else None,
        "bytes": part.nbytes,
    }


def parser_facts(found: dict[str, Any]) -> dict[str, str]:
    """What :func:`describe_parser` found, for people; the parts of a kind together."""
    chosen = found["parameters"]
    facts = {
        "kind": f"{registry.registered()[found['kind']].description} ({found['parser']})",
        "learner": f"{chosen['learner']}, degree {chosen['degree']}",
        "templates": _template_words(chosen["templates"]),
        "features": f"{found['features']:,}",
    }
    if found["answers"] is not None:
        what = "chunk types" if found["kind"] == Chunker.kind else "relations"
        facts[what] = f"{len(found['answers']):,}: {label_words(found['answers'])}"
    for kind in dict.fromkeys(part["name"].partition(".")[0] for part in found["parts"]):
        facts[f"model of {_KINDS_OF_PARTS.get(kind, kind)}"] = _parts_words(_of_kind(kind, found["parts"]))
    return facts


def _template_words(templates: Any) -> str:
    if templates is None:
        return "default"
    return templates if isinstance(templates, str) else many(len(templates), "template")


def _of_kind(kind: str, parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for part in parts if part["name"].partition(".")[0] == kind]


def _parts_words(parts: list[dict[str, Any]]) -> str:
    words = [many(len(parts), "part")]
    for what, name in (("conjunctions", "conjunction"), ("support_vectors", "support vector")):
        counts = [part[what] for part in parts if part[what] is not None]
        words += [many(sum(counts), name)] if counts else []
    return ", ".join([*words, f"{size(sum(part['bytes'] for part in parts))} compiled"])


def print_parts(parts: list[dict[str, Any]]) -> None:
    """A line for each part."""
    table = new_table()
    for name in ("part", "engine"):
        table.add_column(name, no_wrap=True)
    for name in ("classes", "conjunctions", "support vectors", "compiled"):
        table.add_column(name, no_wrap=True, justify="right")
    for part in parts:
        numbers = [part["classes"], part["conjunctions"], part["support_vectors"]]
        cells = ["" if number is None else f"{number:,}" for number in numbers]
        table.add_row(Text(part["name"]), part["engine"], *cells, size(part["bytes"]))
    print_table("parts", table)
