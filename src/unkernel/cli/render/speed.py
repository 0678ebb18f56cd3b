"""Output of ``unkernel bench``."""

from __future__ import annotations

from typing import Any

from unkernel.cli.render.models import format_exactness, format_trie
from unkernel.cli.terminal.console import format_microseconds, format_size, print_facts


def print_speed(result: dict[str, Any]) -> None:
    """Print the measured times, and describe the data."""
    times, speeds, single_times = (
        result[name] for name in ("microseconds_per_row", "rows_per_second", "score_one_microseconds")
    )
    threads, unit = result["threads"], result.get("unit", "tree" if "subtrees" in result else "row")

    def format_speed(threads_key: str) -> str:
        return f"{format_microseconds(times[threads_key])} µs/{unit} ({speeds[threads_key]:,.0f} {unit}s/s)"

    facts = {"engine": f"{result['engine']}, {format_exactness(result['exact'])}"}
    if result.get("trie"):
        facts["trie"] = format_trie(result["trie"])
    facts |= {f"{unit}s": _format_size(result), "one thread": format_speed("one_thread")}
    if threads > 1:
        facts[f"{threads} threads"] = f"{format_speed('all_threads')}, {result['scaling']:.2f} times as fast"
    median, best = format_microseconds(single_times["median"]), format_microseconds(single_times["best"])
    facts |= {
        f"one {unit}, Python": f"{median} µs median, {best} µs best",
        "loading": f"{result['load_milliseconds']:.3g} ms",
        "bytes": f"{format_size(result['file_bytes'])} in the file, "
        f"{format_size(result['memory_bytes'])} in memory",
    }
    print_facts(result["model"], facts)


def _format_size(result: dict[str, Any]) -> str:
    if "subtrees" in result:
        return f"{result['rows']:,} with {result['subtrees']:,} different subtrees in total"
    return f"{result['rows']:,} with {result['features_per_row']:.1f} features each"
