"""Make models of conjunctions from sets of features and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.numbering import encode


def make_set_model(
    sets: NDArray[np.int64],
    weights: NDArray[np.float64],
    intercept: NDArray[np.float64],
    n_features: int,
    **others: Any,
) -> ConjunctionModel:
    """Return a model with one weight per set of features; weights of the same set are added up.

    Parameters
    ----------
    sets : ndarray of int64, shape (n_sets, 3)
        The distinct features of each set in descending order, padded with -1.
    weights : ndarray of float64, shape (n_sets, n_scores)
        The weights of the sets. Weights of the empty set are added to the intercept.
    intercept : ndarray of float64, shape (n_scores,)
    n_features : int
        Number of input columns.
    **others
        Other attributes of the model, such as ``classes``.
    """
    degree = max(1, int((sets >= 0).sum(axis=1).max(initial=1)))
    keys, key_of_set = np.unique(encode(sets, degree, sets=True), return_inverse=True)
    sums = np.zeros((len(keys), weights.shape[1]))
    np.add.at(sums, key_of_set.reshape(-1), weights)
    constant = keys == 0  # the number of the empty set
    kept = ~constant & sums.any(axis=1)
    return ConjunctionModel(
        degree=degree,
        sets=True,
        feature_map="plain",
        gamma=1.0,
        coef0=1.0,
        n_features=n_features,
        columns=np.arange(n_features, dtype=np.int64),
        keys=keys[kept],
        weights=np.ascontiguousarray(sums[kept]),
        intercept=intercept + sums[constant].sum(axis=0),
        **others,
    )
