"""``unkernel train rank``."""

from __future__ import annotations

from typing import Any

from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.learners.base import (
    Learner,
    OnProgress,
    count_weights,
    describe_conjunctions,
    describe_gap,
    describe_size,
    describe_weights,
)
from unkernel.cli.options.estimator_options import flag
from unkernel.cli.quality import NDCG_DEPTH, RANK_MEASURES, compare_ranks
from unkernel.cli.render.quality import rank_facts
from unkernel.cli.terminal.console import format_size
from unkernel.cutplane import RankSVM
from unkernel.measures.number_format import format_count


class RankLearner(Learner):
    """Ranking support vector machines."""

    name = "rank"
    estimator = RankSVM
    step = "pass"
    measures = tuple(name for name in RANK_MEASURES if name != "accuracy_note")
    criteria = ("ordered_pairs", "ndcg")
    large_data = True
    help = """Train an SVM that ranks rows: larger labels should get larger scores.

    DATA has one line per row: [italic]label qid:3 index:value index:value …[/italic]
    Rows are compared with rows of the same query only; without qid: fields, with all rows. The command
    reports the share of pairs in order and NDCG@K: the gain of a row is 2^label - 1, its discount
    log2(1 + rank), and queries without a relevant row (all labels 0) are left out of the mean.

    \b
    [dim]$[/dim] unkernel train rank letor.txt -o a.uk --test letor.t.txt
    [dim]$[/dim] unkernel train rank letor.txt -o a.uk --ndcg-at 5 --cv 5
    [dim]$[/dim] unkernel train rank letor.txt -o a.uk --degree 2 --pair-weight ndcg
    [dim]$[/dim] unkernel train rank stars.txt -o a.uk --thresholds
    [dim]$[/dim] unkernel train rank 'day-*.txt' -o a.uk --out-of-core
    """
    tune_help = """Choose parameters of an SVM that ranks rows by cross-validation.

    {options}
    Folds keep the rows of a query (qid:) together. {paths} {costs}

    \b
    [dim]$[/dim] unkernel tune rank letor.txt --C 0.01:10 --by ndcg --ndcg-at 5 -j 4
    [dim]$[/dim] unkernel tune rank letor.txt --C 0.001:1:7 --cv 3 -o best.uk
    """

    def check(self) -> None:
        """Raise ``ValueError`` for thresholds and conjunctions if rows are not in memory."""
        for option in ("out_of_core", "dask"):
            if option not in self.option_values:
                continue
            if "thresholds" in self.option_values:
                raise ValueError(f"--thresholds needs rows in memory, and does not go with {flag(option)}")
            if self.option_values.get("degree", 1) > 1:
                raise ValueError(f"--degree 2 and 3 need rows in memory, and do not go with {flag(option)}")

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        """Fit the estimator and, with --thresholds, the thresholds between ranks."""
        estimator.fit_reporting(
            rows.source, rows.labels, rows.groups, None, on_progress=on_progress, zero_based=rows.zero_based
        )
        if "thresholds" in self.option_values:
            estimator.fit_thresholds(rows.source, rows.labels)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the ranks, their thresholds, and the size of the feature map if there is one."""
        degree = estimator.get_params().get("degree", 1)  # estimators on a cluster have no degree
        map_size = {} if degree == 1 else count_weights(estimator.to_model()) | {"gamma": estimator.gamma_}
        return (
            super().describe(estimator)
            | map_size
            | {
                "degree": degree,
                "ranks": len(estimator.ranks_),
                "thresholds": estimator.to_model().decision.thresholds.tolist() or None,
                "passes": estimator.n_iter_,
            }
        )

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Return the share of pairs in order; for ordinal models, also the accuracy."""
        depth = self.option_values.get("ndcg_at", NDCG_DEPTH)
        labels, groups = rows.targets()
        return compare_ranks(estimator.to_model().decision, rows.scores(estimator), labels, groups, depth)

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Describe the data, the model, the objective and the gap."""
        return {
            "data": f"{describe_size(result)}, {format_count(result['ranks'], 'rank')}",
            "model": describe_weights(result) if result["degree"] == 1 else _describe_mapped_model(result),
            "objective": f"{result['objective']:.8g}",
            "gap": describe_gap(result, format_count(result["passes"], "pass", "passes")),
        }

    def quality(self, measured: dict[str, Any], split: str) -> dict[str, str]:
        """Format the share of pairs in order, and the errors of ordinal models."""
        return rank_facts(measured, f"{split} ")


def _describe_mapped_model(result: dict[str, Any]) -> str:
    of_ranks = ", thresholds between ranks" if result["thresholds"] else ""
    return f"{describe_conjunctions(result)}{of_ranks}, {format_size(result['model_bytes'])}"
