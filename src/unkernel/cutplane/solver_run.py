"""Prepare training rows, and solve one problem on them, for all estimators of this room."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Bundle, Oracle, PackedRows, RowStore, minimise, pack_rows_by_frequency, train_dual
from unkernel.cutplane.checkpoints import Checkpoint
from unkernel.cutplane.options import DualOptions, LoopOptions
from unkernel.data.checksums import checksum_of
from unkernel.data.memory import available_bytes
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_files import RowFile, open_rows
from unkernel.learners.base import Outcome
from unkernel.learners.progress import OnProgress

Weights = NDArray[np.float64]

# Estimated memory per column: the old and the new number of the column, and its weight. Columns of files are
# not renumbered; for them, the estimate includes a dozen cuts and vectors of the solver.
_BYTES_PER_COLUMN_IN_MEMORY = 24
_BYTES_PER_COLUMN_IN_FILES = 128


def is_path(X: Any) -> bool:
    """Return whether X names files: a path, a pattern such as ``part-*.svm``, or a list of paths."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list) and len(X) > 0 and all(isinstance(part, str | os.PathLike) for part in X)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows in the form that the solvers take, and the meaning of their columns.

    Attributes
    ----------
    store : RowStore
        The rows, in memory or in a file.
    n_features : int
        Number of columns of the model.
    columns : ndarray of ints
        The model's column for each column of the store; negative for columns that the model lacks.
    identity : dict
        Identifies the rows in checkpoints.
    """

    store: RowStore
    n_features: int
    columns: NDArray[Any]
    identity: dict[str, Any] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """Whether the rows are read from a file in every pass."""
        return not isinstance(self.store, PackedRows)

    def to_columns(self, weights: Weights) -> Weights:
        """Convert the solver's weights to weights of the model's columns, without the intercept."""
        has_column = self.columns >= 0
        result = np.zeros(self.n_features)
        result[self.columns[has_column]] = weights[: len(self.columns)][has_column]
        return result

    def to_store(self, coefficients: Weights, constant: Weights) -> Weights:
        """Convert the model's weights to weights of the solver; the inverse of :meth:`to_columns`."""
        return np.concatenate([np.where(self.columns >= 0, coefficients[self.columns], 0.0), constant])


def pack_rows(
    X: Any, threads: int, *, identify: bool, order: NDArray[np.int64] | None = None
) -> TrainingRows:
    """Pack the rows of a matrix or, if `order` is given, the rows with these numbers."""
    rows = canonical_rows(X)
    _check_width(rows.shape[1], _BYTES_PER_COLUMN_IN_MEMORY)
    store, columns = pack_rows_by_frequency(rows, order=order, threads=threads)
    identity = {"shape": list(rows.shape), "entries": int(rows.nnz)}
    if identify:
        identity["checksum"] = compute_checksum([rows.indptr, rows.indices, rows.data])
    return TrainingRows(store, rows.shape[1], columns.astype(np.int64), identity)


class MergedRows(NamedTuple):
    """Distinct rows. Each of them represents all equal rows of its class."""

    order: NDArray[np.int64] | None  # the numbers of the kept rows; None if all rows are kept
    codes: NDArray[np.int32]  # the class of each kept row
    weights: Weights | None  # the summed weight of each kept row; None if all are 1


