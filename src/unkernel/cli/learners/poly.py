"""``unkernel train --model poly`` and ``--model logistic``."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from unkernel.cli.inputs.rows import AnyRows, Rows
from unkernel.cli.learners.base import ClassLearner, Given, OnProgress, class_words, flag, gap_words
from unkernel.cli.render.console import many, size
from unkernel.models import KernelModel
from unkernel.models.decision import log_softmax
from unkernel.poly import PolyLogisticRegression, PolySVC


class ConjunctionLearner(ClassLearner):
    """Learners of a weight a conjunction of features."""

    def refuse(self) -> None:
        """What a penalty does not go with."""
        penalty = self.given.get("penalty", self.default("penalty"))
        for option, wanted in (("storage", "l2"), ("l1_ratio", "elasticnet")):
            if option in self.given and penalty != wanted:
                raise ValueError(f"{flag(option)} is for --penalty {wanted}, and not for {penalty}")

    def parameters(self, jobs: int) -> dict[str, Any]:
        """``--gamma`` may be a number or a word."""
        chosen = super().parameters(jobs)
        return chosen | ({"gamma": _gamma(chosen["gamma"])} if "gamma" in chosen else {})

    def fit(self, estimator: Any, rows: AnyRows, on_progress: OnProgress) -> None:
        """Train."""
        estimator.fit_reporting(rows.source, rows.labels, None, on_progress)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the kernel and the conjunctions."""
        model = estimator.to_model()
        by_newton = self.step != "epoch"
        chosen = {name: getattr(estimator, name) for name in ("degree", "coef0", "penalty", "feature_map")}
        found = _counts(model) | {
            "gamma": estimator.gamma_,
            "epochs": None if by_newton else estimator.n_iter_,
            "newton_steps": estimator.n_iter_ if by_newton else None,
        }
        return super().describe(estimator) | chosen | found

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Data, model, objective and gap."""
        steps = result["newton_steps"] if result["epochs"] is None else result["epochs"]
        return {
            "data": class_words(result),
            "model": f"{_parts(result)}, {size(result['model_bytes'])}",
            "objective": f"{result['objective']:.8g} ({result['loss']}, {result['penalty']})",
            "gap": gap_words(result, many(steps, self.step)),
        }


class PolyLearner(ConjunctionLearner):
    """Support vector machines, as a polynomial kernel has them."""

    name = "poly"
    estimator = PolySVC
    step = "epoch"

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        if given.get("penalty") == "l1":
            self.step = "Newton step"

    def refuse(self) -> None:
        """The l1 penalty goes with one loss alone."""
        super().refuse()
        if self.given.get("penalty") == "l1" and self.given.get("loss") != "squared_hinge":
            raise ValueError("--penalty l1 needs --loss squared_hinge")

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the loss, and where conjunctions were."""
        return super().describe(estimator) | {"loss": estimator.loss, "storage": estimator.storage_}


class LogisticLearner(ConjunctionLearner):
    """Log-linear models, which answer with probabilities."""

    name = "logistic"
    estimator = PolyLogisticRegression
    step = "Newton step"
    measures = ("accuracy", "log_loss")

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the share of the l1 penalty."""
        share = estimator.l1_ratio if estimator.penalty == "elasticnet" else None
        return super().describe(estimator) | {"loss": "logistic", "l1_ratio": share}

    def measure(self, estimator: Any, rows: Rows) -> dict[str, Any]:
        """Add how probable the labels are said to be."""
        scores, labels = rows.scores(estimator), rows.targets()[0]
        found = self.compare(estimator, scores, labels)
        if found["accuracy"] is None:
            return found | {"log_loss": None}
        right = np.searchsorted(estimator.classes_, labels)
        logs = np.take_along_axis(log_softmax(scores), right[:, np.newaxis], axis=1)
        return found | {"log_loss": float(-logs.mean())}

    def quality(self, measured: dict[str, Any], which: str) -> dict[str, str]:
        """The accuracy and the mean loss."""
        facts = super().quality(measured, which)
        if measured["log_loss"] is not None:
            facts[f"{which} log loss"] = f"{measured['log_loss']:.6g} a row"
        return facts


def _counts(model: Any) -> dict[str, int]:
    if isinstance(model, KernelModel):
        return {"support_vectors": model.n_support}
    return {"conjunctions": model.n_conjunctions, "weights": int(np.count_nonzero(model.weights))}


def _parts(result: dict[str, Any]) -> str:
    if "support_vectors" in result:
        return f"{many(result['support_vectors'], 'support vector')}, kernel of degree {result['degree']}"
    return f"{many(result['conjunctions'], 'conjunction')} of at most {many(result['degree'], 'feature')}"


def _gamma(text: str) -> float | str:
    if text in ("scale", "auto"):
        return text
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise ValueError(f"--gamma must be scale, auto or a positive number, got {text!r}")
