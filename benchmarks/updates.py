"""Updates with new rows against fits to all rows, and on a stream that changes from day to day.

    python benchmarks/updates.py [--quick] [--save] [TASK ...]

"one update": rows of categories as in log_linear.py. A model of the first rows is updated with new rows, a
tenth as many. "loss" is the log loss on other rows.

"stream": every day has rows of the same kind, but the true weights drift, and a few new values appear. Every
model predicts a day before it learns from it. "loss" is the mean log loss over all days except the first. The
contenders are a model of the first day that is never updated, daily updates with several shares to forget,
fits to all days so far and to the last seven days, and the online learners Vowpal Wabbit (pairs of fields,
its default rate) and river (logistic regression by stochastic gradients, single values only).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import log_loss

from harness import Report, cpu_seconds, main
from log_linear import FIELDS, TEST_ROWS, VALUES, make_rows
from unkernel import PolyLogisticRegression

TASKS = ("one update", "stream")
SIZES = (100_000, 600_000)
QUICK_SIZES = (20_000,)
DAYS, ROWS_PER_DAY = 30, 10_000
QUICK_DAYS, QUICK_ROWS_PER_DAY = 6, 2_000
WINDOW = 7
DRIFT = 0.1  # of the weights per day: w becomes sqrt(1 - d^2) w + d times fresh weights
SHARES_TO_FORGET = (0.0, 0.02, 0.05, 0.1)
MAX_BITS = 22  # of the weights of Vowpal Wabbit


def make_learner(penalty: str) -> PolyLogisticRegression:
    C = 0.1 if penalty == "l1" else 0.01
    return PolyLogisticRegression(2, C=C, penalty=penalty, gamma=1.0, updatable=True, random_state=0)


# --- One update ---------------------------------------------------------------------------------------


def measure_one_update(report: Report, task: str) -> None:
    X_test, y_test = make_rows(TEST_ROWS, seed=1)
    for count in QUICK_SIZES if report.quick else SIZES:
        X, y = make_rows(count + count // 10)
        for penalty in ("l1", "l2"):
            at = f"{task}, {count:,} + {count // 10:,} rows, {penalty}"
            learner, whole = make_learner(penalty), make_learner(penalty)
            learner.fit(X[:count], y[:count])
            losses = {"old model": log_loss(y_test, learner.predict_proba(X_test))}
            spent = {
                "update": cpu_seconds(partial(learner.update, X[count:], y[count:])),
                "fit to all rows": cpu_seconds(partial(whole.fit, X, y)),
            }
            losses["update"] = log_loss(y_test, learner.predict_proba(X_test))
            losses["fit to all rows"] = log_loss(y_test, whole.predict_proba(X_test))
            for name, seconds in spent.items():
                report.add(at, name, "training", "CPU s", seconds)
            for name, loss in losses.items():
                report.add(at, name, "loss", "", loss)


# --- A stream -----------------------------------------------------------------------------------------


def make_days(days: int, rows: int) -> list[tuple[sparse.csr_matrix, np.ndarray]]:
    """Return the rows and classes of each day; the weights of values and of one pair of fields drift."""
    generator = np.random.default_rng(0)
    law = np.arange(1.0, VALUES + 1.0) ** -1.3
    singles = generator.normal(0, 0.5, (FIELDS, VALUES))
    pairs = generator.normal(0, 0.8, (VALUES, VALUES))
    stream = []
    for day in range(days):
        known = VALUES // 2 + day * (VALUES // 2) // days  # later values have not appeared yet
        shares = np.cumsum(law[:known] / law[:known].sum())
        values = np.searchsorted(shares, generator.random((rows, FIELDS))).clip(0, known - 1)
        scores = singles[np.arange(FIELDS), values].sum(axis=1) + pairs[values[:, 0], values[:, 1]]
        y = (scores + generator.logistic(size=rows) > 0).astype(np.int8)
        columns = (values + VALUES * np.arange(FIELDS)).astype(np.int32)
        offsets = np.arange(0, columns.size + 1, FIELDS)
        shape = (rows, FIELDS * VALUES)
        stream.append((sparse.csr_matrix((np.ones(columns.size), columns.ravel(), offsets), shape=shape), y))
        singles = np.sqrt(1 - DRIFT**2) * singles + DRIFT * generator.normal(0, 0.5, singles.shape)
        pairs = np.sqrt(1 - DRIFT**2) * pairs + DRIFT * generator.normal(0, 0.8, pairs.shape)
    return stream


class Updated:
    """A model of the first day that is updated every day; never, if `forget` is None."""

    def __init__(self, penalty: str, forget: float | None) -> None:
        self.learner, self.forget = make_learner(penalty), forget

    def learn(self, X: sparse.csr_matrix, y: np.ndarray) -> None:
        if not hasattr(self.learner, "model_"):
            self.learner.fit(X, y)
        elif self.forget is not None:
            self.learner.update(X, y, forget=self.forget)

    def predict(self, X: sparse.csr_matrix) -> np.ndarray:
        return self.learner.predict_proba(X)[:, 1]


class Refitted(Updated):
    """A model that is fitted every day to the last days."""

    def __init__(self, penalty: str, days: int) -> None:
        super().__init__(penalty, None)
        self.learner.set_params(updatable=False)
        self.days: list[tuple[sparse.csr_matrix, np.ndarray]] = []
        self.window = days

    def learn(self, X: sparse.csr_matrix, y: np.ndarray) -> None:
        self.days = [*self.days, (X, y)][-self.window :]
        rows, classes = zip(*self.days, strict=True)
        self.learner.fit(sparse.vstack(rows, format="csr"), np.concatenate(classes))


class Vowpal:
    """Vowpal Wabbit on all pairs of fields."""

    def __init__(self) -> None:
        from vowpalwabbit.pyvw import Workspace

        self.workspace = Workspace(
            f"--loss_function logistic --link logistic --interactions aa -b {MAX_BITS} --quiet"
        )

    def _lines(self, X: sparse.csr_matrix) -> list[str]:
        return [" |a " + " ".join(map(str, row)) for row in X.indices.reshape(-1, FIELDS).tolist()]

    def learn(self, X: sparse.csr_matrix, y: np.ndarray) -> None:
        for line, label in zip(self._lines(X), y.tolist(), strict=True):
            self.workspace.learn(f"{2 * label - 1}{line}")

    def predict(self, X: sparse.csr_matrix) -> np.ndarray:
        return np.array([self.workspace.predict(line) for line in self._lines(X)])


class River:
    """river's logistic regression on single values."""

    def __init__(self) -> None:
        from river.linear_model import LogisticRegression

        self.learner = LogisticRegression()

    def _records(self, X: sparse.csr_matrix) -> list[dict[int, int]]:
        return [dict.fromkeys(row, 1) for row in X.indices.reshape(-1, FIELDS).tolist()]

    def learn(self, X: sparse.csr_matrix, y: np.ndarray) -> None:
        for record, label in zip(self._records(X), y.tolist(), strict=True):
            self.learner.learn_one(record, bool(label))

    def predict(self, X: sparse.csr_matrix) -> np.ndarray:
        return np.array([self.learner.predict_proba_one(record)[True] for record in self._records(X)])


