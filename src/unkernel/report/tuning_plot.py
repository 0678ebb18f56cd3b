"""Plot tuned settings: a measure against one parameter, with one line per combination of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unkernel.data.files import name_of
from unkernel.report.search_plot import new_figure, save_figure

Setting = Mapping[str, Any]


def draw_tuning(path: Path, result: Mapping[str, Any]) -> None:
    """Write the plot to a file, completely or not at all."""
    figure = new_figure(1)
    axes = figure.add_subplot(1, 1, 1)
    x_parameter = _choose_axis(result["parameters"], result["settings"])
    for label, line in group_lines(result["parameters"], x_parameter, result["settings"]):
        measured = [setting["measures"].get(result["criterion"]) for setting in line]
        measured_settings = [
            (setting, measure) for setting, measure in zip(line, measured, strict=True) if measure is not None
        ]
        xs = [setting[x_parameter] if x_parameter else "" for setting, _ in measured_settings]
        means, spread = (
            [measure["mean"] for _, measure in measured_settings],
            [measure["std"] or 0.0 for _, measure in measured_settings],
        )
        axes.errorbar(xs, means, yerr=spread, marker="o", capsize=3, label=label or None)
    best = result["settings"][result["best"]]
    best_x = best[x_parameter] if x_parameter else ""
    value = best["measures"][result["criterion"]]["mean"]
    axes.scatter([best_x], [value], s=180, facecolors="none", edgecolors="black", label="best", zorder=3)
    if x_parameter and _is_logarithmic([setting[x_parameter] for setting in result["settings"]]):
        axes.set_xscale("log")
    measured_on = result.get("dev") or f"mean of {result['folds']} folds"
    axes.set(xlabel=x_parameter or "", ylabel=f"{result['criterion']}, {measured_on}")
    axes.set_title(name_of(result["data"]), parse_math=False)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend()
    save_figure(figure, path)


def group_lines(
    varied: Sequence[str], x_parameter: str | None, settings: Sequence[Setting]
) -> list[tuple[str, list[Setting]]]:
    """Group settings that differ only in `x_parameter`; label each group with its other parameters."""
    lines: dict[str, list[Setting]] = {}
    for setting in settings:
        label = ", ".join(f"{name} {setting[name]}" for name in varied if name != x_parameter)
        lines.setdefault(label, []).append(setting)
    return [
        (label, sorted(line, key=lambda setting: _make_sort_key(setting, x_parameter)))
        for label, line in lines.items()
    ]


def _make_sort_key(setting: Setting, x_parameter: str | None) -> Any:
    return 0 if x_parameter is None or isinstance(setting[x_parameter], str) else setting[x_parameter]


def _choose_axis(varied: Sequence[str], settings: Sequence[Setting]) -> str | None:
    """Return "C" if it varies, else the first numeric parameter, else the first parameter."""
    if "C" in varied:
        return "C"
    numeric = [name for name in varied if not any(isinstance(setting[name], str) for setting in settings)]
    return next(iter([*numeric, *varied]), None)


def _is_logarithmic(values: Sequence[Any]) -> bool:
    return all(isinstance(value, float) and value > 0 for value in values) and max(values) > 10 * min(values)
