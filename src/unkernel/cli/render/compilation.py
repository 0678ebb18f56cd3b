"""Output of ``unkernel compile``."""

from __future__ import annotations

from typing import Any

from unkernel.cli.render.candidates import print_candidates
from unkernel.cli.render.models import format_exactness, format_trie, model_facts, threshold_facts
from unkernel.cli.terminal.console import format_seconds, format_size, print_facts


def print_compiled(result: dict[str, Any]) -> None:
    """Print the model that was read, the engines that were tried, and the chosen one."""
    print_facts(result["source"], model_facts(result["read"]))
    if result["candidates"]:
        print_candidates(result["candidates"])
    seconds = result["seconds"]
    facts = {
        "engine": f"{result['engine']}, {format_exactness(result['exact'])}",
        "bytes": f"{format_size(result['model_bytes'])} in the file, "
        f"{format_size(result['compiled_bytes'])} compiled",
        "time": f"{format_seconds(seconds['reading'])} reading, "
        f"{format_seconds(seconds['compiling'])} compiling",
    }
    facts = threshold_facts(result) | facts
    if result["trie_asked_for"]:
        facts["trie"] = format_trie(result["trie"]) if result["trie"] else "none: it is not faster"
    if result["plot"]:
        facts["plot"] = result["plot"]
    print_facts(result["model"], facts)
