"""Build the tables of engines from models, with one function per engine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unkernel._core import arrange, expand, head_within
from unkernel.data import file_memory_limit
from unkernel.data.rows.csr import CsrRows, narrow
from unkernel.engines.tables.compiled_tables import (
    BITSLICED,
    CONJUNCTIONS,
    INVERTED,
    PAIRS,
    ConjunctionWeights,
    Tables,
    describe_map,
    make_map_arguments,
)
from unkernel.models import ConjunctionModel, Kernel, KernelModel, LinearModel
from unkernel.models.decision import pair_columns
from unkernel.models.model_rows import compute_squared_norms, distinct
from unkernel.models.pair_coefficients import PairCoefficients, find_pairs

Model = KernelModel | LinearModel | ConjunctionModel

LARGEST_EXPANDED_DEGREE = 4
# A feature in at least one of 32 support vectors takes less memory as bits than as a list.
_MAX_VECTORS_PER_ENTRY_AS_BITS = 32
# If gamma times the square of a value exceeds this, kernel values have noticeable rounding errors.
_MAX_SCALED_SQUARE = 1e3
_SMALL_TABLE_BYTES = 4_000_000  # a dense table of this size is worth its memory for every model
_WHOLE_PAIRS_SHARE = 0.75  # a feature with weights for a larger share of pairs gets weights for all pairs
_MAX_DENSE_RATIO = 16.0  # largest size of the dense table, divided by the size of the weights


def check_precomputed(model: Any) -> Any:
    """Return the model; raise a ``ValueError`` if its kernel is precomputed and therefore unknown."""
    if isinstance(model, KernelModel) and model.kernel.name == "precomputed":
        raise ValueError(
            "a model with a precomputed kernel cannot be compiled, because the kernel is unknown; train with "
            "one of the other kernels"
        )
    return model


def simplify(model: Model) -> Model:
    """Return a ``LinearModel`` for models with a linear or constant kernel, and other models unchanged."""
    if not isinstance(model, KernelModel):
        return model
    kernel = check_precomputed(model).kernel
    if kernel.name == "linear":
        gamma, coef0 = 1.0, 0.0
    elif kernel.name == "polynomial" and kernel.degree <= 1:
        gamma, coef0 = (kernel.gamma, kernel.coef0) if kernel.degree else (0.0, 1.0)
    else:
        return model
    if isinstance(model.coefficients, PairCoefficients):
        # Keep the model: weights for all features and pairs of classes would take too much memory.
        return replace(model, kernel=Kernel("linear")) if (gamma, coef0) == (1.0, 0.0) else model
    if model.n_features > max(1 << 20, 8 * model.vectors.nnz):  # an index in a file may be as large as 10^18
        return replace(model, kernel=Kernel("polynomial", 1, gamma, coef0))
    weights = gamma * model.vectors.multiply_transposed(model.coefficients)
    intercept = model.intercept + coef0 * model.coefficients.sum(axis=0)
    return LinearModel(
        weights.reshape(model.n_features, model.n_scores),
        intercept,
        model.decision,
        model.n_features,
        model.fixed_width,
        model.origin,
    )


def simplify_for_engine(model: Model, engine: str) -> Model:
    """Return the simplified model, or the model itself if the engine needs the support vectors."""
    form: Model = simplify(model) if engine in ("auto", "expanded") else check_precomputed(model)
    return form


@dataclass(frozen=True)
class Head:
    """The part of a conjunction table that contains the most frequent features.

    Attributes
    ----------
    nbytes : float
        Size of the dense table.
    fused : int
        Number of features that are fused into one, which has a state for each subset of them.
    grouped : int
        Number of features that are divided into groups, not counting fused features. For each state of a
        group (a subset of its features), a sum of weights is stored instead of conjunctions.
    sum_bytes : float
        Size of these sums.
    by_frequency : bool
        Whether ranks are ordered by frequency, as a prefix trie requires. If so, no features are fused or
        grouped.
    """

    nbytes: float = _SMALL_TABLE_BYTES
    fused: int = 0
    grouped: int = 0
    sum_bytes: float = 0.0
    by_frequency: bool = False


@dataclass(frozen=True, eq=False)
class Machine:
    """A kernel model prepared for compilation: the columns that it uses are numbered from 0."""

    model: KernelModel

    @cached_property
    def used_columns(self) -> NDArray[np.int64]:
        """The columns that occur in support vectors, in ascending order."""
        return distinct(self.model.vectors.indices)

    @cached_property
    def columns(self) -> NDArray[np.int32]:
        """The columns of the support vectors, as positions in ``used_columns``."""
        positions: NDArray[Any] = np.searchsorted(self.used_columns, self.model.vectors.indices)
        return positions.astype(np.int32)

    @cached_property
    def offsets(self) -> NDArray[np.int32]:
        """The offset of each support vector in the entries."""
        offsets = self.model.vectors.indptr
        if offsets[-1] >= np.iinfo(np.int32).max:
            raise ValueError("the support vectors have more than 2^31 entries; no engine can hold them")
        narrow: NDArray[np.int32] = np.ascontiguousarray(offsets, dtype=np.int32)
        return narrow

    @cached_property
    def frequencies(self) -> NDArray[np.int64]:
        """The number of support vectors with each used column."""
        return np.bincount(self.columns, minlength=len(self.used_columns))

    @cached_property
    def binary(self) -> bool:
        """Whether all values are 1."""
        return self.model.binary

    @cached_property
    def by_class(self) -> Machine:
        """The machine with its vectors grouped by class, or the machine itself.

        Vectors of one-against-one models are grouped if this avoids storing zeros.
        """
        model = self.model
        if model.decision.scheme != "one_vs_one" or isinstance(model.coefficients, PairCoefficients):
            return self
        grouped = find_pairs(model.coefficients, len(model.decision.classes))
        if grouped is None:
            return self
        order, coefficients = grouped
        return Machine(replace(model, vectors=model.vectors[order], coefficients=coefficients))

    @property
    def sets(self) -> bool:
        """Whether one weight per set of features can replace the weights of the kernel's monomials.

        If support vectors are binary, the weights of all monomials of the same features have fixed
        proportions. One weight per set then determines all of them, whatever the values of a row. With
        negative parameters, the weights could cancel out.
        """
        return self.binary and self.model.kernel.gamma >= 0 and self.model.kernel.coef0 >= 0

    @property
    def expandable(self) -> bool:
        """Whether the kernel is a sum over few conjunctions."""
        kernel = self.model.kernel
        return kernel.name == "polynomial" and 1 <= kernel.degree <= LARGEST_EXPANDED_DEGREE

    def count_occurrences(self) -> float:
        """Return the sum of the numbers of conjunctions in all support vectors."""
        return float(self._count_conjunctions(np.diff(self.offsets)).sum())

    def count_conjunctions(self, rows: Any) -> float:
        """Return the average number of conjunctions per row."""
        return float(self._count_conjunctions(np.diff(rows.indptr)).mean()) if rows.shape[0] else 0.0

    def _count_conjunctions(self, sizes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the number of conjunctions of a row, for each number of features in `sizes`."""
        degree = self.model.kernel.degree
        if degree > LARGEST_EXPANDED_DEGREE:  # avoids a long loop below
            return np.full(len(sizes), np.inf)
        total, product = np.zeros(len(sizes)), np.ones(len(sizes))
        for k in range(degree):
            # The number of sets of k + 1 features, or of monomials of k + 1 factors.
            product = product * (np.maximum(sizes - k, 0) if self.sets else sizes + k) / (k + 1)
            total = total + product
        return total

    def find_rare_border(self, rare: float) -> int:
        """Return the number of support vectors that a feature needs in order not to be rare.

        `rare` is this number or, if it is below 1, a share of the support vectors.
        """
        return int(np.ceil(rare * self.model.n_support)) if rare < 1 else int(min(rare, 2**32 - 1))


