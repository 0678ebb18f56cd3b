"""Quality of answers, as the commands print it."""

from __future__ import annotations

from typing import Any

from unkernel.measures.number_format import format_percent, many


def class_facts(found: dict[str, Any], unit: str = "row", which: str = "") -> dict[str, str]:
    """Return the measures of classes in words; `which` examples they are of goes in front."""
    if found["accuracy"] is None:
        return {f"{which}accuracy": found["accuracy_note"] or "not known"}
    facts = {f"{which}accuracy": format_percent(found["accuracy"])}
    if found.get("rows") and found.get("correct") is not None:
        facts[f"{which}accuracy"] += f" ({found['correct']:,} of {many(found['rows'], unit)})"
    if found["f1"] is not None:
        parts = [
            f"{name} {format_percent(found[name])}"
            for name in ("precision", "recall")
            if found[name] is not None
        ]
        of_class = f"of class {found['positive_class']}"
        facts[f"{which}F1"] = f"{format_percent(found['f1'])} {of_class} ({', '.join(parts)})"
    if found["roc_area"] is not None:
        facts[f"{which}ROC area"] = format_percent(found["roc_area"])
    return facts


def rank_facts(found: dict[str, Any], which: str = "") -> dict[str, str]:
    """Return the measures of a ranking in words; `which` rows they are of goes in front."""
    where = "" if found["groups"] is None else f" within {many(found['groups'], 'group')}"
    share = found["ordered_pairs"]
    words = "not known: there is no pair to order" if share is None else format_percent(share)
    facts = {f"{which}ordered pairs": words if share is None else f"{words} of {found['pairs']:,}{where}"}
    facts |= _ndcg_facts(found["ndcg"], which)
    if note := found.get("accuracy_note"):
        facts[f"{which}accuracy"] = note
    elif found["accuracy"] is not None:
        facts[f"{which}accuracy"] = format_percent(found["accuracy"])
        facts[f"{which}mean absolute error"] = f"{found['mean_absolute_error']:.6g} ranks"
    return facts


def _ndcg_facts(found: dict[str, Any] | None, which: str) -> dict[str, str]:
    if found is None or found["value"] is None:
        return {}
    words = f"{format_percent(found['value'])} of {many(found['queries'], 'query', 'queries')}"
    if without := found["queries_without_relevant"]:
        words += f"; {without:,} without a relevant row left out"
    return {f"{which}NDCG@{found['k']}": words}


def value_facts(found: dict[str, Any], which: str = "") -> dict[str, str]:
    """Describe how near the predictions of a regression are."""
    r_squared = found["r_squared"]
    return {
        f"{which}R squared": "not known: all values are equal" if r_squared is None else f"{r_squared:.4f}",
        f"{which}errors": (
            f"root mean squared {found['root_mean_squared_error']:.6g}, "
            f"mean absolute {found['mean_absolute_error']:.6g}"
        ),
    }
