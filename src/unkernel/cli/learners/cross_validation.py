"""Cross-validate with scikit-learn's splitters, in threads that Ctrl-C stops."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from unkernel.cli.inputs.rows import MemoryRows
from unkernel.cli.inputs.trees import TreeExamples

Examples = MemoryRows | TreeExamples
Settings = Mapping[str, Any]  # the values of the parameters to try, by name
Fold = Callable[[], tuple[Any, Any]]  # returns the training and the held-out examples

SMALLER_IS_BETTER = frozenset(
    {"log_loss", "root_mean_squared_error", "mean_absolute_error", "poisson_deviance"}
)
_CATEGORICAL_MEASURES = frozenset({"positive_class"})


@dataclasses.dataclass(frozen=True)
class SettingResult:
    """The measures of one setting in each fold."""

    settings: Settings
    values: list[dict[str, Any]]
    seconds: float

    def mean(self, measure: str) -> float:
        """Return the mean over the folds in which the measure is known; NaN if there are no such folds."""
        known_values = self.list_known_values(measure)
        return float(np.mean(known_values)) if known_values else math.nan

    def deviation(self, measure: str) -> float | None:
        """Return the standard deviation over the folds; None for a single fold."""
        known_values = self.list_known_values(measure)
        return float(np.std(known_values)) if len(self.values) > 1 and known_values else None

    def list_known_values(self, measure: str) -> list[float]:
        """Return the values of the measure in the folds in which it is known."""
        entries = [fold.get(measure) for fold in self.values]
        # A measure with more than a number, such as NDCG with its depth, is a dict.
        numbers = [entry["value"] if isinstance(entry, dict) else entry for entry in entries]
        return [float(number) for number in numbers if number is not None]


def make_folds(examples: Examples, count: int, seed: int) -> list[Fold]:
    """Return folds of examples, divided as by :func:`split_folds`."""
    return [partial(_split, examples, *indices) for indices in split_folds(examples, count, seed)]


def split_folds(examples: Any, count: int, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the indices of the training and the held-out examples of each fold.

    Rankings are split by queries (``GroupKFold``). Classes are stratified (``StratifiedKFold``, shuffled with
    the seed) if every class has at least as many examples as there are folds. All other examples are split by
    ``KFold``, shuffled with the seed.
    """
    labels, groups = examples.targets()
    if examples.count < count:
        raise ValueError(f"{examples.file}: has {len(labels)} examples, fewer than the {count} folds of --cv")
    if groups is not None:
        if len(np.unique(groups)) < count:
            raise ValueError(f"{examples.file}: has fewer queries than the {count} folds of --cv")
        splitter: Any = GroupKFold(count)
    elif _are_classes(labels) and np.min(np.unique(labels, return_counts=True)[1]) >= count:
        splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    else:
        splitter = KFold(count, shuffle=True, random_state=seed)
    splits: Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]
    splits = splitter.split(np.zeros(len(labels)), labels, groups)
    return splits


