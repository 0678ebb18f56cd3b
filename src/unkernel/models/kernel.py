"""Kernel models: support vectors, coefficients and a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.errors import FormatError
from unkernel.models import container, model_rows
from unkernel.models.base import Arrays, DecidedModel, Settings
from unkernel.models.decision import Decision
from unkernel.models.pair_coefficients import PairCoefficients

if TYPE_CHECKING:
    from scipy import sparse

KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_LARGEST_DEGREE = 2**31 - 1
_MAX_KERNEL_VALUES = 1 << 21  # largest number of kernel values in memory at a time
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True)
class Kernel:
    r"""A kernel and its parameters.

    The kernels are ``linear``: x'z; ``polynomial``: (gamma x'z + coef0)^degree; ``rbf``: exp(-gamma \|x -
    z\|^2); ``sigmoid``: tanh(gamma x'z + coef0); and ``precomputed``, whose values are not part of the model.
    A kernel ignores parameters that it does not have.

    Attributes
    ----------
    name : {"linear", "polynomial", "rbf", "sigmoid", "precomputed"}
        The kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : float, default=1.0
        Factor of the inner product or of the distance.
    coef0 : float, default=0.0
        Constant of the polynomial and the sigmoid kernel.

    See Also
    --------
    unkernel.KernelModel : Model of support vectors and a kernel.

    Examples
    --------
    >>> from unkernel.models import Kernel
    >>> Kernel("polynomial", degree=2, gamma=1.0, coef0=1.0).matrix([[1.0, 2.0]], [[1.0, 1.0], [0.0, 1.0]])
    array([[16.,  9.]])
    """

    name: str
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        """Check that the parameters are valid."""
        if self.name not in KERNELS:
            raise ValueError(f"the kernel must be one of {', '.join(KERNELS)}, got {self.name!r}")
        if not 0 <= self.degree <= _LARGEST_DEGREE:
            raise ValueError(f"the kernel's degree must be from 0 to {_LARGEST_DEGREE}, got {self.degree}")
        if not np.isfinite([self.gamma, self.coef0]).all():
            raise ValueError("the kernel's gamma and coef0 must be finite")
        if self.name == "rbf" and self.gamma < 0:
            raise ValueError(f"the gamma of an RBF kernel must not be negative, got {self.gamma}")

    def words(self) -> str:
        """Return a description of the kernel in a few words.

        Returns
        -------
        str
            The description, for messages.
        """
        return f"{self.name} of degree {self.degree}" if self.name == "polynomial" else self.name

    def matrix(self, X: Any, Z: Any) -> NDArray[np.float64]:
        """Compute the kernel between all pairs of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        Z : array or sparse matrix of shape (n_other_rows, n_features)
            Other rows; the narrower matrix is padded with zeros.

        Returns
        -------
        ndarray of shape (n_rows, n_other_rows)
            The values of the kernel.
        """
        if self.name == "precomputed":
            raise ValueError(
                "the values of a precomputed kernel are not in the model: only its trainer has them; "
                "train with one of the other kernels"
            )
        X, Z = canonical_rows(X), canonical_rows(Z)
        if self.name == "rbf":
            return np.exp(-self.gamma * model_rows.compute_squared_distances(X, Z))
        products = model_rows.inner_products(X, Z)
        if self.name == "linear":
            return products
        inner = self.gamma * products + self.coef0
        return np.tanh(inner) if self.name == "sigmoid" else inner**self.degree


@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(DecidedModel):
    """Model of support vectors, their coefficients and a kernel.

    :func:`~unkernel.read_model` reads such models from files of LIBSVM, SVMlight, TinySVM and opal.
    :func:`~unkernel.models.from_estimator` makes them from scikit-learn's support vector machines.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    vectors : CsrRows of shape (n_support, n_features)
        The support vectors. Arrays and sparse matrices are converted.
    coefficients : ndarray of float64, shape (n_support, n_scores), or PairCoefficients
        Coefficients of the support vectors in each score. ``PairCoefficients`` represents a matrix of many
        pairs of classes without its zeros.
    intercept : ndarray of float64, shape (n_scores,)
        Constants that are added to the scores (-rho in LIBSVM, -b in SVMlight).
    decision : Decision
        How scores become predictions.
    n_features : int
        Number of features.
    fixed_width : bool
        Whether rows must have exactly ``n_features`` columns. Otherwise the width is unknown, and
        ``n_features`` is the largest index in the support vectors.
    origin : dict
        The origin of the model, and a description of its training.

    See Also
    --------
    read_model : Read a model of another program.
    unkernel.models.from_estimator : Take the model of a fitted scikit-learn estimator.
    unkernel.compile : Compile a model for fast inference.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from unkernel.models import from_estimator
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> from_estimator(SVC(kernel="poly", degree=2, coef0=1).fit(X, y))
    KernelModel(4 support vectors, polynomial of degree 2 kernel, 2 classes)
    """

    kind: ClassVar[str] = "kernel"

    kernel: Kernel
    vectors: CsrRows
    coefficients: NDArray[np.float64] | PairCoefficients
    intercept: NDArray[np.float64]
    decision: Decision
    n_features: int
    fixed_width: bool
    origin: dict[str, Any]

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        object.__setattr__(self, "vectors", canonical_rows(self.vectors))
        scores = self.decision.n_scores
        if self.intercept.shape != (scores,) or self.coefficients.shape != (self.n_support, scores):
            raise ValueError("the number of scores does not match the number of classes")
        if self.vectors.shape[1] != self.n_features:
            raise ValueError("the support vectors do not have the model's number of features")

    @property
    def n_support(self) -> int:
        """Number of support vectors."""
        return self.vectors.shape[0]

    @cached_property
    def support_vectors(self) -> sparse.csr_matrix:
        """The support vectors as a SciPy matrix, with sorted indices and no duplicate or zero entries."""
        return self.vectors.to_scipy()

    @property
    def binary(self) -> bool:
        """Whether all entries of the support vectors are 1."""
        return bool((self.vectors.data == 1.0).all())

    def _arrays(self) -> list[Any]:
        return [self.vectors, self.coefficients, self.intercept]

    def _describe(self) -> str:
        return f"{self.n_support} support vectors, {self.kernel.words()} kernel"

    def scores(self, X: Any) -> NDArray[np.float64]:
        X = model_rows.check_model_rows(X, self.n_features, self.fixed_width)
        result = np.empty((X.shape[0], self.n_scores))
        step = max(1, _MAX_KERNEL_VALUES // max(1, self.n_support))
        for begin in range(0, X.shape[0], step):
            block = self.kernel.matrix(X[begin : begin + step], self.vectors)
            result[begin : begin + step] = block @ self.coefficients + self.intercept
        return result

    def to_container(self) -> tuple[Arrays, Settings]:
        vectors = self.vectors
        index_type = "<i4" if self.n_features <= np.iinfo(np.int32).max else "<i8"
        arrays = {
            "sv_offsets": vectors.indptr.astype("<i8", copy=False),
            "sv_columns": vectors.indices.astype(index_type, copy=False),
            "intercepts": self.intercept.astype("<f8", copy=False),
        }
        if isinstance(self.coefficients, PairCoefficients):
            arrays["pair_coefficients"] = self.coefficients.values.astype("<f8", copy=False)
            arrays["class_counts"] = np.array(self.coefficients.counts, dtype="<i8")
        else:
            arrays["coefficients"] = self.coefficients.astype("<f8", copy=False)
        if not self.binary:
            arrays["sv_values"] = vectors.data.astype("<f8", copy=False)
        settings = {
            "kernel": self.kernel.name,
            "degree": self.kernel.degree,
            "gamma": self.kernel.gamma,
            "coef0": self.kernel.coef0,
            "n_features": self.n_features,
            "fixed_width": self.fixed_width,
            "decision": self.decision.to_json(),
            "origin": self.origin,
        }
        return arrays, settings

    @classmethod
    def _from_container(cls, name: str, arrays: Arrays, settings: Settings) -> Self:
        n_features = container.read_setting(name, settings, "n_features", int, lambda v: 0 <= v < 1 << 63)
        return cls(
            kernel=_read_kernel(name, settings),
            vectors=_read_vectors(name, arrays, n_features),
            coefficients=_read_coefficients(name, arrays),
            intercept=container.read_finite_array(name, arrays, "intercepts", 1),
            decision=Decision.from_json(name, settings.get("decision")),
            n_features=n_features,
            fixed_width=container.read_setting(name, settings, "fixed_width", bool),
            origin=container.read_setting(name, settings, "origin", dict),
        )


def _read_kernel(name: str, settings: dict[str, Any]) -> Kernel:
    return Kernel(
        name=container.read_setting(name, settings, "kernel", str, lambda v: v in KERNELS),
        degree=container.read_setting(name, settings, "degree", int, lambda v: 0 <= v <= _LARGEST_DEGREE),
        gamma=container.read_number(name, settings, "gamma"),
        coef0=container.read_number(name, settings, "coef0"),
    )


def _read_coefficients(name: str, arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64] | PairCoefficients:
    if "pair_coefficients" not in arrays:
        return container.read_finite_array(name, arrays, "coefficients", 2)
    counts = container.read_array(name, arrays, "class_counts", [np.dtype(np.int64)], 1)
    return PairCoefficients(
        container.read_finite_array(name, arrays, "pair_coefficients", 2), counts.tolist()
    )


def _read_vectors(name: str, arrays: dict[str, NDArray[Any]], n_features: int) -> CsrRows:
    offsets = container.read_array(name, arrays, "sv_offsets", [np.dtype(np.int64)], 1)
    columns = container.read_array(name, arrays, "sv_columns", _INDEX_TYPES, 1)
    _check_offsets(name, offsets, len(columns))
    _check_columns(name, offsets, columns, n_features)
    if "sv_values" in arrays:
        values = container.read_finite_array(name, arrays, "sv_values", 1)
        if len(values) != len(columns) or not values.all():
            raise FormatError(name, 0, 0, "the support vectors must have one nonzero value per column number")
    else:
        values = np.ones(len(columns))
    return CsrRows.of(offsets, columns, values, n_features)


def _check_offsets(name: str, offsets: NDArray[np.int64], entries: int) -> None:
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != entries or (offsets[1:] < offsets[:-1]).any():
        raise FormatError(name, 0, 0, "array 'sv_offsets' does not say where the support vectors begin")


def _check_columns(name: str, offsets: NDArray[np.int64], columns: NDArray[Any], n_features: int) -> None:
    if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < n_features:
        raise FormatError(name, 0, 0, "a support vector has a column outside of the model's features")
    is_ascending = columns[1:] > columns[:-1]
    starts = offsets[(offsets > 0) & (offsets < len(columns))]
    is_ascending[starts - 1] = True  # the first entry of a support vector follows no other entry
    if not is_ascending.all():
        raise FormatError(name, 0, 0, "the columns of a support vector do not ascend")
