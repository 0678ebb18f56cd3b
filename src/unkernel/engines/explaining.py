"""Why a row got its score: the exact part that each conjunction had in it."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows, canonical_rows, is_sparse
from unkernel.engines import build
from unkernel.engines.build import Head, Machine, simplified
from unkernel.models import ConjunctionModel, KernelModel, LinearModel
from unkernel.models.numbering import encode

Model = KernelModel | LinearModel | ConjunctionModel
_MOST_CONJUNCTIONS = 5_000_000


@dataclass(frozen=True)
class Contribution:
    """What a conjunction added to the scores of a row.

    Attributes
    ----------
    features : tuple of int
        Its columns, ascending; one stands twice where a value counts squared.
    names : tuple of str
        Theirs, as far as names were given; else the columns as text.
    value : float, or list of floats
        One for each score of the model.
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    value: float | list[float]


@dataclass(frozen=True)
class Explanation:
    """A score and what it is made of: ``constant``, ``contributions`` and ``rest`` add up to ``score``.

    Attributes
    ----------
    score : float, or list of floats
        What the model says of the row: for models of pairs of classes, the pairs' values.
    constant : float, or list of floats
        What every row gets.
    contributions : list of Contribution
        The largest in size first.
    rest : float, or list of floats
        The sum of those that are not listed.
    n_conjunctions : int
        How many there are, listed or not.
    """

    score: float | list[float]
    constant: float | list[float]
    contributions: list[Contribution] = field(repr=False)
    rest: float | list[float]
    n_conjunctions: int

    def __str__(self) -> str:
        lines = [f"score {_text(self.score)}", f"  {_text(self.constant):>14}  (constant)"]
        lines += [f"  {_text(c.value):>14}  {' & '.join(c.names)}" for c in self.contributions]
        others = self.n_conjunctions - len(self.contributions)
        return "\n".join([*lines, f"  {_text(self.rest):>14}  ({others:,} others)"])


def _text(value: float | list[float]) -> str:
    values = value if isinstance(value, list) else [value]
    return " ".join(f"{number:+.6g}" for number in values)


@dataclass(frozen=True, eq=False)
class Parts:
    """All conjunctions of a row: columns (padded with -1) and what each adds."""

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    constants: NDArray[np.float64]


def explain(model: Model, row: Any, top: int | None, names: Any) -> Explanation:
    """The conjunctions of a row, the largest first; ``CompiledClassifier.explain`` says more."""
    if top is not None and (isinstance(top, bool) or top < 0):
        raise ValueError(f"top must be a number of conjunctions, or None for all, got {top}")
    columns, values = _row(row, model)
    parts = _parts(simplified(model), columns, values)
    sizes = np.abs(parts.values).max(axis=1, initial=0.0)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    shown = order[:top]
    total = parts.constants + parts.values.sum(axis=0)
    return Explanation(
        score=_plain(total),
        constant=_plain(parts.constants),
        contributions=[_contribution(parts, place, names) for place in shown.tolist()],
        rest=_plain(parts.values[order[len(shown) :]].sum(axis=0)),
        n_conjunctions=len(order),
    )


def parts_of(model: Model, columns: NDArray[np.int64]) -> Parts:
    """All conjunctions of a row that has these columns, ascending, with the value 1."""
    return _parts(simplified(model), columns, np.ones(len(columns)))


def _plain(values: NDArray[np.float64]) -> float | list[float]:
    listed: list[float] = values.tolist()
    return listed[0] if len(listed) == 1 else listed


def _contribution(parts: Parts, place: int, names: Any) -> Contribution:
    features = tuple(sorted(column for column in parts.columns[place].tolist() if column >= 0))
    return Contribution(features, tuple(_name(f, names) for f in features), _plain(parts.values[place]))


def _name(feature: int, names: Any) -> str:
    try:
        return str(feature) if names is None else str(names[feature])
    except (KeyError, IndexError):
        return str(feature)


