"""Check that a text has the tags that a parser was trained with: predictions depend on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.errors import warn_caller

MISSING = "_"
MAX_UNKNOWN_SHARE = 0.1  # a larger share of unknown tags causes a warning
_MAX_EXAMPLES = 5
_MAX_UNTAGGED_WORDS = 1000  # consecutive words without tags in the middle of a stream


@dataclass(frozen=True)
class TagFault:
    """A reason why the tags of a text lead to poor predictions."""

    reason: str
    fatal: bool  # no word has a tag, so predictions would be arbitrary


def find_tag_fault(
    column: str, codes: NDArray[Any], names: list[str], *, trained_tags: Iterable[str], advice: str
) -> TagFault | None:
    """Return a fault if no word has a tag in a column or many tags were not in training, else None.

    Parameters
    ----------
    column : str
        Name of the column in messages.
    codes : ndarray of int
        The tag of each word, as an index into `names`.
    names : list of str
    trained_tags : iterable of str
        The tags of the training text.
    advice : str
        Advice for the error message: how to supply the tags.
    """
    tags = set(trained_tags)
    counts = dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True))
    unknown = {tag: count for tag, count in counts.items() if count and tag not in tags}
    total = sum(counts.values())
    if not unknown:
        return None
    trained = f"the training text has tags such as {format_examples(sorted(tags - {MISSING}))}"
    if unknown.get(MISSING) == total:
        return TagFault(f"no word has a tag in column {column}, and {trained}: {advice}", fatal=True)
    share = sum(unknown.values()) / total
    if share < MAX_UNKNOWN_SHARE:
        return None
    frequent = sorted(unknown, key=lambda tag: (-unknown[tag], tag))
    reason = (
        f"{share:.0%} of the tags in column {column} were not in the training text "
        f"({format_examples(frequent)}): expect poor predictions; {trained}"
    )
    return TagFault(reason, fatal=False)


def check_faults(text: str, faults: Iterable[TagFault]) -> None:
    """Raise ValueError for fatal faults, and warn of others; `text` is the name of the text in messages."""
    for fault in faults:
        if fault.fatal:
            raise ValueError(f"{text}: {fault.reason}")
        warn_caller(f"{text}: {fault.reason}", UserWarning)


class StreamCheck:
    """Checks the tags of a stream, block by block, and warns at most once.

    A stream that begins without tags is an error. After a block with tags, untagged blocks first cause a
    warning, because blocks from pipes may be very short; ``_MAX_UNTAGGED_WORDS`` words in such blocks are an
    error.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tagged = self._warned = False
        self._n_untagged = 0  # consecutive words in blocks without tags

    def __call__(self, faults: list[TagFault], line: int, words: int) -> None:
        """Handle the faults of a block that begins in line `line` and has `words` words."""
        if not words:
            return
        fatal = [fault for fault in faults if fault.fatal]
        self._n_untagged = self._n_untagged + words if fatal else 0
        text = f"{self._text}, from line {line:,} on" if self._tagged else self._text
        if fatal and (not self._tagged or self._n_untagged >= _MAX_UNTAGGED_WORDS):
            check_faults(text, fatal)
        if faults and not self._warned:
            warn_caller(f"{text}: {faults[0].reason}", UserWarning)
            self._warned = True
        self._tagged = self._tagged or not fatal


def format_examples(tags: list[str]) -> str:
    """Return the first few tags as text for messages."""
    more = ", ..." if len(tags) > _MAX_EXAMPLES else ""
    return ", ".join(map(repr, tags[:_MAX_EXAMPLES])) + more
