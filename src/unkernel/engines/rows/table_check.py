"""Check that the compiled tables and the model in a file belong together.

Random rows are scored by the engine and, with numpy alone, by the model. Each check draws new rows: tables
can therefore not be forged to be correct only for the rows of the check.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines.explain.contributions import Split, make_split
from unkernel.errors import FormatError
from unkernel.models import ConjunctionModel, KernelModel, LinearModel
from unkernel.models.kernel import Kernel
from unkernel.models.numbering import decode
from unkernel.models.pair_coefficients import PairCoefficients

Model = KernelModel | LinearModel | ConjunctionModel

_TOLERANCE = 1e-9  # largest difference of scores, relative to the sum of the absolute summands
_CONJUNCTION_ROWS = 16
_CONJUNCTIONS_PER_ROW = 4
_VECTOR_ROWS = 8  # number of rows made from support vectors
_MAX_NUMBERS_AT_ONCE = 1 << 22


class Row(NamedTuple):
    """A row: its columns in ascending order, and their values."""

    columns: NDArray[np.int64]
    values: NDArray[np.float64]


class Sum(NamedTuple):
    """The scores of a row. Rounding errors are proportional to `sizes`, the sums of absolute summands."""

    scores: NDArray[np.float64]
    sizes: NDArray[np.float64]


def check_answers(model: Model, engine: Any, file: str, generator: np.random.Generator) -> None:
    """Raise a ``FormatError`` if an exact engine and the model give different scores on random rows."""
    split = make_split(model)
    for row in _draw_rows(model, generator):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = _sum_model(model, row, split)
        if np.isfinite(expected.sizes).all() and not _have_equal_scores(
            engine, row, expected, model.n_features
        ):
            raise FormatError(
                file, 0, 0, "the compiled tables and the model beside them give different scores"
            )


def _have_equal_scores(engine: Any, row: Row, expected: Sum, n_features: int) -> bool:
    """Return whether the engine's scores of a row, in a batch and alone, equal the model's scores."""
    rows = CsrRows.of([0, len(row.columns)], row.columns, row.values, n_features)
    try:
        batch_scores: Any = np.asarray(engine.score(rows, 1))[0]
        single_scores: Any = engine.one_row.score_one(row.columns, row.values.tolist())
    except ValueError:  # a score is not finite
        return False
    limit = _TOLERANCE * expected.sizes
    return all(
        (np.abs(np.ravel(scores) - expected.scores) <= limit).all()
        for scores in (batch_scores, single_scores)
    )


# --- Rows -------------------------------------------------------------------------------------------------


def _draw_rows(model: Model, generator: np.random.Generator) -> list[Row]:
    if isinstance(model, ConjunctionModel):
        return [_draw_conjunctions(model, generator) for _ in range(_CONJUNCTION_ROWS)]
    if isinstance(model, LinearModel):
        return [_draw_columns(model, generator)]
    if not model.n_support:
        return [_make_binary_row(np.empty(0, np.int64))]
    return [_draw_vector(model, generator, is_whole=number % 2 == 0) for number in range(_VECTOR_ROWS)]


def _make_binary_row(columns: NDArray[np.int64]) -> Row:
    return Row(columns, np.ones(len(columns)))


def _draw_conjunctions(model: ConjunctionModel, generator: np.random.Generator) -> Row:
    """Draw a row that has all features of several conjunctions."""
    if not len(model.keys):
        return _make_binary_row(np.empty(0, np.int64))
    chosen = model.keys[generator.integers(len(model.keys), size=_CONJUNCTIONS_PER_ROW)]
    ranks = decode(chosen, model.degree, model.sets)
    return _make_binary_row(np.unique(model.columns[ranks[ranks >= 0]]).astype(np.int64))


def _draw_columns(model: LinearModel, generator: np.random.Generator) -> Row:
    """Draw a row with many columns; a wrong weight of any of them changes the score."""
    max_columns = max(1, _MAX_NUMBERS_AT_ONCE // model.n_scores)
    first = int(generator.integers(max(1, model.n_features - max_columns + 1)))
    columns = np.arange(first, min(first + max_columns, model.n_features), dtype=np.int64)
    return Row(columns, generator.uniform(1.0, 2.0, len(columns)))


def _draw_vector(model: KernelModel, generator: np.random.Generator, *, is_whole: bool) -> Row:
    """Draw a support vector, or about half of its entries."""
    index = generator.integers(model.n_support)
    begin, end = model.vectors.indptr[index : index + 2]
    is_kept = np.ones(end - begin, bool) if is_whole else generator.random(end - begin) < 0.5
    columns = model.vectors.indices[begin:end][is_kept].astype(np.int64)
    return Row(columns, model.vectors.data[begin:end][is_kept])


# --- Scores by the model ---------------------------------------------------------------------------------


def _sum_model(model: Model, row: Row, split: Split) -> Sum:
    if isinstance(model, KernelModel):
        return _sum_vectors(model, row)
    summands = split(row.columns, row.values).values
    return Sum(summands.sum(axis=0) + model.intercept, np.abs(summands).sum(axis=0) + np.abs(model.intercept))


def _sum_vectors(model: KernelModel, row: Row) -> Sum:
    """Return the scores of a row as sums over all support vectors, computed in batches."""
    vectors = model.vectors
    step = max(1, vectors.shape[0] * _MAX_NUMBERS_AT_ONCE // max(vectors.nnz, 1))
    parts = [
        _compute_kernel_values(model.kernel, vectors[begin : begin + step], row)
        for begin in range(0, max(vectors.shape[0], 1), step)
    ]
    values, sizes = (np.concatenate(part)[None] for part in zip(*parts, strict=True))
    return Sum(
        (values @ model.coefficients)[0] + model.intercept,
        (sizes @ _compute_absolute_values(model.coefficients))[0] + np.abs(model.intercept),
    )


def _compute_kernel_values(kernel: Kernel, vectors: CsrRows, row: Row) -> tuple[Any, Any]:
    """Return the kernel value of each vector with the row, and a bound on its rounding error."""
    count, vector_of_entry = vectors.shape[0], vectors.row_of_entry()
    positions = np.minimum(np.searchsorted(row.columns, vectors.indices), max(len(row.columns) - 1, 0))
    is_shared = row.columns[positions] == vectors.indices if len(row.columns) else np.zeros(vectors.nnz, bool)
    factors = vectors.data[is_shared] * row.values[positions[is_shared]]
    products: Any = np.bincount(vector_of_entry[is_shared], factors, count)
    sizes: Any = np.bincount(vector_of_entry[is_shared], np.abs(factors), count)
    if kernel.name == "linear":
        return products, sizes
    if kernel.name == "rbf":
        norms = np.bincount(vector_of_entry, vectors.data**2, count) + (row.values**2).sum()
        values = np.exp(-kernel.gamma * np.maximum(norms - 2.0 * products, 0.0))
        return values, values * (1.0 + abs(kernel.gamma) * norms)
    inner = kernel.gamma * products + kernel.coef0
    sizes = abs(kernel.gamma) * sizes + abs(kernel.coef0)
    if kernel.name == "sigmoid":
        return np.tanh(inner), 1.0 + sizes
    return inner**kernel.degree, sizes**kernel.degree


def _compute_absolute_values(
    coefficients: NDArray[np.float64] | PairCoefficients,
) -> NDArray[np.float64] | PairCoefficients:
    if isinstance(coefficients, PairCoefficients):
        return PairCoefficients(np.abs(coefficients.values), coefficients.counts)
    return np.abs(coefficients)
