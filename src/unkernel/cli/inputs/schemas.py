"""Read the kinds of columns of records from a JSON file."""

from __future__ import annotations

import json
from pathlib import Path

from unkernel.errors import FormatError
from unkernel.records.column_summary import KINDS

_EXAMPLE = '{"age": "binned", "zip": "category"}'


def read_schema(path: str | None) -> dict[str, str]:
    """Read a schema, which maps columns to kinds; return an empty dict if there is no file."""
    if path is None:
        return {}
    try:
        schema = json.loads(Path(path).read_bytes())
    except UnicodeDecodeError:
        raise FormatError(path, 0, 0, f"a schema is JSON such as {_EXAMPLE}, not bytes") from None
    except json.JSONDecodeError as error:
        reason = f"a schema is JSON such as {_EXAMPLE}: {error.msg}"
        raise FormatError(path, error.lineno, error.colno, reason) from None
    except RecursionError:
        raise FormatError(path, 0, 0, f"a schema is JSON such as {_EXAMPLE}") from None
    if not isinstance(schema, dict):
        raise FormatError(path, 0, 0, f"a schema is an object such as {_EXAMPLE}")
    for name, kind in schema.items():
        if kind not in KINDS:
            reason = f"the kind of column {name!r} must be one of {', '.join(KINDS)}, got {kind!r}"
            raise FormatError(path, 0, 0, reason)
    return schema
