"""Choosing parameters by cross-validation."""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.rows import MemoryRows
from unkernel.cli.inputs.trees import TreeExamples
from unkernel.cli.learners.base import Learner
from unkernel.cli.learners.crossval import (
    SMALLER_IS_BETTER,
    Validated,
    Validation,
    cross_validate,
    folds_of,
    summary,
)
from unkernel.cli.learners.training import check_sources, fit, open_examples, save_model
from unkernel.cli.options.derived import check_parameters, flag, option_of
from unkernel.cli.options.grids import is_tuned, product_of, values_of
from unkernel.cli.render.progress import Display

_DEFAULT_GRID = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}


@dataclasses.dataclass(frozen=True)
class Search:
    """What is tried: settings of parameters, and the options that are the same in all of them."""

    learner: Any  # its class
    fixed: dict[str, Any]  # by the names of options
    settings: list[dict[str, Any]]  # by the names of parameters
    varied: list[str]

    @staticmethod
    def of(learner: Any, given: dict[str, Any]) -> Search:
        """The settings that options name; C alone is tried where they name none."""
        fixed, grid = dict(given), {}
        for option in learner.options():
            if option.name not in fixed:
                continue
            text = fixed.pop(option.name)
            if is_tuned(option):
                grid[option.parameter] = values_of(option, text)
            else:
                fixed[option.name] = text
        if all(len(values) == 1 for values in grid.values()):
            grid = _DEFAULT_GRID | grid if "C" not in grid else grid
        settings = product_of(grid)
        return Search(learner, fixed, settings, [name for name, values in grid.items() if len(values) > 1])

    def make(self, setting: Any, jobs: int = 1) -> tuple[Learner, Any]:
        """A learner and an estimator for a setting, checked."""
        learner = self.learner(self.fixed | {option_of(name): value for name, value in setting.items()})
        estimator = learner.estimator(**learner.parameters(jobs))
        check_parameters(estimator)
        return learner, estimator


def tune(
    search: Search, data: list[str], given: dict[str, Any], threads: int, display: Display
) -> dict[str, Any]:
    """Measure every setting, choose the best and, where there is an output, train it on all rows."""
    began = time.perf_counter()
    for setting in search.settings:
        learner, estimator = search.make(setting, threads)
    check_sources(learner, data, given.get("zero_based"))
    rows = open_examples(learner, data, display, estimator, given.get("zero_based"))
    assert isinstance(rows, MemoryRows | TreeExamples)
    folds = folds_of(rows, given["cv"], search.fixed.get("seed", 0))
    with display.counting("tuning", len(folds) * len(search.settings)) as on_fit:
        what = Validation(search.make, rows, folds)
        results = cross_validate(what, search.settings, threads, on_fit)
    criterion = given["by"] or learner.criteria[0]
    best = _best(results, criterion, rows.file)
    chosen = search.settings[best]
    result = {
        "data": rows.file,
        "rows": rows.count,
        "learner": learner.estimator.__name__,
        "folds": len(folds),
        "criterion": criterion,
        "parameters": search.varied,
        "measures": list(learner.criteria),
        "settings": summary(results, learner.measures),
        "best": best,
        "best_parameters": chosen,
        "best_options": " ".join(f"{flag(option_of(name))} {_text(value)}" for name, value in chosen.items()),
        "model": None,
        "warnings": [],
    }
    if given["output"] is not None:
        learner, estimator = search.make(chosen, threads)
        _, said = fit(learner, estimator, rows, display)
        save_model(estimator, rows, given["output"])
        result |= {"model": str(given["output"]), "model_bytes": Path(given["output"]).stat().st_size}
        result["warnings"] = said
    return result | {"seconds": time.perf_counter() - began}


def _best(results: list[Validated], criterion: str, file: str) -> int:
    """The first of the settings with the best mean."""
    sign = -1.0 if criterion in SMALLER_IS_BETTER else 1.0
    means = [sign * one.mean(criterion) for one in results]
    known = [(mean, -place) for place, mean in enumerate(means) if not math.isnan(mean)]
    if not known:
        raise ValueError(f"{file}: {criterion} is not known in any fold, so there is nothing to choose by")
    return -max(known)[1]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
