"""Linear models: one weight per feature and score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.models import container, model_rows
from unkernel.models.base import Arrays, DecidedModel, Settings
from unkernel.models.decision import Decision


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(DecidedModel):
    """Model with one weight per feature.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_features, n_scores)
        Weights of the features.
    intercept : ndarray of float64, shape (n_scores,)
        Constants that are added to the scores.
    decision : Decision
        How scores become predictions.
    n_features : int
        Number of features.
    fixed_width : bool
        Whether rows must have exactly ``n_features`` columns. Otherwise further columns are ignored, and
        missing columns count as zero.
    origin : dict
        The origin of the model, and a description of its training.

    See Also
    --------
    KernelModel : Model of support vectors.
    ConjunctionModel : Model with one weight per conjunction.
    unkernel.compile : Compile a model for fast inference.

    Examples
    --------
    >>> from unkernel import CuttingPlaneSVC
    >>> model = CuttingPlaneSVC(C=10).fit([[0, 0], [1, 0], [2, 0]], [0, 0, 1]).to_model()
    >>> model
    LinearModel(2 features, 2 classes)
    >>> model.weights.shape
    (2, 1)
    """

    kind: ClassVar[str] = "linear"

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    decision: Decision
    n_features: int
    fixed_width: bool
    origin: dict[str, Any]

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        scores = self.decision.n_scores
        if self.intercept.shape != (scores,) or self.weights.shape != (self.n_features, scores):
            raise ValueError("the number of weights does not fit the numbers of features and classes")

    def _arrays(self) -> list[Any]:
        return [self.weights, self.intercept]

    def _describe(self) -> str:
        return f"{self.n_features} features"

    def scores(self, X: Any) -> NDArray[np.float64]:
        X = model_rows.check_model_rows(X, self.n_features, self.fixed_width)
        n_shared = min(X.shape[1], self.n_features)
        if X.shape[1] > n_shared:
            X = X.select_columns(np.arange(n_shared))
        return np.asarray(X.to_scipy() @ self.weights[:n_shared]) + self.intercept

    def to_container(self) -> tuple[Arrays, Settings]:
        arrays = {
            "weights": self.weights.astype("<f8", copy=False),
            "intercepts": self.intercept.astype("<f8", copy=False),
        }
        settings = {
            "n_features": self.n_features,
            "fixed_width": self.fixed_width,
            "decision": self.decision.to_json(),
            "origin": self.origin,
        }
        return arrays, settings

    @classmethod
    def _from_container(cls, name: str, arrays: Arrays, settings: Settings) -> Self:
        return cls(
            weights=container.read_finite_array(name, arrays, "weights", 2),
            intercept=container.read_finite_array(name, arrays, "intercepts", 1),
            decision=_read_decision(name, settings),
            n_features=container.read_setting(name, settings, "n_features", int, lambda v: 0 <= v < 1 << 63),
            fixed_width=container.read_setting(name, settings, "fixed_width", bool),
            origin=container.read_setting(name, settings, "origin", dict),
        )


def _read_decision(name: str, settings: dict[str, Any]) -> Decision:
    decision = Decision.from_json(name, settings.get("decision"))
    origin = settings.get("origin")
    learner = origin.get("learner") if isinstance(origin, dict) else None
    if learner == "RankSVM" and not decision.ranking:  # names: files of the first versions store no `ranking`
        return replace(decision, ranking=True)
    return decision
