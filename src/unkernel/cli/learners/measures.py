"""How good answers are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, roc_auc_score

from unkernel._core import count_pairs
from unkernel.cli.inputs.files import labels_are_unknown
from unkernel.cli.render.console import many, percent
from unkernel.cutplane.rank import ranking_of
from unkernel.models import Decision

Groups = NDArray[np.int64] | None
Numbers = NDArray[np.float64]


def ordered_pairs(scores: Numbers, labels: Numbers, groups: Groups) -> dict[str, Any]:
    """How many pairs of rows of a group have different labels, and which share the scores have in order.

    Equal scores count half. Without groups, all rows are one.
    """
    pairs, ordered = count_pairs(
        **ranking_of(labels, groups, weights=None, pair_weight=None), scores=np.ascontiguousarray(scores)
    )
    return {"pairs": int(pairs), "ordered_pairs": ordered / pairs if pairs else None}


def compare_ranks(decision: Decision, scores: Numbers, labels: Numbers, groups: Groups) -> dict[str, Any]:
    """How well scores order the labels; and, of ordinal models, how well answers equal them."""
    found = ordered_pairs(scores[:, 0], labels, groups)
    found["groups"] = None if groups is None else len(np.unique(groups))
    if decision.scheme != "ordinal":
        return found | {"accuracy": None, "accuracy_note": None, "mean_absolute_error": None}
    unknown = labels_are_unknown(labels, decision.classes)
    answers = decision.choose(scores)
    return found | {
        "accuracy": None if unknown else float(np.mean(answers == labels)),
        "accuracy_note": unknown,
        "mean_absolute_error": None if unknown else rank_error(answers, labels, decision.classes),
    }


def rank_facts(found: dict[str, Any], which: str = "") -> dict[str, str]:
    """What :func:`compare_ranks` found, for people; `which` rows they were goes in front."""
    where = "" if found["groups"] is None else f" within {many(found['groups'], 'group')}"
    share = found["ordered_pairs"]
    words = "not known: there is no pair to order" if share is None else percent(share)
    facts = {f"{which}ordered pairs": words if share is None else f"{words} of {found['pairs']:,}{where}"}
    if note := found.get("accuracy_note"):
        facts[f"{which}accuracy"] = note
    elif found["accuracy"] is not None:
        facts[f"{which}accuracy"] = percent(found["accuracy"])
        facts[f"{which}mean absolute error"] = f"{found['mean_absolute_error']:.6g} ranks"
    return facts


def rank_error(answers: NDArray[Any], labels: Numbers, classes: NDArray[Any]) -> float:
    """The mean absolute error of ordinal classes, counted in ranks."""
    places = np.searchsorted(classes, answers) - np.searchsorted(classes, labels)
    return float(np.mean(np.abs(places)))


def objective_measure(name: str, k: int | None, scores: Numbers, positive: NDArray[np.bool_]) -> float | None:
    """What ``--objective`` optimises, for two classes; None where it is the error rate or not defined."""
    count = int(positive.sum())
    if name == "error_rate" or not 0 < count < len(positive):
        return None
    if name == "f1":
        return float(f1_score(positive, scores > 0))
    if name == "roc_area":
        return float(roc_auc_score(positive, scores))
    return _precision_on_top(scores, positive, count if name == "break_even" else int(k or 0))


def _precision_on_top(scores: Numbers, positive: NDArray[np.bool_], k: int) -> float | None:
    if not 0 < k <= len(scores):
        return None
    return float(positive[np.argsort(-scores, kind="stable")[:k]].mean())
