"""Compile pipelines: the transformers become a plan, and the last step becomes a compiled classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from unkernel.engines.model_sources import find_model, replace_classes
from unkernel.engines.records.classifier import RecordClassifier
from unkernel.engines.records.fold_linear_maps import fold_linear_maps
from unkernel.engines.records.fold_products import fold_products
from unkernel.engines.records.pipeline_check import check_answers, check_generated
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import LinearModel
from unkernel.models.boosting_machines import check_machine, from_boosting_machine
from unkernel.models.sklearn_naive_bayes import from_naive_bayes, is_naive_bayes
from unkernel.models.sklearn_thresholds import split_threshold
from unkernel.records.plan import Plan


@dataclass(frozen=True)
class PipelineOptions:
    """Options of ``compile`` for pipelines."""

    sample: Any = None
    trie: Any = None
    classes: Any = None
    ignores_unknown_keys: bool = True


def compile_pipeline(
    pipeline: Any, options: PipelineOptions, compile_model: Callable[..., Any]
) -> RecordClassifier:
    """Compile a fitted pipeline into a classifier of records.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
    options : PipelineOptions
    compile_model : callable
        Compiles the model of the last step, given rows of the sample and of the trie.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(pipeline)
    whole_plan, model = _make_plan_and_model(pipeline.steps[:-1], pipeline.steps[-1][1])
    plan = _set_unknown_keys(whole_plan, options)
    rows = {
        name: None if records is None else plan.encode(records).to_scipy()
        for name, records in (("sample", options.sample), ("trie", options.trie))
    }
    classifier = compile_model(replace_classes(model, options.classes), **rows)
    if not isinstance(classifier, CompiledClassifier):
        raise ValueError("the last step of the pipeline must be a classifier of rows")
    compiled = RecordClassifier(plan, _add_feature_names(classifier, plan))
    if options.sample is not None:
        check_answers(compiled, pipeline, options.sample)
    else:
        check_generated(compiled, pipeline)
    compiled.cache_clear()  # removes the records of the comparison
    return compiled


def _make_plan_and_model(transformers: Any, last: Any) -> tuple[Plan, Any]:
    """Return the plan of the transformers, and the model of the last step for the plan's rows."""
    last, threshold = split_threshold(last)
    plan, model = _make_plan_and_plain_model(transformers, last)
    return plan, model if threshold is None else model.with_threshold(threshold)


def _make_plan_and_plain_model(transformers: Any, last: Any) -> tuple[Plan, Any]:
    """Return the plan and the model for a last step without a threshold."""
    from unkernel.records.sklearn import (
        is_boosting_machine,
        make_plan_of_machine,
        make_plan_of_steps,
        split_linear_maps,
    )

    if is_naive_bayes(last):
        return make_plan_of_steps(transformers, last), from_naive_bayes(last, rows_are_prepared=True)
    before, maps = split_linear_maps(transformers)
    if maps and isinstance(model := find_model(last), LinearModel):
        return make_plan_of_steps(before, maps[0][1]), fold_linear_maps(maps, model)
    if not is_boosting_machine(last):
        return fold_products(make_plan_of_steps(transformers, last), find_model(last))
    check_machine(last)
    plan, features = make_plan_of_machine(transformers, last)
    return plan, from_boosting_machine(last, features, plan.n_features)


def _set_unknown_keys(plan: Plan, options: PipelineOptions) -> Plan:
    """Return the plan with the option for unknown keys: ignore them or raise an error."""
    if options.ignores_unknown_keys:
        return plan
    if plan.whole:
        raise ValueError(
            "unknown_keys='error' is for records of columns, and a record of this pipeline is a single value"
        )
    return replace(plan, ignores_unknown_keys=False)


def _add_feature_names(classifier: CompiledClassifier, plan: Plan) -> CompiledClassifier:
    model = classifier.model
    origin = dict(model.origin) | {"feature_names": plan.feature_names}
    named = replace(model, origin=origin)
    return CompiledClassifier(named, classifier.tables, classifier.candidates, classifier.cache)
