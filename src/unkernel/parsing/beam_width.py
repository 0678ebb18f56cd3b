"""The widths of beams: how many answers a search follows at once. Needs numpy alone."""

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
    """The width in the settings of a file; those of earlier versions have none, and decide one by one."""
    if "beam" not in settings:
        return 1
    beam: int = container.read_setting(name, settings, "beam", int, lambda width: 1 <= width <= WIDEST_BEAM)
    return beam
