"""Score records that share most columns; the contribution of the shared columns is computed only once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RecordScorer
from unkernel.engines.estimator import available_if
from unkernel.engines.records.single_record import (
    PartialRecordScorer,
    RecordAnswers,
    check_not_shared,
    check_probabilities,
)
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import ConjunctionModel, Decision, KernelModel, LinearModel
from unkernel.records.column_split import Part
from unkernel.records.plan import Plan
from unkernel.records.tables import get_column_names

_DESCRIPTIONS = {
    "linear": "the shared features are summed once",
    "pairs": "the shared features, their pairs, and their pairs with each candidate feature are summed once",
    "nothing": "the shared columns are encoded once; scores are not divided",
    "record": "whole records are encoded, because a step needs shared and other columns together",
}


class PlannedClassifier(Protocol):
    """The interface of ``RecordClassifier`` that bound records use."""

    plan: Plan
    classifier: CompiledClassifier

    @property
    def _scorer(self) -> RecordScorer:
        """The scorer of whole records."""

    @property
    def _split_plan(self) -> Callable[[frozenset[str]], tuple[Part, Part] | None]:
        """Return the function that splits the plan into parts for the shared and for all other columns.

        The function returns None if a step needs shared and other columns together.
        """


class BoundRecord(RecordAnswers):
    """The shared columns of many records, returned by ``RecordClassifier.bind``.

    The methods take the remaining columns, and return the classifier's results for all columns together, up
    to rounding. Do not use a bound record from two threads at a time.

    All parameters are also attributes.

    Parameters
    ----------
    classifier : RecordClassifier
        The classifier.
    shared : dict
        The shared columns.

    Attributes
    ----------
    sums_once : {"linear", "pairs", "nothing", "record"}
        The work that is done only once. "linear": summing the weights of the shared features. "pairs": also
        summing the weights of all of their pairs, for models of degree 2. "nothing": only encoding the shared
        columns, as for other kernels. "record": nothing at all, because a step of the plan needs shared and
        other columns together.

    See Also
    --------
    RecordClassifier.bind : Fix some columns of a record.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from unkernel import PolySVC, RecordEncoder, compile
    >>> people = [{"job": job, "city": city} for job in ("clerk", "pilot") for city in ("Rome", "Oslo")]
    >>> encoder = RecordEncoder(min_count=1)
    >>> fast = compile(make_pipeline(encoder, PolySVC(C=10, gamma=1)).fit(people, [0, 1, 1, 0]))
    >>> pilot = fast.bind({"job": "pilot"})
    >>> pilot.sums_once, pilot.predict([{"city": "Rome"}, {"city": "Oslo"}])
    ('pairs', array([1, 0]))
    """

    def __init__(self, classifier: PlannedClassifier, shared: Mapping[str, Any]) -> None:
        if not isinstance(shared, Mapping):
            raise TypeError(f"bind takes a dict of some columns, got a value of type {type(shared).__name__}")
        self.classifier = classifier
        self.shared = dict(shared)
        self._check_shared()
        self.decision: Decision = classifier.classifier.decision
        self._parts = classifier._split_plan(frozenset(self.shared))
        self.sums_once = "record" if self._parts is None else find_summable_part(classifier.classifier.model)
        _ = self._scorer  # encodes the shared columns now, so that invalid values raise an error here

    def _check_shared(self) -> None:
        """Raise a ``ValueError`` unless the model has the shared columns, or ignores unknown ones."""
        plan = self.classifier.plan
        if plan.whole:
            if plan.steps[0].kind != "pairs":
                raise ValueError("records of this model are single values: there are no columns to bind")
            return
        unknown = [name for name in self.shared if name not in plan.columns]
        if unknown and not plan.ignores_unknown_keys:
            raise ValueError(f"the record has a column {unknown[0]!r} that the model does not know")

    @property
    def _row_classifier(self) -> CompiledClassifier:
        return self.classifier.classifier

    # --- One record -----------------------------------------------------------------------------------

    @cached_property
    def _scorer(self) -> RecordScorer | PartialRecordScorer:
        """The scorer of the remaining columns; it contains the encoded shared columns."""
        if self._parts is None:
            return PartialRecordScorer(self.classifier._scorer, self.shared)
        shared_part, other_part = self._parts
        scorer = RecordScorer(other_part.plan.native, self.classifier.classifier._engine)
        ids, values = shared_part.plan.encode_one(
            {name: self.shared[name] for name in shared_part.plan.columns}
        )
        width = self.classifier.plan.n_features
        scorer.bind(shared_part.places[ids], values, other_part.places, width, self.sums_once)
        return scorer

    # --- Many records ---------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function of each record.

        Parameters
        ----------
        X : DataFrame, list of dicts or dict of columns
            The columns that are not shared.

        Returns
        -------
        ndarray of shape (n_records,) or (n_records, n_outputs)
            The scores.
        """
        return self.decision.decide(self._raw_scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each record, or its value for regression models.

        Parameters
        ----------
        X : DataFrame, list of dicts or dict of columns
            The columns that are not shared.

        Returns
        -------
        ndarray of shape (n_records,)
            The predictions.
        """
        return self.decision.choose(self._raw_scores(X))

    @available_if(check_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class for each record.

        Parameters
        ----------
        X : DataFrame, list of dicts or dict of columns
            The columns that are not shared.

        Returns
        -------
        ndarray of shape (n_records, n_classes), or list of them
            The probabilities, in the order of ``classes_``; for several outputs, a list of one array per
            output.
        """
        return self.decision.divide_probabilities(self.decision.probabilities(self._raw_scores(X)))

    def _raw_scores(self, X: Any) -> NDArray[np.float64]:
        names = get_column_names(X)
        check_not_shared(names or (), self.shared)
        if self._parts is None:
            return self._score_whole_records(X, names)
        assert isinstance(self._scorer, RecordScorer)
        scores = np.asarray(self._scorer.score_rows(self._parts[1].plan.encode(X)))
        if not np.isfinite(scores).all():
            raise ValueError("a score is not finite: the values are too large for the kernel; scale them")
        return scores

    def _score_whole_records(self, X: Any, names: list[str] | None) -> NDArray[np.float64]:
        """Return the raw scores of records to which the shared columns are added."""
        if names is None:
            raise TypeError("records must be a frame, a list of dicts or a dict of columns")
        if isinstance(X, list):
            records: Any = [self.shared | record for record in X]
        else:
            count = len(X[names[0]]) if names else 0
            records = {name: [value] * count for name, value in self.shared.items()}
            records |= {name: X[name] for name in names}
        rows = self.classifier.plan.encode(records)
        return self.classifier.classifier.score_csr(rows, 1)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.shared))
        return f"BoundRecord({names}: {_DESCRIPTIONS[self.sums_once]})"


def find_summable_part(model: Any) -> str:
    """Return which part of a model's scores can be summed once for shared features."""
    degree = 0
    if isinstance(model, LinearModel):
        degree = 1
    elif isinstance(model, ConjunctionModel):
        degree = model.degree
    elif isinstance(model, KernelModel) and model.kernel.name in ("linear", "polynomial"):
        degree = 1 if model.kernel.name == "linear" else model.kernel.degree
    return {1: "linear", 2: "pairs"}.get(degree, "nothing")
