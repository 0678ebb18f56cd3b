"""What ``unkernel train`` knows of each kind of model: one small class a kind, all of one shape."""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError

from unkernel.cli.inputs.files import label_words, labels_are_unknown
from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.render.console import many, percent, size

Given = Mapping[str, Any]
OnProgress = Callable[[Any], None]

LARGE_DATA = frozenset({"out_of_core", "memory", "dask"})  # options for more rows than fit into memory

# Options that are not called what the parameter is called.
_OPTION_OF = {
    "random_state": "seed",
    "fit_intercept": "intercept",
    "n_jobs": "jobs",
    "min_count": "minimum",
}


def flag(option: str) -> str:
    """An option as it is written."""
    return f"--{option.replace('_', '-')}"


def plain_options(**all_options: Any) -> dict[str, Any]:
    """Those that were given, as plain values."""
    given = {name: value for name, value in all_options.items() if value is not None}
    return {name: value.value if isinstance(value, Enum) else value for name, value in given.items()}


def default_words(estimators: Mapping[str, type], parameter: str) -> str:
    """The default of all estimators that have the parameter, or one whose option is called so, or of each."""
    by_name: dict[Any, list[str]] = {}
    for name, estimator in estimators.items():
        for own, option in parameter_options(estimator).items():
            if parameter in (own, option):
                by_name.setdefault(default_of(estimator, own), []).append(name)
    if len(by_name) == 1:
        return str(*by_name)
    return "; ".join(f"{', '.join(names)}: {value}" for value, names in by_name.items())


def default_of(estimator: type, parameter: str) -> Any:
    """The one place where defaults are is the estimator."""
    return inspect.signature(estimator).parameters[parameter].default


def parameter_options(estimator: type) -> dict[str, str]:
    """The parameters of an estimator, and what the option for each is called."""
    return {name: _OPTION_OF.get(name, name) for name in inspect.signature(estimator).parameters}


def check_parameters(estimator: Any) -> None:
    """The estimator's own checks, before anything is read, in the words of the command line."""
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise ValueError(_as_options(str(error))) from None


def _as_options(words: str) -> str:
    words = re.sub(
        r"The '(\w+)' parameter of \w+", lambda match: flag(_OPTION_OF.get(match[1], match[1])), words
    )
    return re.sub(r"\. Got (.*) instead\.$", r", got \1", words)


class Learner(ABC):
    """A kind of model: which options it has, how it is trained, and what is said of it."""

    name: ClassVar[str]
    estimator: ClassVar[type]
    step: str  # what a pass over the rows is called
    measures: ClassVar[tuple[str, ...]]  # what `measure` returns, and is null where it cannot be measured
    own_options: ClassVar[frozenset[str]] = frozenset()  # beside the estimator's parameters
    reads_trees: ClassVar[bool] = False  # or rows

    def __init__(self, given: Given) -> None:
        self.given = given
        self.refuse()

    @classmethod
    def options(cls) -> set[str]:
        """The names of the options that say something to this learner."""
        return set(parameter_options(cls.estimator).values()) | cls.own_options | {"n_features"}

    @classmethod
    def default(cls, parameter: str) -> Any:
        """The estimator's."""
        return default_of(cls.estimator, parameter)

    @abstractmethod
    def refuse(self) -> None:
        """Refuse options that do not go together."""

    def parameters(self, jobs: int) -> dict[str, Any]:
        """The estimator's parameters."""
        chosen = {"seed": 0, "jobs": jobs} | dict(self.given)
        if "class_weight" in chosen:
            chosen["class_weight"] = _class_weight(chosen["class_weight"], self.label)
        options = parameter_options(self.estimator)
        return {name: chosen[option] for name, option in options.items() if option in chosen}

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

    measures: ClassVar[tuple[str, ...]] = ("accuracy",)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the classes."""
        return super().describe(estimator) | {"classes": estimator.classes_.tolist()}

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """The accuracy, where the labels are the model's."""
        return self.compare(estimator, rows.scores(estimator), rows.targets()[0])

    def compare(self, estimator: Any, scores: NDArray[np.float64], labels: NDArray[Any]) -> dict[str, Any]:
        """What :meth:`measure` returns, of scores and labels."""
        unknown = labels_are_unknown(labels, estimator.classes_)
        answers = estimator.to_model().decision.choose(scores)
        right = None if unknown else float(np.mean(answers == labels))
        return {"accuracy": right, "accuracy_note": unknown}

    def quality(self, measured: dict[str, Any], which: str) -> dict[str, str]:
        """The accuracy."""
        of_rows = f" of {many(measured['rows'], 'row')}" if "rows" in measured else ""
        words = measured.get("accuracy_note") or percent(measured["accuracy"]) + of_rows
        return {f"{which} accuracy": words}


def class_words(result: dict[str, Any]) -> str:
    """The data of a learner of classes."""
    classes = result["classes"]
    return f"{size_words(result)}, {many(len(classes), 'class', 'classes')}: {label_words(classes)}"


def size_words(result: dict[str, Any]) -> str:
    """Rows and features."""
    rows = "rows on a cluster" if result["rows"] is None else many(result["rows"], "row")
    return f"{rows}, {many(result['features'], 'feature')}"


def weight_words(result: dict[str, Any]) -> str:
    """A model of weights."""
    of_class = " and class" if len(result.get("classes", ())) > 2 else ""
    between = ", thresholds between ranks" if result.get("thresholds") else ""
    return f"a weight a feature{of_class}{between}, {size(result['model_bytes'])}"


def gap_words(result: dict[str, Any], passes: str) -> str:
    """How near the minimum the objective is, and what that took."""
    return f"{result['gap']:.2e} (asked for {result['tol']:g}) after {passes}"


def _class_weight(text: str, label_of: Callable[[str], Any]) -> dict[Any, float] | str:
    if text == "balanced":
        return text
    pairs = [pair.partition("=") for pair in text.split(",")]
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
