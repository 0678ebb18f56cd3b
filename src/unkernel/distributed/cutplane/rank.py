"""Learning to rank on a Dask cluster."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from dask.distributed import Client

from unkernel.cutplane import RankSVM
from unkernel.cutplane.rankings import check_numbers, encode_ranking, weigh_rank_pairs
from unkernel.cutplane.solver_run import Solution, compute_pair_accuracy
from unkernel.distributed.base import OnCluster, cluster_constraints
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.gathered_blocks import merge_labels
from unkernel.distributed.cluster.regroup import gather_groups
from unkernel.distributed.cluster.row_blocks import concatenate_arrays
from unkernel.distributed.cluster.row_parts import get_targets
from unkernel.distributed.cutplane.ranking_tasks import GroupedRows, RankedRows
from unkernel.distributed.cutplane.risks import ClusterMinimiser, compute_pair_scale, is_counting_cheaper
from unkernel.distributed.shared_docs import complete_docs
from unkernel.errors import warn_caller

_MAX_COUNTED_RANKS = 1024  # with more ranks, the client gathers scores instead of counts


@complete_docs(RankSVM, OnCluster, without=("intercept_", "gamma_", "classes_", "feature_names_in_"))
class DaskRankSVM(OnCluster, RankSVM):
    """Support vector machine for learning to rank on a Dask cluster.

    This estimator is :class:`~unkernel.RankSVM` of degree 1 with the rows on the workers. It has the same
    certified gap. With groups, all rows of a group are moved to one worker, which finds their pairs. Without
    groups, the workers count their rows by label and score, and the client finds the pairs from the summed
    counts. In both cases, the traffic per pass does not depend on the number of rows. In two other cases, the
    client gathers the scores of all rows (8 bytes per row and pass): if no part has more than 16,384 rows,
    and, with a warning, if there are more than 1,024 labels.

    Parameters
    ----------
    checkpoint : path, default=None
        Folder on the client's machine. Cuts are saved there during training; if training is interrupted, the
        next fit continues from them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    n_parts_ : int
        Number of parts of the rows, up to four per worker.

    See Also
    --------
    unkernel.RankSVM : The same estimator on one machine, with details of the parameters.
    DaskCuttingPlaneSVC : Classification on a cluster.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from unkernel.distributed import DaskRankSVM
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     ranker = DaskRankSVM().fit([[0.0], [1.0], [2.0], [9.0]], [1, 2, 3, 4])
    >>> ranker.score([[5.0], [3.0], [4.0]], [3, 1, 2])
    1.0
    """

    _max_parts_per_worker = 4
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = cluster_constraints(
        RankSVM, "degree", "gamma", "coef0", "cache"
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        pair_weight: Any = "uniform",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_cuts: int = 200,
        warm_start: bool = False,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Client | None = None,
    ) -> None:
        self._set_parameters(locals())

    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows on the workers: rows with larger labels should get larger scores.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as for :class:`DaskCuttingPlaneSVC`; blocks are ``(X, y[, qid[, weights]])``.
        y : dask array or array of numbers of shape (n_samples,), default=None
            Labels; None if the rows come with labels.
        qid : dask array or array of shape (n_samples,), default=None
            Groups: only rows of the same group are compared. If the rows of a group are on different workers,
            they are first moved to one worker.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows; the weight of a pair is the product of the weights of its rows.

        Returns
        -------
        DaskRankSVM
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, qid, sample_weight, on_progress=None)
        return fitted

    def _prepare(
        self,
        X: Any,
        y: Any,
        qid: Any,
        sample_weight: Any,
        *,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> tuple[ClusterMinimiser, Any]:
        """Pack the rows on the workers; return their solver and the ranking."""
        targets = {"y": y, "qid": qid, "sample_weight": sample_weight}
        _, gathered = self._gather_blocks(X, targets, zero_based, identify=self.checkpoint is not None)
        if len({(survey.has_qid, survey.has_weights) for survey in gathered.surveys}) > 1:
            raise ValueError("some blocks have groups or weights: all have them, or none has")
        labels, totals, counts = merge_labels(gathered.surveys)
        numbers, has_groups = check_numbers(labels), gathered.surveys[0].has_qid
        self._set_ranking_attributes(numbers, labels if has_groups else None, totals)
        rows = self._describe_rows(gathered)
        cluster = self._pack_parts(gather_groups(gathered) if has_groups else gathered, 0.0)
        del gathered  # frees the memory of the blocks, which are packed now
        minimiser = ClusterMinimiser(cluster, rows)
        accuracy = compute_pair_accuracy(self.tol)
        if has_groups:
            scale = compute_pair_scale(cluster, self.pair_weight)
            return minimiser, GroupedRows("", self.pair_weight, scale, accuracy)
        if not is_counting_cheaper(cluster) or len(numbers) > _MAX_COUNTED_RANKS:
            self._warn_of_gathering(cluster, len(numbers))
            return minimiser, self._gather_ranking(cluster)
        pair_weights = weigh_rank_pairs(numbers, totals, counts, self.pair_weight)
        ranks = np.arange(len(numbers), dtype=np.int32)
        return minimiser, RankedRows("", numbers, ranks, pair_weights, accuracy)

    def _train_on(self, minimiser: Any, ranking: Any, *given: Any, **options: Any) -> Solution:
        solution = super()._train_on(minimiser, ranking, *given, **options)
        self._record_traffic(minimiser.cluster)
        return solution

    @staticmethod
    def _warn_of_gathering(cluster: Cluster, ranks: int) -> None:
        if is_counting_cheaper(cluster):
            warn_caller(
                f"there are {ranks:,} labels, too many to count rows by label: each pass gathers the scores "
                f"of all {sum(cluster.rows):,} rows; use groups, or at most {_MAX_COUNTED_RANKS:,} labels",
                UserWarning,
            )

    def _gather_ranking(self, cluster: Cluster) -> dict[str, Any]:
        """Return the ranking of all rows, for an oracle on the client."""
        targets_of_parts = cluster.ask(get_targets, lambda _: ())
        labels, groups, weights = (
            concatenate_arrays(arrays) for arrays in zip(*targets_of_parts, strict=True)
        )
        return encode_ranking(labels, groups, weights, self.pair_weight)

    def _make_oracle(self, ranking: Any) -> Any:
        if isinstance(ranking, dict):
            return super()._make_oracle(ranking)
        return replace(ranking, name=uuid.uuid4().hex)

    def _describe_run(self, rows: dict[str, Any], ranking: Any) -> dict[str, Any]:
        """Return the identity for checkpoints; it does not depend on the method that finds the pairs."""
        return rows | {"objective": "pairs", "pair_weight": repr(self.pair_weight)}
