"""Classifiers inside a parser's file: weights stored in fewer bits are restored, and damage is an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reference.models import make_model
from unkernel import CompiledClassifier, FormatError
from unkernel.parsing.stored_classifiers import restore_classifiers, store_classifiers

FILE = "parser.uk"


def classifier(*, share: float = 0.6, scale: float = 1.0, unit: float = 1 / 64) -> CompiledClassifier:
    """Return a classifier of pairs in which the given share of conjunctions has a weight."""
    model = make_model(5, degree=2, sets=True, used=60, n_features=70, classes=range(5), share=share)
    weights = scale * unit * np.round(model.weights / unit)
    weights[np.random.default_rng(1).random(weights.shape) > share] = 0.0
    return CompiledClassifier(dataclasses.replace(model, weights=weights, intercept=np.zeros(5)))


@pytest.mark.parametrize(
    "options",
    [{}, {"share": 0.05}, {"scale": 2.0**20}, {"unit": 1e-9}],
    ids=["dense weights", "sparse weights", "large weights", "weights of many bits"],
)
def test_weights_are_restored_exactly(options: dict[str, float]) -> None:
    classifier_ = classifier(**options)
    arrays, settings = store_classifiers({"moves": classifier_})
    restored = restore_classifiers(FILE, arrays, settings)["moves"]
    assert restored.model.weights.tolist() == classifier_.model.weights.tolist()
    assert restored.model.keys.tolist() == classifier_.model.keys.tolist()


def change(name: str, change_array: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    """Return a function that changes one array of the stored classifier."""

    def changed(arrays: dict[str, Any]) -> None:
        key = f"parts.moves.{name}"
        arrays[key] = change_array(arrays[key].copy())

    return changed


def longest_step(steps: Any) -> Any:
    steps[-1] = 0xFFFF
    return steps


DAMAGE = {
    "two units": (0.6, change("weights.unit", lambda unit: np.repeat(unit, 2))),
    "no unit": (0.6, change("weights.unit", lambda unit: unit * np.nan)),
    "a weight less": (0.6, change("weights.values", lambda values: values[:-1])),
    "a weight less beside zeros": (0.05, change("weights.values", lambda values: values[:-1])),
    "a count less": (0.05, change("weights.counts", lambda counts: counts[:-1])),
    "a place beyond the scores": (0.05, change("weights.places", lambda places: places + 5)),
    "a long step that is missing": (0.6, change("keys.steps", longest_step)),
    "no keys": (0.6, lambda arrays: arrays.pop("parts.moves.keys.steps")),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_an_error(name: str) -> None:
    share, damage = DAMAGE[name]
    arrays, settings = store_classifiers({"moves": classifier(share=share)})
    damage(arrays)
    with pytest.raises(FormatError, match=FILE):
        restore_classifiers(FILE, arrays, settings)


@pytest.mark.parametrize("settings", [{}, {"parts": []}, {"parts": {"moves": 3}}, {"parts": {"moves": {}}}])
def test_settings_without_valid_classifiers_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=FILE):
        restore_classifiers(FILE, {}, settings)
