"""Find the kind of a model file from its header, and the commands that read such files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import unkernel._loading  # noqa: F401 (registers the kinds)
from unkernel.errors import FormatError
from unkernel.models import container, registry

RECORDS = "records"
CLUSTERS = "word_clusters"
UNEXPLAINED = ("tokenizer",)  # kinds of models whose decisions cannot be explained
# Arguments of `refuse_options`: the kind of models that an option is for, and the kind of the given model.
ROWS_NOT_RECORDS = ("models of rows", "a model of records")
ROWS_NOT_TREES = ("models of rows", "a model of trees")
ROWS_NOT_PARSERS = ("models of rows or trees", "a parser")
RECORDS_ONLY = ("models of records", "another model")
PARSERS_ONLY = ("parsers", "a model of rows, records or trees")
MODEL_KINDS = frozenset({"compiled", "conjunctions", "kernel", "linear", "tree", RECORDS})


def describe_parser_file(path: Path) -> str | None:
    """Return a description of the parser in a file; None for other files and for pipes."""
    if not path.is_file():
        return None
    try:
        kind = container.read(path)[0]
    except FormatError:
        return None
    entry = registry.list_kinds().get(kind)
    return None if entry is None or kind in MODEL_KINDS else entry.description


def list_commands(path: Path) -> str:
    """Return a part of a message that lists the commands that read the parser in a file."""
    kind = container.read(path)[0]
    if kind == CLUSTERS:
        return "unkernel train text --clusters takes it"
    explain = [] if kind in UNEXPLAINED else ["explain"]
    commands = ["parse", "evaluate", *explain, "report", "serve", "inspect"]
    return f"the commands unkernel {', '.join(commands[:-1])} and {commands[-1]} take it"


def is_parser(path: Path) -> bool:
    """Return whether a file contains a parser."""
    return describe_parser_file(path) is not None


def is_records(path: Path) -> bool:
    """Return whether a file contains a model of records."""
    if not path.is_file():
        return False
    try:
        return container.read(path)[0] == RECORDS
    except FormatError:
        return False


def refuse_options(path: Path, options: Mapping[str, Any], kinds: tuple[str, str]) -> None:
    """Raise ``ValueError`` if one of the options is set, because they do not apply to the model."""
    suitable, actual = kinds
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{path}: {option} is for {suitable}, and this is {actual}")
