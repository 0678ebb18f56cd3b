"""``unkernel train tree``."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import check_classes
from unkernel.cli.inputs.rows import AnyRows
from unkernel.cli.inputs.trees import TreeExamples
from unkernel.cli.learners.base import ClassLearner, OnProgress, describe_gap
from unkernel.cli.terminal.console import format_size
from unkernel.data.trees.tree_files import convert_labels
from unkernel.measures.number_format import format_count, format_labels
from unkernel.tree import TreeSVC

_PARAMETERS = ("kernel", "decay", "width_decay", "normalize", "imbalance")


class TreeLearner(ClassLearner):
    """Support vector machines with a tree kernel."""

    name = "tree"
    estimator = TreeSVC
    step = "round"
    unit = "tree"
    help = """Train an SVM with a tree kernel, which counts the fragments that trees share.

    DATA has lines of SVM-light-TK, [italic]label |BT| (S (NP dogs) (VP bark)) |ET|[/italic] with any number
    of trees and vectors, or lines of KeLP (.klp). More than two classes are trained one against the rest.

    \b
    [dim]$[/dim] unkernel train tree questions.dat -o model.uk --kernel sst --decay 0.4 --C 1
    [dim]$[/dim] unkernel train tree questions.dat -o model.uk --test questions.t.dat
    [dim]$[/dim] unkernel train tree questions.dat -o model.uk --solver sampled --imbalance 2
    """
    tune_help = """Choose parameters of an SVM with a tree kernel by cross-validation.

    {options}
    {classes} {paths} {costs}

    \b
    [dim]$[/dim] unkernel tune tree questions.dat --kernel sst,ptk --decay 0.2,0.4
    [dim]$[/dim] unkernel tune tree questions.dat --C 0.1:10 --by f1 --json -o best.uk
    """

    def check(self) -> None:
        """Raise ``ValueError`` for options that do not apply to the kernel or the solver."""
        option_values = self.option_values
        if "width_decay" in option_values and option_values.get("kernel") != "ptk":
            raise ValueError("--width-decay is for --kernel ptk")
        if "sample_size" in option_values and option_values.get("solver") == "exact":
            raise ValueError("--sample-size is for --solver sampled; exact takes all examples")

    @staticmethod
    def label(text: str) -> str:
        """Return the text unchanged: only the labels in the file show whether classes are numbers."""
        if not text:
            raise ValueError
        return text

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        assert isinstance(rows, TreeExamples)
        _check_missing(rows, self.option_values.get("combine", "auto"))
        labels = rows.labels
        check_classes(labels, f"{rows.file}: the column of labels")
        if isinstance(estimator.class_weight, dict):
            estimator.class_weight = _match_weights(estimator.class_weight, labels)
        estimator.fit_reporting(rows.source, labels, None, on_progress)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the kernel, and the size of the model."""
        model = estimator.to_model()
        solution = {
            "combine": model.kernel.combination,
            "kernel_words": model.kernel.words(),
            "solver": estimator.solver_,
            "rounds": estimator.n_iter_,
            "support_trees": model.n_support,
            "subtrees": model.support.nodes,
        }
        parameters = {name: getattr(estimator, name) for name in _PARAMETERS}
        return super().describe(estimator) | parameters | solution

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Describe the data, the model, the objective and the gap."""
        classes, features = result["classes"], result["features"]
        trees = format_count(result["rows"], "tree") + (
            f", {format_count(features, 'feature')}" if features else ""
        )
        return {
            "data": f"{trees}, {format_count(len(classes), 'class', 'classes')}: {format_labels(classes)}",
            "kernel": result["kernel_words"],
            "model": f"{format_count(result['support_trees'], 'support tree')} of "
            f"{format_count(result['subtrees'], 'subtree')}, {format_size(result['model_bytes'])}",
            "objective": f"{result['objective']:.8g}",
            "gap": _describe_gap(result),
        }


def _check_missing(examples: TreeExamples, combine: str) -> None:
    if combine != "vectors" and not examples.has_trees:
        raise ValueError(
            f"{examples.file}: has no trees between |BT| and |ET|; for vectors alone, say --combine vectors"
        )
    if combine not in ("auto", "trees") and not examples.has_vectors:
        raise ValueError(f"{examples.file}: has no vectors behind |ET|, which --combine {combine} needs")


def _describe_gap(result: dict[str, Any]) -> str:
    rounds = f"{format_count(result['rounds'], 'round')} of solver {result['solver']}"
    if result["solver"] == "exact":
        return describe_gap(result, rounds)
    return f"{result['gap']:.2e} of the problem of the samples, after {rounds}"


def _match_weights(weights: dict[str, float], labels: NDArray[Any]) -> dict[Any, float]:
    """Return weights whose classes have the type of the labels: numbers or strings."""
    names = list(weights)
    values = names if labels.dtype.kind == "U" else convert_labels(names).tolist()
    return dict(zip(values, weights.values(), strict=True))
