"""``compile`` of pipelines: the transformers become a plan, and the last step is compiled as any model is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unkernel.engines.absorbing import absorbed
from unkernel.engines.classifier import CompiledClassifier
from unkernel.engines.records import RecordClassifier
from unkernel.engines.sources import model_of, with_classes
from unkernel.records.plan import Plan

_CLOSE = 1e-9  # how far scores may be from the pipeline's own, relative to their size


@dataclass(frozen=True)
class PipelineOptions:
    """What ``compile`` was given for a pipeline."""

    sample: Any = None
    trie: Any = None
    classes: Any = None


def compile_pipeline(
    pipeline: Any, given: PipelineOptions, compile_model: Callable[..., Any]
) -> RecordClassifier:
    """A classifier of records from a fitted pipeline.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
    given : PipelineOptions
    compile_model : callable
        Compiles the model of the last step, given rows of the sample and of the trie.
    """
    from sklearn.utils.validation import check_is_fitted

    from unkernel.records.sklearn import plan_of_steps

    check_is_fitted(pipeline)
    last = pipeline.steps[-1][1]
    plan, model = absorbed(plan_of_steps(pipeline.steps[:-1], last), model_of(last))
    rows = {name: _rows(plan, records) for name, records in (("sample", given.sample), ("trie", given.trie))}
    classifier = compile_model(with_classes(model, given.classes), **rows)
    if not isinstance(classifier, CompiledClassifier):
        raise ValueError("the last step of the pipeline must be a classifier of rows")
    found = RecordClassifier(plan, _named(classifier, plan))
    if given.sample is not None:
        check_answers(found, pipeline, given.sample)
    return found


def _rows(plan: Plan, records: Any) -> Any:
    return None if records is None else plan.encode(records).to_scipy()


def _named(classifier: CompiledClassifier, plan: Plan) -> CompiledClassifier:
    """The classifier, with the names of the plan's features."""
    model = classifier.model
    origin = dict(model.origin) | {"feature_names": plan.feature_names}
    return CompiledClassifier(replace(model, origin=origin), classifier.tables, classifier.candidates)


def check_answers(found: RecordClassifier, pipeline: Any, sample: Any) -> None:
    """Compare with the pipeline's own answers; a difference is an error."""
    scores, own_scores = _scores(found, pipeline, sample)
    limit = _CLOSE * max(1.0, float(np.abs(own_scores).max(initial=0.0)))
    if found.classifier.exact and (
        scores.shape != own_scores.shape or not np.allclose(scores, own_scores, rtol=_CLOSE, atol=limit)
    ):
        raise ValueError(
            "the scores of the compiled pipeline differ from the pipeline's own on the sample: this is a bug "
            "in unkernel, please report it"
        )
    if found.decision.scheme == "regression":
        return
    ours, own = found.predict(sample), np.asarray(pipeline.predict(_copied(sample)))
    own = found.classes_[np.searchsorted(pipeline.classes_, own)] if hasattr(pipeline, "classes_") else own
    wrong = np.asarray(ours != own) & _is_sure(own_scores, limit)
    if wrong.any() and found.classifier.exact:
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the compiled pipeline answers {ours[row]!r} and the pipeline {own[row]!r} for record {row} of "
            "the sample: this is a bug in unkernel, please report it"
        )


def _scores(found: RecordClassifier, pipeline: Any, sample: Any) -> tuple[Any, Any]:
    """Our scores and the pipeline's: probabilities, or values of a regression, where it has no others."""
    own = _copied(sample)
    if hasattr(pipeline, "decision_function"):
        return found.decision_function(sample), np.asarray(pipeline.decision_function(own))
    if hasattr(pipeline, "predict_proba"):
        return found.predict_proba(sample), np.asarray(pipeline.predict_proba(own))
    return found.predict(sample), np.asarray(pipeline.predict(own))


def _copied(sample: Any) -> Any:
    """A copy, as steps with ``copy=False`` change what they are given."""
    return sample.copy() if hasattr(sample, "copy") else sample


def _is_sure(scores: Any, limit: float) -> Any:
    """Whether rounding cannot change the label: two orders of one sum may lie on either side of a tie."""
    if scores.ndim == 1:
        return np.abs(scores) > limit
    two = np.sort(scores, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0] > limit
