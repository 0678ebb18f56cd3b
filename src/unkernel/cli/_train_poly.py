"""``unkernel train --model poly``."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from unkernel.cli._console import many, size
from unkernel.cli._learners import ClassLearner, Look, class_words, gap_words
from unkernel.cli._rows import AnyRows
from unkernel.models import KernelModel
from unkernel.poly import PolySVC


class PolyLearner(ClassLearner):
    """Conjunctions of features, as a polynomial kernel has them."""

    name = "poly"
    estimator = PolySVC
    step = "epoch"

    def refuse(self) -> None:
        """All options go together."""

    def parameters(self, jobs: int) -> dict[str, Any]:
        """``--gamma`` may be a number or a word."""
        chosen = super().parameters(jobs)
        return chosen | ({"gamma": _gamma(chosen["gamma"])} if "gamma" in chosen else {})

    def fit(self, estimator: Any, rows: AnyRows, look: Look) -> None:
        """Train."""
        estimator.fit_watched(rows.source, rows.labels, None, look)

    def describe(self, estimator: Any) -> dict[str, Any]:
        """Add the kernel and the conjunctions."""
        chosen = {name: getattr(estimator, name) for name in ("degree", "coef0", "loss", "feature_map")}
        model = estimator.to_model()
        counted = (
            {"support_vectors": model.n_support}
            if isinstance(model, KernelModel)
            else {"conjunctions": model.n_conjunctions}
        )
        found = counted | {
            "gamma": estimator.gamma_,
            "storage": estimator.storage_,
            "epochs": estimator.n_iter_,
        }
        return super().describe(estimator) | chosen | found

    def facts(self, result: dict[str, Any]) -> dict[str, str]:
        """Data, model, objective and gap."""
        return {
            "data": class_words(result),
            "model": f"{_parts(result)}, {size(result['model_bytes'])}",
            "objective": f"{result['objective']:.8g}",
            "gap": gap_words(result, many(result["epochs"], "epoch")),
        }


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
