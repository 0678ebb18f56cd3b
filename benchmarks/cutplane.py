"""Cutting planes and ranking: CPU time to a given objective, beside the peers; passes against rows.

The time "to g" of a contender is the time of its quickest run, at a ladder of tolerances, that comes within a
factor 1 + g of the optimum. The primal objective of each run is computed here from its weights; the optimum
is certified from below by a long run of ours. Times are for training alone: rows are packed or read
before, and "packing" is the time of packing. "whole fit" is the time from a SciPy matrix to weights at the
default tolerance of each contender: a certified gap of 1e-3 for ours, and 0.1 for LIBLINEAR, whose meaning
depends on the task. No contender has a bias term, so all solve the same problem.

- "linear": hinge loss; C is defined as by Joachims (2006): 1/2 |w|^2 + (C / n) times the sum of losses.
- "rows": passes and time against the number of Zipf rows, at a gap of 1e-3.
- "ranking": all pairs of rows of different ranks; within groups, where there are groups.
- "quality": the share of pairs of test rows in the wrong order; C is chosen by five-fold cross-validation.

Other programs are measured if the folder of peers (see peers.py) has a Python module `rivals` with a function
`fit(name, path, C, eps) -> (CPU seconds, weights)` for libocas, acupa, svmperf (error rate), svmperf_roc,
svmrank and ranksvm; C is defined as by Joachims. ranksvm has squared losses: its gap is for its own
objective, relative to a long run of its own.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/cutplane.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GroupKFold, KFold
from sklearn.preprocessing import FunctionTransformer, Normalizer, normalize

from harness import Report, Times, main, take_turns, timed
from harness.processes import LeftOutError, peers_folder
from unkernel import CuttingPlaneSVC, RankSVM, datasets, write_svmlight
from unkernel._core import (
    Bundle,
    PackedRows,
    margin_oracle,
    minimise,
    ordinal_oracle,
    pack_rows_by_frequency,
    train_dual,
)
from unkernel.cutplane.options import DualOptions, LoopOptions
from zipf_rows import make_ranks, zipf_rows

GAPS = (1e-2, 1e-3)
OURS = (0.1, 0.05, 0.03, 0.02, 0.01, 0.007, 0.005, 0.003, 0.002, 0.001)
LIBLINEAR = (10.0, 3.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003)
CERTIFIED = (0.1, 0.03, 0.01, 0.005, 0.003, 0.001)  # libocas, acupa: a relative gap
SVMPERF = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)


@dataclass(frozen=True)
class Run:
    seconds: float
    weights: np.ndarray


@dataclass(frozen=True)
class Linear:
    """A linear SVM with the C of the paper: 1/2 |w|^2 + (C / n) sum of hinge losses."""

    name: str
    X: sparse.csr_matrix
    labels: np.ndarray
    joachims_c: float
    qid: None = None

    @property
    def C(self) -> float:  # noqa: N802
        return self.joachims_c / len(self.labels)

    def objective(self, w: np.ndarray) -> float:
        return float(0.5 * w @ w + self.C * np.maximum(0, 1 - self.labels * (self.X @ w)).sum())


@dataclass(frozen=True)
class Packed:
    """Packed rows, as our solvers read them."""

    rows: PackedRows
    columns: np.ndarray
    features: int
    seconds: float

    @staticmethod
    def from_csr(X: sparse.csr_matrix) -> Packed:
        (rows, columns), seconds, _ = timed(lambda: pack_rows_by_frequency(X, threads=1))
        return Packed(rows, columns, X.shape[1], seconds)

    def run(self, solve: Callable[[PackedRows], dict]) -> Run:
        result, seconds, _ = timed(lambda: solve(self.rows))
        weights = np.zeros(self.features)
        weights[self.columns] = result["weights"]
        return Run(seconds, weights)


def train_by_dual(rows: PackedRows, task: Linear, tol: float, epochs: int = 1000) -> dict:
    return train_dual(
        DualOptions(tolerance=tol, max_epochs=epochs, seed=1, threads=1),
        rows=rows, intercept=0.0, squared=False, signed_costs=task.C * task.labels, duals=np.empty(0),
        on_progress=None,
    )  # fmt: skip


def train_by_cuts(rows: PackedRows, oracle: Any, C: float, tol: float) -> dict:
    return minimise(
        LoopOptions(C=C, tolerance=tol, max_rounds=5000, threads=1),
        rows=rows, oracle=oracle, intercept=0.0, bundle=Bundle(rows.features, 200, of_rows=False),
        start=np.zeros(rows.features), on_progress=None, observe=None,
    )  # fmt: skip


# --- Contenders in turn -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A contender: its ladder of tolerances, its runs, and the objective that judges its weights."""

    ladder: Sequence[float]
    run: Callable[[float], Run]
    objective: Callable[[np.ndarray], float]
    optimum: float

    def quickest(self) -> list[float | None]:
        """Return the shortest time to each gap; the ladder ends where the smallest gap is reached."""
        best: list[float | None] = [None] * len(GAPS)
        for rung in self.ladder:
            result = self.run(rung)
            gap = self.objective(result.weights) / self.optimum - 1
            best = [
                min(result.seconds, best_seconds or np.inf) if gap <= target_gap else best_seconds
                for target_gap, best_seconds in zip(GAPS, best, strict=True)
            ]
            if gap <= GAPS[-1]:
                break
        return best


