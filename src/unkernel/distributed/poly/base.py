"""Base classes of the estimators on conjunctions of features."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from numpy.typing import NDArray

from unkernel.distributed.base import ClassifierOnCluster, OnCluster
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks
from unkernel.distributed.poly.svc_tasks import Moments, PolyPacking, PolyPart, get_moments
from unkernel.learners.feature_maps import compute_gamma
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import compute_class_weights, encode_classes
from unkernel.poly._base import PolyClassifier, PolyLearner


@dataclass(frozen=True)
class RoundProgress:
    """The state after a round, with the attributes of the progress of local solvers."""

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
class DistributedRows:
    """The distinct rows on the workers, and the factor of C of each class."""

    cluster: Cluster
    factors: list[float]  # factors of C, one per class; empty in regression
    threads: int | None  # threads per task; None means all of the worker's threads


class PolyOnCluster(OnCluster, PolyLearner):
    """Base class of learners on conjunctions whose rows are on the workers."""

    n_rounds_: int

    def _prepare(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any, *, on_reading: Any = None, zero_based: Any = "auto"
    ) -> DistributedRows:
        """Pack the rows on the workers, merging equal rows."""
        self._check_parameters()
        targets = {"y": y, "qid": None, "sample_weight": sample_weight}
        sources, gathered = self._gather_blocks(X, targets, zero_based, identify=False)
        if not sources.has_labels and any(survey.has_qid for survey in gathered.surveys):
            raise ValueError(
                "the blocks have groups (qid), which this learner does not use; give blocks with weights as "
                "(X, y, None, weights)"
            )
        classes, factors = self._survey_labels(gathered, sources.has_labels)
        self.n_features_in_ = gathered.n_features
        threads = self._worker_threads()
        packing = PolyPacking(gathered.first_index, gathered.n_features, classes, threads)
        parts = [
            gathered.client.submit(self._get_part_class(), blocks, packing, pure=False)
            for blocks in gathered.blocks
        ]
        cluster = Cluster(gathered.client, parts, [survey.rows for survey in gathered.surveys])
        del gathered  # frees the memory of the blocks, which are packed now
        sizes, moments = zip(*cluster.ask(get_moments, lambda _: ()), strict=True)
        cluster.rows = list(sizes)
        self.gamma_ = compute_gamma(self.gamma, cast(Any, Moments.merge(moments)), self.n_features_in_)
        return DistributedRows(cluster, factors, threads)

    @abstractmethod
    def _get_part_class(self) -> type[PolyPart]:
        """Return the class of the parts."""

    @abstractmethod
    def _survey_labels(
        self, gathered: GatheredBlocks, from_files: bool
    ) -> tuple[NDArray[Any] | None, list[float]]:
        """Set the attributes that follow from the labels; return the classes and their factors of C."""

    @property
    def update(self) -> NoReturn:
        """Not available, because training on a cluster keeps nothing of the rows that an update needs."""
        raise AttributeError(
            f"a {type(self).__name__} cannot be updated: fit a new one, or train on one machine with "
            "updatable=True"
        )

    def _report_round(
        self, now: RoundProgress, number: int, unit: str, on_progress: OnProgress | None
    ) -> None:
        """Report the state after a round."""
        if self.verbose > 1:
            print(
                f"[{type(self).__name__}] round {number}: {now.active} {unit}, "
                f"objective {now.objective:.6g}, bound {now.bound:.6g}, gap {now.relative_gap:.2g}"
            )
        if on_progress is not None:
            on_progress(cast(Any, now))

    def _describe_rounds(self, cluster: Cluster) -> str:
        return f"{sum(cluster.rows)} distinct rows in {len(cluster.parts)} parts, {self.n_rounds_} rounds; "


class PolyClassifierOnCluster(ClassifierOnCluster, PolyOnCluster, PolyClassifier):
    """Base class of classifiers on conjunctions whose rows are on the workers."""

    def _survey_labels(
        self, gathered: GatheredBlocks, from_files: bool
    ) -> tuple[NDArray[Any] | None, list[float]]:
        labels, totals = self._merge_labels(gathered, from_files)
        self.classes_, codes = encode_classes(labels, totals, type(self).__name__)
        is_counted = totals > 0
        factors = compute_class_weights(
            self.class_weight, self.classes_, codes[is_counted], totals[is_counted]
        )
        return self.classes_, factors