def _row(row: Any, model: Model) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Columns that are not zero, ascending, and their values."""
    if hasattr(row, "to_numpy"):  # pandas: always values, never columns
        row = np.atleast_2d(row.to_numpy())
    elif isinstance(row, Iterator):
        row = list(row)
    columns, values = _listed(row) if _is_listing(row) else _dense(row, model)
    if (columns < 0).any() or not np.isfinite(values).all():
        raise ValueError("a row has columns counted from 0, and finite values")
    order = np.argsort(columns)
    if (np.diff(columns[order]) == 0).any():
        raise ValueError(
            "a column occurs twice in the list of columns; a row of values is given as a matrix of one row"
        )
    present = order[values[order] != 0]
    return columns[present], values[present]


def _is_listing(row: Any) -> bool:
    """Whether a row is given by the columns it has, and not by all its values."""
    if is_sparse(row) or isinstance(row, str | bytes):
        return False
    if isinstance(row, np.ndarray):
        return row.ndim == 1 and row.dtype.kind in "iu"
    return isinstance(row, Mapping) or not any(isinstance(part, list | tuple | np.ndarray) for part in row)


def _listed(row: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    try:
        columns = np.array([operator.index(column) for column in row], np.int64)
    except (TypeError, OverflowError):
        raise ValueError("columns are whole numbers; a row of values is an array or matrix") from None
    values = [float(row[column]) for column in row] if isinstance(row, Mapping) else np.ones(len(columns))
    return columns, np.asarray(values, np.float64)


def _dense(row: Any, model: Model) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    if not is_sparse(row):
        row = np.asarray(row)
        if row.dtype.kind not in "biuf":
            raise ValueError("a row is a list of columns, or an array or matrix of numbers")
        row = np.atleast_2d(row)
    matrix = canonical_rows(row)
    if matrix.shape[0] != 1:
        raise ValueError(f"one row is explained at a time, got {matrix.shape[0]}")
    if model.fixed_width and matrix.shape[1] != model.n_features:
        raise ValueError(
            f"the row has {matrix.shape[1]} features, but the model was trained on {model.n_features}"
        )
    return matrix.indices.astype(np.int64), matrix.data


def _parts(model: Model, columns: NDArray[np.int64], values: NDArray[np.float64]) -> Parts:
    if isinstance(model, LinearModel):
        return _linear_parts(model, columns, values)
    if isinstance(model, ConjunctionModel):
        return _conjunction_parts(model, columns, values)
    return _kernel_parts(model, columns, values)


def _linear_parts(model: LinearModel, columns: NDArray[np.int64], values: NDArray[np.float64]) -> Parts:
    known = columns < model.n_features
    weights = model.weights[columns[known]]
    return Parts(columns[known][:, None], weights * values[known][:, None], model.intercepts)


def _kernel_parts(model: KernelModel, columns: NDArray[np.int64], values: NDArray[np.float64]) -> Parts:
    """Expand the model over the row's own columns: no engine need have done so."""
    if not Machine(model).expandable:
        raise ValueError(
            f"the kernel is {model.kernel.words()}, which is no sum over few conjunctions, so scores cannot "
            "be explained by them; polynomial kernels of degree 1 to 4 can"
        )
    ones = bool((values == 1.0).all())
    narrow = _restricted(model, columns)
    size = len(columns) + (0 if ones and narrow.binary else model.kernel.degree)
    if sum(math.comb(size, k) for k in range(1, model.kernel.degree + 1)) > _MOST_CONJUNCTIONS:
        raise ValueError(f"a row of {len(columns):,} features has too many conjunctions to be explained")
    if not ones:  # sets count with several powers of a value: monomials have one each
        narrow = _as_real(narrow, values)
    tables = build.expanded(Machine(narrow), head=Head(0.0), sets=ones and narrow.binary)
    listing = tables.listing(top=_MOST_CONJUNCTIONS)
    local = np.asarray(listing["columns"])
    return Parts(
        np.where(local >= 0, columns[np.maximum(local, 0)] if len(columns) else local, -1),
        np.asarray(listing["weights"]),
        tables.arrays["constants"],
    )


