"""``unkernel bench``: the speed of a model."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.labelled_files import match_width
from unkernel.cli.inputs.model_kinds import ROWS_NOT_RECORDS, is_records, refuse_options
from unkernel.cli.inputs.models import Opened, OpenedTrees, describe_trie, open_model
from unkernel.cli.inputs.prediction_rows import expect_rows, read_rows_to_predict
from unkernel.cli.inputs.records import (
    OpenedRecords,
    check_no_records,
    open_record_model,
)
from unkernel.cli.inputs.trees import check_rows_only, read_for_model
from unkernel.cli.options import shared_options
from unkernel.cli.render.speed import print_speed
from unkernel.cli.terminal.console import print_json, rate
from unkernel.cli.terminal.progress import Display
from unkernel.data import Forest
from unkernel.data.rows.csr import canonical_rows, stack_rows
from unkernel.engines import CompiledClassifier, TreeClassifier

_MIN_REPETITIONS = 5
_MIN_BATCH_ROWS = 4096  # smaller batches are repeated: otherwise the start of threads would dominate
_MAX_SINGLE_ROWS = 2000
_MAX_RECORDS = 1 << 16
_MAX_LOADS = 3


def bench(
    model: shared_options.AnyModelFile,
    data: shared_options.DataFile,
    *,
    duration: shared_options.Seconds = 1.0,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
) -> None:
    """Measure the speed of a model on the rows, records or trees of a file.

    The command measures batches on one thread and on several, single rows from Python (a row as lists, a tree
    as text, a record as a dict), and the time to load the file. Parsing the rows is not included. Each figure
    is the best of several runs after a warm-up.

    \b
    [dim]$[/dim] unkernel bench model.uk rows.svm
    [dim]$[/dim] unkernel bench model.uk rows.svm --jobs 4 --seconds 5
    [dim]$[/dim] unkernel bench income.uk new.csv
    [dim]$[/dim] unkernel bench trees.uk questions.dat
    [dim]$[/dim] unkernel bench libsvm.model rows.svm --json | jq .microseconds_per_row
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    threads = shared_options.count_threads(jobs)
    with Display(quiet=json) as display:
        with display.show_work("loading"):
            opened, load_seconds = _load(model)
        if isinstance(opened, OpenedRecords):
            refuse_options(model, {"--zero-based": zero_based}, ROWS_NOT_RECORDS)
            description, work = _prepare_records(opened, data, display)
        elif isinstance(opened, OpenedTrees):
            description, work = _prepare_trees(opened, data, display, zero_based)
        else:
            description, work = _prepare_rows(opened, data, display, zero_based, threads)
        with display.show_work("measuring"):
            result = {"model": str(model), "data": data} | description | _measure(work, duration, threads)
    result["load_milliseconds"] = 1e3 * load_seconds
    if json:
        print_json(result)
    else:
        print_speed(result)


@dataclass(frozen=True, eq=False)
class _Work:
    """The work to measure, on a batch and on single examples."""

    batch_size: int  # number of examples
    score_batch: Callable[[int], object]  # takes the number of threads
    score_one: Callable[..., object]
    calls: list[tuple[Any, ...]]  # the arguments of each call of `score_one`


def _prepare_rows(
    opened: Opened, data: str, display: Display, zero_based: bool | None, threads: int
) -> tuple[dict[str, Any], _Work]:
    """Return a description for JSON, and the work of scoring a batch of rows and single rows."""
    check_no_records(data, opened.path)
    expect_rows(opened, data)
    classifier = opened.get_classifier(display, threads=threads)
    rows = read_rows_to_predict(opened, data, display, zero_based, threads)
    X = canonical_rows(match_width(opened.model, rows.X, data))
    single_rows, batch = X[:_MAX_SINGLE_ROWS], _repeat_rows(X)
    calls = [_list_features(single_rows, row) for row in range(single_rows.shape[0])]
    work = _Work(batch.shape[0], lambda n: classifier.score_csr(batch, n), classifier.score_one, calls)
    return _describe(opened, classifier, X), work


def _prepare_records(opened: OpenedRecords, data: str, display: Display) -> tuple[dict[str, Any], _Work]:
    """Return a description for JSON, and the work of predicting a batch of columns and single dicts."""
    from unkernel.cli.records.compilation import read_first_records

    classifier = opened.classifier
    records = read_first_records(opened, data, _MAX_RECORDS, display)
    batch = {name: [record.get(name) for record in records] for name in opened.types}
    copies = math.ceil(_MIN_BATCH_ROWS / len(records))
    batch = {name: values * copies for name, values in batch.items()}
    calls = [(record,) for record in records[:_MAX_SINGLE_ROWS]]
    work = _Work(
        len(records) * copies, lambda n: classifier.predict(batch, n_jobs=n), classifier.predict_one, calls
    )
    rows = classifier.plan.encode(batch)
    return {
        "kind": "records",
        "engine": classifier.engine,
        "exact": classifier.classifier.exact,
        "compiled_now": False,
        "rows": len(records),
        "unit": "record",
        "features_per_row": rows.nnz / rows.shape[0],
        "memory_bytes": classifier.nbytes,
        "file_bytes": opened.path.stat().st_size,
    }, work