def measure_gaps(report: Report, task: str, contenders: dict[str, Contender], rounds: int) -> None:
    """Measure the ladders of all contenders in turns; other programs run once, because they are slow."""
    times_of = {name: [Times() for _ in GAPS] for name in contenders}
    for turn in range(rounds):
        for name in list(contenders):
            if turn and not name.startswith(("unkernel", "LIBLINEAR")):
                continue
            try:
                result = contenders[name].quickest()
            except (ImportError, LeftOutError) as reason:
                report.leave_out(f"{task}, {name}", reason)
                del contenders[name], times_of[name]
                continue
            for times, seconds in zip(times_of[name], result, strict=True):
                times.values += [] if seconds is None else [seconds]
    for name, of_gaps in times_of.items():
        for gap, times in zip(GAPS, of_gaps, strict=True):
            report.add(task, name, f"to {gap:g}", "CPU s", times if times.values else None)


class Rivals:
    """Other programs, called through the user's module `rivals`."""

    def __init__(self, work: Path) -> None:
        self._fit: Any = None
        self._work = work
        if (peers_folder() / "rivals.py").exists():
            sys.path.insert(0, str(peers_folder()))
            self._fit = importlib.import_module("rivals").fit

    def run(self, name: str, task: Linear | Ranks, eps: float) -> Run:
        if self._fit is None:
            raise LeftOutError("there is no module for it among the peers; see benchmarks/peers.py")
        path = self._work / (task.name.replace(" ", "_").replace(",", "") + ".svm")
        if not path.exists():
            write_svmlight(path, task.X, task.labels, qid=task.qid)
        try:
            seconds, w = self._fit(name, str(path), task.joachims_c, eps)
        except Exception as error:  # of any program that it runs
            raise LeftOutError(error) from None
        features = task.X.shape[1]
        return Run(seconds, np.pad(w, (0, max(features - len(w), 0)))[:features])


# --- Linear SVMs --------------------------------------------------------------------------------------


def text_rows(name: str) -> tuple[sparse.csr_matrix, np.ndarray]:
    data = datasets.load(name)
    return normalize(data.X), np.where(data.y >= 7 if name == "imdb" else data.y == 1, 1.0, -1.0)


def plain_rows(name: str) -> tuple[sparse.csr_matrix, np.ndarray]:
    data = datasets.load(name)
    return data.X, np.where(data.y == 1, 1.0, -1.0)


