"""Checks of texts that users pass."""

from __future__ import annotations

import os
from typing import Any


def check_is_no_sentence(source: Any) -> None:
    """Raise ValueError if a sentence is given where the name of a file is expected."""
    if not isinstance(source, str) or not any(character.isspace() for character in source.strip()):
        return
    if os.path.exists(source) or any(character in source for character in "*?["):  # noqa: PTH110
        return
    raise ValueError(
        f"{source[:40]!r} is not a file. A text must be split into words and tagged first, as a TextParser "
        "does: give the name of a file with one word per line, or lists of words and of tags"
    )
