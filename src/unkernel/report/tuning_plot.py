"""A plot of the settings tried: a measure against a parameter, one line per setting of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unkernel.data.files import name_of
from unkernel.report.search_plot import new_figure, save_figure

Setting = Mapping[str, Any]


def draw_tuning(path: Path, result: Mapping[str, Any]) -> None:
    """Write the plot, completely or not at all."""
    figure = new_figure(1)
    axes = figure.add_subplot(1, 1, 1)
    across = _choose_axis(result["parameters"], result["settings"])
    for words, line in group_lines(result["parameters"], across, result["settings"]):
        measured = [one["measures"].get(result["criterion"]) for one in line]
        known = [(one, found) for one, found in zip(line, measured, strict=True) if found is not None]
        places = [one[across] if across else "" for one, _ in known]
        means, spread = [found["mean"] for _, found in known], [found["std"] or 0.0 for _, found in known]
        axes.errorbar(places, means, yerr=spread, marker="o", capsize=3, label=words or None)
    best = result["settings"][result["best"]]
    place = best[across] if across else ""
    value = best["measures"][result["criterion"]]["mean"]
    axes.scatter([place], [value], s=180, facecolors="none", edgecolors="black", label="best", zorder=3)
    if across and _is_logarithmic([one[across] for one in result["settings"]]):
        axes.set_xscale("log")
    measured_on = result.get("dev") or f"mean of {result['folds']} folds"
    axes.set(xlabel=across or "", ylabel=f"{result['criterion']}, {measured_on}")
    axes.set_title(name_of(result["data"]), parse_math=False)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend()
    save_figure(figure, path)


def group_lines(
    varied: Sequence[str], across: str | None, settings: Sequence[Setting]
) -> list[tuple[str, list[Setting]]]:
    """Return groups of settings that differ only in `across`, with the values that they have in common."""
    lines: dict[str, list[Setting]] = {}
    for one in settings:
        words = ", ".join(f"{name} {one[name]}" for name in varied if name != across)
        lines.setdefault(words, []).append(one)
    return [(words, sorted(line, key=lambda one: _sort_key(one, across))) for words, line in lines.items()]


def _sort_key(one: Setting, across: str | None) -> Any:
    return 0 if across is None or isinstance(one[across], str) else one[across]


def _choose_axis(varied: Sequence[str], settings: Sequence[Setting]) -> str | None:
    """Return C if it varies, else the first numeric parameter, else the first."""
    numbers = [name for name in varied if not any(isinstance(one[name], str) for one in settings)]
    if "C" in varied:
        return "C"
    return numbers[0] if numbers else (varied[0] if varied else None)


def _is_logarithmic(values: Sequence[Any]) -> bool:
    return all(isinstance(value, float) and value > 0 for value in values) and max(values) > 10 * min(values)
