"""Tables: first models of 23 tables, with defaults, beside boosting, linear models and forests.

The tables come from packages of the index, from scikit-learn and from the folder of data; `tables_data.py`
lists the columns that are left out, with reasons. Published splits are used where they exist; otherwise a
quarter of the rows, drawn with a fixed seed, is the test part. No contender sees the test part, and none is
tuned: all have their defaults, one thread and 15 minutes. Boosters get categories as categories, and the
linear model as one-hot columns. Texts become tf-idf of words, except for CatBoost and ours, which take texts
directly.

"error" is the log loss for classes; for numbers, it is the root of the mean squared error, divided by the
standard deviation of the targets of the test part. "training" includes encoding and, for ours, compiling.
"one record" is the median CPU time from a dict (ours) or from a frame of one row (others) to the
probabilities or the number. "stored" is the size of our file, or of the pickle of encoder and model.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/tables.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Sequence
from importlib import import_module

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from harness import Report, cpu_seconds, main, timed
from harness.processes import LeftOutError, run_in_fork
from tables_contenders import CONTENDERS, LIGHTGBM, LINEAR, Contender, Fitted
from tables_data import CLASSES, TABLES, Parts, Table

SECONDS = 900
CPU_SECONDS_OF_RECORDS = 0.2
MOST_RECORDS = 2000
MOST_BATCHES = 200
CLOSE = 1.01
ERROR = "error"
ALL = "all tables"
QUICK = ["breast_cancer", "wine", "fair", "loanapp", "foods", "diabetes", "txhousing", "airfare", "gapminder"]


def quality(table: Table, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the error and, for two classes, the area under the ROC curve."""
    if table.target != CLASSES:
        return {ERROR: float(np.sqrt(np.mean((predicted - y) ** 2)) / y.std())}
    classes = np.unique(y)
    assert predicted.shape == (len(y), len(classes))
    found = {ERROR: float(log_loss(y, predicted, labels=classes))}
    if len(classes) == 2:
        found["ROC area"] = float(roc_auc_score(y == classes[1], predicted[:, 1]))
    return found


def measure_one_record(fitted: Fitted, parts: Parts) -> float:
    """Return the CPU time of one record: the median of batches of a millisecond, or of one record."""
    records = fitted.records(parts.test[:MOST_RECORDS])
    fitted.predict_one(records[0])
    single = cpu_seconds(lambda: fitted.predict_one(records[0]))
    size = min(max(int(1e-3 / max(single, 1e-9)), 1), len(records))
    taken: list[float] = []
    while sum(taken) < CPU_SECONDS_OF_RECORDS and len(taken) < MOST_BATCHES:
        begin = len(taken) * size % (len(records) - size + 1)
        batch = records[begin : begin + size]
        taken.append(cpu_seconds(lambda batch=batch: [fitted.predict_one(record) for record in batch]))
    return 1e6 * statistics.median(taken) / size


def judge_contender(contender: Contender, table: Table, parts: Parts) -> dict[str, float]:
    """Train a contender, and measure it."""
    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")
    import_module(contender.module.partition(":")[0])
    with threadpool_limits(1):
        fitted, cpu, _ = timed(lambda: contender.fit(table, parts))
        found = quality(table, parts.y_test, fitted.predict(parts.test))
        one = measure_one_record(fitted, parts)
    return found | {"training": cpu, "one record": one, "stored": fitted.stored_bytes / 1e6}


UNITS = {ERROR: "", "ROC area": "%", "training": "CPU s", "one record": "CPU µs", "stored": "MB"}


def measure_table(report: Report, table: Table, contenders: Sequence[Contender]) -> None:
    parts = table.load()
    for contender in contenders:
        place = f"{table.name}, {contender.name}"
        if table.texts and not contender.takes_texts:
            report.leave_out(place, "it takes neither texts nor sparse rows")
            continue
        try:
            found = run_in_fork(lambda one=contender: judge_contender(one, table, parts), seconds=SECONDS)
        except LeftOutError as reason:
            report.leave_out(place, reason)
            continue
        for figure, value in found.items():
            shown = 100 * value if UNITS[figure] == "%" else value
            report.add(table.name, contender.name, figure, UNITS[figure], shown)


def add_summary(report: Report) -> None:
    """Count the tables on which a contender reaches LightGBM and the linear model."""
    errors: dict[str, dict[str, float]] = {}
    for one in report.figures:
        if one.figure == ERROR and one.value is not None:
            errors.setdefault(one.contender, {})[one.task] = one.value
    for name, own in errors.items():
        report.add(ALL, name, "tables", "number", len(own))
        for rival, factor, words in (
            (LIGHTGBM, CLOSE, "error within 1 % of LightGBM's, or better"),
            (LIGHTGBM, 1.0, "better than LightGBM"),
            (LINEAR, 1.0, "better than the linear model"),
        ):
            theirs = errors.get(rival, {})
            count = sum(
                own[task] < factor * theirs[task] for task in own.keys() & theirs.keys() if name != rival
            )
            if theirs and name != rival:
                report.add(ALL, name, words, "number", count)


def measure(report: Report, tasks: Sequence[str], contenders: Sequence[Contender] = CONTENDERS) -> None:
    here = [one for one in contenders if one.quick or not report.quick]
    for one in here:
        if not one.is_here():
            report.leave_out(one.name, "it is not installed")
    here = [one for one in here if one.is_here()]
    for task in tasks:
        try:
            measure_table(report, TABLES[task], here)
        except (FileNotFoundError, ImportError) as error:
            report.leave_out(task, error)
    add_summary(report)


if __name__ == "__main__":
    main(measure, list(TABLES), quick=QUICK)