def list_contenders() -> dict[str, Callable[[], Any]]:
    contenders: dict[str, Callable[[], Any]] = {}
    for penalty in ("l1", "l2"):
        contenders[f"{penalty}, never updated"] = partial(Updated, penalty, None)
        for forget in SHARES_TO_FORGET:
            contenders[f"{penalty}, update, forget {forget:g}"] = partial(Updated, penalty, forget)
        contenders[f"{penalty}, fit to all days"] = partial(Refitted, penalty, DAYS)
        contenders[f"{penalty}, fit to {WINDOW} days"] = partial(Refitted, penalty, WINDOW)
    return contenders | {"Vowpal Wabbit": Vowpal, "river": River}


def measure_stream(report: Report, task: str) -> None:
    days = make_days(QUICK_DAYS, QUICK_ROWS_PER_DAY) if report.quick else make_days(DAYS, ROWS_PER_DAY)
    for name, make in list_contenders().items():
        try:
            model = make()
        except ImportError:
            continue  # the page lists the peers that are missing
        losses, seconds = [], 0.0
        for day, (X, y) in enumerate(days):
            if day:
                losses.append(log_loss(y, model.predict(X).clip(1e-6, 1 - 1e-6)))
            seconds += cpu_seconds(partial(model.learn, X, y))
        at = f"{task}, {len(days)} days of {len(days[0][1]):,} rows"
        report.add(at, name, "training", "CPU s", seconds)
        report.add(at, name, "loss", "", float(np.mean(losses)))


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        (measure_stream if task == "stream" else measure_one_update)(report, task)


if __name__ == "__main__":
    main(measure, list(TASKS))
