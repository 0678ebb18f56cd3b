"""Quality of predictions, as the commands print it."""

from __future__ import annotations

from typing import Any

from unkernel.measures.number_format import format_percent, many


def class_facts(measures: dict[str, Any], unit: str = "row", which: str = "") -> dict[str, str]:
    """Describe the measures of a classifier; `which`, such as "test ", goes before their names."""
    if measures["accuracy"] is None:
        return {f"{which}accuracy": measures["accuracy_note"] or "not known"}
    facts = {f"{which}accuracy": format_percent(measures["accuracy"])}
    if measures.get("rows") and measures.get("correct") is not None:
        facts[f"{which}accuracy"] += f" ({measures['correct']:,} of {many(measures['rows'], unit)})"
    if measures["f1"] is not None:
        parts = [
            f"{name} {format_percent(measures[name])}"
            for name in ("precision", "recall")
            if measures[name] is not None
        ]
        of_class = f"of class {measures['positive_class']}"
        facts[f"{which}F1"] = f"{format_percent(measures['f1'])} {of_class} ({', '.join(parts)})"
    if measures["roc_area"] is not None:
        facts[f"{which}ROC area"] = format_percent(measures["roc_area"])
    return facts


def rank_facts(measures: dict[str, Any], which: str = "") -> dict[str, str]:
    """Describe the measures of a ranking; `which`, such as "test ", goes before their names."""
    where = "" if measures["groups"] is None else f" within {many(measures['groups'], 'group')}"
    share = measures["ordered_pairs"]
    words = "not known: there is no pair to order" if share is None else format_percent(share)
    facts = {f"{which}ordered pairs": words if share is None else f"{words} of {measures['pairs']:,}{where}"}
    facts |= _ndcg_facts(measures["ndcg"], which)
    if note := measures.get("accuracy_note"):
        facts[f"{which}accuracy"] = note
    elif measures["accuracy"] is not None:
        facts[f"{which}accuracy"] = format_percent(measures["accuracy"])
        facts[f"{which}mean absolute error"] = f"{measures['mean_absolute_error']:.6g} ranks"
    return facts


def _ndcg_facts(measures: dict[str, Any] | None, which: str) -> dict[str, str]:
    if measures is None or measures["value"] is None:
        return {}
    words = f"{format_percent(measures['value'])} of {many(measures['queries'], 'query', 'queries')}"
    if without := measures["queries_without_relevant"]:
        words += f"; {without:,} without a relevant row left out"
    return {f"{which}NDCG@{measures['k']}": words}


def value_facts(measures: dict[str, Any], which: str = "") -> dict[str, str]:
    """Describe the errors of a regression; `which`, such as "test ", goes before their names."""
    r_squared = measures["r_squared"]
    return {
        f"{which}R squared": "not known: all values are equal" if r_squared is None else f"{r_squared:.4f}",
        f"{which}errors": (
            f"root mean squared {measures['root_mean_squared_error']:.6g}, "
            f"mean absolute {measures['mean_absolute_error']:.6g}"
        ),
    }
