"""Base class of the cutting-plane estimators: parameters, training rows and linear models."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from unkernel.cutplane.checkpoints import remove_checkpoints
from unkernel.cutplane.solver_run import (
    Solution,
    SolverOptions,
    TrainingRows,
    Weights,
    open_row_files,
    pack_rows,
)
from unkernel.data.rows.row_files import RowFile
from unkernel.data.threads import thread_count
from unkernel.errors import warn_caller
from unkernel.learners.base import RowLearner, read_only_view
from unkernel.learners.parameters import COST
from unkernel.learners.progress import OnProgress
from unkernel.models import Decision, LinearModel


class LinearLearner(RowLearner):
    """Base class of learners whose model has one weight per feature, found by cutting planes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [COST],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "max_cuts": [Interval(Integral, 4, 4096, closed="both")],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "cache": [str, os.PathLike, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _open_row_files(self, source: Any, on_reading: Any, zero_based: Any) -> tuple[TrainingRows, RowFile]:
        """Open training rows in files, and set the attributes that scikit-learn sets for a matrix."""
        rows, opened = open_row_files(
            source,
            thread_count(self.n_jobs),
            cache=self.cache,
            on_reading=on_reading,
            zero_based=zero_based,
        )
        self.n_features_in_ = rows.n_features
        if hasattr(self, "feature_names_in_"):  # from an earlier fit
            del self.feature_names_in_
        return rows, opened

    def _pack_rows(self, matrix: Any, order: NDArray[np.int64] | None = None) -> TrainingRows:
        identify = self.checkpoint is not None  # a checkpoint must recognise its rows
        return pack_rows(matrix, thread_count(self.n_jobs), identify=identify, order=order)

    def _make_solver_options(self, on_progress: OnProgress | None, intercept: float) -> SolverOptions:
        return SolverOptions(
            C=float(self.C),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            threads=thread_count(self.n_jobs),
            intercept=intercept,
            most_cuts=int(self.max_cuts),
            on_progress=self._choose_reporter(on_progress, "cuts"),
            checkpoint=self.checkpoint,
        )

    def _find_start(
        self, rows: TrainingRows, classes: NDArray[Any], problem: int, intercept: float
    ) -> Weights | None:
        """Return the weights of the last fit; None if that fit had other columns or other classes."""
        model = getattr(self, "model_", None)
        if not self.warm_start or not isinstance(model, LinearModel) or model.n_features != rows.n_features:
            return None
        if len(classes) and not np.array_equal(model.classes, classes):
            return None
        constant = model.intercept[problem : problem + 1] / intercept if intercept else np.empty(0)
        return rows.to_store(model.weights[:, problem], constant)

    def _finish_linear_fit(
        self,
        solutions: list[Solution],
        columns: list[Weights],
        intercepts: list[float],
        decision: Decision,
        facts: dict[str, Any],
    ) -> None:
        """Set the fitted attributes from one weight vector per score."""
        weights = read_only_view(np.column_stack(columns))

        def make_model(origin: dict[str, Any]) -> LinearModel:
            return LinearModel(
                weights=weights,
                intercept=read_only_view(np.array(intercepts, dtype=np.float64)),
                decision=decision,
                n_features=len(weights),
                fixed_width=True,
                origin=origin,
            )

        self._finish_fit(solutions, make_model, facts=facts)
        self._remove_checkpoints(solutions, has_weights=bool(weights.any()))

    def _remove_checkpoints(self, solutions: list[Solution], *, has_weights: bool) -> None:
        """Remove the checkpoints of a run that converged; warn if nothing was learned."""
        if self.checkpoint is not None and all(solution.converged for solution in solutions):
            remove_checkpoints(self.checkpoint, len(solutions))
        if not has_weights:
            warn_caller(
                f"{type(self).__name__} found no weights better than zero, so all rows have the same score: "
                "scale the features, raise C, or optimise another measure",
                UserWarning,
            )
