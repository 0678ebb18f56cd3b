"""Compute kernel matrices of trees, for learners that take a precomputed kernel."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unkernel._core import kernel_matrix
from unkernel.data.threads import thread_count
from unkernel.data.trees.forest import Forest, as_forest
from unkernel.models.tree import LEAST_DECAY, TREE_KERNELS, ExampleKernel


class TreeKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Tree kernel: a function that computes kernel matrices, and a transformer for pipelines.

    Parameters
    ----------
    kernel : {"sst", "st", "sst_bow", "ptk"}, default="sst"
        The fragments to count. "sst": subset trees, which are connected fragments with whole productions.
        "st": complete subtrees. "sst_bow": subset trees, and words with the weight ``decay``. "ptk": partial
        trees, which are any connected fragments.
    decay : float, default=0.4
        Factor (lambda) by which each production of a fragment reduces its weight. For "ptk", each child that
        the fragment skips between two others reduces the weight by this factor, and each node without
        children in the fragment by its square.
    width_decay : float, default=0.4
        Factor (mu) by which each node of a fragment reduces its weight, for "ptk"; ``-M`` in SVM-light-TK.
    normalize : bool, default=True
        Whether to divide K(A, B) by sqrt(K(A, A) K(B, B)).
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors. The values do not depend on it.

    Attributes
    ----------
    trees_ : Forest
        The trees that :meth:`transform` compares other trees with; only after :meth:`fit`.

    See Also
    --------
    TreeSVC : Train with a tree kernel without computing a kernel matrix.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from unkernel import TreeKernel
    >>> trees = ["(S (NP dogs) (VP bark))", "(S (NP cats) (VP bark))", "(NP (NP cats) (PP of))"]
    >>> K = TreeKernel("sst", decay=0.5)(trees)
    >>> K.round(3)
    array([[1.   , 0.588, 0.   ],
           [0.588, 1.   , 0.235],
           [0.   , 0.235, 1.   ]])
    >>> SVC(kernel="precomputed").fit(K, [0, 0, 1]).predict(K)
    array([0, 0, 1])

    Use the kernel in a pipeline; a grid search can then choose the decay:

    >>> from sklearn.pipeline import make_pipeline
    >>> make_pipeline(TreeKernel(), SVC(kernel="precomputed")).fit(trees, [0, 0, 1]).predict(trees)
    array([0, 0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(TREE_KERNELS))],
        "decay": [Interval(Real, LEAST_DECAY, None, closed="left")],
        "width_decay": [Interval(Real, LEAST_DECAY, None, closed="left")],
        "normalize": ["boolean"],
        "n_jobs": [int, None],
    }

    def __init__(
        self,
        kernel: str = "sst",
        *,
        decay: float = 0.4,
        width_decay: float = 0.4,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.decay = decay
        self.width_decay = width_decay
        self.normalize = normalize
        self.n_jobs = n_jobs

    def __call__(self, A: Any, B: Any = None) -> NDArray[np.float64]:
        """Compute the kernel between all pairs of trees.

        Parameters
        ----------
        A : list of trees, or Forest
            Trees.
        B : list of trees, or Forest, default=None
            Other trees; with None, the trees of A are compared with each other.

        Returns
        -------
        ndarray of shape (n_trees_A, n_trees_B)
            The kernel matrix.
        """
        self._validate_params()
        left = as_forest(A)
        return self._compute_matrix(left, None if B is None else as_forest(B))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> TreeKernel:
        """Store the trees that :meth:`transform` compares other trees with.

        Parameters
        ----------
        X : list of trees, or Forest
            Training trees.
        y : ignored, default=None
            Not used; present for compatibility with pipelines.

        Returns
        -------
        TreeKernel
            The transformer itself.
        """
        self.trees_: Forest = as_forest(X)[:]  # copies the forest, because the caller may extend it later
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.float64]:
        """Store the trees and compute the kernel between all pairs of them.

        Parameters
        ----------
        X : list of trees, or Forest
            Training trees.
        y : ignored, default=None
            Not used; present for compatibility with pipelines.
        **_ : ignored
            Not used; present for compatibility with pipelines.

        Returns
        -------
        ndarray of shape (n_trees, n_trees)
            The kernel matrix.
        """
        return self._compute_matrix(self.fit(X).trees_, None)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute the kernel of each tree with each stored tree.

        Parameters
        ----------
        X : list of trees, or Forest
            Trees.

        Returns
        -------
        ndarray of shape (n_trees, n_stored_trees)
            The kernel matrix.
        """
        check_is_fitted(self)
        return self._compute_matrix(as_forest(X), self.trees_)

    def _compute_matrix(self, left: Forest, right: Forest | None) -> NDArray[np.float64]:
        """Return the kernels of `left` with `right`, or with itself if `right` is None."""
        kernel = ExampleKernel(self.kernel, float(self.decay), float(self.width_decay), bool(self.normalize))
        threads = thread_count(self.n_jobs)
        examples = kernel.examples(left, like=right, indexed=right is None, threads=threads)
        others = examples if right is None else kernel.examples(right, indexed=True, threads=threads)
        values = kernel_matrix(
            kernel.core(), examples, others, symmetric=right is None, threads=threads, on_progress=None
        )
        matrix = np.asarray(values)
        if not np.isfinite(matrix).all():
            raise ValueError("a kernel is not finite: the trees are too large for this decay; lower it")
        return matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
