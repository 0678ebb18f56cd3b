"""``unkernel train regression``."""

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
)
from unkernel.cli.options.estimator_options import flag
from unkernel.cli.quality import VALUE_MEASURES, compare_values
from unkernel.cli.render.quality import value_facts
from unkernel.cli.terminal.console import format_size
from unkernel.measures.number_format import format_count
from unkernel.poly import PolyRegressor

_LOSSES_OF_OPTION = {  # the losses that use each option
    "epsilon": ("epsilon_insensitive", "squared_epsilon_insensitive"),
    "quantile": ("quantile",),
}


class RegressionLearner(Learner):
    """Models that predict numbers, or means of counts."""

    name = "regression"
    estimator = PolyRegressor
    step = "epoch"
    takes_records = True
    predicts_values = True
    measures = VALUE_MEASURES
    criteria = VALUE_MEASURES
    help = """Train a regression on conjunctions of features: it predicts numbers.

    DATA has one line per row: [italic]number index:value index:value …[/italic]
    Or it has records (CSV, TSV, JSON lines, Parquet), and --target names the column of numbers.

    \b
    [dim]$[/dim] unkernel train regression flats.csv --target rent -o rent.uk --test flats.test.csv
    [dim]$[/dim] unkernel train regression a.svm -o a.uk --degree 1 --loss epsilon_insensitive --epsilon 0.5
    [dim]$[/dim] unkernel train regression flats.csv --target rent -o high.uk --loss quantile --quantile 0.9
    [dim]$[/dim] unkernel train regression flats.csv --target rent -o small.uk --penalty l1
    [dim]$[/dim] unkernel train regression visits.csv --target visits -o visits.uk --loss poisson
    """
    tune_help = """Choose parameters of a regression by cross-validation.

    {options}
    {paths} {costs}

    \b
    [dim]$[/dim] unkernel tune regression train.svm --C 0.001:10 --degree 1,2 --cv 5
    [dim]$[/dim] unkernel tune regression flats.csv --target rent --by mean_absolute_error -o best.uk
    """

    def check(self) -> None:
        """Raise ``ValueError`` for parameters of other losses."""
        loss = self.option_values.get("loss", self.default("loss"))
        for option, losses in _LOSSES_OF_OPTION.items():
            if option in self.option_values and loss not in losses:
                raise ValueError(f"{flag(option)} is for --loss {' or '.join(losses)}, not for {loss}")
        penalty = self.option_values.get("penalty", self.default("penalty"))
        if "l1_ratio" in self.option_values and penalty != "elasticnet":
            raise ValueError(f"--l1-ratio is for --penalty elasticnet, not for {penalty}")

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        """Train."""
        estimator.fit_reporting(rows.source, rows.labels, None, on_progress)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the kernel, the loss and the conjunctions."""
        parameters = {
            name: getattr(estimator, name) for name in ("degree", "coef0", "loss", "penalty", "feature_map")
        }
        solution = {"gamma": estimator.gamma_, "storage": estimator.storage_, "epochs": estimator.n_iter_}
        return super().describe(estimator) | parameters | count_weights(estimator.to_model()) | solution

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Return R squared, the errors and, for counts, the Poisson deviance."""
        return compare_values(estimator.to_model().decision, rows.scores(estimator), rows.targets()[0])

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Describe the data, the model, the objective and the gap."""
        step = self.step if result["penalty"] == "l2" else "Newton step"
        return {
            "data": describe_size(result),
            "model": f"{describe_conjunctions(result)}, {format_size(result['model_bytes'])}",
            "objective": f"{result['objective']:.8g} ({result['loss']}, {result['penalty']})",
            "gap": describe_gap(result, format_count(result["epochs"], step)),
        }

    def quality(self, measured: dict[str, Any], split: str) -> dict[str, str]:
        """Format R squared, the errors and the Poisson deviance."""
        return value_facts(measured, f"{split} ")
