"""What the estimators of this room share: parameters, fitted attributes, and answers."""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel.cutplane.checkpoints import remove_checkpoints
from unkernel.cutplane.training import Solution, SolverOptions, TrainingRows, rows_in_files, rows_in_memory
from unkernel.data.rows.csr import canonical_rows
from unkernel.data.rows.row_files import RowFile
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.learners.base import Narrator, OnProgress, relative_gap
from unkernel.models import Decision, LinearModel


class LinearLearner(BaseEstimator):  # type: ignore[misc]
    """Learners whose model is a weight a feature, found by cutting planes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "max_cuts": [Interval(Integral, 4, 4096, closed="both")],
        "checkpoint": [str, os.PathLike, None],
        "cache": [str, os.PathLike, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # classes_ and the like are there before training ends

    def _rows_in_files(self, source: Any, on_reading: Any, zero_based: Any) -> tuple[TrainingRows, RowFile]:
        """Rows of files, with what scikit-learn notes of a matrix."""
        rows, opened = rows_in_files(
            source,
            self.tol,
            thread_count(self.n_jobs),
            cache=self.cache,
            on_reading=on_reading,
            zero_based=zero_based,
        )
        self.n_features_in_ = rows.n_features
        if hasattr(self, "feature_names_in_"):  # of a former fit
            del self.feature_names_in_
        return rows, opened

    def _rows_in_memory(self, matrix: Any) -> TrainingRows:
        identify = self.checkpoint is not None
        return rows_in_memory(matrix, self.tol, thread_count(self.n_jobs), identify=identify)

    def _solver_options(self, on_progress: OnProgress | None, intercept: float) -> SolverOptions:
        return SolverOptions(
            C=float(self.C),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            threads=thread_count(self.n_jobs),
            intercept=intercept,
            most_cuts=int(self.max_cuts),
            on_progress=on_progress or Narrator(type(self).__name__, self.verbose, "cuts").on_progress,
            checkpoint=self.checkpoint,
        )

    def _keep(self, solutions: list[Solution], model: LinearModel) -> Self:
        """The fitted attributes; a warning where the gap that was asked for is not reached."""
        self.objective_ = float(sum(solution.objective for solution in solutions))
        self.gap_ = float(max(relative_gap(solution.objective, solution.bound) for solution in solutions))
        self.n_iter_ = int(max(solution.rounds for solution in solutions))
        origin = model.origin | {"C": float(self.C), "objective": self.objective_, "gap": self.gap_}
        self._set_model(LinearModel(**(vars(model) | {"origin": origin})))
        name = type(self).__name__
        converged = all(solution.converged for solution in solutions)
        if converged and self.checkpoint is not None:
            remove_checkpoints(self.checkpoint, len(solutions))
        if self.verbose:
            print(f"[{name}] {self.n_iter_} passes, objective {self.objective_:.6g}, gap {self.gap_:.2g}")
        if not model.weights.any():
            warnings.warn(
                f"{name} found no weights that are better than none, so all rows score the same: scale the "
                "features, raise C, or optimise another measure",
                UserWarning,
                stacklevel=6,
            )
        if not converged:
            warnings.warn(
                f"{name} stopped after max_iter={self.max_iter} passes at a relative gap of {self.gap_:.2g} "
                f"(tol={self.tol:g}): raise max_iter or tol, or scale the features and lower C",
                ConvergenceWarning,
                stacklevel=6,  # whoever called fit
            )
        return self

    def _set_model(self, model: LinearModel) -> None:
        for array in (model.weights, model.intercepts):
            array.setflags(write=False)  # engines are made of a model once, and must not differ from it
        self.model_ = model
        self._compiled = CompiledClassifier(model)

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, reset=False
        )
        return self._compiled.score_csr(canonical_rows(rows), thread_count(self.n_jobs))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores of each row."""
        scores = self._scores(X)
        return self._compiled.decision.decide(scores)

    def to_model(self) -> LinearModel:
        """The fitted model as plain data."""
        check_is_fitted(self)
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a ``.uk`` file; ``unkernel.load`` reads it."""
        self.to_model().save(path)


def linear_model(
    columns: list[NDArray[np.float64]], intercepts: list[float], decision: Decision, origin: dict[str, Any]
) -> LinearModel:
    """A model of weight vectors, one a score."""
    return LinearModel(
        weights=np.column_stack(columns),
        intercepts=np.array(intercepts, dtype=np.float64),
        decision=decision,
        n_features=len(columns[0]),
        fixed_width=True,
        origin=origin,
    )
