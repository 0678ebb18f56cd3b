"""Kernel matrices of trees, for learners that take a precomputed kernel."""

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
    """A tree kernel: a function that gives kernel matrices, and a transformer that does so in pipelines.

    Parameters
    ----------
    kernel : {"sst", "st", "sst_bow", "ptk"}, default="sst"
        What trees have in common that counts: connected pieces that keep whole productions ("sst"), whole
        subtrees ("st"), those of "sst" and words, each of weight decay ("sst_bow"), or any connected pieces
        ("ptk").
    decay : float, default=0.4
        lambda: what each production of a piece multiplies its weight by. In "ptk", what each child that a
        piece skips multiplies it by, and (squared) each node that it ends in.
    width_decay : float, default=0.4
        mu, of "ptk": what each node of a piece multiplies its weight by. SVM-light-TK's ``-M``.
    normalize : bool, default=True
        Whether K(A, B) is divided by sqrt(K(A, A) K(B, B)).
    n_jobs : int, default=None
        Threads; None means one, -1 all cores. The values do not depend on it.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> trees = ["(S (NP dogs) (VP bark))", "(S (NP cats) (VP bark))", "(NP (NP cats) (PP of))"]
    >>> K = TreeKernel("sst", decay=0.5)(trees)
    >>> K.round(3)
    array([[1.   , 0.588, 0.   ],
           [0.588, 1.   , 0.235],
           [0.   , 0.235, 1.   ]])
    >>> SVC(kernel="precomputed").fit(K, [0, 0, 1]).predict(K)
    array([0, 0, 1])

    As a step of a pipeline, so that a grid search can choose the decay:

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
        """The kernel of each tree of A with each of B (of A, if there is no B)."""
        self._validate_params()
        left = as_forest(A)
        return self._matrix(left, None if B is None else as_forest(B))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> TreeKernel:
        """Store the trees that other trees will be compared with."""
        self.trees_: Forest = as_forest(X)[:]  # a copy: the caller may extend the forest later
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.float64]:
        """The kernels of the trees with each other; the trees are stored."""
        return self._matrix(self.fit(X).trees_, None)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The kernel of each tree with each of the stored trees."""
        check_is_fitted(self)
        return self._matrix(as_forest(X), self.trees_)

    def _matrix(self, left: Forest, right: Forest | None) -> NDArray[np.float64]:
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
