"""``unkernel train poly`` and ``unkernel train logistic``."""

from __future__ import annotations

from typing import Any

from unkernel.cli.inputs.labelled_files import check_classes
from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.learners.base import (
    ClassLearner,
    Given,
    OnProgress,
    count_weights,
    describe_classes,
    describe_conjunctions,
    describe_gap,
)
from unkernel.cli.options.estimator_options import flag
from unkernel.cli.quality import log_loss
from unkernel.cli.terminal.console import format_size
from unkernel.measures.number_format import format_count
from unkernel.poly import PolyLogisticRegression, PolySVC


class ConjunctionLearner(ClassLearner):
    """Base class of learners of one weight per conjunction of features."""

    takes_records = True

    def check(self) -> None:
        """Raise ``ValueError`` if an option does not apply to the penalty."""
        penalty = self.option_values.get("penalty", self.default("penalty"))
        for option, required in (("storage", "l2"), ("l1_ratio", "elasticnet")):
            if option in self.option_values and penalty != required:
                raise ValueError(f"{flag(option)} is for --penalty {required}, not for {penalty}")

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        check_classes(rows.labels, f"{rows.file}: the column of labels")
        estimator.fit_reporting(rows.source, rows.labels, None, on_progress)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the kernel and the conjunctions."""
        model = estimator.to_model()
        uses_newton = self.step != "epoch"
        parameters = {
            name: getattr(estimator, name) for name in ("degree", "coef0", "penalty", "feature_map")
        }
        solution = count_weights(model) | {
            "gamma": estimator.gamma_,
            "epochs": None if uses_newton else estimator.n_iter_,
            "newton_steps": estimator.n_iter_ if uses_newton else None,
        }
        return super().describe(estimator) | parameters | solution

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Describe the data, the model, the objective and the gap."""
        steps = result["newton_steps"] if result["epochs"] is None else result["epochs"]
        return {
            "data": describe_classes(result),
            "model": f"{describe_conjunctions(result)}, {format_size(result['model_bytes'])}",
            "objective": f"{result['objective']:.8g} ({result['loss']}, {result['penalty']})",
            "gap": describe_gap(result, format_count(steps, self.step)),
        }


class PolyLearner(ConjunctionLearner):
    """Support vector machines with a polynomial kernel."""

    name = "poly"
    estimator = PolySVC
    help = """Train an SVM with a polynomial kernel: one weight per conjunction of features.

    DATA has one line per row: [italic]label index:value index:value …[/italic]
    Or it has records (CSV, TSV, JSON lines, Parquet), and --target names the column to predict.
    More than two classes are trained one against the rest.

    \b
    [dim]$[/dim] unkernel train poly adult.train.csv --target income -o income.uk --test adult.test.csv
    [dim]$[/dim] unkernel train poly a9a.svm.xz -o model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel train poly a.svm.zst -o a.uk --degree 3 --test a.t.svm.zst
    [dim]$[/dim] unkernel train poly a.svm -o a.uk --class-weight 1=2.5,-1=1 --cv 5
    [dim]$[/dim] unkernel train poly loans.csv --target default -o a.uk --costs 1,5
    [dim]$[/dim] unkernel train poly a.svm -o a.uk --penalty l1 --loss squared_hinge
    [dim]$[/dim] unkernel train poly a.svm -o a.uk --json | jq .training_accuracy
    """
    tune_help = """Choose parameters of an SVM with a polynomial kernel by cross-validation.

    {options}
    {classes} {paths} {costs}

    \b
    [dim]$[/dim] unkernel tune poly train.svm --degree 1,2,3 --C 0.001:10 --cv 5
    [dim]$[/dim] unkernel tune poly train.svm --degree 2 --C 0.1:10:5 --gamma scale,0.1 --by f1 -j 4
    [dim]$[/dim] unkernel tune poly train.svm --C 0.001:10 --plot tuned.svg -o best.uk
    """
    step = "epoch"

    def __init__(self, option_values: Given) -> None:
        super().__init__(option_values)
        if option_values.get("penalty") == "l1":
            self.step = "Newton step"

    def check(self) -> None:
        """Raise ``ValueError`` if the penalty is l1 and the loss is not the squared hinge."""
        super().check()
        if self.option_values.get("penalty") == "l1" and self.option_values.get("loss") != "squared_hinge":
            raise ValueError("--penalty l1 needs --loss squared_hinge")

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the loss, and the storage of the conjunctions."""
        return super().describe(estimator) | {"loss": estimator.loss, "storage": estimator.storage_}


class LogisticLearner(ConjunctionLearner):
    """Log-linear models, which predict probabilities."""

    name = "logistic"
    estimator = PolyLogisticRegression
    step = "Newton step"
    measures = (*ClassLearner.measures, "log_loss")
    criteria = (*ClassLearner.criteria, "log_loss")
    has_probabilities = True
    help = """Train a log-linear model over conjunctions of features, which predicts probabilities.

    DATA has one line per row: [italic]label index:value index:value …[/italic]
    Or it has records (CSV, TSV, JSON lines, Parquet), and --target names the column to predict.
    All classes are trained at once. With an l1 penalty, most weights are 0 and not stored.

    \b
    [dim]$[/dim] unkernel train logistic a.svm -o a.uk --degree 3 --penalty l1 --C 0.3
    [dim]$[/dim] unkernel train logistic adult.train.csv.xz --target income -o income.uk
    [dim]$[/dim] unkernel train logistic a.svm -o a.uk --penalty elasticnet --l1-ratio 0.2 --test a.t.svm
    [dim]$[/dim] unkernel train logistic loans.csv --target default -o a.uk --threshold 0.31
    [dim]$[/dim] unkernel predict a.uk a.t.svm -o - --probability
    """
    tune_help = """Choose parameters of a log-linear model of conjunctions by cross-validation.

    {options}
    {classes} {paths} {costs}

    \b
    [dim]$[/dim] unkernel tune logistic train.svm --C 0.1:10:5 --by log_loss
    [dim]$[/dim] unkernel tune logistic train.svm --penalty l1,l2 --degree 1,2 --cv 5 -o best.uk
    """

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the share of the l1 penalty."""
        share = estimator.l1_ratio if estimator.penalty == "elasticnet" else None
        return super().describe(estimator) | {"loss": "logistic", "l1_ratio": share}

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Add the log loss."""
        scores, labels = rows.scores(estimator), rows.targets()[0]
        measures = self.compare(estimator, scores, labels)
        loss = None
        if measures["accuracy"] is not None:
            loss = log_loss(estimator.to_model().decision, scores, labels)
        return measures | {"log_loss": loss}
