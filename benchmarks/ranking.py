"""Ranking: NDCG@10 of linear rankings and of conjunctions, beside LightGBM's lambdarank.

"mq2008" is fold 1 of LETOR's MQ2008: 471 queries to train on, 46 features scaled by query. "imdb" ranks film
reviews by their stars, from words weighted by tf-idf. Its reviews are grouped into random queries of 100
(seeded), because lambdarank does not accept a query of 25,000 rows. The settings of each contender are chosen
from a few by the mean NDCG@10 over five folds of the training queries (one fold in imdb). The tables show
this mean, the NDCG@10 on the test queries, and the CPU time of one fit with the chosen settings. NDCG has
gains of 2^y - 1, and queries without a relevant row are skipped. The test set of mq2008 has 156 queries:
differences below 2 points mean little.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/ranking.py [--quick] [--save] [TASK ...]
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GroupKFold

from harness import Report, main
from harness.state import find_version
from unkernel import RankSVM, RecordEncoder, datasets
from unkernel.cutplane import ndcg_score

TASKS = ["mq2008", "imdb"]
QUICK = ["mq2008"]
Scorer = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Rows:
    """Rows to rank, with relevance and queries."""

    X: Any
    y: np.ndarray
    qid: np.ndarray

    def part(self, places: np.ndarray) -> Rows:
        return Rows(self.X[places], self.y[places], self.qid[places])

    def ndcg(self, scorer: Scorer) -> float:
        return ndcg_score(self.y, scorer(self.X), self.qid)


@dataclass(frozen=True)
class Contender:
    """A function that fits a ranking, and the settings that are tried."""

    settings: list[dict[str, Any]]
    fit: Callable[[Rows, dict[str, Any]], Scorer]
    version: str = ""


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


def fit_ranker(rows: Rows, settings: dict[str, Any]) -> Scorer:
    return RankSVM(**settings).fit(rows.X, rows.y, qid=rows.qid).decision_function


def fit_binned(rows: Rows, settings: dict[str, Any]) -> Scorer:
    encoder = RecordEncoder(n_bins=8).fit(rows.X)
    ranker = RankSVM(**settings).fit(encoder.transform(rows.X), rows.y, qid=rows.qid)
    return lambda X: ranker.decision_function(encoder.transform(X))


def fit_lambdarank(rows: Rows, settings: dict[str, Any]) -> Scorer:
    lightgbm = importlib.import_module("lightgbm")
    order = np.argsort(rows.qid, kind="stable")
    sizes = np.unique(rows.qid, return_counts=True)[1]
    ranker = lightgbm.LGBMRanker(n_jobs=1, verbose=-1, random_state=0, **settings)
    ranker.fit(rows.X[order], rows.y[order].astype(int), group=sizes)
    return ranker.booster_.predict


def mq2008() -> tuple[Rows, Rows]:
    train, test = _read("mq2008.fold1")
    return Rows(train.X.toarray(), train.y, train.qid), Rows(test.X.toarray(), test.y, test.qid)


def imdb() -> tuple[Rows, Rows]:
    """Return reviews, divided at random into queries of 100."""
    files = _read("imdb")
    weigh = TfidfTransformer(sublinear_tf=True).fit(files[0].X)
    rng = np.random.default_rng(0)
    train, test = (
        Rows(weigh.transform(file.X), file.y, rng.permutation(np.arange(len(file.y)) // 100))
        for file in files
    )
    return train, test


def _read(name: str) -> list[Any]:
    return [datasets.load(name, part) for part in ("train", "test")]


def contenders(task: str, *, quick: bool) -> dict[str, Contender]:
    weights = ("uniform", "ndcg")
    trees = grid(n_estimators=(100, 300), learning_rate=(0.03, 0.1), num_leaves=(7, 31))
    lightgbm = find_version("lightgbm")
    result = {
        "unkernel, linear": Contender(grid(C=(0.01, 0.1, 0.3, 1.0), pair_weight=weights), fit_ranker),
        "LightGBM lambdarank": Contender([{}], fit_lambdarank, lightgbm),
    }
    if task == "mq2008":
        maps = grid(degree=(2,), gamma=(0.1, 0.2, 0.5), C=(0.003, 0.01, 0.03), pair_weight=weights)
        cubes = grid(degree=(3,), gamma=(0.1, 0.2), C=(0.003, 0.01, 0.03), pair_weight=weights)
        bins = grid(degree=(2,), gamma=(0.02, 0.1), C=(0.001, 0.01), pair_weight=weights)
        result["unkernel, degree 2"] = Contender(maps, fit_ranker)
        if not quick:
            result["unkernel, degree 3"] = Contender(cubes, fit_ranker)
            result["unkernel, degree 2, binned"] = Contender(bins, fit_binned)
    elif not quick:
        maps = grid(degree=(2,), gamma=(1.0,), C=(0.1,), pair_weight=("ndcg",))
        result["unkernel, degree 2"] = Contender(maps, fit_ranker)
        trees = grid(n_estimators=(100, 300))
    if not quick:
        result["LightGBM lambdarank, tuned"] = Contender(trees, fit_lambdarank, lightgbm)
    return result


def chosen(contender: Contender, rows: Rows, folds: list[Any]) -> tuple[dict[str, Any], float]:
    """Return the settings with the best mean over the folds, and that mean."""

    def mean_over_folds(settings: dict[str, Any]) -> float:
        parts = [(rows.part(train), rows.part(test)) for train, test in folds]
        return float(np.mean([test.ndcg(contender.fit(train, settings)) for train, test in parts]))

    means = [mean_over_folds(settings) for settings in contender.settings]
    best = int(np.argmax(means))
    return contender.settings[best], means[best]


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        train, test = mq2008() if task == "mq2008" else imdb()
        folds = list(GroupKFold(5, shuffle=True, random_state=0).split(train.X, train.y, train.qid))
        for name, contender in contenders(task, quick=report.quick).items():
            if contender.version == "" and not name.startswith("unkernel"):
                report.leave_out(name, "not installed")
                continue
            settings, mean = chosen(contender, train, folds if task == "mq2008" else folds[:1])
            begin = time.process_time()
            scorer = contender.fit(train, settings)
            seconds = time.process_time() - begin
            note = ", ".join(f"{key}={value}" for key, value in settings.items()) or "defaults"
            about = {"version": contender.version, "note": note}
            report.add(task, name, "NDCG@10, cross-validated", "%", 100 * mean, **about)
            report.add(task, name, "NDCG@10, test", "%", 100 * test.ndcg(scorer), **about)
            report.add(task, name, "training", "CPU s", seconds, **about)


if __name__ == "__main__":
    main(measure, TASKS, quick=QUICK)
