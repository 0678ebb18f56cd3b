"""Generated rows that several examples share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split


@dataclass(frozen=True)
class Rows:
    """Rows to train on and rows to test on."""

    train: Any
    train_labels: NDArray[Any]
    test: Any
    test_labels: NDArray[Any]

    @property
    def shape(self) -> str:
        """The size, in words."""
        return (
            f"{self.train.shape[0]:,} training and {self.test.shape[0]:,} test rows, "
            f"{self.train.shape[1]:,} features"
        )

    def first(self, count: int) -> Rows:
        """Fewer rows to train on, the same to test on."""
        return Rows(self.train[:count], self.train_labels[:count], self.test, self.test_labels)


def binary_rows(train: int = 4000, test: int = 2000, features: int = 300, pairs: int = 40) -> Rows:
    """About twenty of the features in each row, a few of them frequent; pairs of features vote for the class.

    Text has such rows: one feature per word, tag or word pair, each there or not there.
    """
    generator = np.random.default_rng(0)
    shares = np.arange(1, features + 1) ** -0.7
    X = generator.random((train + test, features)) < np.minimum(20 * shares / shares.sum(), 1.0)
    voters = generator.integers(0, 40, (pairs, 2))
    votes = (X[:, voters[:, 0]] & X[:, voters[:, 1]]) @ generator.normal(size=pairs)
    y = np.where(votes > np.median(votes), 1, -1)
    rows, tests, labels, test_labels = train_test_split(
        sparse.csr_matrix(X, dtype=np.float64), y, test_size=test, random_state=0
    )
    return Rows(rows, labels, tests, test_labels)
