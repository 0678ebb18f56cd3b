"""Beam widths: the number of answers that a search follows at once. Needs only NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unkernel.models import container

WIDEST_BEAM = 64


def check_beam(beam: Any) -> None:
    """Raise ValueError unless a file can hold this width."""
    if isinstance(beam, bool) or not isinstance(beam, int) or not 1 <= beam <= WIDEST_BEAM:
        raise ValueError(f"beam must be a number from 1 to {WIDEST_BEAM}, got {beam!r}")


def read_beam(name: str, settings: Mapping[str, Any]) -> int:
    """Return the width in the settings of a file; files of earlier versions have none and are greedy."""
    if "beam" not in settings:
        return 1
    beam: int = container.read_setting(name, settings, "beam", int, lambda width: 1 <= width <= WIDEST_BEAM)
    return beam
