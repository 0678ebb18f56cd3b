"""Classifiers with the averaged weights of online learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import mean_weights
from unkernel.engines import CompiledClassifier
from unkernel.models import ConjunctionModel

Weights = dict[str, NDArray[Any]]


def average_parts(
    runs: Sequence[Sequence[Weights]], classes: Sequence[Sequence[int]], **options: Any
) -> list[CompiledClassifier | None]:
    """Return a classifier per part with the mean of all runs; None for parts with a single class."""
    return [
        average_runs(own, classes=np.array(chosen), **options) if len(chosen) > 1 else None
        for *own, chosen in zip(*runs, classes, strict=True)
    ]


def average_runs(
    runs: Sequence[Weights], *, degree: int, classes: NDArray[Any], columns: int, learner: str
) -> CompiledClassifier:
    """Return a classifier with the mean of the weights of some runs.

    Parameters
    ----------
    runs : sequence of dict
        Keys and weights of each run.
    degree : int
    classes : ndarray
        The classes, ascending.
    columns : int
        The number of features.
    learner : str
        Name of the estimator.
    """
    part = mean_weights(list(runs), degree=degree, classes=len(classes))
    keys = np.asarray(part["keys"])
    intercept = np.asarray(part["intercept"])
    model = ConjunctionModel(
        degree=degree,
        sets=True,
        feature_map="plain",
        gamma=1.0,
        coef0=1.0,
        n_features=max(columns, 1),
        columns=np.asarray(part["columns"]),
        keys=keys,
        weights=np.asarray(part["weights"]).reshape(len(keys), len(intercept)),
        intercept=intercept,
        classes=classes,
        origin={"learner": learner},
    )
    return CompiledClassifier(model).validate()