def signed_zipf_rows(count: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    X, target = zipf_rows(count)
    return X, np.sign(target)


# For each task, a function that returns rows and labels, and C.
LINEAR: dict[str, tuple[Callable[[], tuple[Any, np.ndarray]], float]] = {
    "linear, a9a": (partial(plain_rows, "a9a"), 1628),
    "linear, imdb": (partial(text_rows, "imdb"), 7500),
    "linear, 20news (1)": (partial(text_rows, "20news"), 11314),
    "linear, covtype68k (1)": (partial(plain_rows, "covtype68k"), 116600),
    "linear, zipf 300k": (partial(signed_zipf_rows, 300_000), 1e4),
    "linear, zipf 300k, C 9e4": (partial(signed_zipf_rows, 300_000), 9e4),
}


def liblinear_runs(task: Linear) -> Callable[[float], Run]:
    data: list[Any] = []

    def run(eps: float) -> Run:
        from liblinear.liblinear import problem
        from liblinear.liblinearutil import train

        if not data:
            data.append(problem(task.labels, task.X))
        model, seconds, _ = timed(lambda: train(data[0], f"-s 3 -c {task.C} -e {eps} -q"))
        w = np.array(model.get_decfun()[0])
        w = w if model.get_labels()[0] == 1 else -w
        return Run(seconds, np.pad(w, (0, task.X.shape[1] - len(w))))

    return run


def measure_linear(report: Report, name: str, rivals: Rivals) -> None:
    rows, cost = LINEAR[name]
    task = Linear(name, *rows(), cost)
    task.X.sort_indices()
    packed = Packed.from_csr(task.X)
    long_run = train_by_dual(packed.rows, task, 1e-6, epochs=20000)
    oracle = margin_oracle(task.labels, squared=False)
    runs: dict[str, tuple[Sequence[float], Callable[[float], Run]]] = {
        "unkernel, dual": (OURS, lambda tol: packed.run(lambda rows: train_by_dual(rows, task, tol))),
        "unkernel, cutting planes": (
            OURS,
            lambda tol: packed.run(lambda rows: train_by_cuts(rows, oracle, task.C, tol)),
        ),
        "LIBLINEAR -s 3": (LIBLINEAR, liblinear_runs(task)),
        "libocas": (CERTIFIED, partial(rivals.run, "libocas", task)),
        "ACUPA": (CERTIFIED, partial(rivals.run, "acupa", task)),
        "SVMperf": (SVMPERF, partial(rivals.run, "svmperf", task)),
    }
    contenders = {
        who: Contender(ladder, run, task.objective, long_run["objective"])
        for who, (ladder, run) in runs.items()
    }
    measure_gaps(report, name, contenders, 2 if report.quick else 3)
    report.add(name, "unkernel, dual", "packing", "CPU s", packed.seconds)
    if "LIBLINEAR -s 3" in contenders:  # it is installed
        measure_fits(report, task)


def measure_fits(report: Report, task: Linear) -> None:
    """Measure the time from a scipy matrix to weights, at each contender's default tolerance."""

    def train_by_liblinear() -> None:
        from liblinear.liblinear import problem
        from liblinear.liblinearutil import train

        train(problem(task.labels, task.X), f"-s 3 -c {task.C} -q")

    ours = CuttingPlaneSVC(task.C, solver="dual", fit_intercept=False)
    fits = {"unkernel, dual": lambda: ours.fit(task.X, task.labels), "LIBLINEAR -s 3": train_by_liblinear}
    for name, times in take_turns(fits, 3 if report.quick else 7).items():
        report.add(task.name, name, "whole fit", "CPU s", times)


# --- Passes against rows ------------------------------------------------------------------------------

ROWS = {f"rows, {count:,}": count for count in (10_000, 30_000, 100_000, 300_000, 1_000_000)}


def measure_rows(report: Report, name: str) -> None:
    count = ROWS[name]
    task = Linear("", *signed_zipf_rows(count), 1e4)
    store = Packed.from_csr(task.X).rows
    oracle = margin_oracle(task.labels, squared=False)
    solvers = {
        "unkernel, cutting planes": lambda: train_by_cuts(store, oracle, task.C, 1e-3),
        "unkernel, dual": lambda: train_by_dual(store, task, 1e-3),
    }
    rounds = [{who: timed(solve) for who, solve in solvers.items()} for _ in range(2 if report.quick else 3)]
    for who in solvers:
        times = Times([timed_round[who].cpu for timed_round in rounds])
        report.add(name, who, "passes", "number", rounds[0][who].result["rounds"])
        report.add(name, who, "time", "CPU s", times)
        report.add(name, who, "time of a row", "CPU µs", times.scaled(1e6 / count))


# --- Ranking ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranks:
    """Ordinal regression with the C of the paper: 1/2 |w|^2 + (C / m) sum over pairs of hinge losses."""

    name: str
    X: sparse.csr_matrix
    labels: np.ndarray
    joachims_c: float
    qid: np.ndarray | None = None

    def arguments(self) -> dict[str, Any]:
        values, ranks = np.unique(self.labels, return_inverse=True)
        groups = np.empty(0) if self.qid is None else np.unique(self.qid, return_inverse=True)[1]
        nothing = np.empty(0)
        return {
            "ranks": ranks.astype(np.int32), "rank_count": len(values), "groups": groups.astype(np.int32),
            "weights": nothing, "pair_weights": nothing, "gains": nothing, "discounts": nothing,
        }  # fmt: skip

    def objective(self, oracle: Any, w: np.ndarray) -> float:
        scores = self.X @ w
        value, _ = oracle.along(scores, scores, 0.0, 1)
        return float(0.5 * w @ w + self.joachims_c / len(self.labels) * value)

    def squared_objective(self, w: np.ndarray) -> float:
        """Return the objective with squared losses, for two ranks, by sums over pairs in the wrong order."""
        scores = self.X @ w
        high = scores[self.labels > self.labels.min()]
        low = np.sort(scores[self.labels == self.labels.min()])
        first_violated = np.searchsorted(low, high - 1.0, side="right")
        count, sums, squares = (
            np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])[first_violated]
            for values in (np.ones(len(low)), low, low**2)
        )
        losses = count * (1 - high) ** 2 + 2 * (1 - high) * sums + squares
        return float(0.5 * w @ w + self.joachims_c / (len(high) * len(low)) * losses.sum())


