"""Models of trees: support trees, coefficients and a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ExampleKernel as CoreKernel
from unkernel._core import ExampleSet, example_set, kernel_matrix
from unkernel._core import Forest as SubtreeTable
from unkernel.data.rows.csr import CsrRows, canonical_rows, stack_rows
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
LEAST_DECAY = 1e-6  # for smaller decays, 1 + decay has large relative rounding errors
_OFFSET = np.int64


@dataclass(frozen=True)
class ExampleKernel:
    """Kernel between examples that consist of trees and vectors.

    Attributes
    ----------
    tree : {"sst", "st", "sst_bow", "ptk"}, default="sst"
        The fragments to count: subset trees, complete subtrees, subset trees and words, or partial trees.
    decay : float, default=0.4
        Factor (lambda) by which each production of a fragment reduces its weight; ``-L`` in SVM-light-TK.
    width_decay : float, default=0.4
        Factor (mu) by which each node of a fragment reduces its weight, for partial trees; ``-M``.
    normalize : bool, default=True
        Whether the kernel is scaled to k(x, x) = 1 for every tree x.
    tree_pairing : {"same", "all"}, default="same"
        Whether to compare trees of the same channel or all pairs of trees; ``-W S`` and ``-W A``.
    combination : {"trees", "vectors", "sum", "product"}, default="trees"
        How to combine the kernels of trees and vectors; ``-C T``, ``V``, ``+`` and ``*``.
    tree_weight : float, default=1.0
        Weight of the tree kernel in a sum; ``-T``.
    vector : Kernel, default=Kernel("linear")
        Kernel of the vectors.
    normalize_vectors : bool, default=False
        Whether the vector kernel is scaled to k(x, x) = 1 for every vector x.
    vector_pairing : {"same", "all"}, default="same"
        Whether to compare vectors of the same channel or all pairs of vectors; ``-V``.

    See Also
    --------
    unkernel.TreeModel : Model with such a kernel.
    unkernel.TreeKernel : Compute kernel matrices.

    Examples
    --------
    >>> from unkernel.models import ExampleKernel
    >>> ExampleKernel("ptk", decay=0.3).words()
    'partial trees, decay 0.3, width decay 0.4'
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
        """Check that the parameters are valid."""
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
        """Return a description of the kernel in a few words.

        Returns
        -------
        str
            The description, for messages.
        """
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
        """Return the kernel object of the C++ core.

        Returns
        -------
        object
            The kernel object.
        """
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
        """Prepare the examples of a forest for this kernel.

        Parameters
        ----------
        forest : Forest
            The examples.
        like : Forest, default=None
            The forest to compare the examples with; channels are matched with its channels. None means the
            same forest.
        indexed : bool, default=False
            Whether to index the examples, which is necessary for comparing other examples with them.
        threads : int, default=1
            Number of threads.

        Returns
        -------
        ExampleSet
            The examples, counted and normalised.
        """
        other = forest if like is None else like
        trees: list[Any] = []
        vectors: list[Any] = []
        if self.combination != "vectors":
            # If all pairs are compared, the names of channels do not matter.
            pairs_all = self.tree_pairing == "all"
            roots = list(forest.trees.values()) if pairs_all else forest.roots_like(other)
            trees = _make_tree_channels(roots, len(forest), self.tree_pairing)
        if self.combination != "trees":
            channels = forest.vectors_like(other, every=self.vector_pairing == "all")
            vectors = _make_vector_channels(channels, len(forest), self.vector_pairing)
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
        """Return the kernel as a JSON object for ``.uk`` files.

        Returns
        -------
        dict
            The JSON object.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, name: str, stored: Any) -> ExampleKernel:
        """Make a kernel from the JSON object in a file, and check it.

        Parameters
        ----------
        name : str
            Name of the file in error messages.
        stored : dict
            The JSON object.

        Returns
        -------
        ExampleKernel
            The kernel.

        Raises
        ------
        FormatError
            If the JSON object is not a kernel.
        """
        damaged = FormatError(name, 0, 0, "the model's setting 'kernel' is missing or damaged")
        if not isinstance(stored, dict) or set(stored) != set(cls.__dataclass_fields__):
            raise damaged
        try:
            values = {key: _check_type(stored[key], getattr(cls, key)) for key in stored if key != "vector"}
            vector = stored["vector"]
            kernel = Kernel(
                _check_type(vector["name"], ""),
                _check_type(vector["degree"], 1),
                *(_check_type(vector[k], 1.0) for k in ("gamma", "coef0")),
            )
            return cls(**values, vector=kernel)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged from error


def _check_type(value: Any, example: Any) -> Any:
    """Return a value after checking that it has the type of the example; integers are accepted as floats."""
    if isinstance(example, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(example):
        raise TypeError("not of its type")
    return value


def _make_tree_channels(channels: Sequence[NDArray[np.int32]], size: int, pairing: str) -> list[Any]:
    """Return channels of trees for the core: the offsets of the examples, and the roots of their trees.

    If all pairs of trees are compared, a single channel contains the trees of all channels.
    """
    if pairing == "all":
        roots_of_examples = np.column_stack(channels) if channels else np.empty((size, 0), np.int32)
        ends = np.arange(len(roots_of_examples) + 1, dtype=_OFFSET) * roots_of_examples.shape[1]
        return [(ends, np.ascontiguousarray(roots_of_examples.reshape(-1)))]
    return [(np.arange(len(roots) + 1, dtype=_OFFSET), np.ascontiguousarray(roots)) for roots in channels]


def _make_vector_channels(channels: Sequence[Vectors | None], size: int, pairing: str) -> list[Any]:
    """Return channels of vectors for the core; a single one if all pairs of vectors are compared."""
    present_channels = [channel for channel in channels if channel is not None]
    if pairing == "all":
        return [_concatenate_channels(present_channels) if present_channels else _convert_channel(None, size)]
    return [_convert_channel(channel, size) for channel in channels]


def _convert_channel(channel: Vectors | None, size: int) -> Any:
    """Return a channel for the core: the offsets of the examples, and their vectors as CSR arrays."""
    if channel is None:
        channel = Vectors(canonical_rows(np.empty((size, 0))), np.zeros(size, bool))
    ends = np.concatenate([[0], np.cumsum(channel.present)]).astype(_OFFSET)
    rows = channel.matrix[np.flatnonzero(channel.present)]
    return (ends, rows.indptr.astype(_OFFSET), rows.indices.astype(np.int32), rows.data.astype(np.float64))


def _concatenate_channels(channels: list[Vectors]) -> Any:
    """Return one channel for the core, with the vectors of all channels, sorted by example."""
    present = np.column_stack([channel.present for channel in channels])
    size = len(present)
    order = (np.arange(size)[:, None] + size * np.arange(len(channels))[None, :])[present]
    rows = stack_rows([channel.matrix for channel in channels])[order]
    ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(_OFFSET)
    return (ends, rows.indptr.astype(_OFFSET), rows.indices.astype(np.int32), rows.data.astype(np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel(DecidedModel):
    """Model of support trees, their coefficients and a tree kernel.

    Attributes
    ----------
    kernel : ExampleKernel
        The kernel.
    support : Forest
        The support trees, and their vectors if there are any.
    coefficients : ndarray of float64, shape (n_support, n_scores)
        Coefficients of the support trees.
    intercept : ndarray of float64, shape (n_scores,)
        Constants that are added to the scores.
    decision : Decision
        How scores become predictions.
    origin : dict
        The origin of the model, and a description of its training.

    See Also
    --------
    unkernel.TreeSVC : Train such a model.
    unkernel.TreeClassifier : Use such a model for predictions.
    unkernel.read_model : Read a model of SVM-light-TK.

    Examples
    --------
    >>> from unkernel import TreeSVC
    >>> TreeSVC().fit(["(Q (WP who))", "(Q (WRB where))"], [0, 1]).to_model()
    TreeModel(2 support trees, subset trees, decay 0.4, 2 classes)
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
        if self.decision.outputs:
            raise ValueError("models of trees have a single output")
        if self.intercept.shape != (scores,) or self.coefficients.shape != (len(self.support), scores):
            raise ValueError("the number of scores or of support trees does not match the coefficients")

    @property
    def n_support(self) -> int:
        """Number of support trees."""
        return len(self.support)

    def _arrays(self) -> list[Any]:
        return [self.support, self.coefficients, self.intercept]

    def _describe(self) -> str:
        return f"{self.n_support} support trees, {self.kernel.words()}"

    def scores(self, X: Forest) -> NDArray[np.float64]:
        left = self.kernel.examples(X, like=self.support)
        right = self.kernel.examples(self.support, indexed=True)
        values = kernel_matrix(self.kernel.core(), left, right, symmetric=False, threads=1, on_progress=None)
        return np.asarray(values) @ self.coefficients + self.intercept

    def to_container(self) -> tuple[Arrays, Settings]:
        support = self.support
        arrays: dict[str, NDArray[Any]] = {
            "coefficients": np.ascontiguousarray(self.coefficients),
            "intercepts": self.intercept,
            "roots": np.empty((len(support), 0), np.int32),
        }
        if support.trees:
            arrays["roots"] = np.column_stack(list(support.trees.values())).astype(np.int32)
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
        coefficients = container.read_finite_array(name, arrays, "coefficients", 2)
        return cls(
            kernel=ExampleKernel.from_json(name, settings.get("kernel")),
            support=_read_support(name, arrays, settings, len(coefficients)),
            coefficients=coefficients,
            intercept=container.read_finite_array(name, arrays, "intercepts", 1),
            decision=Decision.from_json(name, settings.get("decision")),
            origin=container.read_setting(name, settings, "origin", dict),
        )


