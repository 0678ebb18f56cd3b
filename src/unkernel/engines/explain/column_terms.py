"""Write the score of a model as a sum of terms, one per set of columns.

A monomial is a product of features with a weight w; a score is a sum of monomials. Let y_c be the product of
those features of a monomial that come from column c, and q_c the mean of y_c over the given records. A
monomial with the columns T is a sum over the subsets S of T:

    w prod_{c in T} y_c = sum_{S subset T} w prod_{c in T - S} q_c prod_{c in S} (y_c - q_c)

The term of S is the sum of these parts over all monomials. The terms therefore add up to the score of every
record. If the columns are independent, the terms are uncorrelated, and each term has mean zero when all but
one of its columns are fixed. This is Hoeffding's decomposition (functional ANOVA). Main effects hidden in
weights of conjunctions are thus attributed to single columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines.explain.contributions import Model
from unkernel.engines.tables.builders import Head, Machine, build_expanded, is_linear_of_pairs, simplify
from unkernel.models import ConjunctionModel, KernelModel, LinearModel
from unkernel.models.joint_conjunctions import split_into_monomials
from unkernel.models.numbering import decode
from unkernel.records.feature_columns import FeatureColumns

Columns = tuple[int, ...]  # ascending indices of columns
_MAX_MONOMIALS = 20_000_000
_MAX_PRODUCTS_AT_ONCE = 2_000_000  # largest number of products of features that are looked up together


@dataclass(frozen=True, eq=False)
class Monomials:
    """Weighted products of features, whose sum is the score.

    Attributes
    ----------
    features : (monomials, 3) int64
        The features of each product in descending order, padded with -1; a feature may be repeated.
    weights : (monomials, scores) float64
    intercept : (scores,) float64
    """

    features: NDArray[np.int64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]


def list_monomials(model: Model, *, are_binary: bool) -> Monomials:
    """Return the monomials of a model. If `are_binary`, they are valid only for rows of 0 and 1."""
    model = simplify(model)
    if isinstance(model, LinearModel):
        features = np.full((len(model.weights), 3), -1, np.int64)
        features[:, 0] = np.arange(len(model.weights))
        return Monomials(features, np.asarray(model.weights), np.asarray(model.intercept))
    if isinstance(model, ConjunctionModel):
        ranks, weights = decode(np.asarray(model.keys), model.degree, model.sets), np.asarray(model.weights)
        if model.sets and not are_binary:
            ranks, weights = split_into_monomials(model, ranks, weights)
        features = np.where(ranks >= 0, np.asarray(model.columns)[np.maximum(ranks, 0)], -1)
        return Monomials(-np.sort(-features, axis=1), weights, np.asarray(model.intercept))
    return _expand_kernel(model, are_binary=are_binary)


def _expand_kernel(model: KernelModel, *, are_binary: bool) -> Monomials:
    """Return the monomials of a model with a polynomial kernel of degree 1 to 3."""
    if is_linear_of_pairs(model) or not Machine(model).expandable or model.kernel.degree > 3:
        raise ValueError(
            f"the kernel is {model.kernel.words()}, which is not a sum over few conjunctions, so scores "
            "cannot be divided among columns; polynomial kernels of degree 1 to 3 can"
        )
    tables = build_expanded(Machine(model), head=Head(0.0), sets=are_binary and model.binary)
    listing = tables.heaviest_conjunctions(top=_MAX_MONOMIALS)
    columns = np.asarray(listing["columns"])
    if len(columns) >= _MAX_MONOMIALS:
        raise ValueError(f"the model has more than {_MAX_MONOMIALS:,} conjunctions")
    features = np.full((len(columns), 3), -1, np.int64)
    width = min(columns.shape[1], 3)
    features[:, :width] = columns[:, :width]
    return Monomials(-np.sort(-features, axis=1), np.asarray(listing["weights"]), tables.arrays["constants"])


@dataclass(frozen=True, eq=False)
class ProductIndex:
    """Finds products of features in rows.

    Attributes
    ----------
    features : (products, 3) int64
        Distinct products of features, each in descending order, padded with -1.
    """

    features: NDArray[np.int64]

    @cached_property
    def _used(self) -> NDArray[np.int64]:
        """The features that occur in products, in ascending order."""
        used = np.unique(self.features)
        return used[used >= 0]

    @cached_property
    def _order(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The keys of the products in ascending order, and the index of the product of each key."""
        ranks = np.searchsorted(self._used, self.features)
        keys = self._make_keys(np.where(self.features >= 0, ranks, -1))
        order = np.argsort(keys)
        return keys[order], order

    @cached_property
    def _sizes(self) -> list[int]:
        """The numbers of features that products have."""
        return sorted(set((self.features >= 0).sum(axis=1).tolist()) - {0})

    @cached_property
    def _has_powers(self) -> bool:
        """Whether a feature occurs twice in a product."""
        features = self.features
        is_repeated = (features[:, 1:] == features[:, :-1]) & (features[:, 1:] >= 0)
        return bool(is_repeated.any())

    def _make_keys(self, ranks: NDArray[Any]) -> NDArray[np.int64]:
        """Return one integer per product, whose digits are the ranks of its features plus 1."""
        base, size = len(self._used) + 1, max(self._sizes, default=1)
        if base**size >= 1 << 63:
            raise ValueError(f"{len(self._used):,} features have too many products of {size}")
        keys = np.zeros(len(ranks), np.int64)
        for k in range(size):
            keys = keys * base + (ranks[:, k].astype(np.int64) + 1)
        return keys

    def evaluate(self, rows: CsrRows) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Any]]:
        """Yield three arrays: rows, products that are not 0 in these rows, and the products' values."""
        rows = rows.select_columns(self._used)
        lengths = np.diff(rows.indptr)
        for length in np.unique(lengths).tolist():
            for size in self._sizes:
                combinations = _list_combinations(length, size, repeat=self._has_powers)
                if not len(combinations):
                    continue
                step = max(1, _MAX_PRODUCTS_AT_ONCE // len(combinations))
                members = np.flatnonzero(lengths == length)
                for begin in range(0, len(members), step):
                    yield self._find(rows, members[begin : begin + step], length, combinations)

    def _find(
        self, rows: CsrRows, members: NDArray[np.intp], length: int, combinations: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
        """Return the products in the rows `members`, in the form that :meth:`evaluate` yields.

        All of these rows have `length` entries; a combination lists positions of entries.
        """
        entries = rows.indptr[members][:, None] + np.arange(length - 1, -1, -1)
        ranks, values = rows.indices[entries], rows.data[entries]  # descending by feature
        padded = np.full((len(members) * len(combinations), 3), -1, np.int64)
        padded[:, : combinations.shape[1]] = ranks[:, combinations].reshape(-1, combinations.shape[1])
        keys, order = self._order
        searched = self._make_keys(padded)
        positions = np.minimum(np.searchsorted(keys, searched), len(keys) - 1)
        found = np.flatnonzero(keys[positions] == searched)
        row_numbers = members[found // len(combinations)]
        factors = values[:, combinations].reshape(len(padded), -1)[found]
        return row_numbers, order[positions[found]], factors.prod(axis=1)


def _list_combinations(count: int, size: int, *, repeat: bool) -> NDArray[np.int64]:
    """Return all choices of `size` out of `count` positions, one per row; positions may `repeat`."""
    n_combinations = math.comb(count + size - 1, size) if repeat else math.comb(count, size)
    if n_combinations > _MAX_PRODUCTS_AT_ONCE:
        raise ValueError(f"a record of {count:,} features has too many conjunctions to be divided by columns")
    choose = itertools.combinations_with_replacement if repeat else itertools.combinations
    flat = np.fromiter(itertools.chain.from_iterable(choose(range(count), size)), np.int64)
    return flat.reshape(-1, size)


@dataclass(frozen=True, eq=False)
class ColumnTerms:
    """The scores of a model as sums of terms, one per set of columns, as described above.

    Attributes
    ----------
    terms : list of tuple of int
        The set of columns of each term.
    products : ProductIndex
        All products of features in the terms.
    coefficients : list of scipy.sparse.csr_matrix of shape (products, terms)
        For each score, the coefficient of each product in each term.
    constants : (terms, scores) float64
    intercept : (scores,) float64
        The constant of each score. If columns are independent, this is the mean of the score.
    """

    terms: list[Columns]
    products: ProductIndex
    coefficients: list[Any]
    constants: NDArray[np.float64]
    intercept: NDArray[np.float64]

    @classmethod
    def from_monomials(cls, monomials: Monomials, columns: FeatureColumns, rows: CsrRows) -> ColumnTerms:
        """Return the terms of a model; the means of products are taken over `rows`."""
        return _TermBuilder(monomials, columns, rows).build()

    def evaluate(self, rows: CsrRows, terms: list[int] | None = None) -> NDArray[np.float64]:
        """Return the values of all or the given terms for each row, of shape (rows, terms, scores)."""
        from scipy import sparse

        selected = list(range(len(self.terms))) if terms is None else terms
        result = np.zeros((rows.shape[0], len(selected), len(self.intercept)))
        if not selected:
            return result
        parts = list(self.products.evaluate(rows))
        row_numbers, products, values = (
            np.concatenate([part[k] for part in parts]) if parts else np.empty(0, np.intp) for k in range(3)
        )
        shape = (rows.shape[0], len(self.products.features))
        found = sparse.csr_matrix((values, (row_numbers, products)), shape=shape)
        for score, coefficients in enumerate(self.coefficients):
            result[:, :, score] = (found @ coefficients[:, selected]).toarray()
        return result + self.constants[selected]


class _TermBuilder:
    """Divides monomials among terms."""

    def __init__(self, monomials: Monomials, columns: FeatureColumns, rows: CsrRows) -> None:
        self.features = monomials.features
        self.weights = monomials.weights
        self.rows = rows
        self.index_of_term: dict[Columns, int] = {}
        self.constants: list[NDArray[np.float64]] = []
        self.intercept = monomials.intercept.astype(np.float64)
        self.sets = columns.sets
        self.set_of_place = self._find_sets(columns)
        # The coefficients so far, as lists of products, of terms, and of values (coefficients, scores).
        self.listed: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []

    def _find_sets(self, columns: FeatureColumns) -> NDArray[np.int64]:
        """Return the set of columns of each feature of each monomial; -1 for padding.

        If a feature depends on several columns, its monomial is not divided: all of its features get the
        union of their sets.
        """
        is_feature = self.features >= 0
        sets = np.where(is_feature, columns.set_of_feature[np.maximum(self.features, 0)], -1)
        # The last element is for padding: the index -1 selects it.
        is_joint_set = np.array([len(members) != 1 for members in columns.sets] + [False])
        for place in np.flatnonzero(is_joint_set[sets].any(axis=1)).tolist():
            members = {column for index in sets[place] if index >= 0 for column in self.sets[index]}
            union = tuple(sorted(members))
            if union not in self.sets:
                self.sets = [*self.sets, union]
            sets[place, is_feature[place]] = self.sets.index(union)
        return np.asarray(sets)

    def build(self) -> ColumnTerms:
        """Return the terms."""
        # Divide each monomial into parts, one per distinct set of columns, numbered by first occurrence.
        sets = self.set_of_place
        is_first = np.ones(sets.shape, bool)
        is_first[:, 1] = sets[:, 1] != sets[:, 0]
        is_first[:, 2] = (sets[:, 2] != sets[:, 0]) & (sets[:, 2] != sets[:, 1])
        is_first &= sets >= 0
        part_of_place = np.where(is_first, np.cumsum(is_first, axis=1) - 1, -1)
        for k in (1, 2):
            for earlier in range(k):
                is_same = (sets[:, k] >= 0) & ~is_first[:, k] & (sets[:, k] == sets[:, earlier])
                part_of_place[is_same, k] = part_of_place[is_same, earlier]
        n_parts = is_first.sum(axis=1)
        means = self._compute_means(part_of_place)
        for count in np.unique(n_parts).tolist():
            self._divide(np.flatnonzero(n_parts == count), count, part_of_place, is_first, means)
        return self._assemble()

    def _compute_means(self, part_of_place: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the mean over the rows of each part of each monomial, of shape (monomials, 3)."""
        parts = np.concatenate([self._keep(part_of_place == part) for part in range(3)])
        distinct, index_of_part = np.unique(parts, axis=0, return_inverse=True)
        sums = np.zeros(len(distinct))
        for _, products, values in ProductIndex(distinct).evaluate(self.rows):
            sums += np.bincount(products, weights=values, minlength=len(distinct))
        means = sums / max(self.rows.shape[0], 1)
        return means[index_of_part.reshape(-1)].reshape(3, -1).T

    def _keep(self, is_kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the features where the mask is true, in descending order, padded with -1."""
        return np.asarray(-np.sort(-np.where(is_kept, self.features, -1), axis=1))

    def _divide(
        self,
        members: NDArray[np.intp],
        count: int,
        part_of_place: NDArray[np.int64],
        is_first: NDArray[np.bool_],
        means: NDArray[np.float64],
    ) -> None:
        """Add the monomials with `count` parts to the terms of all subsets of their columns.

        The formula of the module is multiplied out: `subset` is S. A product has the factor y_c for the
        columns in `kept`, and the mean q_c for all other columns.
        """
        parts, weights = part_of_place[members], self.weights[members]
        sets = self.set_of_place[members][is_first[members]].reshape(len(members), count)
        subsets = [[k for k in range(count) if mask >> k & 1] for mask in range(1 << count)]
        self.intercept = self.intercept + weights.T @ means[members][:, :count].prod(axis=1)
        for subset in subsets[1:]:
            terms = self._find_terms(sets[:, subset])
            for kept in subsets:
                if not set(kept) <= set(subset):
                    continue
                averaged = [part for part in range(count) if part not in kept]
                factors = means[members][:, averaged].prod(axis=1) * (-1.0) ** (len(subset) - len(kept))
                products = -np.sort(-np.where(np.isin(parts, kept), self.features[members], -1), axis=1)
                self.listed.append((products, terms, weights * factors[:, None]))

    def _find_terms(self, sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the term for each row of `sets`: the term of the union of the row's sets."""
        distinct, index_of_row = np.unique(np.sort(sets, axis=1), axis=0, return_inverse=True)
        terms = []
        for row in distinct.tolist():
            columns = tuple(sorted({column for index in row for column in self.sets[index]}))
            terms.append(self.index_of_term.setdefault(columns, len(self.index_of_term)))
        return np.array(terms, np.int64)[index_of_row.reshape(-1)]

    def _assemble(self) -> ColumnTerms:
        """Add up the listed coefficients by product and term."""
        from scipy import sparse

        n_scores, n_terms = len(self.intercept), len(self.index_of_term)
        if not self.listed:
            no_products = ProductIndex(np.empty((0, 3), np.int64))
            return ColumnTerms([], no_products, [], np.empty((0, n_scores)), self.intercept)
        features = np.concatenate([products for products, _, _ in self.listed])
        terms = np.concatenate([terms for _, terms, _ in self.listed])
        values = np.concatenate([values for _, _, values in self.listed])
        is_constant = features[:, 0] < 0
        constants = np.zeros((n_terms, n_scores))
        np.add.at(constants, terms[is_constant], values[is_constant])
        distinct, index = np.unique(features[~is_constant], axis=0, return_inverse=True)
        place = (index.reshape(-1), terms[~is_constant])
        coefficients = [
            sparse.csr_matrix((values[~is_constant, score], place), shape=(len(distinct), n_terms))
            for score in range(n_scores)
        ]
        return ColumnTerms(
            list(self.index_of_term), ProductIndex(distinct), coefficients, constants, self.intercept
        )
