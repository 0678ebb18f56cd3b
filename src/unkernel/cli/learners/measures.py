"""How good answers are: classes, two classes, rankings. What cannot be measured is None; a note says why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import class_labels, labels_are_unknown, strange_labels
from unkernel.measures.detection import roc_area
from unkernel.measures.number_format import many, percent
from unkernel.measures.predictions import score_for
from unkernel.models import Decision

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
NDCG_DEPTH = 10
_LARGEST_GRADE = 50.0  # 2^label - 1 is the gain of a row: larger labels are numbers, and not grades
_NUMBERS = "biuf"
_LEAST_PROBABILITY = 1e-15  # scikit-learn's log_loss has no smaller ones either


# --- Classes ------------------------------------------------------------------------------------------


def compare_classes(
    decision: Decision, scores: Numbers, labels: NDArray[Any] | None, unit: str = "row"
) -> dict[str, Any]:
    """How many answers are right; of two classes also how well the positive one is found and ranked.

    The positive class is the larger one of the two, as in scikit-learn.
    """
    found: dict[str, Any] = dict.fromkeys(CLASS_MEASURES)
    if labels is None:
        return found | {"accuracy_note": "not known: the file has no labels"}
    known, names, unknown = _comparable(labels, decision.classes, unit)
    if unknown:
        return found | {"accuracy_note": unknown}
    answers = decision.choose(scores).astype(names.dtype)
    right = answers == known
    found |= {"correct": int(right.sum()), "accuracy": float(right.mean())}
    if len(names) != 2 or decision.scheme == "ordinal":
        return found
    place = int(np.argmax(names))
    found |= detection(right, known == names[place])
    found["positive_class"] = decision.classes.tolist()[place]
    return found | {"roc_area": roc_area(score_for(decision, scores, place), known == names[place])}


def _comparable(
    labels: NDArray[Any], classes: NDArray[Any], unit: str
) -> tuple[NDArray[Any], NDArray[Any], str | None]:
    """Labels of a file and classes of a model as numbers where both are, else as texts; and why not.

    A file of trees in which all labels happen to be numbers may well be one for classes that are texts.
    """
    if unit == "row":
        return labels, classes, labels_are_unknown(labels, classes)
    labels = class_labels(labels)
    if labels.dtype.kind not in _NUMBERS or classes.dtype.kind not in _NUMBERS:
        labels, classes = labels.astype(str), classes.astype(str)
    return labels, classes, strange_labels(labels, classes, unit)


def detection(right: NDArray[np.bool_], positive: NDArray[np.bool_]) -> dict[str, float | None]:
    """Precision, recall and F1 of the positive class; None where there is nothing to divide by."""
    hits = int((right & positive).sum())
    wrongly_found, missed = int((~right & ~positive).sum()), int((~right & positive).sum())

    def share(part: int, of: int) -> float | None:
        return part / of if of else None

    return {
        "precision": share(hits, hits + wrongly_found),
        "recall": share(hits, hits + missed),
        "f1": share(2 * hits, 2 * hits + wrongly_found + missed),
    }


def log_loss(decision: Decision, scores: Numbers, labels: NDArray[Any]) -> float | None:
    """The mean of -log(probability of the right class), in nats; None where there are no probabilities."""
    if decision.probability is None or not len(labels):
        return None
    classes = decision.classes
    if classes.dtype.kind not in _NUMBERS or labels.dtype.kind not in _NUMBERS:
        classes, labels = classes.astype(str), labels.astype(str)
    order = np.argsort(classes)
    right = order[np.searchsorted(classes[order], labels)]
    found = np.take_along_axis(decision.probabilities(scores), right[:, np.newaxis], axis=1)
    return float(-np.log(np.maximum(found, _LEAST_PROBABILITY)).mean())


def class_facts(found: dict[str, Any], unit: str = "row", which: str = "") -> dict[str, str]:
    """What :func:`compare_classes` found, for people; `which` examples they were goes in front."""
    if found["accuracy"] is None:
        return {f"{which}accuracy": found["accuracy_note"] or "not known"}
    facts = {f"{which}accuracy": percent(found["accuracy"])}
    if found.get("rows") and found.get("correct") is not None:
        facts[f"{which}accuracy"] += f" ({found['correct']:,} of {many(found['rows'], unit)})"
    if found["f1"] is not None:
        parts = [
            f"{name} {percent(found[name])}" for name in ("precision", "recall") if found[name] is not None
        ]
        of_class = f"of class {found['positive_class']}"
        facts[f"{which}F1"] = f"{percent(found['f1'])} {of_class} ({', '.join(parts)})"
    if found["roc_area"] is not None:
        facts[f"{which}ROC area"] = percent(found["roc_area"])
    return facts


# --- Rankings -----------------------------------------------------------------------------------------


def compare_ranks(
    decision: Decision, scores: Numbers, labels: Numbers, groups: Groups, depth: int = NDCG_DEPTH
) -> dict[str, Any]:
    """How well scores order the labels; and, of ordinal models, how well answers equal them."""
    found = ordered_pairs(scores[:, 0], labels, groups)
    found["groups"] = None if groups is None else len(np.unique(groups))
    found["ndcg"] = ndcg(scores[:, 0], labels, groups, depth)
    if decision.scheme != "ordinal":
        return found | {"accuracy": None, "accuracy_note": None, "mean_absolute_error": None}
    unknown = labels_are_unknown(labels, decision.classes)
    answers = decision.choose(scores)
    return found | {
        "accuracy": None if unknown else float(np.mean(answers == labels)),
        "accuracy_note": unknown,
        "mean_absolute_error": None if unknown else rank_error(answers, labels, decision.classes),
    }


def ordered_pairs(scores: Numbers, labels: Numbers, groups: Groups) -> dict[str, Any]:
    """How many pairs of rows of a group have different labels, and which share the scores have in order.

    Equal scores count half. Without groups, all rows are one group.
    """
    from unkernel._core import count_pairs
    from unkernel.cutplane.rankings import ranking_of

    pairs, ordered = count_pairs(
        **ranking_of(labels, groups, weights=None, pair_weight=None), scores=np.ascontiguousarray(scores)
    )
    return {"pairs": int(pairs), "ordered_pairs": ordered / pairs if pairs else None}


def ndcg(scores: Numbers, labels: Numbers, groups: Groups, depth: int) -> dict[str, Any] | None:
    """The mean over queries of the normalised discounted cumulative gain of the first `depth` rows.

    A row of label y has the gain 2^y - 1, discounted by log2(1 + rank); rows of equal score share the mean of
    their gains. Queries without a relevant row, whose ideal gain is 0, are left out of the mean and counted.
    None where labels are no grades: negative, or too large for 2^y. The convention is that of
    :func:`unkernel.cutplane.ndcg_score`.
    """
    if not len(labels) or labels.min() < 0 or labels.max() > _LARGEST_GRADE:
        return None
    from unkernel.cutplane import ndcg_score  # rankings alone need it

    queries = np.zeros(len(labels), dtype=np.int64) if groups is None else np.asarray(groups)
    relevant, count = len(np.unique(queries[labels > 0])), len(np.unique(queries))
    return {
        "k": depth,
        "value": ndcg_score(labels, scores, queries, k=depth) if relevant else None,
        "queries": relevant,
        "queries_without_relevant": count - relevant,
    }


def rank_facts(found: dict[str, Any], which: str = "") -> dict[str, str]:
    """What :func:`compare_ranks` found, for people; `which` rows they were goes in front."""
    where = "" if found["groups"] is None else f" within {many(found['groups'], 'group')}"
    share = found["ordered_pairs"]
    words = "not known: there is no pair to order" if share is None else percent(share)
    facts = {f"{which}ordered pairs": words if share is None else f"{words} of {found['pairs']:,}{where}"}
    facts |= _ndcg_facts(found["ndcg"], which)
    if note := found.get("accuracy_note"):
        facts[f"{which}accuracy"] = note
    elif found["accuracy"] is not None:
        facts[f"{which}accuracy"] = percent(found["accuracy"])
        facts[f"{which}mean absolute error"] = f"{found['mean_absolute_error']:.6g} ranks"
    return facts


def _ndcg_facts(found: dict[str, Any] | None, which: str) -> dict[str, str]:
    if found is None or found["value"] is None:
        return {}
    words = f"{percent(found['value'])} of {many(found['queries'], 'query', 'queries')}"
    if without := found["queries_without_relevant"]:
        words += f"; {without:,} without a relevant row left out"
    return {f"{which}NDCG@{found['k']}": words}


def rank_error(answers: NDArray[Any], labels: Numbers, classes: NDArray[Any]) -> float:
    """The mean absolute error of ordinal classes, counted in ranks."""
    places = np.searchsorted(classes, answers) - np.searchsorted(classes, labels)
    return float(np.mean(np.abs(places)))


# --- What a linear SVM optimises ----------------------------------------------------------------------


def objective_measure(name: str, k: int | None, scores: Numbers, positive: NDArray[np.bool_]) -> float | None:
    """What ``--objective`` optimises, for two classes; None where it is the error rate or not defined."""
    count = int(positive.sum())
    if name == "error_rate" or not 0 < count < len(positive):
        return None
    if name == "f1":
        return detection((scores > 0) == positive, positive)["f1"]
    if name == "roc_area":
        return roc_area(scores, positive)
    return _precision_on_top(scores, positive, count if name == "break_even" else int(k or 0))


def _precision_on_top(scores: Numbers, positive: NDArray[np.bool_], k: int) -> float | None:
    if not 0 < k <= len(scores):
        return None
    return float(positive[np.argsort(-scores, kind="stable")[:k]].mean())
