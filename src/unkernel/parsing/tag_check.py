"""Checks that a text has the tags that a parser was trained with: without them, answers are arbitrary."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = "_"
MANY = 0.1  # the share of unknown tags from which on there is a warning
_EXAMPLES = 5


def check_tags(
    text: str, column: str, codes: NDArray[Any], names: list[str], *, known: Iterable[str], advice: str
) -> None:
    """Raise ValueError if no word has a tag in a column, and warn if many tags were not in training.

    Parameters
    ----------
    text, column : str
        What messages call them.
    codes : ndarray of int
        The tag of each word, as a number in `names`.
    names : list of str
    known : iterable of str
        The tags of the training text.
    advice : str
        How to give the tags.
    """
    tags = set(known)
    counts = dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True))
    unknown = {tag: count for tag, count in counts.items() if count and tag not in tags}
    total = sum(counts.values())
    if not unknown:
        return
    trained = f"the training text has tags such as {examples_of(sorted(tags - {MISSING}))}"
    if unknown.get(MISSING) == total:
        raise ValueError(f"{text}: no word has a tag in column {column}, and {trained}: {advice}")
    warn_of_unknown(text, column, unknown, total, trained)


def warn_of_unknown(text: str, column: str, unknown: dict[str, int], total: int, trained: str) -> None:
    """Warn if the share of unknown tags is large."""
    share = sum(unknown.values()) / total
    if share < MANY:
        return
    frequent = sorted(unknown, key=lambda tag: (-unknown[tag], tag))
    warnings.warn(
        f"{text}: {share:.0%} of the tags in column {column} were not in the training text "
        f"({examples_of(frequent)}): expect poor answers; {trained}",
        UserWarning,
        stacklevel=outside_package(),
    )


def examples_of(tags: list[str]) -> str:
    """Some tags, for messages."""
    more = ", ..." if len(tags) > _EXAMPLES else ""
    return ", ".join(map(repr, tags[:_EXAMPLES])) + more


def outside_package() -> int:
    """The stack level of the first frame outside this package, as ``warnings.warn`` above counts."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("unkernel."):
        level, frame = level + 1, frame.f_back
    return level
