"""Which command a model file is for, by the kind that its header names."""

from __future__ import annotations

import os
from pathlib import Path

import unkernel._loading  # noqa: F401 (registers the kinds)
from unkernel.errors import FormatError
from unkernel.models import container, registry

MODEL_KINDS = frozenset({"compiled", "conjunctions", "kernel", "linear", "tree"})
RECORDS = "records"


def parser_words(path: Path) -> str | None:
    """What a file of a parser holds, in words; None for models of rows and trees, and for other files.

    What comes from a pipe can be read only once, and is none.
    """
    if not path.is_file():
        return None
    try:
        kind = container.read(path)[0]
    except FormatError:
        return None
    if kind == RECORDS:
        reason = "a classifier of records, which no command reads: unkernel.load in Python does"
        raise FormatError(os.fspath(path), 0, 0, reason)
    known = registry.registered().get(kind)
    return None if known is None or kind in MODEL_KINDS else known.description


def is_parser(path: Path) -> bool:
    """Whether a file holds a parser."""
    return parser_words(path) is not None
