"""Coefficients of many one-vs-one classifiers, stored without zeros."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.models.decision import condense_pairs, expand_pairs, pair_columns

DENSE_BYTES = 1 << 26  # if a dense array would take more bytes, coefficients are stored without zeros


@dataclass(frozen=True, eq=False)
class PairCoefficients:
    """``KernelModel.coefficients`` of many pairs of classes, stored without zeros.

    With k classes, a support vector occurs in k - 1 of the k (k - 1) / 2 pairs: in those that contain its
    class. Conversion to an array gives the whole matrix, which may not fit into memory.

    Attributes
    ----------
    values : (support vectors, classes - 1) float64
        The coefficients of each vector against each other class, as in LIBSVM. Vectors are sorted by class.
    counts : list of int
        Number of vectors of each class.
    """

    values: NDArray[np.float64]
    counts: list[int]

    __array_ufunc__ = None  # makes numpy compute ``matrix @ coefficients`` by __rmatmul__

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        if self.values.shape != (sum(self.counts), len(self.counts) - 1) or min(self.counts, default=-1) < 0:
            raise ValueError("the coefficients of pairs do not fit the numbers of support vectors by class")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.counts)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the whole matrix."""
        return len(self.values), self.n_classes * (self.n_classes - 1) // 2

    @property
    def nbytes(self) -> int:
        """Size in memory in bytes."""
        return int(self.values.nbytes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float64]:
        return expand_pairs(self.values, self.counts)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __rmatmul__(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        product = np.zeros((len(matrix), self.shape[1]))
        for code, rows in self.by_class():
            product[:, pair_columns(self.n_classes, code)] += matrix[:, rows] @ self.values[rows]
        return product

    def multiply_transposed(self, vectors: CsrRows) -> NDArray[np.float64]:
        """Return the product of the transposed support vectors with these coefficients: (columns, pairs)."""
        product = np.zeros((vectors.shape[1], self.shape[1]))
        for code, rows in self.by_class():
            columns = pair_columns(self.n_classes, code)
            product[:, columns] += vectors[rows].multiply_transposed(self.values[rows])
        return product

    def by_class(self) -> Iterator[tuple[int, slice]]:
        """Yield each class with the slice of its support vectors."""
        begin = 0
        for code, count in enumerate(self.counts):
            yield code, slice(begin, begin + count)
            begin += count


def pair_coefficients(values: NDArray[np.float64], counts: list[int]) -> Any:
    """Return coefficients given in LIBSVM's form as a dense array if this is small, else without zeros."""
    coefficients = PairCoefficients(np.ascontiguousarray(values, dtype=np.float64), counts)
    vectors, pairs = coefficients.shape
    return coefficients if 8 * vectors * pairs > DENSE_BYTES else np.ascontiguousarray(coefficients)


def find_pairs(
    coefficients: NDArray[np.float64], n_classes: int
) -> tuple[NDArray[np.intp], PairCoefficients] | None:
    """Return an order of the vectors, and dense coefficients of pairs of classes compressed in this order.

    Return None if the class of a vector is unknown, because it has coefficients in pairs that share no class.

    >>> whole = np.array([[0.0, 0.0, 3.0], [1.0, 2.0, 0.0], [4.0, 0.0, 5.0]])  # pairs 01, 02, 12
    >>> order, pairs = find_pairs(whole, 3)
    >>> order.tolist(), pairs.counts, pairs.values.tolist()
    ([1, 0, 2], [1, 2, 0], [[1.0, 2.0], [0.0, 3.0], [4.0, 5.0]])
    """
    is_nonzero = coefficients != 0
    counts_of_vectors = np.count_nonzero(is_nonzero, axis=1)
    class_of_vector = np.full(len(coefficients), -1)
    for code in reversed(range(n_classes)):
        counts_in_class = np.count_nonzero(is_nonzero[:, pair_columns(n_classes, code)], axis=1)
        class_of_vector[counts_in_class == counts_of_vectors] = code
    if (class_of_vector < 0).any():
        return None
    order = np.argsort(class_of_vector, kind="stable")
    counts = np.bincount(class_of_vector, minlength=n_classes).tolist()
    return order, PairCoefficients(condense_pairs(coefficients[order], counts), counts)