def kernel_parameters(model: KernelModel) -> dict[str, Any]:
    """Return the kernel parameters of engines that keep the support vectors."""
    kernel = model.kernel
    return {
        "kernel": kernel.name,
        "degree": kernel.degree,
        "gamma": float(kernel.gamma),
        "coef0": float(kernel.coef0),
    }


def build_expanded(
    machine: Machine,
    *,
    head: Head,
    rare_below: int = 0,
    threshold: float = 0.0,
    most_bytes: float = np.inf,
    threads: int = 1,
    sets: bool | None = None,
) -> Tables:
    """Build the tables of the engines ``expanded``, ``split`` and ``pruned``.

    The tables contain the weights of conjunctions of features that occur in at least `rare_below` support
    vectors, if their absolute weight is at least `threshold`. `sets` is by default ``machine.sets``; it may
    be True if all values of the rows will be 1.
    """
    model, kernel = machine.model, machine.model.kernel
    sets = machine.sets if sets is None else sets
    dense = replace(head, nbytes=min(head.nbytes, most_bytes))
    layout = _make_head_layout(dense, kernel.degree, sets, model.n_scores, len(machine.used_columns))
    parameters = describe_map(sets, kernel.degree, "kernel", kernel.gamma, kernel.coef0)
    built = expand(
        CsrRows.of(machine.offsets, machine.columns, model.vectors.data, len(machine.used_columns)),
        coefficients=np.ascontiguousarray(model.coefficients).reshape(-1),
        intercept=np.ascontiguousarray(model.intercept),
        **make_map_arguments(parameters),
        head=layout,
        limits=Limits(rare_below, float(threshold), float(most_bytes)),
        threads=threads,
    )
    tables = Tables.from_built(CONJUNCTIONS, parameters, built)
    tables.arrays["columns"] = machine.used_columns[tables.arrays["columns"]]
    return tables


