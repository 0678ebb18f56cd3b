"""``unkernel train --model rank``."""

from __future__ import annotations

from typing import Any

from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.learners.base import (
    LARGE_DATA,
    Learner,
    OnProgress,
    flag,
    gap_words,
    size_words,
    weight_words,
)
from unkernel.cli.learners.measures import compare_ranks, rank_facts
from unkernel.cli.render.console import many
from unkernel.cutplane import RankSVM


class RankLearner(Learner):
    """Weights that order rows."""

    name = "rank"
    estimator = RankSVM
    step = "pass"
    measures = ("pairs", "ordered_pairs", "groups", "accuracy", "mean_absolute_error")
    own_options = LARGE_DATA | {"thresholds"}

    def refuse(self) -> None:
        """Thresholds are found with all scores at hand."""
        for option in ("out_of_core", "dask"):
            if "thresholds" in self.given and option in self.given:
                raise ValueError(f"--thresholds needs rows in memory, and does not go with {flag(option)}")

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        """Train; find thresholds if asked to."""
        estimator.fit_reporting(
            rows.source, rows.labels, rows.groups, None, on_progress=on_progress, zero_based=rows.zero_based
        )
        if "thresholds" in self.given:
            estimator.fit_thresholds(rows.source, rows.labels)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the ranks and what divides them."""
        return super().describe(estimator) | {
            "ranks": len(estimator.ranks_),
            "thresholds": estimator.to_model().decision.thresholds.tolist() or None,
            "passes": estimator.n_iter_,
        }

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """The share of pairs in order; for ordinal models also how often the label is right."""
        return compare_ranks(estimator.to_model().decision, rows.scores(estimator), *rows.targets())

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Data, model, objective and gap."""
        return {
            "data": f"{size_words(result)}, {many(result['ranks'], 'rank')}",
            "model": weight_words(result),
            "objective": f"{result['objective']:.8g}",
            "gap": gap_words(result, many(result["passes"], "pass", "passes")),
        }

    def quality(self, measured: dict[str, Any], which: str) -> dict[str, str]:
        """Pairs in order, and errors of ordinal models."""
        return rank_facts(measured, f"{which} ")
