"""Cutting planes and ranking: CPU time to a given objective, beside the peers; passes against rows.

A contender's time "to a gap of g" is that of the quickest run, over a ladder of tolerances, whose primal
objective, computed here from its weights, is within a factor 1 + g of the optimum (a long run of ours,
certified from below). Times are of training alone, rows packed or read before; what packing takes is given
apart. No bias term anywhere: all solve the same problem.

Other programs are measured if a folder has them: a Python module ``rivals`` there, with a function
``fit(name, path, C, eps) -> (CPU seconds, weights)`` for libocas, acupa, svmperf (error rate), svmperf_roc,
svmrank and ranksvm; C is that of Joachims (2006).

    UNKERNEL_DATA=/where/the/data/is python benchmarks/cutplane.py [--rivals FOLDER] [--repeat 3]
        [linear|scaling|ranking|quality ...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GroupKFold, KFold
from sklearn.preprocessing import FunctionTransformer, Normalizer, normalize

from unkernel import RankSVM, datasets, write_svmlight
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
from zipf_rows import ranks_of, zipf_rows

GAPS = (1e-2, 1e-3)
OURS = (0.1, 0.05, 0.03, 0.02, 0.01, 0.007, 0.005, 0.003, 0.002, 0.001)
LIBLINEAR = (10.0, 3.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003)
CERTIFIED = (0.1, 0.03, 0.01, 0.005, 0.003, 0.001)  # libocas, acupa: a relative gap
SVMPERF = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
SECTIONS = ("linear", "scaling", "ranking", "quality")


@dataclass(frozen=True)
class Run:
    seconds: float
    weights: np.ndarray


@dataclass(frozen=True)
class Linear:
    """A linear SVM with the C of the paper: 1/2 |w|^2 + (C / n) sum of hinge losses."""

    name: str
    X: sparse.csr_matrix
    y: np.ndarray
    joachims_c: float

    @property
    def C(self) -> float:  # noqa: N802
        return self.joachims_c / len(self.y)

    def objective(self, w: np.ndarray) -> float:
        return float(0.5 * w @ w + self.C * np.maximum(0, 1 - self.y * (self.X @ w)).sum())


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


@dataclass(frozen=True)
class Packed:
    """Rows as our solvers want them."""

    rows: PackedRows
    columns: np.ndarray
    features: int
    seconds: float

    @staticmethod
    def of(X: sparse.csr_matrix) -> Packed:
        seconds, (rows, columns) = clocked(lambda: pack_rows_by_frequency(X, threads=1))
        return Packed(rows, columns, X.shape[1], seconds)

    def run(self, solve: Callable[[PackedRows], dict]) -> Run:
        seconds, result = clocked(lambda: solve(self.rows))
        weights = np.zeros(self.features)
        weights[self.columns] = result["weights"]
        return Run(seconds, weights)


def by_dual(rows: PackedRows, task: Linear, tol: float, epochs: int = 1000) -> dict:
    return train_dual(
        DualOptions(tolerance=tol, max_epochs=epochs, seed=1, threads=1),
        rows=rows, intercept=0.0, squared=False, signed_costs=task.C * task.y, duals=np.empty(0),
        on_progress=None,
    )  # fmt: skip


def by_cuts(rows: PackedRows, oracle: Any, C: float, tol: float) -> dict:
    return minimise(
        LoopOptions(C=C, tolerance=tol, max_rounds=5000, threads=1),
        rows=rows, oracle=oracle, intercept=0.0, bundle=Bundle(rows.features, 200),
        start=np.zeros(rows.features), on_progress=None, observe=None,
    )  # fmt: skip


def linear_tasks() -> Iterable[Linear]:
    a9a, imdb, covtype = datasets.load("a9a"), datasets.load("imdb"), datasets.load("covtype68k")
    news = datasets.load("20news")
    yield Linear("a9a", a9a.X, np.where(a9a.y > 0, 1.0, -1.0), 1628)
    yield Linear("imdb", normalize(imdb.X), np.where(imdb.y >= 7, 1.0, -1.0), 7500)
    yield Linear("20news (1)", normalize(news.X), np.where(news.y == 1, 1.0, -1.0), 11314)
    yield Linear("covtype68k (1)", covtype.X, np.where(covtype.y == 1, 1.0, -1.0), 116600)
    X, target = zipf_rows(300_000)
    yield Linear("zipf 300k", X, np.sign(target), 1e4)
    yield Linear("zipf 300k, C 9e4", X, np.sign(target), 9e4)


def liblinear_run(task: Linear, eps: float) -> Run | None:
    try:
        from liblinear.liblinear import problem
        from liblinear.liblinearutil import train
    except ImportError:
        return None
    data = problem(task.y, task.X)
    seconds, model = clocked(lambda: train(data, f"-s 3 -c {task.C} -e {eps} -q"))
    w = np.array(model.get_decfun()[0])
    w = w if model.get_labels()[0] == 1 else -w
    return Run(seconds, np.pad(w, (0, task.X.shape[1] - len(w))))


class Rivals:
    """Other programs, through the module that the user has for them."""

    def __init__(self, folder: str | None, work: Path) -> None:
        self.fit = None
        self._work = work
        if folder is not None:
            sys.path.insert(0, folder)
            import rivals

            self.fit = rivals.fit

    def file(self, name: str, X: sparse.csr_matrix, y: np.ndarray, qid: np.ndarray | None = None) -> Path:
        path = self._work / (name.replace(" ", "_").replace(",", "") + ".svm")
        if not path.exists():
            write_svmlight(path, X, y, qid=qid)
        return path

    def run(self, name: str, path: Path, C: float, features: int, eps: float) -> Run | None:
        if self.fit is None:
            return None
        try:
            seconds, w = self.fit(name, str(path), C, eps)
        except Exception as error:
            print(f"  {name} at {eps}: left out ({str(error).splitlines()[-1][:100]})", flush=True)
            return None
        return Run(seconds, np.pad(w, (0, max(features - len(w), 0)))[:features])


def quickest(
    ladder: Iterable[float],
    run: Callable[[float], Run | None],
    objective: Callable[[np.ndarray], float],
    optimum: float,
    repeat: int,
) -> list[float | None]:
    """Least seconds to each gap. The ladder ends with the rung that reaches the last one."""
    best: list[float | None] = [None] * len(GAPS)
    for rung in ladder:
        several = [run(rung) for _ in range(repeat)]
        if several[0] is None:
            continue
        gap = objective(several[0].weights) / optimum - 1
        seconds = min(one.seconds for one in several if one is not None)
        for k, wanted in enumerate(GAPS):
            if gap <= wanted and (best[k] is None or seconds < best[k]):
                best[k] = seconds
        if gap <= GAPS[-1]:
            break
    return best


def show(headings: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(headings) + " |")
    print("|" + "---|" * len(headings))
    for cells in rows:
        print("| " + " | ".join(cells) + " |", flush=True)


def pair_of(times: list[float | None]) -> str:
    return " / ".join("–" if t is None else f"{t:.4f}" if t < 0.1 else f"{t:.3f}" for t in times)


def linear(rivals: Rivals, repeat: int) -> None:
    print(f"\n## Linear SVM, hinge: CPU s to a gap of {GAPS[0]:g} / {GAPS[1]:g}")
    rows = [linear_row(task, rivals, repeat) for task in linear_tasks()]
    headings = ["task", "packing", "ours: dual", "ours: cutting planes", "LIBLINEAR -s 3"]
    show(headings + (["libocas", "ACUPA", "SVMperf -w 9"] if rivals.fit else []), rows)


def linear_row(task: Linear, rivals: Rivals, repeat: int) -> list[str]:
    task.X.sort_indices()
    packed = Packed.of(task.X)
    long_run = by_dual(packed.rows, task, 1e-6, epochs=20000)
    oracle = margin_oracle(task.y, squared=False)

    def cell(ladder: Iterable[float], run: Callable[[float], Run | None], times: int) -> str:
        return pair_of(quickest(ladder, run, task.objective, long_run["objective"], times))

    cells = [
        task.name,
        f"{packed.seconds:.4f}",
        cell(OURS, lambda tol: packed.run(lambda rows: by_dual(rows, task, tol)), repeat),
        cell(OURS, lambda tol: packed.run(lambda rows: by_cuts(rows, oracle, task.C, tol)), repeat),
        cell(LIBLINEAR, lambda eps: liblinear_run(task, eps), repeat),
    ]
    if rivals.fit is not None:
        path = rivals.file(task.name, task.X, task.y)
        for name, ladder in {"libocas": CERTIFIED, "acupa": CERTIFIED, "svmperf": SVMPERF}.items():
            ask = partial(rivals.run, name, path, task.joachims_c, task.X.shape[1])
            cells.append(cell(ladder, ask, 1))
    print(
        f"{task.name}: optimum {long_run['objective']:.6g}, bound {long_run['bound']:.6g}: {cells[2:]}",
        flush=True,
    )
    return cells


def scaling(_: Rivals, repeat: int) -> None:
    print("\n## Passes and time against rows (Zipf rows, gap 1e-3, C of the paper 1e4)")
    rows: list[list[str]] = []
    before: tuple[int, list[float]] | None = None
    for count in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        cells, seconds = scaling_row(count, repeat)
        slopes = ["", ""]
        if before is not None:
            slopes = [
                f"{np.log(now / then) / np.log(count / before[0]):.2f}"
                for now, then in zip(seconds, before[1], strict=True)
            ]
        rows.append([f"{count:,}", *cells[:2], slopes[0], *cells[2:], slopes[1]])
        before = (count, seconds)
    show(["rows", "passes (cuts)", "CPU s", "slope", "epochs (dual)", "CPU s", "slope"], rows)


def scaling_row(count: int, repeat: int) -> tuple[list[str], list[float]]:
    X, target = zipf_rows(count)
    task = Linear("", X, np.sign(target), 1e4)
    store = Packed.of(X).rows
    oracle = margin_oracle(task.y, squared=False)
    cuts = [clocked(lambda: by_cuts(store, oracle, task.C, 1e-3)) for _ in range(repeat)]
    dual = [clocked(lambda: by_dual(store, task, 1e-3)) for _ in range(repeat)]
    seconds = [min(spent for spent, _ in runs) for runs in (cuts, dual)]
    cells = [str(cuts[0][1]["rounds"]), f"{seconds[0]:.3f}", str(dual[0][1]["rounds"]), f"{seconds[1]:.3f}"]
    return cells, seconds


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
            "weights": nothing, "pair_weights": nothing,
        }  # fmt: skip

    def objective(self, oracle: Any, w: np.ndarray) -> float:
        scores = self.X @ w
        value, _ = oracle.along(scores, scores, 0.0, 1)
        return float(0.5 * w @ w + self.joachims_c / len(self.labels) * value)

    def squared_objective(self, w: np.ndarray) -> float:
        """The same with squared losses, for two ranks, by sums over the lower rows that are not in order."""
        scores = self.X @ w
        high = scores[self.labels > self.labels.min()]
        low = np.sort(scores[self.labels == self.labels.min()])
        first = np.searchsorted(low, high - 1.0, side="right")
        count, sums, squares = (
            np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])[first]
            for values in (np.ones(len(low)), low, low**2)
        )
        losses = count * (1 - high) ** 2 + 2 * (1 - high) * sums + squares
        return float(0.5 * w @ w + self.joachims_c / (len(high) * len(low)) * losses.sum())


def ranking_tasks() -> Iterable[Ranks]:
    imdb, mq = datasets.load("imdb"), datasets.load("mq2008.fold1")
    yield Ranks("mq2008, groups", mq.X, mq.y, 1000, mq.qid)
    yield Ranks("imdb, 8 ranks", normalize(imdb.X), imdb.y, 7500)
    for count in (10_000, 30_000, 100_000, 300_000):
        X, target = zipf_rows(count)
        yield Ranks(f"zipf {count // 1000}k, 2 ranks", X, ranks_of(target, 2), 1e4)
    yield Ranks("zipf 300k, 8 ranks", X, ranks_of(target, 8), 1e4)
    yield Ranks("zipf 300k, n ranks", X, ranks_of(target, 0), 1e4)


def ranking(rivals: Rivals, repeat: int) -> None:
    print(f"\n## Ranking: CPU s to a gap of {GAPS[0]:g} / {GAPS[1]:g} (ranksvm: of its squared losses)")
    rows = [ranking_row(task, rivals, repeat) for task in ranking_tasks()]
    show(["task", "ours"] + (["SVMperf -w 3 -l 10", "SVMrank", "ranksvm"] if rivals.fit else []), rows)


def ranking_row(task: Ranks, rivals: Rivals, repeat: int) -> list[str]:
    task.X.sort_indices()
    packed = Packed.of(task.X)
    C = task.joachims_c / len(task.labels)
    exact = ordinal_oracle(**task.arguments(), accuracy=0.0)
    optimum = by_cuts(packed.rows, ordinal_oracle(**task.arguments(), accuracy=1e-6), C, 1e-4)["bound"]

    def ours(tol: float) -> Run:
        oracle = ordinal_oracle(**task.arguments(), accuracy=tol / 20)
        return packed.run(lambda rows: by_cuts(rows, oracle, C, tol))

    def cell(ladder: Iterable[float], run: Callable[[float], Run | None], times: int) -> str:
        return pair_of(quickest(ladder, run, lambda w: task.objective(exact, w), optimum, times))

    cells = [task.name, cell(OURS, ours, repeat)]
    if rivals.fit is not None:
        path = rivals.file(task.name, task.X, task.labels, task.qid)
        ask = partial(rivals.run, path=path, C=task.joachims_c, features=task.X.shape[1])
        two = len(np.unique(task.labels)) == 2 and task.qid is None
        small = task.qid is not None or len(task.labels) <= 10_000  # it is quadratic in the rows of a group
        cells.append(cell(SVMPERF, lambda eps: ask("svmperf_roc", eps=eps), 1) if two else "")
        cells.append(cell(SVMPERF, lambda eps: ask("svmrank", eps=eps), 1) if small else "")
        cells.append(ranksvm_cell(task, ask) if two else "")
    print(cells, flush=True)
    return cells


def ranksvm_cell(task: Ranks, ask: Callable[..., Run | None]) -> str:
    """Its losses are squared, so its gap is that of its own objective, to a long run of its own."""
    tight = ask("ranksvm", eps=1e-6)
    if tight is None:
        return "–"
    optimum = task.squared_objective(tight.weights)
    ladder = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
    return pair_of(quickest(ladder, lambda eps: ask("ranksvm", eps=eps), task.squared_objective, optimum, 1))


def quality(*_: Any) -> None:
    print("\n## Pair error on test rows, C by five-fold cross-validation on the training rows")
    transforms = {
        "imdb, unit rows": Normalizer(),
        "imdb, tf-idf": TfidfTransformer(sublinear_tf=True),
        "mq2008.fold1": FunctionTransformer(accept_sparse=True),
    }
    rows = []
    for name, transform in transforms.items():
        train, test = (datasets.load(name.split(",")[0], part) for part in ("train", "test"))
        X = transform.fit_transform(train.X)
        best, C = max(
            (cross_validated(X, train.y, train.qid, C), C) for C in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
        )
        ranker = RankSVM(C=C).fit(X, train.y, qid=train.qid)
        error = 1 - ranker.score(transform.transform(test.X), test.y, test.qid)
        rows.append([name, f"{C:g}", f"{1 - best:.4f}", f"{error:.4f}"])
    show(["data", "C", "cross-validated error", "test pair error"], rows)


def cross_validated(X: Any, y: np.ndarray, qid: np.ndarray | None, C: float) -> float:
    folds = KFold(5, shuffle=True, random_state=0) if qid is None else GroupKFold(5)
    scores = []
    for train, test in folds.split(X, y, qid):
        groups = (None, None) if qid is None else (qid[train], qid[test])
        ranker = RankSVM(C=C).fit(X[train], y[train], qid=groups[0])
        scores.append(ranker.score(X[test], y[test], qid=groups[1]))
    return float(np.mean(scores))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--rivals", help="a folder with a module that runs other programs")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    work = {"linear": linear, "scaling": scaling, "ranking": ranking, "quality": quality}
    with tempfile.TemporaryDirectory() as folder:
        rivals = Rivals(given.rivals, Path(folder))
        for section in given.sections:
            try:
                work[section](rivals, given.repeat)
            except FileNotFoundError as error:
                print(f"{section}: skipped: {error}")


if __name__ == "__main__":
    main()
