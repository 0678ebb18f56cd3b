"""Repeated rows: engines with and without a cache of answers, and pecco with its cache of prefixes.

The models are the ones that engines.py compiles. 200,000 rows are drawn from the test rows by Zipf's law: the
k-th row of a random order occurs in proportion to 1 / k, so most rows have occurred before. All contenders
score the same rows in the same order on one thread, for several rounds. Caches are kept from round to round,
and the best round counts. "room for all" caches more rows than there are, "room for a tenth" a tenth of the
distinct rows. pecco's cache (`-t 3 -p 20`) has room for a million prefixes of rows. Scores with and without a
cache must be equal to the last bit. The tasks "no row twice" score each test row once with an empty cache, to
show the cost of a cache that finds no row.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/answer_cache.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unkernel
from engines import TRAINED, Task, load_tasks
from harness import Report, Times, main, take_turns
from harness.processes import LeftOutError, program, run_program
from zipf_rows import zipf_stream

ROUNDS, QUICK_ROUNDS = 7, 3
STREAM = 200_000
SINGLE_ROWS = 20_000
PECCO_MODES = (("-t", "1"), ("-t", "3", "-p", "20"))


def caches(task: Task) -> dict[str, int]:
    """Return the numbers of rows to cache, by the names of the contenders."""
    different = len(np.unique([hash(row.indices.tobytes()) for row in task.rows]))
    return {"room for all": 2 * different, "room for a tenth": different // 10}


def measure_batches(report: Report, task: Task, fast: Any, stream: sparse.csr_matrix) -> dict[str, Any]:
    """Measure the scores of the stream, and return the classifiers by name."""
    classifiers = {"no cache": fast} | {
        name: fast.with_cache(max_rows) for name, max_rows in caches(task).items()
    }
    expected = fast.score_csr(stream, 1)
    for name, classifier in classifiers.items():
        assert np.array_equal(classifier.score_csr(stream, 1), expected), name
        classifier.cache_clear()
    works: dict[str, Callable[[], Any]] = {
        name: lambda classifier=classifier: classifier.score_csr(stream, 1)
        for name, classifier in classifiers.items()
    }
    times = take_turns(works, QUICK_ROUNDS if report.quick else ROUNDS)
    for name, classifier in classifiers.items():
        per_row = times[name].scaled(1e6 / stream.shape[0])
        report.add(task.name, f"unkernel, {name}", "scores", "CPU µs per row", per_row)
        if (info := classifier.cache_info()).maxsize:
            share = 100 * info.hits / (info.hits + info.misses)
            report.add(task.name, f"unkernel, {name}", "rows found", "%", share)
    return classifiers


def measure_single_rows(report: Report, task: Task, classifiers: dict[str, Any], stream: Any) -> None:
    rows = [stream[k].indices.astype(np.int32) for k in range(SINGLE_ROWS)]
    works = {
        name: lambda score=classifier.score_one: [score(row) for row in rows]
        for name, classifier in classifiers.items()
        if name != "room for a tenth"
    }
    for name, times in take_turns(works, QUICK_ROUNDS if report.quick else ROUNDS).items():
        per_row = times.scaled(1e6 / len(rows))
        report.add(task.name, f"unkernel, {name}", "score_one(array)", "CPU µs", per_row)


def measure_in_vain(report: Report, task: Task, classifiers: dict[str, Any]) -> None:
    """Measure rows that are not in the cache."""
    rows = task.rows[np.sort(np.unique([row.indices.tobytes() for row in task.rows], return_index=True)[1])]

    def ask(classifier: Any) -> None:
        classifier.cache_clear()
        classifier.score_csr(rows, 1)

    works = {
        name: lambda classifier=classifiers[name]: ask(classifier) for name in ("no cache", "room for all")
    }
    for name, times in take_turns(works, QUICK_ROUNDS if report.quick else ROUNDS).items():
        per_row = times.scaled(1e6 / rows.shape[0])
        report.add(f"{task.name}, no row twice", f"unkernel, {name}", "scores", "CPU µs per row", per_row)


def measure_pecco(report: Report, task: Task, stream: sparse.csr_matrix) -> None:
    bench = program("pecco-bench")
    with tempfile.TemporaryDirectory() as folder:
        model, rows = Path(folder) / "model", Path(folder) / "rows"
        unkernel.write_model(task.model, model, format="svmlight")
        unkernel.write_svmlight(rows, stream, np.ones(stream.shape[0]))
        for mode in PECCO_MODES:
            printed = run_program([bench, model, rows, *mode, "-R", "3"]).printed
            times = [float(nanoseconds) / 1e3 for nanoseconds in re.findall(r"([0-9.]+) ns/row", printed)]
            name = f"pecco {' '.join(mode)}"
            report.add(task.name, name, "scores", "CPU µs per row", Times(times) if times else None)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in load_tasks(report, tasks):
        stream = zipf_stream(task.rows, STREAM)
        fast = unkernel.compile(task.model, sample=task.rows)
        result = measure_batches(report, task, fast, stream)
        measure_single_rows(report, task, result, stream)
        measure_in_vain(report, task, result)
        try:
            measure_pecco(report, task, stream)
        except LeftOutError as reason:
            report.leave_out(f"{task.name}, pecco", reason)


if __name__ == "__main__":
    main(measure, list(TRAINED), quick=["a9a-10k-d2", "a9a-10k-d3"])
