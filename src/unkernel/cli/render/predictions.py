"""Output of ``unkernel predict`` and ``unkernel evaluate`` for rows, records and trees."""

from __future__ import annotations

from typing import Any

from unkernel.cli.render.quality import class_facts, rank_facts, value_facts
from unkernel.cli.terminal.console import format_seconds
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM


def prediction_facts(result: dict[str, Any]) -> dict[str, str]:
    """Return texts about the quality, the speed and the output file of predictions."""
    speed, seconds, unit = result["rows_per_second"], result["seconds"], result["unit"]
    facts = {f"{unit}s": f"{result['rows']:,}"} | _quality_facts(result, unit)
    facts["scoring"] = f"{speed['scoring']:,.0f} {unit}s/s ({format_seconds(seconds['scoring'])})"
    facts["with reading"] = (
        f"{speed['reading_and_scoring']:,.0f} {unit}s/s ({format_seconds(seconds['reading'])} to read)"
    )
    if "cache" in result:
        facts["cache"] = f"{result['cache']['hits']:,} {unit}s found, {result['cache']['misses']:,} scored"
    if result.get("output") not in (None, STANDARD_STREAM):
        facts["written"] = str(result["output"])
    return facts


def _quality_facts(result: dict[str, Any], unit: str) -> dict[str, str]:
    if result["pairs"] is not None:
        facts = rank_facts(result)
    elif result["mean_squared_error"] is not None:
        facts = value_facts(result)
    else:
        facts = class_facts(result, unit)
        if result.get("log_loss") is not None:
            facts["log loss"] = f"{result['log_loss']:.6g} per {unit}"
    return facts if result["exact"] else facts | {"scores": "APPROXIMATE: the model is pruned"}
