"""Checks of the inputs of parsers: texts, corpora and beam widths. Needs only NumPy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from unkernel.models import container

WIDEST_BEAM = 64


def check_is_no_sentence(source: Any) -> None:
    """Raise ValueError if a sentence is given where the name of a file is expected."""
    if not isinstance(source, str) or not any(character.isspace() for character in source.strip()):
        return
    if os.path.exists(source) or any(character in source for character in "*?["):  # noqa: PTH110
        return
    raise ValueError(
        f"{source[:40]!r} is not a file. A text must be split into words and tagged first, as a TextParser "
        "does: give the name of a file with one word per line, or lists of words and tags"
    )


def check_not_empty(name: str, count: int) -> None:
    """Raise ``ValueError`` if a corpus has no sentences."""
    if not count:
        raise ValueError(f"{name}: there are no sentences")


def check_beam(beam: Any) -> None:
    """Raise ValueError if a beam cannot have this width."""
    if isinstance(beam, bool) or not isinstance(beam, int) or not 1 <= beam <= WIDEST_BEAM:
        raise ValueError(f"beam must be a number from 1 to {WIDEST_BEAM}, got {beam!r}")


def read_beam(name: str, settings: Mapping[str, Any]) -> int:
    """Return the beam width from the settings of a file, or 1 for older files, which do not store it."""
    if "beam" not in settings:
        return 1
    beam: int = container.read_setting(name, settings, "beam", int, lambda width: 1 <= width <= WIDEST_BEAM)
    return beam
