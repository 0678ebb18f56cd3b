"""What estimators on conjunctions of features have in common on a cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, cast

from sklearn.base import _fit_context, clone
from sklearn.utils.multiclass import check_classification_targets

from unkernel.cutplane.svc import to_whole_labels
from unkernel.distributed.base import OnCluster
from unkernel.distributed.cluster.coordinator import Cluster, Gathered, merged_labels
from unkernel.distributed.poly.svc_tasks import Moments, PolyPacking, PolyPart, moments_of
from unkernel.learners.feature_maps import compute_gamma
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import compute_class_weights, encode_classes
from unkernel.poly._base import PolyLearner


@dataclass(frozen=True)
class RoundProgress:
    """The state after a round, as solvers report it."""

    stage: str
    problem: int
    problems: int
    finished: int
    epoch: int
    active: int
    relative_gap: float
    objective: float
    bound: float


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """Rows that are merged on the workers, and what classes cost."""

    cluster: Cluster
    factors: list[float]  # of C, one per class
    threads: int | None  # of a task; None is as many as the worker has


class PolyOnCluster(OnCluster, PolyLearner):
    """Learners on conjunctions whose rows are on the workers."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows on the workers.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as for :class:`DaskCuttingPlaneSVC`; blocks are ``(X, y)`` or
            ``(X, y, None, weights)``.
        y : dask array or array of shape (n_samples,), default=None
            Class labels; None if the rows come with labels.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows. A row of weight k counts as k equal rows; rows of weight 0 are ignored.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, on_progress=None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        on_progress: OnProgress | None,
        *,
        zero_based: Any = "auto",
    ) -> Self:
        """Fit the model and report progress while training.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as in :meth:`fit`.
        y : dask array or array of shape (n_samples,) or None
            Class labels.
        sample_weight : dask array or array of shape (n_samples,) or None
            Weights of the rows.
        on_progress : callable or None
            Called with the state of the solver after each round.
        zero_based : bool or "auto", default="auto"
            Whether feature numbers in files start at 0.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        self._solve_on(self._spread(X, y, sample_weight, zero_based), None, on_progress)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None) -> list[Self]:
        """Fit one model for each of several values of C.

        The rows are sent to the workers once, and each fit starts from the solution of the previous one.
        ``traffic_`` of a fitted copy counts what was sent until it was fitted.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as in :meth:`fit`.
        y : dask array or array of shape (n_samples,) or None
            Class labels.
        Cs : iterable of float
            Values of C; training is fastest if they ascend.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        list of estimators
            One fitted copy of this estimator for each C.
        """
        prepared = clone(self)
        spread = prepared._spread(X, y, sample_weight, "auto")
        fitted: list[Self] = []
        start = None
        for copy in self._copy_with_each(Cs):
            for name in ("n_features_in_", "classes_", "gamma_"):
                setattr(copy, name, getattr(prepared, name))
            start = copy._solve_on(spread, start, None)
            fitted.append(copy)
        return fitted

    @abstractmethod
    def _solve_on(self, spread: SpreadRows, start: Any, on_progress: OnProgress | None) -> Any:
        """Train, and keep the model; where the next training may start."""

    def _spread(self, X: Any, y: Any, sample_weight: Any, zero_based: Any) -> SpreadRows:
        """Have the workers merge their rows."""
        self._check_parameters()
        beside = {"y": y, "qid": None, "sample_weight": sample_weight}
        sources, found = self._gathered(X, beside, zero_based, identify=False)
        if not sources.own_labels and any(seen.has_qid for seen in found.surveys):
            raise ValueError(
                "blocks have groups (qid), which this learner does not use; with weights, blocks are "
                "(X, y, None, weights)"
            )
        factors = self._survey_labels(found, sources.own_labels)
        self.n_features_in_ = found.n_features
        threads = self._worker_threads()
        packing = PolyPacking(found.first_index, found.n_features, self.classes_, threads)
        parts = [
            found.client.submit(self._part_kind(), blocks, packing, pure=False) for blocks in found.blocks
        ]
        cluster = Cluster(found.client, parts, [seen.rows for seen in found.surveys])
        del found  # the blocks, now that they are merged
        sizes, moments = zip(*cluster.each(moments_of, lambda _: ()), strict=True)
        cluster.rows = list(sizes)
        self.gamma_ = compute_gamma(self.gamma, cast(Any, Moments.together(moments)), self.n_features_in_)
        return SpreadRows(cluster, factors, threads)

    @abstractmethod
    def _part_kind(self) -> type[PolyPart]:
        """What the rows of a part become."""

    def _survey_labels(self, found: Gathered, of_files: bool) -> list[float]:
        """Find the classes; what each of them costs."""
        labels, totals, _ = merged_labels(found.surveys)
        labels = to_whole_labels(labels) if of_files else labels
        check_classification_targets(labels)
        self.classes_, codes = encode_classes(labels, totals, type(self).__name__)
        counted = totals > 0
        return compute_class_weights(self.class_weight, self.classes_, codes[counted], totals[counted])

    def _report_round(
        self, now: RoundProgress, number: int, unit: str, on_progress: OnProgress | None
    ) -> None:
        """Tell the state after a round."""
        if self.verbose > 1:
            print(
                f"[{type(self).__name__}] round {number}: {now.active} {unit}, "
                f"objective {now.objective:.6g}, bound {now.bound:.6g}, gap {now.relative_gap:.2g}"
            )
        if on_progress is not None:
            on_progress(cast(Any, now))