def build_inverted(machine: Machine) -> Tables:
    """Build tables that list the support vectors of each feature."""
    machine = machine.by_class
    vectors = machine.model.n_support
    is_dense = _choose_dense_columns(machine)
    order, ranks = _rank_chosen_first(is_dense, machine)
    holders = np.repeat(np.arange(vectors, dtype=np.uint32), np.diff(machine.offsets))[order]
    values = machine.model.vectors.data[order]
    n_dense_entries = int(machine.frequencies[is_dense].sum())
    file_memory_limit.claim(
        8.0 * int(is_dense.sum()) * vectors, "the columns that are stored with their zeros"
    )
    columns = np.zeros((int(is_dense.sum()), vectors))
    columns[np.repeat(np.arange(len(columns)), machine.frequencies[is_dense]), holders[:n_dense_entries]] = (
        values[:n_dense_entries]
    )
    built = _make_vector_sum(
        machine, np.bincount(holders[n_dense_entries:], values[n_dense_entries:] ** 2, vectors)
    ) | {
        "columns": machine.used_columns[ranks],
        "whole": columns.reshape(-1),
        "list_begins": _compute_begins(machine.frequencies[ranks[len(columns) :]]),
        "lists": np.ascontiguousarray(holders[n_dense_entries:]),
        "list_values": np.empty(0) if machine.binary else np.ascontiguousarray(values[n_dense_entries:]),
    }
    return Tables.from_built(INVERTED, kernel_parameters(machine.model), built)


def build_bitsliced(machine: Machine) -> Tables:
    """Build tables with a bit per support vector for each frequent feature, and lists for other features."""
    if not machine.binary:
        raise ValueError(
            "the bitsliced engine needs support vectors whose values are all 1; use engine='inverted'"
        )
    machine = machine.by_class
    vectors = machine.model.n_support
    common = machine.frequencies * _MAX_VECTORS_PER_ENTRY_AS_BITS >= max(vectors, 1)
    order, ranks = _rank_chosen_first(common, machine)
    holders = np.repeat(np.arange(vectors, dtype=np.uint32), np.diff(machine.offsets))[order]
    frequent, n_bit_entries = int(common.sum()), int(machine.frequencies[common].sum())
    rank_of_bit = np.repeat(np.arange(frequent), machine.frequencies[common])
    built = _make_vector_sum(machine, compute_squared_norms(machine.model.vectors)) | {
        "frequent": frequent,
        "columns": machine.used_columns[ranks],
        "bits": _pack_bits(rank_of_bit, holders[:n_bit_entries], frequent, vectors),
        "list_begins": _compute_begins(machine.frequencies[ranks[frequent:]]),
        "lists": np.ascontiguousarray(holders[n_bit_entries:]),
    }
    return Tables.from_built(BITSLICED, kernel_parameters(machine.model), built)


def is_linear_of_pairs(model: Any) -> TypeGuard[KernelModel]:
    """Return whether a model is linear, and has so many pairs of classes that it needs `build_pairs`."""
    return (
        isinstance(model, KernelModel)
        and isinstance(model.coefficients, PairCoefficients)
        and model.kernel.name == "linear"
    )


