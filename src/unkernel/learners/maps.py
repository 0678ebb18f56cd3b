"""Polynomial feature maps, for all learners that use them: gamma, and models of support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unkernel._core import DistinctRows
from unkernel.data.rows.csr import canonical_rows
from unkernel.learners.base import frozen
from unkernel.models import Decision, Kernel, KernelModel


def gamma_value(gamma: float | str, rows: DistinctRows, n_features: int) -> float:
    """The factor of the inner product that ``gamma`` stands for: "scale", "auto" or a number."""
    if gamma == "auto":
        return 1.0 / float(n_features)
    if gamma != "scale":
        return float(gamma)
    spread = float(n_features * rows.variance(n_features))
    return 1.0 / spread if spread > 0 else 1.0


def support_vector_model(
    rows: DistinctRows,
    coefficients: NDArray[np.float64],
    kernel: Kernel,
    decision: Decision,
    *,
    n_features: int,
    origin: dict[str, Any],
) -> KernelModel:
    """A model of the rows whose coefficients, (rows, scores), are not zero."""
    columns = np.asarray(rows.columns)[np.asarray(rows.features)]
    values = np.ones(len(columns)) if rows.binary else np.asarray(rows.values)
    matrix = sparse.csr_matrix(
        (values, columns, np.asarray(rows.offsets)), shape=(int(rows.rows), n_features)
    )
    support = np.flatnonzero(coefficients.any(axis=1))
    return KernelModel(
        kernel=kernel,
        vectors=canonical_rows(matrix[support]),
        coefficients=frozen(coefficients[support]),
        intercept=frozen(np.zeros(coefficients.shape[1])),
        decision=decision,
        n_features=n_features,
        fixed_width=True,
        origin=origin,
    )
