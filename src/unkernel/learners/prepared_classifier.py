"""Base classes of learners that prepare examples once, then train on them with one or more values of C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, _fit_context, clone

from unkernel.learners.base import Learner
from unkernel.learners.progress import OnProgress


class PreparedLearner(Learner):
    """Base class of classifiers and regressors: training with progress reports, and along a path of C."""

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to examples with labels or values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), path, list of trees, or Forest
            Training examples: rows, or trees for :class:`~unkernel.TreeSVC`. A tree is a string in brackets,
            an ``nltk.Tree``, an ``ast`` node or a CoNLL-U sentence. :class:`~unkernel.CuttingPlaneSVC` also
            reads svmlight files: a path, a pattern such as ``"part-*.svm.gz"`` or a list of paths. Files are
            read once into a packed copy (``cache``) and then streamed, so they may be larger than memory.
        y : array-like of shape (n_samples,), default=None
            Class labels, or values in regression; None for files, which contain their own labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples. A row of weight k counts as k equal rows. For trees, a weight is a factor
            of C. Examples of weight 0 are ignored.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        on_progress: OnProgress | None,
        *,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> Self:
        """Fit the model and report progress while reading and training.

        Parameters
        ----------
        X : any source of examples
            Training examples, as in :meth:`fit`.
        y : array-like of shape (n_samples,) or None
            Class labels or values; None if the examples come with labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the examples.
        on_progress : callable or None
            Called with the state of the solver about twenty times per second.
        on_reading : callable, default=None
            Called with the progress of reading files; not used on a cluster.
        zero_based : bool or "auto", default="auto"
            Whether feature numbers in files start at 0.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        examples = self._prepare(X, y, sample_weight, on_reading=on_reading, zero_based=zero_based)
        self._train_on(examples, None, on_progress)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None) -> list[Self]:
        """Fit one model for each of several values of C.

        The examples are prepared once. Except for trees, each fit starts from the solution of the previous
        one. Each fit reaches the same certified gap as a separate ``fit``. :class:`~unkernel.CuttingPlaneSVC`
        always uses the solver ``"cutting_plane"`` here, because cuts are valid for every C. On a cluster, the
        ``traffic_`` of a fitted copy includes the traffic of all previous fits.

        Parameters
        ----------
        X : any source of examples
            Training examples, as in :meth:`fit`.
        y : array-like of shape (n_samples,) or None
            Class labels or values; None if the examples come with labels.
        Cs : iterable of float
            Values of C; training is fastest if they ascend.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.

        Returns
        -------
        list of estimators
            One fitted copy of this estimator for each C.
        """
        check_no_checkpoint(self)
        prepared = self._clone_for_path()
        examples = prepared._prepare(X, y, sample_weight)
        fitted, start = [], None
        for copy in self._copy_with_each(Cs, prepared):
            start = copy._train_on(examples, start, None)
            fitted.append(copy)
        return fitted

    def _clone_for_path(self) -> Self:
        """Return an unfitted copy that prepares the examples of a path."""
        copy: Self = clone(self)
        return copy

    @abstractmethod
    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, *, on_reading: Any = None, zero_based: Any = "auto"
    ) -> Any:
        """Return the examples in the form that the solver takes; set the attributes derived from them."""

    @abstractmethod
    def _train_on(self, examples: Any, start: Any, on_progress: OnProgress | None) -> Any:
        """Train and set the model; return the `start` of the next training."""


class PreparedClassifier(ClassifierMixin, PreparedLearner):  # type: ignore[misc]
    """Base class of all classifiers."""


def check_no_checkpoint(learner: Any) -> None:
    """Raise a ``ValueError`` if a checkpoint is set, because a path cannot have one."""
    if getattr(learner, "checkpoint", None) is not None:
        raise ValueError("path keeps no checkpoint: leave it out")
