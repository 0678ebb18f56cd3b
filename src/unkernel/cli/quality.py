"""Measure the quality of predictions, for JSON. Unknown measures are None, and a note gives the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.measures.class_measures import ACCURACY, F1, LOG_LOSS, PRECISION, RECALL, ClassMeasures
from unkernel.measures.predictions import Examples, ScoredExamples
from unkernel.measures.value_measures import ABSOLUTE, POISSON, R_SQUARED, ROOT_SQUARED, ValueMeasures
from unkernel.models import Decision
from unkernel.models.several_outputs import list_predictions

Groups = NDArray[np.int64] | None
Numbers = NDArray[np.float64]

CLASS_MEASURES = (
    "correct",
    "accuracy",
    "accuracy_note",
    *("positive_class", "precision", "recall", "f1", "roc_area"),
)
RANK_MEASURES = (
    "pairs",
    "ordered_pairs",
    "groups",
    "ndcg",
    "accuracy",
    "accuracy_note",
    "mean_absolute_error",
)
VALUE_MEASURES = ("r_squared", "root_mean_squared_error", "mean_absolute_error", "poisson_deviance")
QUALITY = dict.fromkeys([*CLASS_MEASURES, *RANK_MEASURES, *VALUE_MEASURES, "mean_squared_error"])
NDCG_DEPTH = 10


def compare(
    decision: Decision, scores: Numbers, labels: NDArray[Any], groups: Groups, depth: int
) -> dict[str, Any]:
    """Return the measures of a model of rows on the labels of a file; NDCG counts the first `depth` rows."""
    if decision.ranking:
        measures = compare_ranks(decision, scores, labels, groups, depth)
        share = measures["accuracy"]
        return measures | {"correct": None if share is None else round(share * len(labels))}
    if decision.scheme == "regression":
        note = "not known: the model answers with numbers, not with classes"
        return {"accuracy_note": note} | compare_values(decision, scores, labels)
    return compare_classes(decision, scores, labels)


def compare_values(decision: Decision, scores: Numbers, values: NDArray[Any]) -> dict[str, Any]:
    """Return the errors, R squared, and for models of counts the Poisson deviance.

    R squared is None if all values are equal.
    """
    measures = ValueMeasures(ScoredExamples(decision, scores, Examples(values)))
    values_by_name = measures.values()
    r_squared = values_by_name[R_SQUARED]
    return {
        "r_squared": None if math.isnan(r_squared) else r_squared,
        "root_mean_squared_error": values_by_name[ROOT_SQUARED],
        "mean_absolute_error": values_by_name[ABSOLUTE],
        "mean_squared_error": float(np.mean(measures.errors**2)),
        "poisson_deviance": values_by_name.get(POISSON),
    }


# --- Classes ------------------------------------------------------------------------------------------


def compare_classes(
    decision: Decision, scores: Numbers, labels: NDArray[Any] | None, unit: str = "row"
) -> dict[str, Any]:
    """Return the number of correct predictions; with two classes, also precision, recall, F1 and ROC area.

    The positive class is the larger of the two classes, as in scikit-learn.
    """
    result: dict[str, Any] = dict.fromkeys(CLASS_MEASURES)
    reason = _explain_unknown(decision, labels, unit)
    if reason is not None:
        return result | {"accuracy_note": f"not known: {reason}"}
    assert labels is not None
    predictions = ScoredExamples(decision, scores, Examples(class_labels(labels), unit=unit))
    measures = ClassMeasures(predictions)
    try:
        confusion = measures.confusion
    except ValueError as error:  # a label is not a class of the model
        return result | {"accuracy_note": f"not known: {error}"}
    shares = measures.shares(confusion)
    result |= {"correct": int(np.trace(confusion)), "accuracy": shares[ACCURACY]}
    if predictions.positive is None:
        return result
    shares_of_two = {"precision": shares[PRECISION], "recall": shares[RECALL], "f1": shares[F1]}
    shares_of_two["roc_area"] = predictions.detection.curve().roc_area()
    result |= {name: None if math.isnan(value) else value for name, value in shares_of_two.items()}
    return result | {"positive_class": predictions.classes[predictions.positive]}


def compare_labels(decision: Decision, scores: Numbers, labels: Sequence[list[Any]]) -> dict[str, Any]:
    """Return the share of examples whose labels are all correct, and measures of all labels together.

    Precision, recall and F1 count the labels of all examples; labels that the model does not know are missed.
    """
    predicted = list_predictions(decision, decision.choose(scores))
    pairs = [(set(found), set(gold)) for found, gold in zip(predicted, labels, strict=True)]
    n_shared = sum(len(found & gold) for found, gold in pairs)
    n_found, n_gold = (sum(map(len, sets)) for sets in zip(*pairs, strict=True))
    correct = sum(found == gold for found, gold in pairs)
    return dict.fromkeys(CLASS_MEASURES) | {
        "correct": correct,
        "accuracy": correct / len(pairs),
        "precision": n_shared / n_found if n_found else None,
        "recall": n_shared / n_gold if n_gold else None,
        "f1": 2 * n_shared / (n_found + n_gold) if n_found + n_gold else None,
    }


def _explain_unknown(decision: Decision, labels: NDArray[Any] | None, unit: str) -> str | None:
    """Return the reason why labels cannot be compared with predictions; None if they can."""
    if decision.outputs:
        return "the model predicts several labels or values for each row"
    if labels is None:
        return "the file has no labels"
    if not len(labels):
        return f"there is no {unit}"
    if unit == "row" and decision.classes.dtype.kind not in "biuf":
        return "the classes of the model are not numbers, as labels in files are"
    return None


def log_loss(decision: Decision, scores: Numbers, labels: NDArray[Any]) -> float | None:
    """Return the mean of -log(probability of the true class) in nats; None if there are no probabilities."""
    if decision.probability is None or not len(labels):
        return None
    measures = ClassMeasures(ScoredExamples(decision, scores, Examples(labels)))
    return float(measures.losses[LOG_LOSS].mean())


# --- Rankings -----------------------------------------------------------------------------------------


def compare_ranks(
    decision: Decision, scores: Numbers, labels: Numbers, groups: Groups, depth: int = NDCG_DEPTH
) -> dict[str, Any]:
    """Return measures of the order of scores; for ordinal models, also of the predicted labels."""
    # Import the module here: it imports scikit-learn, which only rankings need.
    from unkernel.measures.rank_measures import count_ordered_pairs

    pairs, ordered = count_ordered_pairs(labels, scores[:, 0], groups)
    measures: dict[str, Any] = {
        "pairs": int(pairs),
        "ordered_pairs": ordered / pairs if pairs else None,
        "groups": None if groups is None else len(np.unique(groups)),
        "ndcg": ndcg(scores[:, 0], labels, groups, depth),
        "accuracy": None,
        "accuracy_note": None,
        "mean_absolute_error": None,
    }
    if decision.scheme != "ordinal":
        return measures
    classes = compare_classes(decision, scores, labels)
    measures |= {name: classes[name] for name in ("accuracy", "accuracy_note")}
    if classes["accuracy"] is not None:
        ranks = np.searchsorted(decision.classes, labels)
        measures["mean_absolute_error"] = float(np.mean(np.abs(decision.codes(scores) - ranks)))
    return measures


def ndcg(scores: Numbers, labels: Numbers, groups: Groups, depth: int) -> dict[str, Any] | None:
    """Return the mean over queries of the normalised discounted cumulative gain of the first `depth` rows.

    A row with label y has the gain 2^y - 1, divided by log2(1 + rank). Rows with equal scores get the mean of
    their gains. Queries without a relevant row have an ideal gain of 0; they are left out of the mean and
    counted. Return None if a label is not a grade because it is negative or too large for 2^y. See
    :func:`unkernel.cutplane.ndcg_score`.
    """
    from unkernel.cutplane import ndcg_score
    from unkernel.measures.rank_measures import are_grades

    if not len(labels) or not are_grades(labels):
        return None
    queries = np.zeros(len(labels), dtype=np.int64) if groups is None else np.asarray(groups)
    n_relevant, n_queries = len(np.unique(queries[labels > 0])), len(np.unique(queries))
    return {
        "k": depth,
        "value": ndcg_score(labels, scores, queries, k=depth) if n_relevant else None,
        "queries": n_relevant,
        "queries_without_relevant": n_queries - n_relevant,
    }
