"""Describe the quality of predictions in text."""

from __future__ import annotations

from typing import Any

from unkernel.measures.number_format import format_count, format_percent


def class_facts(measures: dict[str, Any], unit: str = "row", prefix: str = "") -> dict[str, str]:
    """Return texts about the measures of a classifier; `prefix`, such as "test ", is added to names."""
    if measures["accuracy"] is None:
        return {f"{prefix}accuracy": measures["accuracy_note"] or "not known"}
    facts = {f"{prefix}accuracy": format_percent(measures["accuracy"])}
    if measures.get("rows") and measures.get("correct") is not None:
        facts[f"{prefix}accuracy"] += f" ({measures['correct']:,} of {format_count(measures['rows'], unit)})"
    if measures["f1"] is not None:
        parts = [
            f"{name} {format_percent(measures[name])}"
            for name in ("precision", "recall")
            if measures[name] is not None
        ]
        of_class = f"of class {measures['positive_class']}"
        if measures["positive_class"] is None:
            of_class = "of all labels together"
        facts[f"{prefix}F1"] = f"{format_percent(measures['f1'])} {of_class} ({', '.join(parts)})"
    if measures["roc_area"] is not None:
        facts[f"{prefix}ROC area"] = format_percent(measures["roc_area"])
    return facts


def rank_facts(measures: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return texts about the measures of a ranking; `prefix`, such as "test ", is added to names."""
    share = measures["ordered_pairs"]
    if share is None:
        ordered = "not known: there is no pair to order"
    else:
        groups = "" if measures["groups"] is None else f" within {format_count(measures['groups'], 'group')}"
        ordered = f"{format_percent(share)} of {measures['pairs']:,}{groups}"
    facts = {f"{prefix}ordered pairs": ordered}
    facts |= _ndcg_facts(measures["ndcg"], prefix)
    if note := measures.get("accuracy_note"):
        facts[f"{prefix}accuracy"] = note
    elif measures["accuracy"] is not None:
        facts[f"{prefix}accuracy"] = format_percent(measures["accuracy"])
        facts[f"{prefix}mean absolute error"] = f"{measures['mean_absolute_error']:.6g} ranks"
    return facts


def _ndcg_facts(measures: dict[str, Any] | None, prefix: str) -> dict[str, str]:
    if measures is None or measures["value"] is None:
        return {}
    text = f"{format_percent(measures['value'])} of {format_count(measures['queries'], 'query', 'queries')}"
    if n_omitted := measures["queries_without_relevant"]:
        text += f"; {n_omitted:,} without a relevant row left out"
    return {f"{prefix}NDCG@{measures['k']}": text}


def value_facts(measures: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return texts about the errors of a regression; `prefix`, such as "test ", is added to names."""
    r_squared, deviance = measures["r_squared"], measures.get("poisson_deviance")
    facts = {
        f"{prefix}R squared": "not known: all values are equal" if r_squared is None else f"{r_squared:.4f}",
        f"{prefix}errors": (
            f"root mean squared {measures['root_mean_squared_error']:.6g}, "
            f"mean absolute {measures['mean_absolute_error']:.6g}"
        ),
    }
    return facts | ({} if deviance is None else {f"{prefix}Poisson deviance": f"{deviance:.6g}"})
