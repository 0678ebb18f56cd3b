"""What ``unkernel train`` knows of a kind of model: one small class per kind, all of one shape."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.options.estimator_options import DerivedOption, default_value, derive_options
from unkernel.cli.quality import compare_classes
from unkernel.cli.render.quality import class_facts
from unkernel.cli.terminal.console import format_size
from unkernel.measures.number_format import labels as label_words
from unkernel.measures.number_format import many
from unkernel.models import KernelModel

Given = Mapping[str, Any]
OnProgress = Callable[[Any], None]

_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
_TWO_CLASSES = ("accuracy", "positive_class", "precision", "recall", "f1", "roc_area")


class Learner(ABC):
    """A kind of model: which options it has, how it is trained, and what is said of it."""

    name: ClassVar[str]
    estimator: ClassVar[type]
    help: ClassVar[str]  # of ``unkernel train NAME --help``
    tune_help: ClassVar[str]  # of ``unkernel tune NAME --help``
    step: str  # what a pass over the rows is called
    unit: str = "row"  # what an example is called
    takes_records: ClassVar[bool] = (
        False  # whether it also learns from records, as an encoder makes them rows
    )
    measures: ClassVar[tuple[str, ...]]  # what `measure` returns, and is null where it cannot be measured
    criteria: ClassVar[tuple[str, ...]]  # measures that ``tune`` can choose by, the default first
    percent: ClassVar[bool] = False  # whether measures are in percent, and not shares of 1
    large_data: ClassVar[bool] = False  # whether rows may be in several files, or on a cluster

    def __init__(self, given: Given) -> None:
        self.given = given
        self.check()

    @classmethod
    def options(cls) -> Sequence[DerivedOption]:
        """The estimator's parameters, as options."""
        return derive_options(cls.estimator)

    @classmethod
    def default_grid(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """What ``tune`` tries where options name at most one value for each parameter."""
        return {} if "C" in grid else {"C": list(_COSTS)}

    @classmethod
    def default(cls, parameter: str) -> Any:
        """The estimator's."""
        return default_value(cls.estimator, parameter)

    @abstractmethod
    def check(self) -> None:
        """Refuse options that do not go together."""

    def parameters(self, jobs: int) -> dict[str, Any]:
        """The estimator's parameters, of options that were given."""
        chosen = {
            option.parameter: self.given[option.name]
            for option in self.options()
            if option.name in self.given
        }
        known = {option.parameter for option in self.options()}
        if "random_state" in known:
            chosen = {"random_state": 0} | chosen
        if "class_weight" in chosen:
            chosen["class_weight"] = _class_weight(chosen["class_weight"], self.label)
        return chosen | {"n_jobs": jobs}

    @staticmethod
    def label(text: str) -> Any:
        """A class that an option names: an int where it is one, as messages show it; else a float."""
        value = float(text)
        return int(value) if value.is_integer() else value

    @abstractmethod
    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        """Train."""

    def describe(self, estimator: Any) -> dict[str, Any]:
        """What was chosen and found, for JSON."""
        chosen = {name: getattr(estimator, name) for name in ("C", "tol")}
        found = {"objective": estimator.objective_, "gap": estimator.gap_}
        return {"learner": self.estimator.__name__} | chosen | found

    @abstractmethod
    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """How well rows are answered, for JSON. What ends in ``_note`` says why something is not known."""

    @abstractmethod
    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """What is said of the data and the model, for people."""

    @abstractmethod
    def quality(self, measured: dict[str, Any], which: str) -> dict[str, str]:
        """What :meth:`measure` found on the training or test rows, for people."""


class ClassLearner(Learner):
    """Learners whose models answer with classes."""

    measures: ClassVar[tuple[str, ...]] = _TWO_CLASSES
    criteria: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "roc_area")

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the classes."""
        return super().describe(estimator) | {"classes": estimator.classes_.tolist()}

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """The accuracy, and of two classes more, where the labels are the model's."""
        return self.compare(estimator, rows.scores(estimator), rows.targets()[0])

    def compare(self, estimator: Any, scores: NDArray[np.float64], labels: NDArray[Any]) -> dict[str, Any]:
        """What :meth:`measure` returns, of scores and labels."""
        return compare_classes(estimator.to_model().decision, scores, labels, self.unit)

    def quality(self, measured: dict[str, Any], which: str) -> dict[str, str]:
        """The accuracy, and of two classes more; the log loss where it was measured."""
        facts = class_facts(measured, self.unit, f"{which} ")
        if measured.get("log_loss") is not None:
            facts[f"{which} log loss"] = f"{measured['log_loss']:.6g} per {self.unit}"
        return facts


def class_words(result: dict[str, Any]) -> str:
    """The data of a learner of classes."""
    classes = result["classes"]
    return f"{size_words(result)}, {many(len(classes), 'class', 'classes')}: {label_words(classes)}"


def size_words(result: dict[str, Any]) -> str:
    """Rows and features."""
    unit = "record" if "columns" in result else "row"
    rows = "rows on a cluster" if result["rows"] is None else many(result["rows"], unit)
    return f"{rows}, {many(result['features'], 'feature')}"


def weight_words(result: dict[str, Any]) -> str:
    """A model of weights."""
    of_class = " and class" if len(result.get("classes", ())) > 2 else ""
    between = ", thresholds between ranks" if result.get("thresholds") else ""
    return f"one weight per feature{of_class}{between}, {format_size(result['model_bytes'])}"


def model_counts(model: Any) -> dict[str, int]:
    """How large a model of conjunctions, or of the support vectors that stand for them, is."""
    if isinstance(model, KernelModel):
        return {"support_vectors": model.n_support}
    return {"conjunctions": model.n_conjunctions, "weights": int(np.count_nonzero(model.weights))}


def conjunction_words(result: dict[str, Any]) -> str:
    """A model of conjunctions, or of support vectors that stand for them."""
    if "support_vectors" in result:
        return f"{many(result['support_vectors'], 'support vector')}, kernel of degree {result['degree']}"
    return f"{many(result['conjunctions'], 'conjunction')} of at most {many(result['degree'], 'feature')}"


def gap_words(result: dict[str, Any], passes: str) -> str:
    """How near the minimum the objective is, and what that took."""
    return f"{result['gap']:.2e} (asked for {result['tol']:g}) after {passes}"


def _class_weight(text: str, label_of: Callable[[str], Any]) -> dict[Any, float] | str:
    if text == "balanced":
        return text
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    try:
        weights = {label_of(label): float(weight) for label, _, weight in pairs}
    except ValueError:
        raise ValueError(
            f"--class-weight must be balanced or a list such as 1=2.5,-1=1, got {text!r}"
        ) from None
    if len(weights) < len(pairs):
        raise ValueError(f"--class-weight must name each class once, got {text!r}")
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise ValueError(f"--class-weight must have positive weights, got {text!r}")
    return weights