def grouped_rows() -> tuple[Any, ...]:
    data = datasets.load("mq2008.fold1")
    return data.X, data.y, 1000, data.qid


def rated_rows() -> tuple[Any, ...]:
    data = datasets.load("imdb")
    return normalize(data.X), data.y, 7500


def ranked_zipf_rows(count: int, ranks: int) -> tuple[Any, ...]:
    X, target = zipf_rows(count)
    return X, make_ranks(target, ranks), 1e4


RANKING: dict[str, Callable[[], tuple[Any, ...]]] = {
    "ranking, mq2008 in groups": grouped_rows,
    "ranking, imdb of 8 ranks": rated_rows,
    **{
        f"ranking, zipf {count // 1000}k of 2 ranks": partial(ranked_zipf_rows, count, 2)
        for count in (10_000, 30_000, 100_000, 300_000)
    },
    "ranking, zipf 300k of 8 ranks": partial(ranked_zipf_rows, 300_000, 8),
    "ranking, zipf 300k of n ranks": partial(ranked_zipf_rows, 300_000, 0),
}


def measure_ranking(report: Report, name: str, rivals: Rivals) -> None:
    task = Ranks(name, *RANKING[name]())
    task.X.sort_indices()
    packed = Packed.from_csr(task.X)
    C = task.joachims_c / len(task.labels)
    exact = ordinal_oracle(**task.arguments(), accuracy=0.0)
    optimum = train_by_cuts(packed.rows, ordinal_oracle(**task.arguments(), accuracy=1e-6), C, 1e-4)["bound"]

    def ours(tol: float) -> Run:
        oracle = ordinal_oracle(**task.arguments(), accuracy=tol / 20)
        return packed.run(lambda rows: train_by_cuts(rows, oracle, C, tol))

    def with_exact_risk(ladder: Sequence[float], run: Callable[[float], Run]) -> Contender:
        return Contender(ladder, run, partial(task.objective, exact), optimum)

    contenders = {"unkernel": with_exact_risk(OURS, ours)}
    is_bipartite = len(np.unique(task.labels)) == 2 and task.qid is None
    if is_bipartite:
        contenders["SVMperf, ROC area"] = with_exact_risk(SVMPERF, partial(rivals.run, "svmperf_roc", task))
    if task.qid is not None or len(task.labels) <= 10_000:  # it is quadratic in the rows of a group
        contenders["SVMrank"] = with_exact_risk(SVMPERF, partial(rivals.run, "svmrank", task))
    measure_gaps(report, name, contenders, 2 if report.quick else 3)
    if is_bipartite:
        measure_ranksvm(report, task, rivals)


