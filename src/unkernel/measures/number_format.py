"""Formatting of numbers for people."""

from __future__ import annotations

import math
from typing import Any

from unkernel.measures.intervals import Measure, wilson

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def many(count: int, one: str, several: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def format_percent(share: float, digits: int = 2) -> str:
    """Return a share in percent."""
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def number(value: float, digits: int = 4) -> str:
    """Return a number with this many significant digits; without an exponent if it is of ordinary size."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.{digits}g}"


def format_measure(one: Measure) -> str:
    """Format the value of a measure."""
    return format_percent(one.value) if one.is_share else number(one.value)


def format_interval(one: Measure) -> str:
    """Format the confidence interval of a measure; a dash if it has none."""
    if math.isnan(one.low):
        return "–"
    if one.is_share:
        return f"{100 * one.low:.2f} to {100 * one.high:.2f}"
    return f"{number(one.low)} to {number(one.high)}"


def format_signed(value: float) -> str:
    """Return a number with its sign."""
    return f"{value:+.4g}"


def size(count: float) -> str:
    """Return a number of bytes, in units of powers of 1,000."""
    place = min(int(math.log(max(count, 1), 1000)), len(_UNITS) - 1)
    return f"{count:,.0f} bytes" if not place else f"{count / 1000**place:.4g} {_UNITS[place]}"


def labels(values: list[Any], most: int = 8) -> str:
    """Return the first few of some labels."""
    shown = ", ".join(map(str, values[:most]))
    return shown if len(values) <= most else f"{shown}, …"


def share(part: float, whole: float) -> str:
    """Return a share in percent, with Wilson's interval; a dash if the whole is 0."""
    low, high = wilson(part, whole)
    return f"{format_percent(part / whole)} ({100 * low:.1f}–{100 * high:.1f})" if whole else "–"
