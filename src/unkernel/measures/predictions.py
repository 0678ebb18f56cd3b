"""Predict labelled examples with models."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data import Forest
from unkernel.data.rows.csr import CsrRows
from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.engines.explain.explanation import Explanation, Heavy
from unkernel.engines.explain.fragments import TreeExplanation
from unkernel.measures.detection import Detection
from unkernel.measures.number_format import format_count, format_labels
from unkernel.models import Decision

Classifier = CompiledClassifier | RecordClassifier | TreeClassifier
Numbers = NDArray[np.float64]
_NUMBERS = "biuf"  # numpy's kinds of types that are numbers: bool, int, unsigned int and float


@dataclass(frozen=True, eq=False)
class Examples:
    """Test examples.

    Attributes
    ----------
    labels : (examples,) array
        The gold labels.
    name : str
        The name of their source.
    unit : str
        The noun for an example: ``"row"``, ``"record"`` or ``"tree"``.
    groups : (examples,) array or None
        The query of each example, for rankings: only examples of the same query are compared.
    show : callable or None
        Takes the index of an example; returns its original form: a mapping of names to values, or a text.
    """

    labels: NDArray[Any]
    name: str = ""
    unit: str = "row"
    groups: NDArray[Any] | None = None
    show: Callable[[int], Mapping[str, Any] | str] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ScoredExamples:
    """The scores of examples, and the predictions made from these scores.

    Attributes
    ----------
    decision : Decision
        The rule that turns scores into predictions.
    raw : (examples, scores) float64
        The scores.
    examples : Examples
        The examples, with their gold labels.
    name : str
        Name of the model.
    """

    decision: Decision
    raw: Numbers
    examples: Examples
    name: str = ""

    # --- Decisions ------------------------------------------------------------------------------------

    @property
    def is_ranking(self) -> bool:
        """Return whether only the order of the scores is meaningful."""
        return self.decision.ranking

    @property
    def classes(self) -> list[Any]:
        classes: list[Any] = self.decision.classes.tolist()
        return classes

    @cached_property
    def positive(self) -> int | None:
        """Return the index of the larger of two classes; None for more classes and for ordinal classes."""
        if len(self.classes) != 2 or self.decision.scheme == "ordinal":
            return None
        return max(range(2), key=self.classes.__getitem__)

    # --- Predictions ----------------------------------------------------------------------------------

    @cached_property
    def gold(self) -> NDArray[np.intp]:
        """Return the index of the true class of each example."""
        return find_class_indices(self.examples.labels, self.decision.classes, self.name, self.examples.unit)

    @cached_property
    def predicted(self) -> NDArray[np.intp]:
        """Return the index of the predicted class of each example."""
        return self.decision.codes(self.raw)

    @cached_property
    def probabilities(self) -> Numbers | None:
        """Return the probability of each class; None if the model has no probabilities."""
        return None if self.decision.probability is None else self.decision.probabilities(self.raw)

    @cached_property
    def evidence(self) -> Numbers:
        """Return numbers of shape (examples, classes); larger numbers are more evidence for a class."""
        if self.probabilities is not None:
            return self.probabilities
        if self.positive is not None and self.raw.shape[1] == 1:
            score = compute_class_score(self.decision, self.raw, 1)
            return np.column_stack([-score, score])
        if self.decision.scheme == "one_vs_one":
            return self.decision.summary(self.raw)
        return self.decision.merits(self.raw)

    @cached_property
    def detection(self) -> Detection:
        """Return the examples as a problem of detecting the positive class."""
        assert self.positive is not None
        score = compute_class_score(self.decision, self.raw, self.positive)
        return Detection(score, self.gold == self.positive)

    @cached_property
    def margins(self) -> Numbers:
        """Return the evidence for the predicted class minus the evidence for the true class."""
        rows = np.arange(len(self.gold))
        return np.asarray(self.evidence[rows, self.predicted] - self.evidence[rows, self.gold])


@dataclass(frozen=True, eq=False)
class ModelPredictions(ScoredExamples):
    """The predictions of one model, and the model itself.

    Attributes
    ----------
    classifier : CompiledClassifier, RecordClassifier or TreeClassifier
    inputs : CsrRows or Forest
        The examples in the form that the inner classifier takes.
    microseconds : float
        CPU time per prediction in a large batch, on one thread.
    """

    classifier: Classifier = field(kw_only=True)
    inputs: CsrRows | Forest = field(kw_only=True)
    microseconds: float = field(kw_only=True)

    @property
    def inner(self) -> CompiledClassifier | TreeClassifier:
        """Return the classifier that computes scores; for records, this is the classifier of encoded rows."""
        return (
            self.classifier.classifier if isinstance(self.classifier, RecordClassifier) else self.classifier
        )

    def explain(self, example: int, top: int) -> Explanation | TreeExplanation:
        """Explain the predicted class of an example."""
        of_class = None if self.positive is None else self.classes[int(self.predicted[example])]
        if isinstance(self.inputs, Forest):
            assert isinstance(self.inner, TreeClassifier)
            return self.inner.explain(self.inputs[example : example + 1], top, of=of_class)
        assert isinstance(self.inner, CompiledClassifier)
        row = self.inputs[example : example + 1]
        values = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        return self.inner.explain(values, top, of=of_class, names=self.names)

    @property
    def names(self) -> Any:
        """Return the names of the columns; columns without names are numbered as in files."""
        origin = self.inner.model.origin
        names = origin.get("feature_names")
        return names if names is not None else _NumberedColumns(0 if origin.get("zero_based", True) else 1)

    def heaviest(self, top: int) -> list[Heavy]:
        """Return the largest weights, with column names; raise a ``ValueError`` if there are no weights."""
        return self.inner.heaviest(top)


class _NumberedColumns:
    """Names of columns, made from the numbers of the columns in files."""

    def __init__(self, first: int) -> None:
        self._first = first

    def __getitem__(self, column: int) -> str:
        return f"feature {column + self._first}"


def predict_examples(
    name: str, classifier: Classifier, inputs: CsrRows | Forest, examples: Examples, threads: int = 1
) -> ModelPredictions:
    """Return a model's predictions; `inputs` are examples as rows of the model's features, or as trees."""
    if classifier.decision.outputs:
        raise ValueError("the model predicts several labels or values for each row, and only one is measured")
    count = inputs.shape[0] if isinstance(inputs, CsrRows) else len(inputs)
    if count != len(examples):
        raise ValueError(f"X and y have inconsistent numbers of samples: {count} and {len(examples)}")
    if not count:
        raise ValueError(f"{examples.name or 'the data'}: there is nothing to report on, as it is empty")
    inner = classifier.classifier if isinstance(classifier, RecordClassifier) else classifier
    start = time.process_time()
    if isinstance(inputs, Forest):
        assert isinstance(inner, TreeClassifier)
        raw = inner.raw_scores(inputs, threads)
    else:
        assert isinstance(inner, CompiledClassifier)
        raw = inner.score_csr(inputs, threads)
    seconds = time.process_time() - start
    return ModelPredictions(
        classifier.decision,
        raw,
        examples,
        name,
        classifier=classifier,
        inputs=inputs,
        microseconds=1e6 * seconds / count,
    )


def compute_class_score(decision: Decision, scores: Numbers, class_index: int) -> Numbers:
    """Return one score per example that grows with the evidence for one of two classes."""
    if decision.scheme == "calibrated":  # predictions depend on probabilities, not on single scores
        return np.asarray(decision.probabilities(scores)[:, class_index])
    if scores.shape[1] == 2:
        return np.asarray(scores[:, class_index] - scores[:, 1 - class_index])
    first_wins = decision.scheme == "one_vs_one"  # then a positive score is a vote for the first class
    return -scores[:, 0] if (class_index == 0) != first_wins else scores[:, 0]


def find_class_indices(labels: NDArray[Any], classes: NDArray[Any], name: str, unit: str) -> NDArray[np.intp]:
    """Return the index of each label in `classes`. Unless all are numbers, they are compared as strings."""
    if labels.dtype.kind not in _NUMBERS or classes.dtype.kind not in _NUMBERS:
        labels, classes = labels.astype(str), classes.astype(str)
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        unknown_labels = np.unique(labels[unknown]).tolist()
        model = f"the model {name}" if name else "the model"
        raise ValueError(
            f"{format_count(int(unknown.sum()), unit)} of {len(labels):,} have labels that {model} does not "
            f"know ({format_labels(unknown_labels)}); it knows {format_labels(classes.tolist())}"
        )
    order = np.argsort(classes, kind="stable")
    return np.asarray(order[np.searchsorted(classes[order], labels)])
