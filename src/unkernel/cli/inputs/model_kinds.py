"""Which command a model file is for, by the kind that its header names."""

from __future__ import annotations

from pathlib import Path

import unkernel._loading  # noqa: F401 (registers the kinds)
from unkernel.errors import FormatError
from unkernel.models import container, registry

RECORDS = "records"
CLUSTERS = "word_clusters"
UNEXPLAINED = ("tokenizer",)  # kinds of parsers whose decisions cannot be shown
MODEL_KINDS = frozenset({"compiled", "conjunctions", "kernel", "linear", "tree", RECORDS})


def describe_parser_file(path: Path) -> str | None:
    """What a file of a parser holds, in words; None for models of rows, records and trees, and other files.

    What comes from a pipe can be read only once, and is none.
    """
    if not path.is_file():
        return None
    try:
        kind = container.read(path)[0]
    except FormatError:
        return None
    known = registry.registered().get(kind)
    return None if known is None or kind in MODEL_KINDS else known.description


def list_commands(path: Path) -> str:
    """Which commands take a file of a parser, in words."""
    kind = container.read(path)[0]
    if kind == CLUSTERS:
        return "unkernel train text --clusters takes it"
    explain = [] if kind in UNEXPLAINED else ["explain"]
    commands = ["parse", "evaluate", *explain, "report", "serve", "inspect"]
    return f"the commands unkernel {', '.join(commands[:-1])} and {commands[-1]} take it"


def is_parser(path: Path) -> bool:
    """Whether a file holds a parser."""
    return describe_parser_file(path) is not None


def is_records(path: Path) -> bool:
    """Whether a file holds a model of records."""
    if not path.is_file():
        return False
    try:
        return container.read(path)[0] == RECORDS
    except FormatError:
        return False
