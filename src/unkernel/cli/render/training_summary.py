"""Output of ``unkernel train`` and ``unkernel tune``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unkernel.cli.render.models import threshold_facts
from unkernel.cli.render.quality import class_facts, value_facts
from unkernel.cli.render.records import print_columns
from unkernel.cli.terminal.console import format_seconds, format_size, format_value, print_facts
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table

_NAMES = {
    "f1": "F1",
    "roc_area": "ROC area",
    "log_loss": "log loss",
    "ndcg": "NDCG",
    "r_squared": "R squared",
    "poisson_deviance": "Poisson deviance",
    "las": "LAS",
    "uas": "UAS",
}
_SHARES = frozenset({"accuracy", "precision", "recall", "f1", "roc_area", "ordered_pairs", "ndcg"})


def print_training(learner: Any, result: dict[str, Any]) -> None:
    """Print the model, its quality, and the time and memory of training."""
    names = [name for name in result if name.startswith("training_")]
    training_measures = {name.removeprefix("training_"): result[name] for name in names}
    if columns := result.get("columns"):
        print_columns(result["data"], columns, result["target"])
    facts = learner.facts(result)
    if result.get("calibrated"):
        facts["probabilities"] = "a sigmoid of the score, fitted to held-out folds"
    facts |= threshold_facts(result)
    if any(value is not None for value in training_measures.values()):
        facts |= learner.quality({"accuracy_note": None} | training_measures, "training")
    if test := result["test"]:
        facts |= learner.quality(test, "test")
    if cross_validation := result["cross_validation"]:
        for name in learner.criteria:
            summary = cross_validation["measures"].get(name)
            if summary is not None:
                facts[f"{cross_validation['folds']}-fold {name_measure(name)}"] = format_mean(name, summary)
    if packed := result.get("packed_rows"):
        facts["packed rows"] = f"{packed}, {format_size(result['packed_bytes'])}, kept for the next run"
    seconds = result["seconds"]
    facts["time"] = (
        f"{format_seconds(seconds['training'])} training, {format_seconds(seconds['total'])} in total"
    )
    if result["peak_memory_bytes"] is not None:
        facts["memory"] = f"{format_size(result['peak_memory_bytes'])} at its peak"
    print_facts(result["model"], facts)


def print_table_training(result: dict[str, Any]) -> None:
    """Print the columns, the compared models, and the model that was kept."""
    print_columns(result["data"], result["columns"], result["target"])
    predicts_classes = result["task"] != "numbers"
    numbers = map(number_column, ("C", "log loss" if predicts_classes else "RMSE", "time"))
    table = new_table("model", *numbers, name_column(""))
    for trial in _find_best_trials(result["trials"]):
        is_best = trial["model"] == result["model_family"]
        table.add_row(
            trial["model"],
            "" if trial["C"] is None else f"{trial['C']:g}",
            f"{trial['loss']:.5g}",
            format_seconds(trial["seconds"]),
            "←" if is_best else "",
            style="bold" if is_best else "",
        )
    print_table("models, measured on records that were held out", table)
    other = "numbers" if predicts_classes else "classes"
    change = "" if result["task"] == "labels" else f" (--as {other} changes that)"
    facts = {
        "target": f"{result['target']}, predicted as {result['task']}{change}",
        "model": f"{result['model_family']}, C = {result['C']:g}, {format_size(result['model_bytes'])}",
    }
    facts |= threshold_facts(result)
    if test := result["test"]:
        facts |= class_facts(test, "record", "test ") if predicts_classes else value_facts(test, "test ")
        if predicts_classes and test.get("log_loss") is not None:
            facts["test log loss"] = f"{test['log_loss']:.6g} per record"
    seconds = result["seconds"]
    facts["time"] = (
        f"{format_seconds(seconds['training'])} training, {format_seconds(seconds['total'])} in total"
    )
    print_facts(result["model"], facts)


def _find_best_trials(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the best trial of each model, in the order of the models, with the total time of its trials."""
    best: dict[str, dict[str, Any]] = {}
    for trial in trials:
        previous = best.get(trial["model"])
        winner = trial if previous is None or trial["loss"] < previous["loss"] else previous
        best[trial["model"]] = winner | {
            "seconds": trial["seconds"] + (previous["seconds"] if previous else 0.0)
        }
    return list(best.values())


def name_measure(name: str) -> str:
    """Return the name of a measure for tables."""
    return _NAMES.get(name, name.replace("_", " "))


def format_mean(name: str, summary: dict[str, Any], *, in_percent: bool = False) -> str:
    """Return the text of a mean, with the standard deviation if there are several folds."""
    mean, std = summary["mean"], summary["std"]
    if in_percent or name in _SHARES:
        factor = 1 if in_percent else 100
        return f"{factor * mean:.2f} %" + ("" if std is None else f" ± {factor * std:.2f}")
    return f"{mean:.6g}" + ("" if std is None else f" ± {std:.2g}")


def print_tuning(result: dict[str, Any]) -> None:
    """Print one line per setting, mark the best one, and print its options."""
    names: Sequence[str] = result["parameters"]
    measure_names = [
        name
        for name in result["measures"]
        if any(name in setting["measures"] for setting in result["settings"])
    ]
    titles = [*names, *map(name_measure, measure_names), "time"]
    table = new_table(*map(number_column, titles), name_column(""))
    for index, setting in enumerate(result["settings"]):
        is_best = index == result["best"]
        cells = [format_value(setting[name]) for name in names]
        cells += [
            format_mean(name, setting["measures"][name], in_percent=result["percent"])
            if name in setting["measures"]
            else ""
            for name in measure_names
        ]
        table.add_row(
            *cells,
            format_seconds(setting["seconds"]),
            "←" if is_best else "",
            style="bold" if is_best else "",
        )
    measured_on = result["dev"] or f"{result['folds']} folds"
    print_table(f"{result['data']}, measured on {measured_on}", table)
    facts = {"best": result["best_options"], "by": name_measure(result["criterion"])}
    if result["plot"]:
        facts["plot"] = result["plot"]
    facts["time"] = f"{format_seconds(result['seconds'])} in total"
    print_facts("chosen", facts)
