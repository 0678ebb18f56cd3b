"""Base classes of learners: the options, training, measures and description of a kind of model."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.learners.decision_thresholds import decide_by_threshold
from unkernel.cli.options.estimator_options import DerivedOption, default_value, derive_options
from unkernel.cli.quality import compare_classes
from unkernel.cli.render.quality import class_facts
from unkernel.cli.terminal.console import format_size
from unkernel.measures.number_format import format_count, format_labels
from unkernel.models import Decision, KernelModel

Given = Mapping[str, Any]  # the values of the options that are set, by name
OnProgress = Callable[[Any], None]

_DEFAULT_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
_CLASS_MEASURES = ("accuracy", "positive_class", "precision", "recall", "f1", "roc_area")


class Learner(ABC):
    """A kind of model: its options, training, measures and description."""

    name: ClassVar[str]
    estimator: ClassVar[type]
    help: ClassVar[str]  # text for ``unkernel train NAME --help``
    tune_help: ClassVar[str]  # text for ``unkernel tune NAME --help``
    step: str  # what an iteration is called in messages
    unit: str = "row"  # what an example is called in messages
    takes_records: ClassVar[bool] = False  # whether the model can also be trained on encoded records
    predicts_values: ClassVar[bool] = False  # whether the model predicts numbers, not classes or ranks
    measures: ClassVar[tuple[str, ...]]  # the keys of the result of `measure`
    criteria: ClassVar[tuple[str, ...]]  # measures that ``tune`` can optimise, the default first
    percent: ClassVar[bool] = False  # whether measures are percentages instead of shares of 1
    large_data: ClassVar[bool] = False  # whether rows may be in several files, or on a cluster
    has_probabilities: ClassVar[bool] = False  # whether its models have probabilities without calibration
    decision: Decision | None = None  # of the saved model, whose predictions are measured

    def __init__(self, option_values: Given) -> None:
        self.option_values = option_values
        self.check()

    @classmethod
    def options(cls) -> Sequence[DerivedOption]:
        """Return the estimator's parameters as options."""
        return derive_options(cls.estimator)

    @classmethod
    def default_grid(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return the parameters that ``tune`` tries if no option in `grid` has several values."""
        return {} if "C" in grid else {"C": list(_DEFAULT_COSTS)}

    @classmethod
    def default(cls, parameter: str) -> Any:
        """Return the default of the estimator's parameter."""
        return default_value(cls.estimator, parameter)

    @abstractmethod
    def check(self) -> None:
        """Raise ``ValueError`` for incompatible options."""

    def parameters(self, jobs: int) -> dict[str, Any]:
        """Return the estimator's parameters, given by the options."""
        parameters = {
            option.parameter: self.option_values[option.name]
            for option in self.options()
            if option.name in self.option_values
        }
        names = {option.parameter for option in self.options()}
        if "random_state" in names:
            parameters = {"random_state": 0} | parameters
        if "class_weight" in parameters:
            parameters["class_weight"] = parse_class_weight(parameters["class_weight"], self.label)
        return parameters | {"n_jobs": jobs}

    @staticmethod
    def label(text: str) -> Any:
        """Return a class label parsed from text: an int if it is a whole number, else a float."""
        value = float(text)
        return int(value) if value.is_integer() else value

    @abstractmethod
    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        """Fit the estimator to the examples."""

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Return a description of the parameters and the solution for JSON."""
        parameters = {name: getattr(estimator, name) for name in ("C", "tol")}
        solution = {"objective": estimator.objective_, "gap": estimator.gap_}
        return {"learner": self.estimator.__name__} | parameters | solution

    @abstractmethod
    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Return measures of quality for JSON; a key ``*_note`` has the reason why a measure is missing."""

    @abstractmethod
    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Return texts that describe the data and the model."""

    @abstractmethod
    def quality(self, measured: dict[str, Any], split: str) -> dict[str, str]:
        """Return the result of :meth:`measure` as texts; `split` is "training" or "test"."""


class ClassLearner(Learner):
    """Base class of learners of models that predict classes."""

    measures: ClassVar[tuple[str, ...]] = _CLASS_MEASURES
    criteria: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "roc_area")

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the classes."""
        return super().describe(estimator) | {"classes": estimator.classes_.tolist()}

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Return the accuracy and, with two classes, precision, recall, F1 and the ROC area."""
        return self.compare(estimator, rows.scores(estimator), rows.targets()[0])

    def compare(self, estimator: Any, scores: NDArray[np.float64], labels: NDArray[Any]) -> dict[str, Any]:
        """Return the result of :meth:`measure`, given scores and gold labels."""
        decision = self.decision or decide_by_threshold(estimator.to_model().decision, self.option_values)
        return compare_classes(decision, scores, labels, self.unit)

    def quality(self, measured: dict[str, Any], split: str) -> dict[str, str]:
        """Add the log loss if it was measured."""
        facts = class_facts(measured, self.unit, f"{split} ")
        if measured.get("log_loss") is not None:
            facts[f"{split} log loss"] = f"{measured['log_loss']:.6g} per {self.unit}"
        return facts


def describe_classes(result: dict[str, Any]) -> str:
    """Describe the number of examples, features and classes."""
    classes = result["classes"]
    return (
        f"{describe_size(result)}, {format_count(len(classes), 'class', 'classes')}: {format_labels(classes)}"
    )


def describe_size(result: dict[str, Any]) -> str:
    """Describe the number of examples and features."""
    unit = "record" if "columns" in result else "row"
    rows = "rows on a cluster" if result["rows"] is None else format_count(result["rows"], unit)
    return f"{rows}, {format_count(result['features'], 'feature')}"


def describe_weights(result: dict[str, Any]) -> str:
    """Describe the weights and the size of a linear model."""
    of_class = " and class" if len(result.get("classes", ())) > 2 else ""
    of_ranks = ", thresholds between ranks" if result.get("thresholds") else ""
    return f"one weight per feature{of_class}{of_ranks}, {format_size(result['model_bytes'])}"


def count_weights(model: Any) -> dict[str, int]:
    """Return the number of conjunctions of a model, or of the support vectors that represent them."""
    if isinstance(model, KernelModel):
        return {"support_vectors": model.n_support}
    return {"conjunctions": model.n_conjunctions, "weights": int(np.count_nonzero(model.weights))}


def describe_conjunctions(result: dict[str, Any]) -> str:
    """Describe a model by its conjunctions, or by the support vectors that represent them."""
    if "support_vectors" in result:
        n_vectors = format_count(result["support_vectors"], "support vector")
        return f"{n_vectors}, kernel of degree {result['degree']}"
    n_features = format_count(result["degree"], "feature")
    return f"{format_count(result['conjunctions'], 'conjunction')} of at most {n_features}"


def describe_gap(result: dict[str, Any], iterations: str) -> str:
    """Describe the final gap and the number of iterations."""
    return f"{result['gap']:.2e} (asked for {result['tol']:g}) after {iterations}"


def parse_class_weight(text: str, parse_label: Callable[[str], Any]) -> dict[Any, float] | str:
    """Parse ``balanced``, or a list of classes and weights such as ``1=2.5,-1=1``."""
    if text == "balanced":
        return text
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    try:
        weights = {parse_label(label): float(weight) for label, _, weight in pairs}
    except ValueError:
        raise ValueError(
            f"--class-weight must be 'balanced' or a list such as 1=2.5,-1=1, got {text!r}"
        ) from None
    if len(weights) < len(pairs):
        raise ValueError(f"--class-weight must name each class once, got {text!r}")
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise ValueError(f"--class-weight must have positive weights, got {text!r}")
    return weights