def merge_equal_rows(rows: CsrRows, codes: NDArray[np.int32], weights: Weights | None) -> MergedRows:
    """Merge equal rows of the same class into one row with the sum of their weights.

    Merged rows are sorted by their content, and rows of weight 0 are left out. Dual coordinate descent
    depends on the order of rows; thanks to the sorting, it gives identical results for repeated rows and for
    weighted rows. If all rows differ and have no weights, nothing changes.

    Parameters
    ----------
    rows : CsrRows
    codes : ndarray of int32
        The class of each row.
    weights : ndarray or None
        The weight of each row; None means that all weights are 1.
    """
    if weights is not None and (weights == 1.0).all():
        weights = None
    matrix = rows.to_scipy()
    # Equal rows have the same inner product with a random vector, and different rows hardly ever do.
    keys = matrix @ np.random.default_rng(0).uniform(1.0, 2.0, rows.shape[1])
    order = np.lexsort((codes, keys))
    if weights is not None:
        order = order[weights[order] > 0]
    same_as_previous = (keys[order[1:]] == keys[order[:-1]]) & (codes[order[1:]] == codes[order[:-1]])
    if weights is None and not same_as_previous.any():
        return MergedRows(None, codes, weights)
    # Compare the contents too, because different rows may have the same key.
    repeated = np.flatnonzero(same_as_previous) + 1
    differences = matrix[order[repeated]] - matrix[order[repeated - 1]]
    same_as_previous[repeated - 1] = abs(differences).sum(axis=1).ravel() == 0
    first = np.flatnonzero(np.r_[True, ~same_as_previous])
    weight_sums = np.add.reduceat(np.ones(len(order)) if weights is None else weights[order], first)
    merged_order = order[first]
    return MergedRows(merged_order.astype(np.int64, copy=False), codes[merged_order], weight_sums)


def open_row_files(
    source: Any, threads: int, *, cache: Any, zero_based: Any = "auto", on_reading: Any = None
) -> tuple[TrainingRows, RowFile]:
    """Open the packed copy of svmlight files, making the copy if it does not exist."""
    opened = open_rows(
        source,
        cache=cache,
        zero_based=zero_based,
        n_jobs=threads,
        on_progress=on_reading,
    )
    if opened.store.entries == 0:
        raise ValueError(f"{os.fspath(opened.sources[0])}: no row has any feature")
    _check_width(int(opened.store.features), _BYTES_PER_COLUMN_IN_FILES)
    columns = np.arange(opened.store.features) - (0 if opened.zero_based else 1)
    stamps = [[os.fspath(path), path.stat().st_size, path.stat().st_mtime_ns] for path in opened.sources]
    identity = {"sources": stamps, "rows": int(opened.store.rows)}
    return TrainingRows(opened.store, opened.n_features, columns, identity), opened


def _check_width(columns: int, bytes_per_column: int) -> None:
    """Raise a ``MemoryError`` if the weights and cuts of `columns` columns do not fit into memory."""
    needed, free = columns * bytes_per_column, available_bytes()
    if needed > free:
        raise MemoryError(
            f"the largest column is number {columns:,}: weights and cuts for so many take {needed:,} bytes, "
            f"and {free:,.0f} are free; number the features consecutively"
        )


def compute_pair_accuracy(tol: float) -> float:
    """Return the relative error allowed in the pairwise risk: a small fraction of `tol`, the allowed gap."""
    return tol / 20


def compute_checksum(arrays: Iterable[NDArray[Any]]) -> int:
    """Return one checksum of several arrays."""
    sums = [checksum_of(np.ascontiguousarray(array)) for array in arrays]
    return checksum_of(np.array(sums, np.uint64))


@dataclass(frozen=True, eq=False)
class SolverOptions:
    """Options of the solvers of a fit.

    Attributes
    ----------
    C, tol, max_iter, threads
        As in the estimators.
    intercept : float
        The value of the constant feature that serves as intercept; 0 if there is no intercept.
    most_cuts : int
    on_progress : callable or None
        Called with the progress of the solver.
    checkpoint : path, or None
        Folder in which cuts are saved; a killed run can be continued from it.
    """

    C: float
    tol: float
    max_iter: int
    threads: int
    intercept: float
    most_cuts: int
    on_progress: OnProgress | None
    checkpoint: str | os.PathLike[str] | None = None


@dataclass(frozen=True, eq=False)
class Solution(Outcome):
    """The outcome of training, including the weights."""

    weights: Weights


