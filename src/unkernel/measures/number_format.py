"""Format numbers as text."""

from __future__ import annotations

import math
from typing import Any

from unkernel.measures.intervals import Measure, compute_wilson_interval

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun, in the singular or plural."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def format_percent(share: float, digits: int = 2) -> str:
    """Return a share as text in percent."""
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def format_number(value: float, digits: int = 4) -> str:
    """Return a number as text with `digits` significant digits; numbers below 1e12 have no exponent."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.{digits}g}"


def format_measure(measure: Measure) -> str:
    """Return the value of a measure as text."""
    return format_percent(measure.value) if measure.is_share else format_number(measure.value)


def format_interval(measure: Measure) -> str:
    """Return the confidence interval of a measure as text; a dash if there is none."""
    if math.isnan(measure.low):
        return "–"
    if measure.is_share:
        return f"{100 * measure.low:.2f} to {100 * measure.high:.2f}"
    return f"{format_number(measure.low)} to {format_number(measure.high)}"


def format_signed(value: float) -> str:
    """Return a number as text, always with a sign."""
    return f"{value:+.4g}"


def format_bytes(count: float) -> str:
    """Return a number of bytes as text, in units of powers of 1,000."""
    power = min(int(math.log(max(count, 1), 1000)), len(_UNITS) - 1)
    return f"{count:,.0f} bytes" if not power else f"{count / 1000**power:.4g} {_UNITS[power]}"


def format_labels(values: list[Any], limit: int = 8) -> str:
    """Return labels separated by commas; after `limit` labels, an ellipsis replaces the rest."""
    text = ", ".join(map(str, values[:limit]))
    return text if len(values) <= limit else f"{text}, …"


def format_share(part: float, whole: float) -> str:
    """Return a share as text in percent, with Wilson's interval; a dash if the whole is 0."""
    low, high = compute_wilson_interval(part, whole)
    return f"{format_percent(part / whole)} ({100 * low:.1f}–{100 * high:.1f})" if whole else "–"
