"""Random values of the columns of records: ordinary values, rare values, and values of wrong types."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np

Random = np.random.Generator
WORDS = [
    "red", "blue", "Blue", "tea", "milk", "x1", "don't", "café", "cafe\u0301", "CAFÉ", "straße", "İzmir",
    "日本語", "東京", "naïve", "ﬁne", "Ελλάδα", "ΑΣ", "Москва", "שלום", "مرحبا", "नमस्ते", "ไทย",
    "😀", "👩‍🚀", "²", "١٢", "ǅ", "snake_case", "e-mail", "K",
]  # fmt: skip
CATEGORIES = [
    "a",
    "b",
    "A",
    "é",
    "e\u0301",
    "日本",
    "x y",
    "1",
    "nan",
    "None",
    "true",
    "ß",
    "😀",
    " ",
    'say "a"',
]
UNSEEN = [
    "new",
    "ñ",
    "2",
    "  ",
    "neu\x00",
    "",
    "\\",
    "a,b",
    "a\nb",
    "\u2028",
    "\ufeff",
    "\x7f",
    "\x1f",
    "NULL",
    "-",
]
NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 0.1, 2.5, 5e-324, 2.2250738585072014e-308, 1e-300, 1e16, 1e22, 123456789.123456789,
    1.7976931348623157e308, -1e300, 1e5, 3.0000000000000004,
]  # fmt: skip
INTEGERS = [
    0,
    1,
    -1,
    3,
    40,
    2**31,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    10**25,
]
BEYOND_NUMBERS = [10**400, -(10**400)]  # beyond the range of floats
DAYS = [
    dt.date(1970, 1, 1),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
    dt.date(2024, 2, 29),
    dt.date(1899, 12, 31),
]
ZONES = [dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30)), dt.timezone(-dt.timedelta(hours=8))]
NO_DATES = ["2026-02-30", "yesterday", "2026-13-01", "20261117", "2026-11-17T25:00", " 2026-11-17"]
PLANES = [
    (0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x700), (0x900, 0xE80), (0x1F00, 0x2100),
    (0x3040, 0xA000), (0xAC00, 0xD7A4), (0xE000, 0xF900), (0xFB00, 0x10000), (0x10000, 0x20000),
    (0x20000, 0x30000), (0x30000, 0x40000), (0xE0000, 0xF0000), (0xF0000, 0x110000), (0x0, 0x20),
]  # fmt: skip


def pick(rng: Random, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def any_text(rng: Random) -> str:
    """Return a text of characters of all planes of Unicode, with combining marks and rare lone surrogates."""
    parts = []
    for _ in range(int(rng.integers(0, 6))):
        begin, end = pick(rng, PLANES)
        parts.append("".join(map(chr, rng.integers(begin, end, int(rng.integers(1, 5))).tolist())))
    if rng.random() < 0.04:
        parts.append(chr(int(rng.integers(0xD800, 0xE000))))
    return pick(rng, ["", " "]).join(parts)


def text(rng: Random) -> str:
    """Return known and unknown words."""
    words = [pick(rng, WORDS) for _ in range(int(rng.integers(0, 6)))]
    if rng.random() < 0.4:
        words.insert(int(rng.integers(len(words) + 1)), any_text(rng))
    return str(pick(rng, [" ", "  ", ", ", "\n", "\u00a0"])).join(words)


def number(rng: Random) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return round(float(rng.normal()) * 10, int(rng.integers(0, 4)))
    if kind < 0.6:
        return float(rng.normal()) * 10.0 ** int(rng.integers(-320, 300))
    if kind < 0.8:
        return pick(rng, NUMBERS)
    return pick(rng, INTEGERS) if kind < 0.97 else pick(rng, [math.inf, -math.inf, *BEYOND_NUMBERS])


def date(rng: Random) -> Any:
    kind = rng.random()
    day = dt.date.fromordinal(int(rng.integers(700_000, 760_000)))
    time = dt.time(*rng.integers(0, [24, 60, 60]).tolist())
    if kind < 0.2:
        return day
    if kind < 0.4:
        return dt.datetime.combine(day, time)
    if kind < 0.5:
        return dt.datetime.combine(day, time, pick(rng, ZONES))
    if kind < 0.7:
        return day.isoformat() if rng.random() < 0.5 else dt.datetime.combine(day, time).isoformat()
    if kind < 0.8:
        return dt.datetime.combine(day, time.replace(microsecond=int(rng.integers(10**6))))
    return pick(rng, DAYS) if kind < 0.93 else pick(rng, NO_DATES)


def category(rng: Random) -> Any:
    kind = rng.random()
    if kind < 0.7:
        return pick(rng, CATEGORIES)
    return pick(rng, UNSEEN) if kind < 0.85 else any_text(rng)


def grade(rng: Random) -> Any:
    """Return a number that stands for a category."""
    return int(rng.integers(0, 5)) if rng.random() < 0.8 else number(rng)


def flag(rng: Random) -> Any:
    return bool(rng.random() < 0.5)


def tags(rng: Random) -> Any:
    return [category(rng) for _ in range(int(rng.integers(0, 4)))]


DRAWN = {
    "text": text,
    "category": category,
    "grade": grade,
    "flag": flag,
    "number": number,
    "date": date,
    "tags": tags,
}
ORDINARY = {
    "text": "tea",
    "category": "a",
    "grade": 1,
    "flag": True,
    "number": 1.0,
    "date": "2024-05-01",
    "tags": ["a"],
}
MISSING = [None, math.nan]
WRONG = [True, 1, 2.5, "abc", "", [], ["a"], [1], {}, {"a": 1}, dt.date(2020, 1, 1), None, math.nan]


def value(rng: Random, kind: str, *, missing: float, wrong: float) -> Any:
    """Return a value of a column, sometimes missing, or of another type."""
    chance = rng.random()
    if chance < missing:
        return pick(rng, MISSING)
    return pick(rng, WRONG) if chance < missing + wrong else DRAWN[kind](rng)