def _restricted(model: KernelModel, columns: NDArray[np.int64]) -> KernelModel:
    """The model with the given columns alone, numbered from 0."""
    return _with_vectors(model, model.vectors.only_columns(columns))


def _as_real(model: KernelModel, values: NDArray[np.float64]) -> KernelModel:
    """The same products with a row of ones: values move from the row into the support vectors."""
    vectors = model.vectors
    return _with_vectors(model, replace(vectors, data=vectors.data * values[vectors.indices]))


def _with_vectors(model: KernelModel, vectors: CsrRows) -> KernelModel:
    # Scores are all that is asked of it: how they become classes does not matter.
    return KernelModel(
        model.kernel,
        vectors,
        model.coefficients,
        model.intercepts,
        model.decision,
        vectors.shape[1],
        False,
        {},
    )


def _conjunction_parts(
    model: ConjunctionModel, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> Parts:
    ranks, x = _ranked(model, columns, values)
    size = len(ranks) + (0 if model.sets else model.degree)
    if sum(math.comb(size, k) for k in range(1, model.degree + 1)) > _MOST_CONJUNCTIONS:
        raise ValueError(f"a row of {len(ranks):,} features has too many conjunctions to be explained")
    found, parts = [], []
    for order in range(1, model.degree + 1):
        chosen = _combinations(len(ranks), order, model.sets)
        padded = np.full((len(chosen), 3), -1, np.int64)
        padded[:, :order] = ranks[chosen]
        keys = encode(padded, model.degree, model.sets)
        at = np.searchsorted(model.keys, keys)
        there = at < len(model.keys)
        there[there] = model.keys[at[there]] == keys[there]
        found.append(np.where(padded >= 0, model.columns[np.maximum(padded, 0)], -1)[there])
        parts.append(model.weights[at[there]] * _factors(model, x[chosen[there]])[:, None])
    return Parts(np.concatenate(found), np.concatenate(parts), model.constants)


def _ranked(
    model: ConjunctionModel, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The model's ranks of a row, descending, and their values."""
    order = np.argsort(model.columns)
    if not len(order):
        return np.empty(0, np.int64), np.empty(0)
    place = np.minimum(np.searchsorted(model.columns, columns, sorter=order), len(order) - 1)
    ranks = order[place]
    known = model.columns[ranks] == columns
    descending = np.argsort(-ranks[known])
    return ranks[known][descending], values[known][descending]


def _combinations(count: int, order: int, sets: bool) -> NDArray[np.int64]:
    """All choices of `order` among `count` places, ascending; repeats where conjunctions are monomials."""
    choose = itertools.combinations if sets else itertools.combinations_with_replacement
    flat = np.fromiter(itertools.chain.from_iterable(choose(range(count), order)), np.int64)
    return flat.reshape(-1, order)


def _factors(model: ConjunctionModel, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """How conjunctions of these values count: as their product or, for sets, the mean of their monomials."""
    product: NDArray[np.float64] = x.prod(axis=1)
    if not model.sets or x.shape[1] > 2:
        return product
    if x.shape[1] == 1:
        shares = [_square(model, order, math.factorial(order)) for order in (1, 2, 3)]
        powers = sum(share * x[:, 0] ** order for order, share in enumerate(shares, 1))
        return np.asarray(powers / sum(shares))
    plain, mixed = _square(model, 2, 1), _square(model, 3, 2)
    return np.asarray(product * (plain + mixed * x.sum(axis=1)) / (plain + 2 * mixed))


def _square(model: ConjunctionModel, order: int, repeats: int) -> float:
    """The map's squared constant of a monomial of `order` factors, its exponents' factorials given."""
    if order > model.degree:
        return 0.0
    if model.feature_map == "plain":
        return 1.0
    powers = model.coef0 ** (model.degree - order) * model.gamma**order
    return float(math.comb(model.degree, order) * powers * math.factorial(order) / repeats)
