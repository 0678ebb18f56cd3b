"""Choose parameters by cross-validation."""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.record_examples import RecordExamples
from unkernel.cli.inputs.rows import MemoryRows
from unkernel.cli.inputs.trees import TreeExamples
from unkernel.cli.learners.cross_validation import (
    SMALLER_IS_BETTER,
    Fold,
    SettingResult,
    cross_validate,
    make_folds,
    summarize,
)
from unkernel.cli.learners.parser_search import Sentences, make_sentence_folds, read_sentences
from unkernel.cli.learners.parser_training import fit_parser
from unkernel.cli.learners.record_training import (
    RecordOptions,
    build_classifier,
    check_target,
    expand_files,
    make_record_folds,
    read_examples,
)
from unkernel.cli.learners.training_run import check_sources, fit, open_examples, save_model
from unkernel.cli.options.estimator_options import check_parameters, flag, option_name
from unkernel.cli.options.value_grids import expand_grid, is_tuned, parse_values
from unkernel.cli.terminal.console import format_value
from unkernel.cli.terminal.progress import Display

_FOLDS = 5
_COUNT_KEYS = {"row": "rows", "record": "rows", "tree": "rows", "sentence": "sentences"}
Examples = MemoryRows | TreeExamples | RecordExamples | Sentences


@dataclasses.dataclass(frozen=True)
class Search:
    """The settings to try, and the options that all settings share."""

    learner: Any  # a class of learners
    fixed: dict[str, Any]  # values by name of the option
    settings: list[dict[str, Any]]  # values by name of the parameter
    varied: list[str]  # the parameters with several values

    @staticmethod
    def from_arguments(learner: Any, arguments: dict[str, Any]) -> Search:
        """Return all combinations of the options' values; if there is only one, use the default grid."""
        fixed, grid = dict(arguments), {}
        for option in learner.options():
            if option.name not in fixed:
                continue
            text = fixed.pop(option.name)
            if is_tuned(option):
                grid[option.parameter] = parse_values(option, text)
            else:
                fixed[option.name] = text
        if all(len(values) == 1 for values in grid.values()):
            grid = learner.default_grid(grid) | grid
        settings = expand_grid(grid)
        return Search(learner, fixed, settings, [name for name, values in grid.items() if len(values) > 1])

    def make(self, setting: Any, jobs: int = 1) -> tuple[Any, Any]:
        """Return a checked learner and estimator for a setting."""
        learner = self.learner(self.fixed | {option_name(name): value for name, value in setting.items()})
        estimator = learner.estimator(**learner.parameters(jobs))
        check_parameters(estimator)
        return learner, estimator


def tune(
    search: Search, data: list[str], arguments: dict[str, Any], threads: int, display: Display
) -> dict[str, Any]:
    """Measure every setting and choose the best; if there is an output, train it on all examples."""
    start = time.perf_counter()
    for setting in search.settings:  # raises errors about any of them before the data are read
        learner, estimator = search.make(setting, threads)
    examples = _read(learner, estimator, data, arguments, display)
    folds = _make_folds(examples, arguments["cv"] or _FOLDS, search.fixed.get("seed", 0))
    with display.show_count("tuning", len(folds) * len(search.settings)) as on_fit:
        results = cross_validate(search.make, folds, search.settings, threads, on_fit)
    criterion = arguments["by"] or learner.criteria[0]
    best = _find_best(results, criterion, examples.file)
    best_setting = search.settings[best]
    result = {
        "data": examples.file,
        "dev": arguments.get("dev"),
        _COUNT_KEYS[learner.unit]: examples.count,
        "learner": learner.estimator.__name__,
        "folds": len(folds),
        "criterion": criterion,
        "percent": learner.percent,
        "parameters": search.varied,
        "measures": list(learner.criteria),
        "settings": summarize(results, learner.measures),
        "best": best,
        "best_parameters": best_setting,
        "best_options": " ".join(
            f"{flag(option_name(name))} {format_value(value)}" for name, value in best_setting.items()
        ),
        "model": None,
        "warnings": [],
    }
    if arguments["output"] is not None:
        result["warnings"] = _train(
            *search.make(best_setting, threads), examples, arguments["output"], display
        )
        result |= {"model": str(arguments["output"]), "model_bytes": Path(arguments["output"]).stat().st_size}
    return result | {"seconds": time.perf_counter() - start}


def _read(
    learner: Any, estimator: Any, data: list[str], arguments: dict[str, Any], display: Display
) -> Examples:
    """Read all examples into memory, in the form that this kind of model learns from."""
    if learner.unit == "sentence":
        return read_sentences(learner.task, data, arguments, display)
    if learner.unit == "record":
        files = expand_files(data)
        check_target(files[0], dict(learner.option_values), display)
        options = RecordOptions.from_values(dict(learner.option_values))
        return read_examples(files, options, estimator.n_jobs, display, values=learner.predicts_values)
    if len(data) > 1:
        raise ValueError(f"{data[1]}: tune reads one file of {learner.unit}s; join them first")
    check_sources(learner, data, arguments.get("zero_based"))
    rows = open_examples(learner, data, display, estimator, arguments.get("zero_based"))
    assert isinstance(rows, MemoryRows | TreeExamples)
    return rows


def _make_folds(examples: Examples, count: int, seed: int) -> list[Fold]:
    if isinstance(examples, Sentences):
        return make_sentence_folds(examples, count, seed)
    if isinstance(examples, RecordExamples):
        return make_record_folds(examples, count, seed)
    return make_folds(examples, count, seed)


def _train(learner: Any, estimator: Any, examples: Examples, output: Path, display: Display) -> list[str]:
    """Train on all examples and write the model; return the learner's warnings."""
    if isinstance(examples, Sentences):
        _, messages = fit_parser(estimator, examples.corpus, None, display)
        estimator.save(output)
    elif isinstance(examples, RecordExamples):
        _, messages = fit(learner, estimator, examples, display)
        build_classifier(learner, estimator, examples, estimator.n_jobs, display).save(output)
    else:
        _, messages = fit(learner, estimator, examples, display)
        save_model(estimator, examples, output, learner.option_values)
    return messages


def _find_best(results: list[SettingResult], criterion: str, file: str) -> int:
    """Return the index of the setting with the best mean; among equals, of the first."""
    sign = -1.0 if criterion in SMALLER_IS_BETTER else 1.0
    means = [sign * result.mean(criterion) for result in results]
    candidates = [(mean, -index) for index, mean in enumerate(means) if not math.isnan(mean)]
    if not candidates:
        raise ValueError(f"{file}: {criterion} is not known in any fold, so no setting can be chosen by it")
    return -max(candidates)[1]