def build_pairs(model: KernelModel) -> Tables:
    """Build tables of weights for pairs of classes; a feature with most pairs gets weights for all pairs."""
    coefficients = model.coefficients
    assert isinstance(coefficients, PairCoefficients)
    columns, classes, blocks = _compute_pair_blocks(model.vectors, coefficients)
    used, first, counts = np.unique(columns, return_index=True, return_counts=True)
    scores, pairs_per_class = coefficients.shape[1], coefficients.n_classes - 1
    is_dense = counts * pairs_per_class >= _WHOLE_PAIRS_SHARE * scores
    file_memory_limit.claim(8.0 * int(is_dense.sum()) * scores, "the weights of all pairs of classes")
    whole = np.zeros((int(is_dense.sum()), scores))
    for row, (begin, count) in enumerate(zip(first[is_dense], counts[is_dense], strict=True)):
        for index in range(begin, begin + count):
            whole[row, pair_columns(coefficients.n_classes, int(classes[index]))] += blocks[index]
    is_in_blocks = ~np.repeat(is_dense, counts)
    built = {
        "classes": coefficients.n_classes,
        "columns": np.concatenate([used[is_dense], used[~is_dense]]).astype(np.int64),
        "intercepts": np.ascontiguousarray(model.intercept),
        "whole": whole.reshape(-1),
        "block_begins": _compute_begins(counts[~is_dense]),
        "block_classes": classes[is_in_blocks].astype(np.uint32),
        "blocks": np.ascontiguousarray(blocks[is_in_blocks]).reshape(-1),
    }
    return Tables.from_built(PAIRS, {}, built)


