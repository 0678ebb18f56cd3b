"""The slow twin of the svmlight reader: one regular expression per field."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

BLANKS = " \t\r\v\f"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
ENTRY = re.compile(r"(\d+):(.*)", re.ASCII | re.DOTALL)
NAMED = re.compile(r"([A-Za-z_]\w*):(.*)", re.ASCII | re.DOTALL)
QUERY = re.compile(r"-?\d+", re.ASCII)


class BadLineError(Exception):
    def __init__(self, line: int, column: int) -> None:
        super().__init__(line, column)
        self.line = line
        self.column = column


@dataclass
class Rows:
    labels: list[float] = field(default_factory=list)
    queries: list[int | None] = field(default_factory=list)
    rows: list[dict[int, float]] = field(default_factory=list)  # including zeros
    comments: int = 0
    ignored_fields: int = 0


def finite(text: str) -> float | None:
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def read(data: bytes, smallest: int = 0, largest: int = 2**63 - 2) -> Rows:
    """Read a whole file. The first bad line raises a BadLineError with its line and column."""
    result = Rows()
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    for number, line in enumerate(text.split("\n"), start=1):
        content, hash_sign, _ = line.partition("#")
        result.comments += bool(hash_sign)
        fields = [(m.group(), m.start() + 1) for m in re.finditer(f"[^{BLANKS}]+", content)]
        if fields:
            read_row(fields, number, smallest, largest, result)
    return result


def read_row(fields: list[tuple[str, int]], line: int, smallest: int, largest: int, result: Rows) -> None:
    label = finite(fields[0][0])
    if label is None:
        raise BadLineError(line, fields[0][1])
    query: int | None = None
    entries: list[tuple[int, float, int]] = []
    for text, column in fields[1:]:
        if entry := ENTRY.fullmatch(text):
            index = int(entry[1])
            if not smallest <= index <= largest:
                raise BadLineError(line, column)
            value = finite(entry[2])
            if value is None:
                raise BadLineError(line, column + len(entry[1]) + 1)
            entries.append((index, value, column))
        elif (named := NAMED.fullmatch(text)) and named[1] != "qid":
            result.ignored_fields += 1
        elif named and QUERY.fullmatch(named[2]) and -(2**63) <= int(named[2]) < 2**63 and query is None:
            query = int(named[2])
        else:
            raise BadLineError(line, column)
    row: dict[int, float] = {}
    for index, value, column in entries:
        if index in row:
            raise BadLineError(line, column)
        row[index] = value
    if result.rows and (query is None) != (result.queries[0] is None):
        raise BadLineError(line, 0)
    result.labels.append(label)
    result.queries.append(query)
    result.rows.append(row)
