"""``unkernel train linear``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import check_classes
from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.learners.base import (
    ClassLearner,
    OnProgress,
    describe_classes,
    describe_gap,
    describe_weights,
)
from unkernel.cli.options.estimator_options import flag
from unkernel.cutplane import CuttingPlaneSVC
from unkernel.measures.detection import roc_area
from unkernel.measures.number_format import format_count, format_percent

_MEASURES = {
    "error_rate": "error rate",
    "f1": "F1 score",
    "break_even": "precision = recall",
    "precision_at_k": "precision at k",
    "roc_area": "ROC area",
}


class LinearLearner(ClassLearner):
    """Linear support vector machines."""

    name = "linear"
    estimator = CuttingPlaneSVC
    step = "pass"
    measures = (*ClassLearner.measures, "measure")
    large_data = True
    takes_records = True
    help = """Train a linear SVM: one weight per feature.

    DATA has one line per row: [italic]label index:value index:value …[/italic]
    Or it has records (CSV, TSV, JSON lines, Parquet), and --target names the column to predict.
    More than two classes are trained one against the rest. Several files, and patterns such as
    'day-*.svm.gz', are for --out-of-core and --dask.

    \b
    [dim]$[/dim] unkernel train linear a.svm -o a.uk --C 0.1 --test a.t.svm
    [dim]$[/dim] unkernel train linear a.svm -o a.uk --objective roc_area
    [dim]$[/dim] unkernel train linear 'day-*.svm.gz' -o a.uk --out-of-core --checkpoint kept
    [dim]$[/dim] unkernel train linear 'day-*.svm.gz' -o a.uk --dask tcp://scheduler:8786
    """
    tune_help = """Choose parameters of a linear SVM by cross-validation.

    {options}
    {classes} {paths} {costs}

    \b
    [dim]$[/dim] unkernel tune linear train.svm --loss hinge,squared_hinge --C 0.01:100 -o best.uk
    [dim]$[/dim] unkernel tune linear train.svm --C 0.01:100 --by roc_area --plot tuned.svg
    """

    def check(self) -> None:
        """Raise ``ValueError`` for options that do not apply to the objective or the solver."""
        option_values = self.option_values
        objective = option_values.get("objective", "error_rate")
        if (objective == "precision_at_k") != ("k" in option_values):
            raise ValueError("--k and --objective precision_at_k need each other")
        if objective != "error_rate":
            for option, value in (
                ("loss", "squared_hinge"),
                ("solver", "dual"),
                ("class_weight", option_values.get("class_weight")),
            ):
                if option in option_values and option_values[option] == value:
                    raise ValueError(
                        f"{flag(option)} {value} is for --objective error_rate, not for {objective}"
                    )
        for option in ("out_of_core", "dask", "checkpoint"):
            if option_values.get("solver") == "dual" and option in option_values:
                raise ValueError(f"{flag(option)} is for cutting planes; --solver dual needs rows in memory")

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        check_classes(rows.labels, f"{rows.file}: the column of labels")
        estimator.fit_reporting(
            rows.source, rows.labels, None, on_progress=on_progress, zero_based=rows.zero_based
        )

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the objective and the solver."""
        return super().describe(estimator) | {
            "objective_name": estimator.objective,
            "loss": estimator.loss,
            "k": estimator.k,
            "solver": estimator.solver_,
            "passes": estimator.n_iter_,
        }

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Add the optimised measure if there are two classes."""
        scores, labels = rows.scores(estimator), rows.targets()[0]
        measures = self.compare(estimator, scores, labels)
        if scores.shape[1] > 1 or measures["accuracy"] is None:
            return measures | {"measure": None}
        positive = labels == estimator.classes_[1]
        value = compute_objective_measure(estimator.objective, estimator.k, scores[:, 0], positive)
        return measures | {
            "measure": None if value is None else {"name": estimator.objective, "value": value}
        }

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Describe the data, the model, the objective and the gap."""
        optimised = _MEASURES[result["objective_name"]]
        return {
            "data": describe_classes(result),
            "model": describe_weights(result),
            "objective": f"{result['objective']:.8g} ({optimised}, {result['loss']})",
            "gap": describe_gap(
                result, f"{format_count(result['passes'], 'pass', 'passes')} of solver {result['solver']}"
            ),
        }

    def quality(self, measured: dict[str, Any], split: str) -> dict[str, str]:
        """Add the optimised measure."""
        facts = super().quality(measured, split)
        if measure := measured["measure"]:
            facts[f"{split} {_MEASURES[measure['name']]}"] = format_percent(measure["value"])
        return facts


def compute_objective_measure(
    name: str, k: int | None, scores: NDArray[np.float64], positive: NDArray[np.bool_]
) -> float | None:
    """Return the measure that ``--objective`` optimises, for two classes; None for the error rate."""
    n_positive = int(positive.sum())
    if name == "error_rate" or not 0 < n_positive < len(positive):
        return None
    if name == "f1":
        predicted = scores > 0
        return float(2 * (predicted & positive).sum() / (predicted.sum() + n_positive))
    if name == "roc_area":
        return roc_area(scores, positive)
    return _compute_precision_at_k(scores, positive, n_positive if name == "break_even" else int(k or 0))


def _compute_precision_at_k(scores: NDArray[np.float64], positive: NDArray[np.bool_], k: int) -> float | None:
    if not 0 < k <= len(scores):
        return None
    return float(positive[np.argsort(-scores, kind="stable")[:k]].mean())
