"""Compute gamma, and make models of support vectors, for all learners with polynomial feature maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import DistinctRows
from unkernel.data.rows.csr import CsrRows
from unkernel.learners.base import read_only_view
from unkernel.models import Decision, Kernel, KernelModel


def compute_gamma(gamma: float | str, rows: DistinctRows, n_features: int) -> float:
    """Return the factor of the inner product, given as "scale", "auto" or a number."""
    if gamma == "auto":
        return 1.0 / float(n_features)
    if gamma != "scale":
        return float(gamma)
    scaled_variance = float(n_features * rows.variance(n_features))
    return 1.0 / scaled_variance if scaled_variance > 0 else 1.0


def make_support_vector_model(
    rows: DistinctRows,
    coefficients: NDArray[np.float64],
    kernel: Kernel,
    decision: Decision,
    *,
    n_features: int,
    origin: dict[str, Any],
) -> KernelModel:
    """Return a model of the rows with nonzero `coefficients`, an array of shape (rows, scores)."""
    support = np.flatnonzero(coefficients.any(axis=1))
    return KernelModel(
        kernel=kernel,
        vectors=CsrRows.of(*rows.choose(support), n_features),
        coefficients=read_only_view(coefficients[support]),
        intercept=read_only_view(np.zeros(coefficients.shape[1])),
        decision=decision,
        n_features=n_features,
        fixed_width=True,
        origin=origin,
    )