class Minimiser(Protocol):
    """Runs the one-slack loop on rows on this machine or on a cluster."""

    @property
    def rows(self) -> TrainingRows:
        """The rows, or a description of the rows if they are on a cluster."""

    @property
    def dimension(self) -> int:
        """The number of weights."""

    def new_bundle(self, most_cuts: int) -> Bundle:
        """Return a bundle without cuts."""

    def run(
        self, oracle: Any, bundle: Bundle, start: Weights, options: LoopOptions, **observers: Any
    ) -> dict[str, Any]:
        """Run ``minimise`` of the core; the observers are ``on_progress`` and ``observe``."""

    def scores(self, weights: Weights, threads: int) -> Weights:
        """Compute the score of each row."""


@dataclass(frozen=True, eq=False)
class LocalMinimiser:
    """Runs the one-slack loop on rows of this machine."""

    rows: TrainingRows
    intercept: float

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the rows, which a checkpoint must match."""
        return self.rows.identity

    @property
    def dimension(self) -> int:
        """The number of weights."""
        return int(self.rows.store.features) + (self.intercept != 0)

    def new_bundle(self, most_cuts: int) -> Bundle:
        return Bundle(self.dimension, most_cuts, of_rows=False)

    def run(
        self, oracle: Oracle, bundle: Bundle, start: Weights, options: LoopOptions, **observers: Any
    ) -> dict[str, Any]:
        """Run ``minimise`` of the core; the observers are ``on_progress`` and ``observe``."""
        return dict(
            minimise(
                options,
                rows=self.rows.store,
                oracle=oracle,
                intercept=self.intercept,
                bundle=bundle,
                start=start,
                **observers,
            )
        )

    def scores(self, weights: Weights, threads: int) -> Weights:
        """Compute the score of each row."""
        return np.asarray(self.rows.store.scores(weights, self.intercept, threads))


def solve_by_cuts(
    minimiser: Minimiser,
    oracle: Any,
    options: SolverOptions,
    *,
    identity: dict[str, Any],
    start: Weights | None = None,
    bundle: Bundle | None = None,
    place: tuple[int, int] = (0, 1),
) -> Solution:
    """Run the one-slack loop, continuing from the checkpoint of an earlier run if there is one."""
    bundle = minimiser.new_bundle(options.most_cuts) if bundle is None else bundle
    start_weights = np.zeros(minimiser.dimension) if start is None else start
    rounds = 0
    with Checkpoint.open(options.checkpoint, place[0], identity) as checkpoint:
        restored = None if checkpoint is None or len(bundle) else checkpoint.restore(bundle)
        if restored is not None:
            start_weights, rounds = restored
        result = minimiser.run(
            oracle,
            bundle,
            start_weights,
            LoopOptions(options.C, options.tol, max(options.max_iter - rounds, 0), options.threads, *place),
            on_progress=options.on_progress,
            observe=None if checkpoint is None else checkpoint.make_observer(bundle, rounds),
        )
    return _make_solution(result, rounds)


def solve_by_dual(
    rows: TrainingRows,
    signed_costs: Weights,
    options: SolverOptions,
    *,
    squared: bool,
    seed: int,
    place: tuple[int, int],
) -> Solution:
    """Run dual coordinate descent on rows in memory."""
    assert isinstance(rows.store, PackedRows)
    result = train_dual(
        DualOptions(options.tol, options.max_iter, seed, options.threads, *place),
        rows=rows.store,
        intercept=options.intercept,
        squared=squared,
        signed_costs=options.C * signed_costs,
        duals=np.empty(0),
        on_progress=options.on_progress,
    )
    return _make_solution(dict(result), 0)


def _make_solution(result: dict[str, Any], rounds_before: int) -> Solution:
    """Return the solution; rounds include those of the interrupted runs that it continues."""
    return Solution(
        weights=np.asarray(result["weights"]),
        objective=float(result["objective"]),
        bound=float(result["bound"]),
        rounds=rounds_before + int(result["rounds"]),
        converged=bool(result["converged"]),
        history=np.asarray(result["history"]) + np.array([rounds_before, 0.0, 0.0]),
    )