_FOREST_ARRAYS = {
    "label_bytes": np.uint8,
    "label_ends": np.int64,
    "node_labels": np.int32,
    "child_begins": np.int64,
    "children": np.int32,
}


def _read_support(name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], size: int) -> Forest:
    """Return the `size` support examples that the arrays and settings of a file describe."""
    parts = {
        key: np.ascontiguousarray(container.read_array(name, arrays, key, [np.dtype(kind)], 1))
        for key, kind in _FOREST_ARRAYS.items()
    }
    roots = container.read_array(name, arrays, "roots", [np.dtype(np.int32)], 2)
    names = _read_names(name, settings.get("tree_channels"))
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
    features = None if stored is None else _read_names(name, stored)
    vectors = _read_vectors(name, arrays, settings.get("vector_channels"), size)
    try:
        return Forest._from_table(table, trees, vectors, features)
    except ValueError as error:
        raise damaged from error


def _read_names(name: str, stored: Any) -> list[str]:
    is_list_of_text = isinstance(stored, list) and all(isinstance(item, str) for item in stored)
    if not is_list_of_text or len(set(stored)) != len(stored):
        raise FormatError(name, 0, 0, "the names of the model's channels or features are damaged")
    return list(stored)


def _read_vectors(name: str, arrays: dict[str, NDArray[Any]], stored: Any, size: int) -> dict[str, Vectors]:
    """Return the vectors of each channel; `stored` has the channels' names and widths."""
    damaged = FormatError(name, 0, 0, "the model's vectors are damaged")
    if not isinstance(stored, list):
        raise damaged
    vectors: dict[str, Vectors] = {}
    for number, entry in enumerate(stored):
        if not isinstance(entry, list) or [type(item) for item in entry] != [str, int]:
            raise damaged
        channel, width = entry
        present = container.read_array(name, arrays, f"vectors{number}.present", [np.dtype(np.uint8)], 1)
        offsets = container.read_array(name, arrays, f"vectors{number}.offsets", [np.dtype(np.int64)], 1)
        columns = container.read_array(name, arrays, f"vectors{number}.columns", [np.dtype(np.int32)], 1)
        values = container.read_finite_array(name, arrays, f"vectors{number}.values", 1)
        if channel in vectors or not 0 <= width < 2**31 - 1:
            raise damaged
        if len(present) != size or len(offsets) != size + 1 or len(columns) != len(values):
            raise damaged
        if offsets[0] != 0 or offsets[-1] != len(columns) or (np.diff(offsets) < 0).any():
            raise damaged
        if len(columns) and not (columns.min() >= 0 and columns.max() < width):
            raise damaged
        matrix = CsrRows.of(offsets, columns, values, width)
        vectors[channel] = Vectors(matrix.sort_columns(), present.astype(bool))
    return vectors