def measure_ranksvm(report: Report, task: Ranks, rivals: Rivals) -> None:
    run = partial(rivals.run, "ranksvm", task)
    try:
        optimum = task.squared_objective(run(1e-6).weights)
    except LeftOutError as reason:
        report.leave_out(f"{task.name}, ranksvm", reason)
        return
    ladder = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
    contender = Contender(ladder, run, task.squared_objective, optimum)
    measure_gaps(report, task.name, {"ranksvm": contender}, 1)


# --- Quality ------------------------------------------------------------------------------------------

QUALITY: dict[str, tuple[str, Any]] = {
    "quality, imdb, unit rows": ("imdb", Normalizer()),
    "quality, imdb, tf-idf": ("imdb", TfidfTransformer(sublinear_tf=True)),
    "quality, mq2008.fold1": ("mq2008.fold1", FunctionTransformer(accept_sparse=True)),
}


def measure_quality(report: Report, name: str) -> None:
    dataset, transform = QUALITY[name]
    train, test = (datasets.load(dataset, part) for part in ("train", "test"))
    X = transform.fit_transform(train.X)
    best, C = max((cross_validate(X, train.y, train.qid, C), C) for C in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0))
    ranker = RankSVM(C=C).fit(X, train.y, qid=train.qid)
    error = 1 - ranker.score(transform.transform(test.X), test.y, test.qid)
    report.add(name, "unkernel", "C", "", C)
    report.add(name, "unkernel", "cross-validated error", "% of pairs wrong", 100 * (1 - best))
    report.add(name, "unkernel", "test error", "% of pairs wrong", 100 * error)


def cross_validate(X: Any, y: np.ndarray, qid: np.ndarray | None, C: float) -> float:
    folds = KFold(5, shuffle=True, random_state=0) if qid is None else GroupKFold(5)
    scores = []
    for train, test in folds.split(X, y, qid):
        groups = (None, None) if qid is None else (qid[train], qid[test])
        ranker = RankSVM(C=C).fit(X[train], y[train], qid=groups[0])
        scores.append(ranker.score(X[test], y[test], qid=groups[1]))
    return float(np.mean(scores))


def measure(report: Report, tasks: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rivals = Rivals(Path(folder))
        for name in tasks:
            try:
                if name in LINEAR:
                    measure_linear(report, name, rivals)
                elif name in ROWS:
                    measure_rows(report, name)
                elif name in RANKING:
                    measure_ranking(report, name, rivals)
                else:
                    measure_quality(report, name)
            except FileNotFoundError as error:
                report.leave_out(name, error)


if __name__ == "__main__":
    quick = ["linear, a9a", "linear, imdb", *list(ROWS)[:4], "ranking, mq2008 in groups"]
    main(measure, [*LINEAR, *ROWS, *RANKING, *QUALITY], quick=quick)
