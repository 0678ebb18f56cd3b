"""Classifiers with the averaged weights of online learners, and an online learner of fixed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RowTrainer, mean_weights
from unkernel.engines import CompiledClassifier
from unkernel.models import ConjunctionModel
from unkernel.parsing.training_progress import Reporter

Weights = dict[str, NDArray[Any]]


def average_parts(
    runs: Sequence[Sequence[Weights]], classes: Sequence[Sequence[int]], **options: Any
) -> list[CompiledClassifier | None]:
    """Return one classifier per part, whose weights are the mean of all runs; None for parts of one class."""
    return [
        average_runs(weights_of_runs, classes=np.array(part_classes), **options)
        if len(part_classes) > 1
        else None
        for *weights_of_runs, part_classes in zip(*runs, classes, strict=True)
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


@dataclass(frozen=True)
class LabelledRows:
    """Rows of features, each with the number of its class.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_rows + 1,)
    columns : ndarray of int32
        Row r has the columns from ``offsets[r]`` to ``offsets[r + 1]``, ascending.
    answers : ndarray of int32, shape (n_rows,)
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.int32]
    answers: NDArray[np.int32]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.offsets, self.columns, self.answers))


def index_known_features(
    features: NDArray[np.uint64], answers: NDArray[np.int32], known: NDArray[np.uint64]
) -> LabelledRows:
    """Return rows of the indices of features in the ascending `known`; unknown features are left out."""
    places = np.searchsorted(known, features)
    is_known = np.zeros(features.shape, bool)
    if len(known):
        is_known = known[np.minimum(places, len(known) - 1)] == features
    rows = [np.unique(row[mask]) for row, mask in zip(places, is_known, strict=True)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.concatenate([np.zeros(0, np.int64), *rows])
    return LabelledRows(offsets.astype(np.int64), columns.astype(np.int32), answers)


@dataclass(frozen=True)
class RowLearner:
    """Runs the averaged perceptron once per seed and averages the weights."""

    degree: int
    epochs: int
    min_updates: int
    seeds: Sequence[int]
    origin: str
    report: Reporter

    def learn(
        self, name: str, rows: LabelledRows, dev: LabelledRows | None, *, classes: int, columns: int
    ) -> CompiledClassifier:
        """Return the mean of all runs, each after its best epoch on the rows `dev` or its last epoch."""
        runs = [
            self._run(f"{name}, run {number}", rows, dev, classes, seed)
            for number, seed in enumerate(self.seeds, 1)
        ]
        return average_runs(
            runs,
            degree=self.degree,
            classes=np.arange(classes),
            columns=columns,
            learner=self.origin,
        )

    def _run(
        self, name: str, rows: LabelledRows, dev: LabelledRows | None, classes: int, seed: int
    ) -> dict[str, Any]:
        trainer = RowTrainer(degree=self.degree, classes=classes, min_updates=self.min_updates, seed=seed)
        fewest_wrong = len(dev.answers) + 1 if dev is not None else 0
        for epoch in range(1, self.epochs + 1):
            wrong = trainer.run_epoch(*rows)
            words = f"{name}, epoch {epoch}: {wrong:,} of {len(rows.answers):,} wrong"
            if dev is None:
                self.report(words)
                continue
            dev_wrong = trainer.count_wrong(*dev)
            self.report(f"{words}; dev {dev_wrong:,} of {len(dev.answers):,}")
            if dev_wrong < fewest_wrong:
                fewest_wrong, best = dev_wrong, trainer.weights()
        return trainer.weights() if dev is None else best