def _compute_pair_blocks(
    vectors: CsrRows, coefficients: PairCoefficients
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the feature, the class and the weights of each block, sorted by feature, then by class.

    A block contains the weights of one feature in all pairs of one class.
    """
    columns, classes, blocks = [], [], []
    for code, rows in coefficients.by_class():
        used = distinct(vectors[rows].indices)
        columns.append(used.astype(np.int64))
        classes.append(np.full(len(used), code))
        blocks.append(vectors[rows].select_columns(used).multiply_transposed(coefficients.values[rows]))
    column, of_class = np.concatenate(columns), np.concatenate(classes)
    order = np.lexsort((of_class, column))
    return column[order], of_class[order], np.concatenate(blocks)[order]


def _rank_chosen_first(
    chosen: NDArray[np.bool_], machine: Machine
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the order of entries by rank, then by support vector, and the column of each rank.

    Chosen columns have the lowest ranks.
    """
    ranks = np.argsort(~chosen, kind="stable")
    rank_of = np.empty(len(ranks), np.int64)
    rank_of[ranks] = np.arange(len(ranks))
    return np.argsort(rank_of[machine.columns], kind="stable"), ranks


def _choose_dense_columns(machine: Machine) -> NDArray[np.bool_]:
    """Return which columns to store with their zeros, to save memory or to get more accurate distances."""
    vectors = machine.model.vectors
    if machine.binary:
        return np.zeros(len(machine.used_columns), bool)
    is_dense: NDArray[np.bool_] = 2 * machine.frequencies > vectors.shape[0]
    if machine.model.kernel.name == "rbf":
        largest = np.zeros(len(machine.used_columns))
        with np.errstate(over="ignore"):
            np.maximum.at(largest, machine.columns, vectors.data**2)
        is_dense |= largest * machine.model.kernel.gamma > _MAX_SCALED_SQUARE
    return is_dense


def _make_vector_sum(machine: Machine, norms: NDArray[Any]) -> dict[str, Any]:
    """Return the arrays that all support-vector engines need."""
    model, coefficients = machine.model, machine.model.coefficients
    pairs = coefficients if isinstance(coefficients, PairCoefficients) else None
    built = {
        "coefficients": np.ascontiguousarray(pairs.values if pairs else coefficients).reshape(-1),
        "intercepts": np.ascontiguousarray(model.intercept),
        "norms": norms.astype(np.float64) if model.kernel.name == "rbf" else np.empty(0),
    }
    return built | ({"class_begins": _compute_begins(np.array(pairs.counts))} if pairs else {})


def _compute_begins(counts: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the offset at which each list begins, and the end of the last one, given their lengths."""
    begins = np.zeros(len(counts) + 1, np.uint32)
    np.cumsum(counts, out=begins[1:])
    return begins


def _pack_bits(ranks: NDArray[Any], holders: NDArray[Any], frequent: int, vectors: int) -> NDArray[np.uint64]:
    """Return one row of bits per rank, packed into 64-bit words and padded to blocks of 512 bits."""
    words = (vectors + 511) // 512 * 8
    bits = np.zeros(frequent * words, np.uint64)
    word_index = ranks.astype(np.int64) * words + holders // 64
    np.bitwise_or.at(bits, word_index, np.uint64(1) << (holders % 64).astype(np.uint64))
    return bits


def build_linear(model: LinearModel) -> Tables:
    """Build tables of weights of single features, without features whose weights are all zero."""
    used = np.flatnonzero(model.weights.any(axis=1))
    # At degree 1, a weight is multiplied by the value: the same tables serve binary and real rows.
    return _arrange_weights(
        describe_map(True, 1, "kernel", 1.0, 0.0),
        ConjunctionWeights.from_arrays(
            used.astype(np.int64),
            np.arange(1, len(used) + 1, dtype=np.uint64),
            model.weights[used],
            model.intercept,
            max(model.n_features, 1),
        ),
        head=Head(nbytes=np.inf),
    )


def build_conjunctions(
    model: ConjunctionModel, *, head: Head, sample: Any = None, threads: int = 1
) -> Tables:
    """Build tables of a model's weights; `sample` determines which features are grouped together."""
    return _arrange_weights(
        describe_map(model.sets, model.degree, model.feature_map, model.gamma, model.coef0),
        ConjunctionWeights.from_arrays(
            model.columns, model.keys, model.weights, model.intercept, model.n_features
        ),
        head=head,
        sample=sample,
        threads=threads,
    )


def choose_default_head(model: ConjunctionModel) -> Head:
    """Return a head as large as a sparse table; for small models, up to 16 times as large.

    The limit for small models is necessary because parsers have dozens of models.
    """
    sparse = float(len(model.keys)) * (12 + 8 * len(model.intercept))
    return Head(nbytes=max(sparse, min(_SMALL_TABLE_BYTES, _MAX_DENSE_RATIO * sparse)))


def count_dense_entries(ranks: int, degree: int) -> int:
    """Return the number of sets of at most `degree` out of `ranks` features, including the empty set."""
    return sum(math.comb(ranks, size) for size in range(degree + 1))


@dataclass(frozen=True)
class HeadLayout:
    """The head in the form that the core reads: as numbers of features and sums."""

    fused: int
    ranks: int
    by_frequency: bool
    grouped: int
    most_sums: float


@dataclass(frozen=True)
class Limits:
    """Limits of an expansion: for rare features, small weights and the size of tables."""

    rare_below: int
    threshold: float
    most_bytes: float


def _make_head_layout(head: Head, degree: int, sets: bool, scores: int, used: int) -> HeadLayout:
    """Convert a head from bytes to numbers of features and sums, for `used` features."""
    fused = head.fused if sets else 0
    ranks = head_within(bytes=head.nbytes, degree=degree, sets=sets, fused=fused, scores=scores, used=used)
    return HeadLayout(
        fused=fused,
        ranks=int(ranks),
        by_frequency=head.by_frequency,
        grouped=head.grouped if sets else 0,
        most_sums=head.sum_bytes / (8 * scores),
    )


def _arrange_weights(
    parameters: dict[str, Any],
    weights: ConjunctionWeights,
    *,
    head: Head,
    sample: Any = None,
    threads: int = 1,
) -> Tables:
    """Build tables that contain the given weights."""
    degree, sets = parameters["degree"], parameters["sets"]
    layout = _make_head_layout(head, degree, sets, len(weights.intercept), len(weights.columns))
    file_memory_limit.claim(_estimate_bytes(weights, head, layout, degree), "the tables of conjunctions")
    built = arrange(
        weights,
        **make_map_arguments(parameters),
        head=layout,
        sample=CsrRows.of(np.zeros(1), [], [], 0) if sample is None else narrow(sample),
        threads=threads,
    )
    return Tables.from_built(CONJUNCTIONS, parameters, built)


def _estimate_bytes(weights: ConjunctionWeights, head: Head, layout: HeadLayout, degree: int) -> float:
    """Return the estimated memory of :func:`arrange`: the dense table once, all other tables twice."""
    scores, used = len(weights.intercept), len(weights.columns)
    dense = min(head.nbytes, 8.0 * scores * math.comb(used + degree, degree))
    return dense + 2.0 * (8 * scores * max(used - layout.ranks, 0) + len(weights.keys) * (24 + 8 * scores))
