"""The slow twin of dates, with the datetime module."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)


def parse_moment(value: Any) -> datetime | None:
    """Return the date and time in UTC of a value; None if it is not a date."""
    if isinstance(value, np.datetime64):
        value = str(value)
    elif isinstance(value, date):
        value = value.isoformat()
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return None
    without_fraction = re.sub(r"[.,]\d+", "", value)  # the hour does not depend on fractions of a second
    try:
        moment = datetime.fromisoformat(without_fraction)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def part_of(value: Any, part: str) -> float:
    """Return a part of a date; NaN if there is no date."""
    moment = parse_moment(value)
    if moment is None:
        return math.nan
    return float(moment.weekday() if part == "weekday" else getattr(moment, part))
