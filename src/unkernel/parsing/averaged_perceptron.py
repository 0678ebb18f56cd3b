"""Average the weights of online learners, and train averaged perceptrons on fixed rows."""

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
    """Return one classifier per part, with weights averaged over all runs; None for parts with one class.

    A part is a group of decisions with a classifier of its own, such as the labels of nouns. `runs` lists the
    runs, and each run lists the weights of its parts. `classes` lists the classes of each part.
    """
    classifiers: list[CompiledClassifier | None] = []
    for part, part_classes in enumerate(classes):
        if len(part_classes) < 2:
            classifiers.append(None)
            continue
        weights_of_runs = [weights_of_parts[part] for weights_of_parts in runs]
        classifiers.append(average_runs(weights_of_runs, classes=np.array(part_classes), **options))
    return classifiers


def average_runs(
    runs: Sequence[Weights], *, degree: int, classes: NDArray[Any], columns: int, learner: str
) -> CompiledClassifier:
    """Return a classifier whose weights are the means over several runs.

    Parameters
    ----------
    runs : sequence of dict
        The keys and weights that each run learned.
    degree : int
    classes : ndarray
        The classes in ascending order.
    columns : int
        The number of features.
    learner : str
        Name of the estimator that trained the weights.
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
    """Rows of features with their classes.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_rows + 1,)
    columns : ndarray of int32
        Row r has the columns ``columns[offsets[r]:offsets[r + 1]]``, in ascending order.
    labels : ndarray of int32, shape (n_rows,)
        The index of the class of each row.
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.int32]
    labels: NDArray[np.int32]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.offsets, self.columns, self.labels))


def index_known_features(
    features: NDArray[np.uint64], labels: NDArray[np.int32], vocabulary: NDArray[np.uint64]
) -> LabelledRows:
    """Replace features by their indices in a sorted vocabulary, and drop features missing from it.

    Parameters
    ----------
    features : ndarray of uint64, shape (n_rows, n_templates)
    labels : ndarray of int32, shape (n_rows,)
    vocabulary : ndarray of uint64, shape (n_features,), ascending
    """
    indices = np.searchsorted(vocabulary, features)
    is_known = np.zeros(features.shape, bool)
    if len(vocabulary):
        is_known = vocabulary[np.minimum(indices, len(vocabulary) - 1)] == features
    rows = [np.unique(row[mask]) for row, mask in zip(indices, is_known, strict=True)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.concatenate([np.zeros(0, np.int64), *rows])
    return LabelledRows(offsets.astype(np.int64), columns.astype(np.int32), labels)


@dataclass(frozen=True)
class PerceptronLearner:
    """Runs the averaged perceptron once per seed, and averages the weights of all runs."""

    degree: int
    epochs: int
    min_updates: int
    seeds: Sequence[int]
    origin: str  # name of the estimator
    report: Reporter

    def learn(
        self, name: str, rows: LabelledRows, dev: LabelledRows | None, *, classes: int, columns: int
    ) -> CompiledClassifier:
        """Return a classifier with weights averaged over all runs.

        Each run contributes the weights of its best epoch on `dev` or, without `dev`, of its last epoch.
        """
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
        fewest_wrong = len(dev.labels) + 1 if dev is not None else 0
        for epoch in range(1, self.epochs + 1):
            wrong = trainer.run_epoch(*rows)
            message = f"{name}, epoch {epoch}: {wrong:,} of {len(rows.labels):,} wrong"
            if dev is None:
                self.report(message)
                continue
            dev_wrong = trainer.count_wrong(*dev)
            self.report(f"{message}; dev {dev_wrong:,} of {len(dev.labels):,}")
            if dev_wrong < fewest_wrong:
                fewest_wrong, best = dev_wrong, trainer.weights()
        return trainer.weights() if dev is None else best
