"""Parse grids of values: lists such as ``1,2,3``, ranges such as ``0.001:10`` or ``0.01:1:5``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any

import typer

from unkernel.cli.options.command_signatures import Parts
from unkernel.cli.options.estimator_options import DerivedOption, flag

_NOT_TUNED = frozenset({"class_weight", "cache", "checkpoint", "random_state"})
_OMITTED = frozenset({"cache", "checkpoint"})  # options of out-of-core training
_MAX_VALUES = 1000
_RANGE_DIGITS = 6  # significant digits, to get 0.1 instead of 0.09999999999999999
_PANEL = "Parameters to try"


def make_grid_parts(options: Iterable[DerivedOption]) -> Parts:
    """Return an option for each parameter; options with a single value are the same as in ``train``."""
    parts: dict[str, tuple[Any, Any]] = {}
    for option in options:
        if option.parameter in _OMITTED:
            continue
        if not is_tuned(option):
            parts[option.name] = (option.annotation("Parameters of one value"), None)
            continue
        spellings = ("--C", "-C") if option.name == "C" else (flag(option.name),)
        option_info = typer.Option(
            *spellings,
            metavar=_make_metavar(option),
            help=option.help,
            show_default=option.default,
            rich_help_panel=_PANEL,
        )
        parts[option.name] = (Annotated[str | None, option_info], None)
    return parts


def is_tuned(option: DerivedOption) -> bool:
    """Return whether ``tune`` can try several values of an option."""
    return option.parameter not in _NOT_TUNED and option.kind is not bool


def _make_metavar(option: DerivedOption) -> str:
    if option.kind in (int, float):
        return "VALUE,…|LOW:HIGH"
    if isinstance(option.kind, type) and issubclass(option.kind, Enum):
        return ",".join(choice.value for choice in option.kind)
    return "VALUE,…"


def parse_values(option: DerivedOption, text: str) -> list[Any]:
    """Return the values in a list or range, without duplicates."""
    values = [value for part in text.split(",") for value in _parse_part(option, part.strip())]
    if len(values) > _MAX_VALUES:
        raise ValueError(
            f"{flag(option.name)}: at most {_MAX_VALUES:,} values are tried, got {len(values):,}"
        )
    return list(dict.fromkeys(values))


def _parse_part(option: DerivedOption, part: str) -> list[Any]:
    """Return the values of one element of a list: a single value, or a range."""
    if isinstance(option.kind, type) and issubclass(option.kind, Enum):
        choices = [choice.value for choice in option.kind]
        if part not in choices:
            raise ValueError(f"{flag(option.name)} must be among {', '.join(choices)}, got {part!r}")
        return [part]
    try:
        if option.kind is int:
            return _parse_whole_numbers(part)
        if ":" in part:
            return _parse_range(part)
        return [float(part)] if option.kind is float else [option.convert(part)]
    except ValueError:
        example = "1:3" if option.kind is int else "0.001:10 (or 0.001:10:9 for nine values)"
        raise ValueError(
            f"{flag(option.name)} must be a list such as 1,2,3 or a range such as {example}, got {part!r}"
        ) from None


def _parse_whole_numbers(part: str) -> list[int]:
    """Return integers parsed from text; ``1:3`` means 1, 2, 3."""
    if ":" not in part:
        return [int(part)]
    low, high = map(int, part.split(":"))
    if not low <= high < low + _MAX_VALUES:
        raise ValueError
    return list(range(low, high + 1))


def _parse_range(part: str) -> list[float]:
    """Return the numbers in ``LOW:HIGH`` or ``LOW:HIGH:COUNT``; successive numbers have equal ratios."""
    low, high, *count = part.split(":")
    first, last = float(low), float(high)
    if not 0 < first < last < math.inf or len(count) > 1:
        raise ValueError
    # Without a count, ratios are at most 10. 1e-9 allows for the rounding of the logarithm.
    n_values = int(count[0]) if count else math.ceil(math.log10(last / first) - 1e-9) + 1
    if not 2 <= n_values <= _MAX_VALUES:
        raise ValueError
    ratio = (last / first) ** (1 / (n_values - 1))
    return [float(f"{first * ratio**power:.{_RANGE_DIGITS}g}") for power in range(n_values)]


def expand_grid(grid: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of values, in the order of the options; the last option varies fastest."""
    count = math.prod(len(values) for values in grid.values())
    if count > _MAX_VALUES:
        raise ValueError(f"at most {_MAX_VALUES:,} settings are tried, got {count:,}; give fewer values")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
