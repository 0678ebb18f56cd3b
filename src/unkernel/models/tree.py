"""Kernel machines over trees: support trees, coefficients and a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ExampleKernel as CoreKernel
from unkernel._core import ExampleSet, example_set, kernel_matrix
from unkernel._core import Forest as SubtreeTable
from unkernel.data.rows.csr import CsrRows, canonical_rows, stacked
from unkernel.data.trees.forest import Forest, Vectors
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.base import Arrays, DecidedModel, Settings
from unkernel.models.decision import Decision
from unkernel.models.kernel import Kernel

_KERNEL_WORDS = {
    "st": "subtrees",
    "sst": "subset trees",
    "sst_bow": "subset trees and words",
    "ptk": "partial trees",
}
TREE_KERNELS = tuple(_KERNEL_WORDS)
COMBINATIONS = ("trees", "vectors", "sum", "product")
PAIRINGS = ("same", "all")
VECTOR_KERNELS = ("linear", "polynomial", "rbf", "sigmoid")
LEAST_DECAY = 1e-6  # smaller decays are lost to rounding in 1 + decay
_OFFSET = np.int64


@dataclass(frozen=True)
class ExampleKernel:
    """The kernel of two examples that are made of trees and vectors.

    Attributes
    ----------
    tree : {"sst", "st", "sst_bow", "ptk"}
        Subset trees, whole subtrees, subset trees and words, partial trees.
    decay : float
        lambda: SVM-light-TK's ``-L``.
    width_decay : float
        mu, of partial trees: SVM-light-TK's ``-M``.
    normalize : bool
        Whether a tree's kernel with itself is brought to 1.
    tree_pairing : {"same", "all"}
        Where examples have several trees: the sum over trees of the same channel, or over all pairs of them
        (``-W S`` and ``-W A``).
    combination : {"trees", "vectors", "sum", "product"}
        What counts: ``-C T``, ``V``, ``+`` and ``*``.
    tree_weight : float
        The weight of the trees in a sum: ``-T``.
    vector : Kernel
        Of the vectors.
    normalize_vectors : bool
    vector_pairing : {"same", "all"}
        As for trees (``-V``).
    """

    tree: str = "sst"
    decay: float = 0.4
    width_decay: float = 0.4
    normalize: bool = True
    tree_pairing: str = "same"
    combination: str = "trees"
    tree_weight: float = 1.0
    vector: Kernel = Kernel("linear")  # noqa: RUF009 (frozen)
    normalize_vectors: bool = False
    vector_pairing: str = "same"

    def __post_init__(self) -> None:
        """Check that the parameters make a kernel."""
        for name, value, choices in (
            ("tree", self.tree, TREE_KERNELS),
            ("combination", self.combination, COMBINATIONS),
            ("tree_pairing", self.tree_pairing, PAIRINGS),
            ("vector_pairing", self.vector_pairing, PAIRINGS),
            ("vector kernel", self.vector.name, VECTOR_KERNELS),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        for name, decay in (("decay", self.decay), ("width_decay", self.width_decay)):
            if not LEAST_DECAY <= decay < np.inf:
                raise ValueError(f"{name} must be a number from {LEAST_DECAY} on, got {decay!r}")
        if not 0 <= self.tree_weight < np.inf:
            raise ValueError(f"tree_weight must be a number from 0 on, got {self.tree_weight!r}")

    def words(self) -> str:
        """A short description, for messages."""
        trees = f"{_KERNEL_WORDS[self.tree]}, decay {self.decay:g}"
        if self.tree == "ptk":
            trees += f", width decay {self.width_decay:g}"
        return {
            "trees": trees,
            "vectors": f"vectors, {self.vector.words()}",
            "sum": f"{self.tree_weight:g} times {trees}, plus vectors, {self.vector.words()}",
            "product": f"{trees}, times vectors, {self.vector.words()}",
        }[self.combination]

    def core(self) -> CoreKernel:
        """The kernel object of the core."""
        return CoreKernel(
            tree=self.tree,
            decay=float(self.decay),
            width_decay=float(self.width_decay),
            vector=self.vector.name,
            degree=int(self.vector.degree),
            gamma=float(self.vector.gamma),
            coef0=float(self.vector.coef0),
            combination=self.combination,
            tree_weight=float(self.tree_weight),
        )

    def examples(
        self, forest: Forest, *, like: Forest | None = None, indexed: bool = False, threads: int = 1
    ) -> ExampleSet:
        """The examples of a forest, counted and normalised for this kernel.

        Parameters
        ----------
        like : Forest, default=None
            The other side of the kernel, whose channels these are matched with.
        indexed : bool, default=False
            Whether others will be compared with these.
        """
        other = forest if like is None else like
        trees: list[Any] = []
        vectors: list[Any] = []
        if self.combination != "vectors":
            # With "all", every tree is compared with every other, whatever their channels are called.
            every = self.tree_pairing == "all"
            roots = list(forest.trees.values()) if every else forest.roots_like(other)
            trees = _tree_channels(roots, len(forest), self.tree_pairing)
        if self.combination != "trees":
            own = forest.vectors_like(other, every=self.vector_pairing == "all")
            vectors = _vector_channels(own, len(forest), self.vector_pairing)
        return example_set(
            kernel=self.core(),
            forest=forest.table,
            size=len(forest),
            trees=trees,
            vectors=vectors,
            normalize_trees=self.normalize,
            normalize_vectors=self.normalize_vectors,
            indexed=indexed,
            threads=threads,
        )

    def to_json(self) -> dict[str, Any]:
        """The table that a ``.uk`` file holds."""
        return asdict(self)

    @classmethod
    def from_json(cls, name: str, stored: Any) -> ExampleKernel:
        """Check the table that the file `name` holds and make the kernel of it."""
        damaged = FormatError(name, 0, 0, "the model's setting 'kernel' is missing or damaged")
        if not isinstance(stored, dict) or set(stored) != set(cls.__dataclass_fields__):
            raise damaged
        try:
            values = {key: _typed(stored[key], getattr(cls, key)) for key in stored if key != "vector"}
            vector = stored["vector"]
            kernel = Kernel(
                _typed(vector["name"], ""),
                _typed(vector["degree"], 1),
                *(_typed(vector[k], 1.0) for k in ("gamma", "coef0")),
            )
            return cls(**values, vector=kernel)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged from error


def _typed(value: Any, example: Any) -> Any:
    """The value, after a check that it has the example's type; whole numbers are taken for floats."""
    if isinstance(example, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(example):
        raise TypeError("not of its type")
    return value


def _tree_channels(channels: Sequence[NDArray[np.int32]], size: int, pairing: str) -> list[Any]:
    if pairing == "all":
        together = np.column_stack(channels) if channels else np.empty((size, 0), np.int32)
        ends = np.arange(len(together) + 1, dtype=_OFFSET) * together.shape[1]
        return [(ends, np.ascontiguousarray(together.reshape(-1)))]
    return [(np.arange(len(roots) + 1, dtype=_OFFSET), np.ascontiguousarray(roots)) for roots in channels]


def _vector_channels(channels: Sequence[Vectors | None], size: int, pairing: str) -> list[Any]:
    known = [channel for channel in channels if channel is not None]
    if pairing == "all":
        return [_all_vectors(known) if known else _one_vector(None, size)]
    return [_one_vector(channel, size) for channel in channels]


def _one_vector(channel: Vectors | None, size: int) -> Any:
    if channel is None:
        channel = Vectors(canonical_rows(np.empty((size, 0))), np.zeros(size, bool))
    ends = np.concatenate([[0], np.cumsum(channel.present)]).astype(_OFFSET)
    rows = channel.matrix[np.flatnonzero(channel.present)]
    return (ends, rows.indptr.astype(_OFFSET), rows.indices.astype(np.int32), rows.data.astype(np.float64))


def _all_vectors(channels: list[Vectors]) -> Any:
    """All vectors of an example one after another."""
    present = np.column_stack([channel.present for channel in channels])
    size = len(present)
    order = (np.arange(size)[:, None] + size * np.arange(len(channels))[None, :])[present]
    rows = stacked([channel.matrix for channel in channels])[order]
    ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(_OFFSET)
    return (ends, rows.indptr.astype(_OFFSET), rows.indices.astype(np.int32), rows.data.astype(np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel(DecidedModel):
    """Support trees with a kernel: a weighted forest. Plain data.

    Attributes
    ----------
    kernel : ExampleKernel
    support : Forest
        The support trees, and their vectors where there are any.
    coefficients : (support trees, scores) float64
    intercept : (scores,) float64
        What is added to the sum.
    decision : Decision
    origin : dict
        What is good to know about where the model is from.
    """

    kind: ClassVar[str] = "tree"

    kernel: ExampleKernel
    support: Forest
    coefficients: NDArray[np.float64]
    intercept: NDArray[np.float64]
    decision: Decision
    origin: dict[str, Any]

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        scores = self.decision.n_scores
        if self.intercept.shape != (scores,) or self.coefficients.shape != (len(self.support), scores):
            raise ValueError("the number of scores does not fit the number of classes")

    @property
    def n_support(self) -> int:
        """How many support trees there are."""
        return len(self.support)

    def _arrays(self) -> list[Any]:
        return [self.support, self.coefficients, self.intercept]

    def _about(self) -> str:
        return f"{self.n_support} support trees, {self.kernel.words()}"

    def scores(self, trees: Forest) -> NDArray[np.float64]:
        """The scores of each tree, kernel value by kernel value: slow, and the reference for engines."""
        left = self.kernel.examples(trees, like=self.support)
        right = self.kernel.examples(self.support, indexed=True)
        values = kernel_matrix(self.kernel.core(), left, right, symmetric=False, threads=1, on_progress=None)
        return np.asarray(values) @ self.coefficients + self.intercept

    def to_container(self) -> tuple[Arrays, Settings]:
        """The arrays and settings that a file holds."""
        support = self.support
        arrays: dict[str, NDArray[Any]] = {
            "coefficients": np.ascontiguousarray(self.coefficients),
            "intercepts": self.intercept,
            "roots": np.column_stack(list(support.trees.values())).astype(np.int32)
            if support.trees
            else np.empty((len(support), 0), np.int32),
        }
        arrays |= {key: np.asarray(array) for key, array in support.table.arrays().items()}
        for number, vectors in enumerate(support.vectors.values()):
            matrix = vectors.matrix
            arrays |= {
                f"vectors{number}.present": vectors.present.astype(np.uint8),
                f"vectors{number}.offsets": matrix.indptr.astype(np.int64),
                f"vectors{number}.columns": matrix.indices.astype(np.int32),
                f"vectors{number}.values": matrix.data.astype(np.float64),
            }
        settings = {
            "kernel": self.kernel.to_json(),
            "decision": self.decision.to_json(),
            "tree_channels": list(support.trees),
            "vector_channels": [[name, int(v.matrix.shape[1])] for name, v in support.vectors.items()],
            "features": support.features,
            "origin": self.origin,
        }
        return arrays, settings

    @classmethod
    def _from_container(cls, name: str, arrays: Arrays, settings: Settings) -> Self:
        coefficients = container.finite_array(name, arrays, "coefficients", 2)
        return cls(
            kernel=ExampleKernel.from_json(name, settings.get("kernel")),
            support=_read_support(name, arrays, settings, len(coefficients)),
            coefficients=coefficients,
            intercept=container.finite_array(name, arrays, "intercepts", 1),
            decision=Decision.from_json(name, settings.get("decision")),
            origin=container.setting(name, settings, "origin", dict, lambda _: True),
        )


_FOREST_ARRAYS = {
    "label_bytes": np.uint8,
    "label_ends": np.int64,
    "node_labels": np.int32,
    "child_begins": np.int64,
    "children": np.int32,
}


def _read_support(name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], size: int) -> Forest:
    parts = {
        key: np.ascontiguousarray(container.proper_array(name, arrays, key, [np.dtype(kind)], 1))
        for key, kind in _FOREST_ARRAYS.items()
    }
    roots = container.proper_array(name, arrays, "roots", [np.dtype(np.int32)], 2)
    names = _names(name, settings.get("tree_channels"))
    damaged = FormatError(name, 0, 0, "the model's trees are damaged")
    if roots.shape != (size, len(names)):
        raise damaged
    try:
        table = SubtreeTable.from_arrays(**parts)
    except ValueError as error:
        raise damaged from error
    if roots.size and not (roots.min() >= -1 and roots.max() < table.nodes):
        raise damaged
    trees = {channel: np.ascontiguousarray(roots[:, k]) for k, channel in enumerate(names)}
    stored = settings.get("features")
    features = None if stored is None else _names(name, stored)
    vectors = _read_vectors(name, arrays, settings.get("vector_channels"), size)
    try:
        return Forest._of(table, trees, vectors, features)
    except ValueError as error:
        raise damaged from error


def _names(name: str, stored: Any) -> list[str]:
    if (
        not isinstance(stored, list)
        or not all(isinstance(item, str) for item in stored)
        or len(set(stored)) != len(stored)
    ):
        raise FormatError(name, 0, 0, "the names of the model's channels or features are damaged")
    return list(stored)


def _read_vectors(name: str, arrays: dict[str, NDArray[Any]], stored: Any, size: int) -> dict[str, Vectors]:
    damaged = FormatError(name, 0, 0, "the model's vectors are damaged")
    if not isinstance(stored, list):
        raise damaged
    vectors: dict[str, Vectors] = {}
    for number, entry in enumerate(stored):
        if not isinstance(entry, list) or [type(item) for item in entry] != [str, int]:
            raise damaged
        channel, width = entry
        present = container.proper_array(name, arrays, f"vectors{number}.present", [np.dtype(np.uint8)], 1)
        offsets = container.proper_array(name, arrays, f"vectors{number}.offsets", [np.dtype(np.int64)], 1)
        columns = container.proper_array(name, arrays, f"vectors{number}.columns", [np.dtype(np.int32)], 1)
        values = container.finite_array(name, arrays, f"vectors{number}.values", 1)
        sound = len(present) == size and len(offsets) == size + 1 and 0 <= width < 2**31 - 1
        sound = (
            sound
            and offsets[0] == 0
            and offsets[-1] == len(columns) == len(values)
            and bool((np.diff(offsets) >= 0).all())
        )
        if (
            not sound
            or (len(columns) and not (columns.min() >= 0 and columns.max() < width))
            or channel in vectors
        ):
            raise damaged
        matrix = CsrRows.of(offsets, columns, values, width)
        vectors[channel] = Vectors(matrix.sorted(), present.astype(bool))
    return vectors