def _prepare_trees(
    opened: OpenedTrees, data: str, display: Display, zero_based: bool | None
) -> tuple[dict[str, Any], _Work]:
    """Return a description for JSON, and the work of scoring all trees at once and single trees."""
    check_rows_only([data], zero_based)
    forest = read_for_model(opened.model, opened.path, data, display).data.X
    score_tree, calls = _prepare_single_trees(opened.classifier, forest[:_MAX_SINGLE_ROWS])
    # Repeated trees would not add work, because equal subtrees are scored only once.
    work = _Work(len(forest), lambda n: opened.classifier.raw_scores(forest, n), score_tree, calls)
    return _describe_trees(opened, forest), work


def _prepare_single_trees(
    classifier: TreeClassifier, forest: Forest
) -> tuple[Callable[..., object], list[tuple[Any, ...]]]:
    """Return a function that scores one tree, and the arguments of each call.

    The arguments are texts if brackets can express all labels; otherwise they are forests of one tree.
    """
    model = classifier.model
    if model.kernel.combination == "trees" and len(forest.trees) == len(model.support.trees) == 1:
        texts = [(text,) for text in forest.brackets() if text]
        with contextlib.suppress(ValueError):  # raised if brackets cannot express a label
            for text in texts:
                classifier.score_one(*text)
            return classifier.score_one, texts
    return classifier.raw_scores, [(forest[index : index + 1], 1) for index in range(len(forest))]


def _load(path: Path) -> tuple[Opened | OpenedTrees | OpenedRecords, float]:
    """Load a model several times if that is fast; return it with the shortest loading time in seconds."""
    best = math.inf
    for _ in range(_MAX_LOADS):
        start = time.perf_counter()
        opened = open_record_model(path) if is_records(path) else open_model(path, "bench")
        if isinstance(opened, OpenedTrees):
            _ = opened.classifier.nbytes  # builds the classifier, which is a part of loading
        best = min(best, time.perf_counter() - start)
        if best > 1.0 or not path.is_file():  # a pipe can be read only once
            break
    return opened, best


def _describe(opened: Opened, classifier: CompiledClassifier, X: Any) -> dict[str, Any]:
    return {
        "kind": opened.model.kind,
        "engine": classifier.engine,
        "exact": classifier.exact,
        "compiled_now": opened.classifier is None,
        "rows": X.shape[0],
        "features_per_row": X.nnz / X.shape[0],
        "trie": describe_trie(classifier),
        "memory_bytes": classifier.nbytes,
        "file_bytes": opened.path.stat().st_size,
    }


def _describe_trees(opened: OpenedTrees, forest: Forest) -> dict[str, Any]:
    return {
        "kind": opened.model.kind,
        "engine": opened.classifier.engine,
        "exact": opened.classifier.exact,
        "compiled_now": False,
        "rows": len(forest),
        "subtrees": forest.nodes,
        "memory_bytes": opened.classifier.nbytes,
        "file_bytes": opened.path.stat().st_size,
    }


def _measure(work: _Work, duration: float, threads: int) -> dict[str, Any]:
    """Return the time per example for JSON: in batches on one thread and on all, and in single calls."""
    single = _time_batch(lambda: work.score_batch(1), duration) / work.batch_size
    all_threads = single
    if threads > 1:
        all_threads = _time_batch(lambda: work.score_batch(threads), duration) / work.batch_size
    median, best = _time_single_calls(work, duration)
    return {
        "threads": threads,
        "microseconds_per_row": {"one_thread": 1e6 * single, "all_threads": 1e6 * all_threads},
        "rows_per_second": {"one_thread": rate(1, single), "all_threads": rate(1, all_threads)},
        "scaling": single / all_threads if all_threads > 0 else math.nan,
        "score_one_microseconds": {"median": 1e6 * median, "best": 1e6 * best},
    }


def _repeat_rows(X: Any) -> Any:
    """Return a batch of at least ``_MIN_BATCH_ROWS`` rows: copies of X, one below the other."""
    copies = math.ceil(_MIN_BATCH_ROWS / X.shape[0])
    return X if copies == 1 else stack_rows([X] * copies)


def _time_batch(work: Callable[[], object], duration: float) -> float:
    """Return the shortest time of several runs, in seconds, after a warm-up."""
    return min(_time_passes(work, duration))


def _time_passes(work: Callable[[], object], duration: float) -> list[float]:
    """Return the seconds of each run, after a warm-up, until `duration` has passed."""
    work()
    seconds: list[float] = []
    end = time.perf_counter() + duration
    while len(seconds) < _MIN_REPETITIONS or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
        if seconds[-1] > duration:
            break
    return seconds


def _time_single_calls(work: _Work, duration: float) -> tuple[float, float]:
    """Time passes through all calls; return the median and the minimum of the mean time per call."""
    score_one, calls = work.score_one, work.calls

    def make_all_calls() -> None:
        for arguments in calls:
            score_one(*arguments)

    seconds = _time_passes(make_all_calls, duration)
    return statistics.median(seconds) / len(calls), min(seconds) / len(calls)


def _list_features(X: Any, row: int) -> tuple[list[Any], ...]:
    """Return the columns of a row and, if some values are not 1, the values."""
    part = slice(X.indptr[row], X.indptr[row + 1])
    values = X.data[part]
    ids = X.indices[part].tolist()
    return (ids,) if (values == 1.0).all() else (ids, values.tolist())
