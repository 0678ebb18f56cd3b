"""The output of commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.text import Text


def results() -> Console:
    """Return a console on stdout. Each call creates a new one, because tests may replace stdout."""
    return Console(highlight=False, soft_wrap=True)


def messages() -> Console:
    """Return a console on stderr."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def report_error(reason: str) -> None:
    messages().print(Text.assemble("unkernel: ", ("error: ", "bold red"), flatten(reason)))


def report_interrupt() -> None:
    messages().print("unkernel: interrupted")


def warn(reason: str) -> None:
    messages().print(Text(f"unkernel: warning: {flatten(reason)}", style="yellow"))


def note(text: str) -> None:
    """Print a remark that is not a result, on stderr."""
    messages().print(Text(f"unkernel: {flatten(text)}"))


def flatten(text: str) -> str:
    """Return text on one line, with escapes for characters that could move a terminal's cursor."""
    joined = re.sub(r"[ \t\r\n]+", " ", text.strip())
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in joined
    )


def print_json(result: Mapping[str, Any]) -> None:
    """Print an object as JSON on one line; NaN and infinity become null."""
    print(json.dumps(_replace_infinite(result), allow_nan=False, ensure_ascii=False), file=sys.stdout)


def _replace_infinite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _replace_infinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_facts(title: str, facts: Mapping[str, str], console: Console | None = None) -> None:
    """Print names and values in two columns under a title."""
    console = console or results()
    width = max(map(len, facts), default=0)
    console.print(Text(flatten(title), style="bold"))
    for name, value in facts.items():
        console.print(Text.assemble("  ", (name.ljust(width), "cyan"), "  ", flatten(value)))


def format_seconds(duration: float) -> str:
    return f"{duration:.2f} s" if duration < 100 else f"{duration:,.0f} s"


def format_microseconds(duration: float) -> str:
    """Return the text of a number with three digits, without the unit."""
    return f"{duration:,.0f}" if duration >= 1000 else f"{duration:#.3g}".rstrip(".")


def format_value(value: Any, digits: int = 6) -> str:
    """Return the text of a value; numbers have at most `digits` digits."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def format_size(count: int) -> str:
    return decimal(count)


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None on Windows, which does not report it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def rate(count: int, duration: float) -> float:
    """Return `count` per second. If no time has passed, return NaN, or 0 for a count of 0."""
    if duration > 0:
        return count / duration
    return math.nan if count else 0.0
