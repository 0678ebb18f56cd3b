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


def read_json_blocks(blocks: Iterable[bytes], file: str) -> Iterator[Block]:
    """Yield the records in the order of the file, in blocks of whole lines."""
    buffer, line, first = b"", 1, 0
    for number, block in enumerate(blocks):
        buffer = buffer + block if number else block.removeprefix(_BOM)
        end = buffer.rfind(b"\n") + 1
        if not end and len(buffer) > _MAX_LINE_BYTES:
            raise FormatError(file, line, 0, f"a line of more than {_MAX_LINE_BYTES >> 20} MB")
        if end:
            parsed_block = _parse(buffer[:end], line, first, file)
            line += buffer.count(b"\n", 0, end)
            buffer = buffer[end:]
            first += parsed_block.n_rows
            if parsed_block.n_rows:
                yield parsed_block
    if buffer.strip():
        yield _parse(buffer, line, first, file)


def _parse(data: bytes, line: int, first: int, file: str) -> Block:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, text in enumerate(data.split(b"\n"), line):
        if text and not text.isspace():
            records.append(parse_record(text, file, number))
            lines.append(number)
    return Block(file, records, len(records), lambda row: lines[row], first)


def parse_record(text: bytes | str, file: str, line: int = 0) -> dict[str, Any]:
    """Parse one record."""
    try:
        record = json.loads(text)
    except UnicodeDecodeError as error:
        raise FormatError(file, line, error.start + 1, describe_bad_byte(error.object[error.start])) from None
    except json.JSONDecodeError as error:
        raise FormatError(file, line, error.colno, f"not a JSON object: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # too many digits, or brackets that are nested too deeply
        raise FormatError(file, line, 0, f"not a JSON object that can be read: {error}") from None
    if not isinstance(record, dict):
        raise FormatError(
            file, line, 0, f'expected an object such as {{"age": 39}}, got {_JSON_KINDS[type(record)]}'
        )
    if math.inf in record.values() or -math.inf in record.values():
        _check_infinities(record, text, file, line)
    return record


def _check_infinities(record: dict[str, Any], text: bytes | str, file: str, line: int) -> None:
    """Raise a FormatError if a number is too large, such as 1e999, which Python reads as infinity."""
    if "Infinity" in (text if isinstance(text, str) else text.decode()):
        return
    name = next(name for name, value in record.items() if value in (math.inf, -math.inf))
    raise FormatError(file, line, 0, f"column {name!r}: {TOO_LARGE}")
