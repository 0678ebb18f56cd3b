"""JSON lines: one object per line, read by Python's json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from unkernel.errors import FormatError, describe_bad_byte
from unkernel.records.files.blocks import Block
from unkernel.records.files.cells import TOO_LARGE

_MAX_LINE_BYTES = 1 << 28
_BOM = b"\xef\xbb\xbf"

_JSON_KINDS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def json_blocks(blocks: Iterable[bytes], file: str) -> Iterator[Block]:
    """Yield the records in the order of the file, in blocks of whole lines."""
    held, line, first = b"", 1, 0
    for number, block in enumerate(blocks):
        held = held + block if number else block.removeprefix(_BOM)
        end = held.rfind(b"\n") + 1
        if not end and len(held) > _MAX_LINE_BYTES:
            raise FormatError(file, line, 0, f"a line of more than {_MAX_LINE_BYTES >> 20} MB")
        if end:
            parsed = _parse(held[:end], line, first, file)
            line += held.count(b"\n", 0, end)
            held = held[end:]
            first += parsed.n_rows
            if parsed.n_rows:
                yield parsed
    if held.strip():
        yield _parse(held, line, first, file)


def _parse(data: bytes, line: int, first: int, file: str) -> Block:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, text in enumerate(data.split(b"\n"), line):
        if text and not text.isspace():
            records.append(record_of(text, file, number))
            lines.append(number)
    return Block(file, records, len(records), lambda row: lines[row], first)


def record_of(text: bytes | str, file: str, line: int = 0) -> dict[str, Any]:
    """Parse one record."""
    try:
        record = json.loads(text)
    except UnicodeDecodeError as error:
        raise FormatError(file, line, error.start + 1, describe_bad_byte(error.object[error.start])) from None
    except json.JSONDecodeError as error:
        raise FormatError(file, line, error.colno, f"not a JSON object: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # thousands of digits or of brackets
        raise FormatError(file, line, 0, f"not a JSON object that can be read: {error}") from None
    if not isinstance(record, dict):
        raise FormatError(
            file, line, 0, f'expected an object such as {{"age": 39}}, got {_JSON_KINDS[type(record)]}'
        )
    if math.inf in record.values() or -math.inf in record.values():
        _check_infinities(record, text, file, line)
    return record


def _check_infinities(record: dict[str, Any], text: bytes | str, file: str, line: int) -> None:
    """Raise a FormatError if an infinite value was not written as one: Python reads 1e999 as infinity."""
    if "Infinity" in (text if isinstance(text, str) else text.decode()):
        return
    name = next(name for name, value in record.items() if value in (math.inf, -math.inf))
    raise FormatError(file, line, 0, f"column {name!r}: {TOO_LARGE}")