def _are_classes(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind != "f" or np.array_equal(labels, np.round(labels))


def _split(
    examples: Examples, training: NDArray[np.intp], held_out: NDArray[np.intp]
) -> tuple[Examples, Examples]:
    return select_examples(examples, training), select_examples(examples, held_out)


def select_examples(examples: Examples, indices: NDArray[np.intp]) -> Examples:
    """Return the examples at the given indices."""
    data: Any = examples.data
    qid = None if data.qid is None else data.qid[indices]
    part = dataclasses.replace(data, X=data.X[indices], y=data.y[indices], qid=qid)
    return dataclasses.replace(examples, data=part)


def group_paths(settings: Sequence[Settings], warm: bool) -> list[list[Settings]]:
    """Return groups of settings that differ only in C, sorted by C for warm starts."""
    if not warm:
        return [[setting] for setting in settings]
    paths: dict[Any, list[Settings]] = {}
    for setting in settings:
        other_parameters = tuple((name, setting[name]) for name in sorted(setting) if name != "C")
        paths.setdefault(other_parameters, []).append(setting)
    return [sorted(path, key=lambda setting: setting.get("C", 0.0)) for path in paths.values()]


MakeEstimator = Callable[[Settings], tuple[Any, Any]]  # makes the learner and the estimator of a setting


def cross_validate(
    make: MakeEstimator,
    folds: Sequence[Fold],
    settings: Sequence[Settings],
    threads: int,
    on_fit: Callable[[], None],
) -> list[SettingResult]:
    """Measure every setting in every fold.

    Settings that differ only in C are fitted one after the other, with warm starts if the estimator supports
    them. Other settings, and folds, are fitted in parallel.
    """
    warm = "warm_start" in make(settings[0])[1].get_params(deep=False)
    stopped = threading.Event()
    # For each setting, by its index: the number, the measures and the seconds of each fold.
    measured_folds: dict[int, list[tuple[int, dict[str, Any], float]]] = {}
    index_of = {id(setting): index for index, setting in enumerate(settings)}

    def fit_path(number: int, path: list[Settings]) -> None:
        for setting, measured, seconds in _fit_path(make, folds[number], path, warm, stopped):
            measured_folds.setdefault(index_of[id(setting)], []).append((number, measured, seconds))
            on_fit()

    tasks = [(number, path) for path in group_paths(settings, warm) for number in range(len(folds))]
    with warnings.catch_warnings():  # the filter also applies in the threads
        warnings.simplefilter("ignore", ConvergenceWarning)
        _run_in_threads(fit_path, tasks, threads, stopped)
    results = []
    for index, setting in enumerate(settings):
        ordered = sorted(measured_folds[index], key=lambda item: item[0])
        values = [measured for _, measured, _ in ordered]
        results.append(SettingResult(setting, values, sum(seconds for *_, seconds in ordered)))
    return results


def validate(
    learner: Any, examples: Any, make_folds: Callable[[Any, int, int], list[Fold]], request: Any, display: Any
) -> dict[str, Any] | None:
    """Cross-validate the given parameters; return None without ``--cv``."""
    if request.folds is None:
        return None
    parameters = learner.parameters(1)
    folds = make_folds(examples, request.folds, parameters.get("random_state", 0))
    with display.show_count("cross-validating", len(folds)) as on_fit:
        make: MakeEstimator = lambda _: (learner, learner.estimator(**parameters))  # noqa: E731
        results = cross_validate(make, folds, [{}], request.threads, on_fit)
    return summarize(results, learner.measures)[0]


def _fit_path(
    make: MakeEstimator, fold: Fold, path: Sequence[Settings], warm: bool, stopped: threading.Event
) -> Iterator[tuple[Settings, dict[str, Any], float]]:
    """Yield each setting with its measures on the held-out part and the seconds that its training took."""
    training, held_out = fold()
    estimator: Any = None

    def on_progress(_: Any) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    for setting in path:
        if stopped.is_set():
            return
        learner, new_estimator = make(setting)
        if estimator is None or not warm:
            estimator = new_estimator.set_params(warm_start=True) if warm else new_estimator
        else:
            estimator.set_params(**setting)
        start = time.perf_counter()
        learner.fit(estimator, training, on_progress)
        seconds = time.perf_counter() - start
        yield setting, learner.measure(estimator, held_out), seconds


def _run_in_threads(
    run_task: Callable[..., None], tasks: Sequence[tuple[Any, ...]], threads: int, stopped: threading.Event
) -> None:
    """Run all tasks in threads; an error or Ctrl-C stops running tasks and cancels waiting tasks."""
    pool = ThreadPoolExecutor(max_workers=max(1, min(threads, len(tasks))))
    try:  # includes `submit`: if it fails, stop the threads, because Python would wait for them at exit
        waiting = {pool.submit(run_task, *task) for task in tasks}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


def summarize(results: Sequence[SettingResult], measures: Sequence[str]) -> list[dict[str, Any]]:
    """Return the mean and standard deviation of each measure for each setting, for JSON."""
    return [
        {
            **result.settings,
            "measures": {
                name: {"mean": result.mean(name), "std": result.deviation(name)}
                for name in measures
                if name not in _CATEGORICAL_MEASURES
                if result.list_known_values(name)
            },
            "folds": len(result.values),
            "seconds": result.seconds,
        }
        for result in results
    ]
