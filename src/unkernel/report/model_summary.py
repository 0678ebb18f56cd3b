"""Describe models and classifiers in words, as dicts of names and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.measures.number_format import format_bytes, format_count, format_labels, format_number
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, TreeModel
from unkernel.models.base import Model
from unkernel.parsing.parser_model import SavedModel

_ANSWERS = {"regression": "a value", "one_class": "whether it is like the training data: 1 or -1"}


def describe_model(model: Model) -> dict[str, str]:
    """Describe the content of a model."""
    facts = {"model": _describe_content(model), "answers": _describe_answers(model)}
    if not isinstance(model, TreeModel):
        facts["features"] = f"{getattr(model, 'n_features', 0):,}"
    if len(model.classes):
        facts["probabilities"] = "yes" if model.decision.has_probabilities else "no"
    if (threshold := model.decision.threshold) is not None:
        label = format_labels([model.classes.tolist()[threshold.positive]])
        facts["threshold"] = f"{label} from a {threshold.of} of {format_number(threshold.value, 6)} on"
    return facts | {"size of the model": format_bytes(model.nbytes)}


def describe_classifier(classifier: CompiledClassifier | RecordClassifier | TreeClassifier) -> dict[str, str]:
    """Describe a compiled model."""
    facts = {}
    inner = classifier.classifier if isinstance(classifier, RecordClassifier) else classifier
    if isinstance(classifier, RecordClassifier):
        plan = classifier.plan
        facts["reads"] = "texts" if plan.whole else f"records: {format_labels(list(plan.columns), 20)}"
    facts |= describe_model(inner.model)
    facts["engine"] = f"{inner.engine}, {'exact' if inner.exact else 'approximate'}"
    return facts | {"size of its tables": format_bytes(inner.nbytes)}


def describe_parser(parser: SavedModel) -> dict[str, str]:
    """Describe a parser, a chunker, or a part of one."""
    facts = {
        "kind": f"{parser.noun}, made by {parser.estimator}",
        "features": f"{parser.n_features_:,}",
        "classifiers": f"{len(parser.parts_):,}",
        "size of their tables": format_bytes(parser.nbytes),
    }
    return facts | {f"parameter {name}": str(value) for name, value in parser.parameters.items()}


def describe_training(model: Model) -> dict[str, str]:
    """Describe the training of a model."""
    origin = model.origin
    facts = {"learner": str(origin["learner"])} if "learner" in origin else {}
    if "format" in origin:
        facts["read from"] = f"a model of {origin['format']}"
    titles = {"objective": "objective", "gap": "relative gap to the optimum", "n_iter": "passes"}
    for name, title in titles.items():
        if isinstance(origin.get(name), int | float):
            facts[title] = format_number(float(origin[name]), 6)
    parameters = origin.get("parameters")
    if isinstance(parameters, dict):
        facts |= {f"parameter {name}": _format_value(value) for name, value in parameters.items()}
    elif "C" in origin:
        facts["parameter C"] = _format_value(origin["C"])
    return facts


def merge_facts(facts_of_models: Sequence[dict[str, str]]) -> list[tuple[str, list[str]]]:
    """Merge the facts of models into rows of (name, values); a value is "" if a model has no such fact."""
    names = dict.fromkeys(name for facts in facts_of_models for name in facts)
    return [(name, [facts.get(name, "") for facts in facts_of_models]) for name in names]


def _format_value(value: Any) -> str:
    return format_number(value, 6) if isinstance(value, float) else str(value)


def _describe_answers(model: Model) -> str:
    if model.decision.ranking:
        return "a score to rank by"
    if model.decision.scheme == "multi_output":
        return f"{format_count(len(model.decision.outputs), 'answer')} for each row"
    if model.decision.link == "log":
        return "the mean of a count, exp(score)"
    answer = _ANSWERS.get(model.decision.scheme)
    classes = model.classes.tolist()
    if model.decision.scheme == "multi_label":
        return f"several of {format_count(len(classes), 'label')}: {format_labels(classes)}"
    return answer or f"{format_count(len(classes), 'class', 'classes')}: {format_labels(classes)}"


def _describe_content(model: Model) -> str:
    if isinstance(model, KernelModel):
        return f"{format_count(model.n_support, 'support vector')}, {model.kernel.words()} kernel"
    if isinstance(model, LinearModel):
        return "one weight per feature" + (" and class" if model.n_scores > 1 else "")
    if isinstance(model, ConjunctionModel):
        n_features = format_count(model.degree, "feature")
        return f"weights of {format_count(model.n_conjunctions, 'conjunction')} of at most {n_features}"
    assert isinstance(model, TreeModel)
    return f"{format_count(model.n_support, 'support tree')}, {model.kernel.words()}"
