"""Update models of records: extend the encoding, and update the learner."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

from numpy.typing import NDArray

from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier, RecordClassifier, compile
from unkernel.models import ConjunctionModel
from unkernel.poly import PolyLogisticRegression, PolyRegressor, PolySVC
from unkernel.records.plan import Plan
from unkernel.records.plan_extension import extend_plan
from unkernel.records.training_counts import add_records
from unkernel.records.value_counts import make_marking_plan
from unkernel.selection.targets import check_targets

_LEARNERS: dict[str, Any] = {
    learner.__name__: learner for learner in (PolyLogisticRegression, PolyRegressor, PolySVC)
}


def update_learner(
    plan: Plan, learner: Any, X: Any, y: NDArray[Any], *, forget: float, min_count: int, threads: int
) -> tuple[Plan, Any]:
    """Update a learner with new records.

    Parameters
    ----------
    plan : Plan
        The encoding of records.
    learner : PolyLogisticRegression, PolyRegressor or PolySVC
        The fitted learner, which stays as it is.
    X : DataFrame, Arrow table, list of dicts or dict of columns
        The new records.
    y : ndarray of shape (n_records,)
        Their targets.
    forget : float
        Share of the old records to forget, from 0 to 1.
    min_count : int
        Smallest number of new records in which a new category or word must occur to get a feature.
    threads : int
        Number of threads.

    Returns
    -------
    plan : Plan
        The plan with features for new categories and words.
    learner : estimator
        The updated learner.
    """
    extended, indices = extend_plan(plan, X, min_count)
    extended = _count_records(extended, X, y, threads)
    learner = copy(learner)
    learner.renumber_features(indices, extended.n_features)
    learner.update(extended.encode(X, threads).to_scipy(), y, forget=forget)
    return extended, learner


def _count_records(plan: Plan, X: Any, y: NDArray[Any], threads: int) -> Plan:
    """Return the plan with the new records among those that its training counts describe."""
    marking = make_marking_plan(plan)
    if plan.training is None or marking is None:
        return plan
    values = marking.count(marking.plan.encode(X, threads))
    return replace(plan, training=add_records(plan.training, len(y), values, y))


def update_classifier(
    classifier: RecordClassifier,
    X: Any,
    y: Any,
    *,
    forget: float = 0.0,
    min_count: int = 1,
    n_jobs: int | None = None,
) -> RecordClassifier:
    """Update a compiled model of records with new records, without those that it was trained on.

    The model must come from :class:`~unkernel.TableEstimator`, or from a pipeline of a
    :class:`~unkernel.RecordEncoder` and a learner with ``updatable=True``.

    Parameters
    ----------
    classifier : RecordClassifier
        The model, which stays as it is.
    X : DataFrame, Arrow table, list of dicts or dict of columns
        The new records.
    y : array-like of shape (n_records,)
        Their targets.
    forget : float, default=0.0
        Share of the old records to forget, from 0 to 1.
    min_count : int, default=1
        Smallest number of new records in which a new category or word must occur to get a feature.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors.

    Returns
    -------
    RecordClassifier
        The updated model.

    Examples
    --------
    >>> import unkernel
    >>> jobs = ("clerk", "driver", "pilot")
    >>> people = [{"job": job, "age": age} for job in jobs for age in range(20, 60)]
    >>> income = ["high" if one["job"] == "pilot" else "low" for one in people]
    >>> model = unkernel.TableEstimator().fit(people, income).classifier_
    >>> newer = [{"job": "nurse", "age": age} for age in range(20, 60)]
    >>> updated = update_classifier(model, newer, ["high"] * 40)
    >>> model.predict_one({"job": "nurse", "age": 30}), updated.predict_one({"job": "nurse", "age": 30})
    ('low', 'high')
    """
    if not isinstance(min_count, Integral) or min_count < 1:
        raise ValueError(f"min_count must be a positive integer, got {min_count!r}")
    if classifier.decision.outputs:
        raise ValueError("a model of several labels or outputs cannot be updated; train it again")
    threads = thread_count(n_jobs)
    learner = make_learner(classifier.classifier)
    targets = check_targets(y, "classes" if len(classifier.decision.classes) else "numbers")
    plan, learner = update_learner(
        classifier.plan, learner, X, targets, forget=forget, min_count=int(min_count), threads=threads
    )
    model = learner.to_model()
    origin = model.origin | {"feature_names": plan.feature_names}
    compiled = compile(replace(model, origin=origin), n_jobs=n_jobs)
    assert isinstance(compiled, CompiledClassifier)  # the model is a model of rows
    return RecordClassifier(plan, compiled)


def make_learner(classifier: CompiledClassifier) -> Any:
    """Return the learner of a compiled model; raise a ``ValueError`` if the model cannot be updated."""
    model = classifier.model
    learner = _LEARNERS.get(str(model.origin.get("learner")))
    if not isinstance(model, ConjunctionModel) or model.curvatures is None or learner is None:
        raise ValueError(
            "the model keeps nothing of its training records that an update could use: train it with "
            "TableEstimator, or with updatable=True"
        )
    return learner.from_model(model)
