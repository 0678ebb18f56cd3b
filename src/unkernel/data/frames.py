"""Results as frames of pandas, which is optional."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a frame with one row for each mapping; the first one names its columns."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows), columns=list(rows[0]) if rows else None)
