"""Return results as data frames. pandas is optional."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a data frame with one row per mapping; the first mapping names the columns."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows), columns=list(rows[0]) if rows else None)
