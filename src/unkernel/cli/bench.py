"""``unkernel bench``: how fast a model answers."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scipy import sparse

from unkernel.cli import _options as options
from unkernel.cli._console import microseconds, print_facts, print_json, rate, size
from unkernel.cli._files import as_wide_as
from unkernel.cli._models import Opened, exactness, open_model
from unkernel.cli._progress import Display
from unkernel.engines import CompiledClassifier
from unkernel.engines.classifier import canonical_csr
from unkernel.models.rows import read_for

_REPETITIONS = 5
_FEWEST_ROWS = 4096  # fewer are repeated: starting threads must not be what is measured
_MOST_SINGLE_ROWS = 2000
_LOADS = 3


def bench(
    model: options.AnyModelFile,
    data: options.DataFile,
    *,
    duration: options.Seconds = 1.0,
    zero_based: options.ZeroBasedLikeModel = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Measure how fast a model answers for the rows in a file.

    In batches on one thread and on many; one row at a time from Python, as
    lists; and how long the file takes to load. Rows are parsed before, and
    each figure is the best of several, after a warm-up.

    \b
    [dim]$[/dim] unkernel bench model.uk rows.svm
    [dim]$[/dim] unkernel bench model.uk rows.svm --jobs 4 --seconds 5
    [dim]$[/dim] unkernel bench libsvm.model rows.svm --json | jq .microseconds_per_row
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    threads = options.threads(jobs)
    with Display(quiet=json) as display:
        with display.working("loading"):
            opened, load_seconds = _load(model)
        classifier = opened.ready(display, threads=threads)
        with display.reading(data) as stream:
            rows = read_for(opened.model, stream, zero_based, threads)
        X = canonical_csr(as_wide_as(opened.model, rows.X, data))
        with display.working("measuring"):
            result = {"model": str(model), "data": data} | _describe(opened, classifier, X)
            result |= _measure(classifier, X, duration, threads)
    result["load_milliseconds"] = 1e3 * load_seconds
    if json:
        print_json(result)
    else:
        _print(result)


def _load(path: Path) -> tuple[Opened, float]:
    """The model, and the seconds that reading it took: the best of a few where that is quick."""
    best = math.inf
    for _ in range(_LOADS):
        began = time.perf_counter()
        opened = open_model(path)
        best = min(best, time.perf_counter() - began)
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
        "memory_bytes": classifier.nbytes,
        "file_bytes": opened.path.stat().st_size,
    }


def _measure(classifier: CompiledClassifier, X: Any, duration: float, threads: int) -> dict[str, Any]:
    many = _repeated(X)
    count = many.shape[0]
    single = _best_seconds(lambda: classifier.score_csr(many, 1), duration) / count
    all_threads = single
    if threads > 1:
        all_threads = _best_seconds(lambda: classifier.score_csr(many, threads), duration) / count
    median, best = _one_row_seconds(classifier, X, duration)
    return {
        "threads": threads,
        "microseconds_per_row": {"one_thread": 1e6 * single, "all_threads": 1e6 * all_threads},
        "rows_per_second": {"one_thread": rate(1, single), "all_threads": rate(1, all_threads)},
        "scaling": single / all_threads if all_threads > 0 else math.nan,
        "score_one_microseconds": {"median": 1e6 * median, "best": 1e6 * best},
    }


def _repeated(X: Any) -> Any:
    copies = -(-_FEWEST_ROWS // X.shape[0])
    return X if copies == 1 else canonical_csr(sparse.vstack([X] * copies, format="csr"))


def _best_seconds(work: Callable[[], object], duration: float) -> float:
    """The shortest time of a few runs, or of as many as there is time for; the first one is a warm-up."""
    return min(_passes(work, duration))


def _passes(work: Callable[[], object], duration: float) -> list[float]:
    work()
    spent: list[float] = []
    until = time.perf_counter() + duration
    while len(spent) < _REPETITIONS or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
        if spent[-1] > duration:
            break
    return spent


def _one_row_seconds(classifier: CompiledClassifier, X: Any, duration: float) -> tuple[float, float]:
    """Median and best, over passes through some of the rows, of the mean time of a call."""
    some = X[:_MOST_SINGLE_ROWS]
    calls = [_arguments(some, row) for row in range(some.shape[0])]
    score_one = classifier.score_one

    def work() -> None:
        for arguments in calls:
            score_one(*arguments)

    spent = _passes(work, duration)
    return statistics.median(spent) / len(calls), min(spent) / len(calls)


def _arguments(X: Any, row: int) -> tuple[list[Any], ...]:
    """Columns as a list and, where some are not 1, values."""
    part = slice(X.indptr[row], X.indptr[row + 1])
    values = X.data[part]
    ids = X.indices[part].tolist()
    return (ids,) if (values == 1.0).all() else (ids, values.tolist())


def _print(result: dict[str, Any]) -> None:
    times, speeds, one = (
        result[name] for name in ("microseconds_per_row", "rows_per_second", "score_one_microseconds")
    )
    threads = result["threads"]
    facts = {
        "engine": f"{result['engine']}, {exactness(result['exact'])}",
        "rows": f"{result['rows']:,} with {result['features_per_row']:.1f} features each",
        "one thread": f"{microseconds(times['one_thread'])} µs/row ({speeds['one_thread']:,.0f} rows/s)",
    }
    if threads > 1:
        facts[f"{threads} threads"] = (
            f"{microseconds(times['all_threads'])} µs/row ({speeds['all_threads']:,.0f} rows/s), "
            f"{result['scaling']:.2f} times as fast"
        )
    facts |= {
        "one row, Python": f"{microseconds(one['median'])} µs median, {microseconds(one['best'])} µs best",
        "loading": f"{result['load_milliseconds']:.3g} ms",
        "bytes": f"{size(result['file_bytes'])} in the file, {size(result['memory_bytes'])} in memory",
    }
    print_facts(result["model"], facts)
