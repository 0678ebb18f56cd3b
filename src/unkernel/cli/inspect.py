"""``unkernel inspect``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from unkernel.cli import _options as options
from unkernel.cli._console import many, print_facts, print_json, results, size
from unkernel.cli._files import label_words
from unkernel.engines import CompiledClassifier, load
from unkernel.models import ConjunctionModel
from unkernel.models.numbering import decode


def inspect(model: options.ModelFile, top: options.Top = 0, json: options.Json = False) -> None:
    """Show what is in a model file.

    Features are shown as the training file numbers them: from 1, unless it
    was zero-based. The weight of a conjunction is what it adds to the score
    of a row in which all its features have the value 1.

    \b
    [dim]$[/dim] unkernel inspect model.uk
    [dim]$[/dim] unkernel inspect model.uk --top 20
    [dim]$[/dim] unkernel inspect model.uk --json | jq .conjunctions_by_order
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    classifier = load(model)
    found = _describe(model, classifier)
    heaviest = _heaviest(classifier.model, top)
    if json:
        print_json(found | ({"top": heaviest} if top else {}))
        return
    _print(found)
    if heaviest:
        _print_heaviest(heaviest, found)


def _describe(path: Path, classifier: CompiledClassifier) -> dict[str, Any]:
    model = classifier.model
    return {
        "file": str(path),
        "kind": model.kind,
        "degree": model.degree,
        "basis": "sets" if model.sets else "monomials",
        "classes": model.classes.tolist(),
        "features": model.n_features,
        "used_features": len(model.columns),
        "conjunctions": model.n_conjunctions,
        "conjunctions_by_order": _count_by_order(model),
        "constants": model.constants.tolist(),
        "file_bytes": path.stat().st_size,
        "compiled_bytes": classifier.nbytes,
        "feature_map": model.feature_map,
        "gamma": model.gamma,
        "coef0": model.coef0,
        "origin": model.origin,
    }


def _count_by_order(model: ConjunctionModel) -> list[int]:
    """How many conjunctions there are of one feature, of two, of three."""
    orders = (decode(model.keys, model.degree, model.sets) >= 0).sum(axis=1)
    counted: list[int] = np.bincount(orders, minlength=model.degree + 1)[1:].tolist()
    return counted


def _heaviest(model: ConjunctionModel, top: int) -> list[dict[str, Any]]:
    magnitudes = np.abs(model.weights).max(axis=1)
    chosen = _largest_first(magnitudes, min(top, len(magnitudes)))
    first_index = 0 if model.origin.get("zero_based") is True else 1
    ranks = decode(model.keys[chosen], model.degree, model.sets)
    features = np.where(ranks >= 0, model.columns[np.maximum(ranks, 0)] + first_index, -1)
    return [
        {"features": sorted(index for index in row if index >= 0), "weights": weights}
        for row, weights in zip(features.tolist(), model.weights[chosen].tolist(), strict=True)
    ]


def _largest_first(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The places of the `count` largest values; equal ones in their order."""
    return np.argsort(-values, kind="stable")[:count]


def _print(found: dict[str, Any]) -> None:
    by_order = ", ".join(
        f"{count:,} of {many(order, 'feature')}"
        for order, count in enumerate(found["conjunctions_by_order"], 1)
    )
    facts = {
        "kind": f"{found['kind']} ({'sets of features' if found['basis'] == 'sets' else 'monomials'})",
        "degree": str(found["degree"]),
        "classes": f"{len(found['classes']):,}: {label_words(found['classes'])}",
        "features": f"{found['features']:,}, of which {found['used_features']:,} occurred in training",
        "conjunctions": f"{found['conjunctions']:,}: {by_order}",
        "bytes": f"{size(found['file_bytes'])} in the file, {size(found['compiled_bytes'])} compiled",
        "feature map": _feature_map_words(found),
    }
    print_facts(found["file"], facts)
    if origin := found["origin"]:
        print_facts("training", {name.replace("_", " "): _short(value) for name, value in origin.items()})


def _feature_map_words(found: dict[str, Any]) -> str:
    if found["feature_map"] != "kernel":
        return str(found["feature_map"])
    return f"kernel ({found['gamma']:g} ⟨x, z⟩ + {found['coef0']:g})^{found['degree']}"


def _short(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _print_heaviest(heaviest: list[dict[str, Any]], found: dict[str, Any]) -> None:
    joint = " ∧ " if found["basis"] == "sets" else " · "
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="cyan")
    table.add_column("features", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("speaks for", no_wrap=True)
    for entry in heaviest:
        weight, label = _strongest(entry["weights"], found["classes"])
        table.add_row(joint.join(map(str, entry["features"])), f"{weight:+.6g}", Text(str(label)))
    results().print("heaviest conjunctions", style="bold")
    results().print(Padding(table, (0, 0, 0, 2)))


def _strongest(weights: list[float], classes: list[Any]) -> tuple[float, Any]:
    """The weight that is largest in size, and the class it speaks for (or, negative, against)."""
    place = max(range(len(weights)), key=lambda i: abs(weights[i]))
    weight = weights[place]
    if len(weights) == 1:
        return weight, classes[1 if weight > 0 else 0]
    return weight, classes[place] if weight > 0 else f"not {classes[place]}"
