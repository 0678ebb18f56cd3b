"""The attributes ``coef_`` and ``intercept_`` of linear models, as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class LinearWeights:
    """Mixin with the attributes of estimators whose model may be linear."""

    def _get_linear_model(self) -> Any:
        """Return the model; raise an ``AttributeError`` if there is none."""
        raise NotImplementedError

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features, one row per score; only for linear models."""
        return self._linear_weights()[0]

    @property
    def intercept_(self) -> Any:
        """Constants that are added to the scores; only for linear models."""
        return self._linear_weights()[1]

    def _linear_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from unkernel.engines.explain.explanation import compute_linear_weights

        weights = compute_linear_weights(self._get_linear_model())
        if weights is None:
            raise AttributeError("the model is not linear, so it has no coef_; heaviest lists its weights")
        return weights
