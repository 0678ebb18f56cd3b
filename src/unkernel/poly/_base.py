"""What the learners on polynomial maps share: rows, maps, fitted attributes, and answers."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel._core import DistinctRows, distinct_examples
from unkernel.data.memory import available_bytes
from unkernel.data.rows.csr import canonical_rows
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier, compile
from unkernel.learners.base import (
    Narrator,
    OnProgress,
    check_weights,
    class_codes,
    class_weights,
    relative_gap,
)
from unkernel.models import ConjunctionModel, Decision, Kernel, KernelModel
from unkernel.models.decision import Softmax


@dataclass(frozen=True)
class _Start:
    """Dual variables by row, for a warm start."""

    classes: NDArray[Any]
    hashes: NDArray[np.uint64]
    duals: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Answers:
    """A fitted model, made ready when it is first asked: a fit that is only looked at needs none."""

    model: ConjunctionModel | KernelModel
    threads: int

    @cached_property
    def classifier(self) -> CompiledClassifier:
        if isinstance(self.model, ConjunctionModel):
            return CompiledClassifier(self.model)
        compiled = compile(self.model, engine="split", n_jobs=self.threads)
        assert isinstance(compiled, CompiledClassifier)
        return compiled


class PolyLearner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifiers whose model is a weight a conjunction."""

    _probability: Softmax | None = None  # where a model's probabilities come from

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight k counts as k equal rows; rows of weight 0 do not count at all.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, on_progress=None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, on_progress: OnProgress | None
    ) -> Self:
        """``fit``, with a function that is shown the progress about twenty times a second."""
        self._check_parameters()
        rows, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True
        )
        check_classification_targets(labels)
        weights = None if sample_weight is None else check_weights(sample_weight, rows)
        self.classes_, codes = class_codes(labels, weights, type(self).__name__)
        examples = self._distinct(canonical_rows(rows), codes, weights)
        self.gamma_ = self._gamma_value(examples)
        factors = class_weights(self.class_weight, self.classes_, codes, weights)
        self._keep(examples, self._train(examples, factors, on_progress))
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that do not go together."""

    @abstractmethod
    def _train(
        self, examples: DistinctRows, factors: list[float], on_progress: OnProgress | None
    ) -> dict[str, Any]:
        """The weights, and how training ended."""

    @abstractmethod
    def _origin(self) -> dict[str, Any]:
        """What a model tells of its training."""

    def _distinct(
        self, rows: Any, codes: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> DistinctRows:
        return distinct_examples(
            offsets=rows.indptr,
            columns=rows.indices,
            values=rows.data,
            features=rows.shape[1],
            classes=codes,
            weights=np.empty(0) if weights is None else weights,
            threads=thread_count(self.n_jobs),
        )

    def _gamma_value(self, examples: DistinctRows) -> float:
        if self.gamma == "auto":
            return 1.0 / float(self.n_features_in_)
        if self.gamma != "scale":
            return float(self.gamma)
        spread = float(self.n_features_in_ * examples.variance(self.n_features_in_))
        return 1.0 / spread if spread > 0 else 1.0

    def _map(self) -> dict[str, Any]:
        return {
            "degree": int(self.degree),
            "map": self.feature_map,
            "gamma": self.gamma_,
            "coef0": float(self.coef0),
        }

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _on_progress(self, on_progress: OnProgress | None, unit: str) -> OnProgress:
        return on_progress or Narrator(type(self).__name__, self.verbose, unit).on_progress

    def _train_rows(
        self, examples: DistinctRows, factors: list[float], on_progress: OnProgress | None, *, loss: str
    ) -> dict[str, Any]:
        """All weights of an l2 penalty, by the rows."""
        start: _Start | None = getattr(self, "_start", None) if self.warm_start else None
        if start is not None and not np.array_equal(start.classes, self.classes_):
            start = None
        trained = dict(
            examples.train(
                **self._map(),
                loss=loss,
                C=float(self.C),
                class_weights=factors,
                storage=self.storage,
                memory=float(available_bytes()),
                tolerance=float(self.tol),
                max_epochs=int(self.max_iter),
                seed=self._seed(),
                threads=thread_count(self.n_jobs),
                start_hashes=start.hashes if start else np.empty(0, np.uint64),
                start_duals=start.duals.reshape(-1) if start else np.empty(0),
                on_progress=self._on_progress(on_progress, "rows"),
            )
        )
        if self.warm_start:
            self._start = _Start(self.classes_, np.asarray(examples.hashes), np.asarray(trained["duals"]))
        return trained | {"unit": "Newton steps" if loss == "logistic" else "epochs"}

    def _train_sparse(
        self,
        examples: DistinctRows,
        factors: list[float],
        on_progress: OnProgress | None,
        *,
        loss: str,
        l1: float,
        l2: float,
    ) -> dict[str, Any]:
        """The weights of a penalty with an l1 part, by the columns."""
        start = self._former_model(examples) if self.warm_start else None
        trained = dict(
            examples.train_sparse(
                **self._map(),
                loss=loss,
                l1=l1,
                l2=l2,
                C=float(self.C),
                class_weights=factors,
                memory=float(available_bytes()),
                tolerance=float(self.tol),
                max_steps=int(self.max_iter),
                seed=self._seed(),
                threads=thread_count(self.n_jobs),
                start_keys=start.keys if start else np.empty(0, np.uint64),
                start_weights=start.weights.reshape(-1) if start else np.empty(0),
                start_constants=start.constants if start else np.empty(0),
                on_progress=self._on_progress(on_progress, "conjunctions"),
            )
        )
        return trained | {"unit": "Newton steps"}

    def _former_model(self, examples: DistinctRows) -> ConjunctionModel | None:
        """The model of the last fit, if it numbers conjunctions in the same way."""
        model = getattr(self, "model_", None)
        if (
            not isinstance(model, ConjunctionModel)
            or model.degree != self.degree
            or model.sets != examples.binary
        ):
            return None
        same = np.array_equal(model.columns, examples.columns) and np.array_equal(
            model.classes, self.classes_
        )
        return model if same else None

    def _keep(self, examples: DistinctRows, trained: dict[str, Any]) -> None:
        outcomes = trained["outcomes"]
        self.objective_ = float(sum(primal for primal, _, _, _ in outcomes))
        self.gap_ = float(max(relative_gap(primal, dual) for primal, dual, _, _ in outcomes))
        self.n_iter_ = int(max(epochs for _, _, epochs, _ in outcomes))
        as_model = self._kernel_model if trained["storage"] == "split" else self._conjunction_model
        self.model_ = as_model(examples, trained)
        self._answers = _Answers(self.model_, thread_count(self.n_jobs))
        name = type(self).__name__
        if self.verbose:
            print(
                f"[{name}] {examples.rows} distinct rows, storage={trained['storage']}, "
                f"{trained['dimension']} weights; {self.n_iter_} {trained['unit']}, "
                f"objective {self.objective_:.6g}, gap {self.gap_:.2g}"
            )
        if not all(converged for _, _, _, converged in outcomes):
            warnings.warn(
                f"{name} stopped after max_iter={self.max_iter} {trained['unit']} at a relative gap of "
                f"{self.gap_:.2g} (tol={self.tol:g}): raise max_iter or tol, or scale the features and "
                "lower C or gamma",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _conjunction_model(self, examples: DistinctRows, trained: dict[str, Any]) -> ConjunctionModel:
        return ConjunctionModel(
            degree=int(self.degree),
            sets=bool(examples.binary),
            feature_map=self.feature_map,
            gamma=self.gamma_,
            coef0=float(self.coef0),
            n_features=int(self.n_features_in_),
            columns=_frozen(examples.columns),
            keys=_frozen(trained["keys"]),
            weights=_frozen(trained["weights"]),
            constants=_frozen(trained["constants"]),
            classes=self.classes_,
            probability=self._probability,
            origin=self._full_origin(),
        )

    def _kernel_model(self, examples: DistinctRows, trained: dict[str, Any]) -> KernelModel:
        """The rows whose dual variables are not zero, with those as coefficients."""
        columns = np.asarray(examples.columns)[np.asarray(examples.features)]
        rows = sparse.csr_matrix(
            (np.ones(len(columns)), columns, np.asarray(examples.offsets)),
            shape=(int(examples.rows), int(self.n_features_in_)),
        )
        duals = np.asarray(trained["duals"])
        support = np.flatnonzero(duals.any(axis=1))
        return KernelModel(
            kernel=Kernel("polynomial", int(self.degree), self.gamma_, float(self.coef0)),
            vectors=canonical_rows(rows[support]),
            coefficients=_frozen(duals[support]),
            intercepts=_frozen(np.zeros(duals.shape[1])),
            decision=Decision("binary" if len(self.classes_) == 2 else "one_vs_rest", self.classes_),
            n_features=int(self.n_features_in_),
            fixed_width=True,
            origin=self._full_origin(),
        )

    def _full_origin(self) -> dict[str, Any]:
        origin = self._origin() | {"objective": self.objective_, "gap": self.gap_}
        if hasattr(self, "feature_names_in_"):
            origin["feature_names"] = [str(name) for name in self.feature_names_in_]
        return origin

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, reset=False
        )
        return self._answers.classifier.score_csr(canonical_rows(rows), thread_count(self.n_jobs))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores: one per row for two classes (positive: ``classes_[1]``), else one per class."""
        scores = self._scores(X)
        return self.model_.decision.decide(scores)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row."""
        scores = self._scores(X)
        return self.model_.decision.choose(scores)

    def to_model(self) -> ConjunctionModel | KernelModel:
        """The fitted model as plain data.

        The weights of conjunctions, all that are not zero. Trained with ``storage_ == "split"`` it is the
        same classifier as a kernel machine, since its conjunctions, many times the training set, were never
        formed: the support vectors are the distinct rows whose dual variables are not zero.
        """
        check_is_fitted(self)
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a ``.uk`` file; ``unkernel.load`` reads it."""
        model = self.to_model()
        # Support vectors alone would have to be compiled again by who loads them.
        (self._answers.classifier if isinstance(model, KernelModel) else model).save(path)


def _frozen(array: Any) -> NDArray[Any]:
    """A view that cannot be written to: engines are made of a model once, and must not differ from it."""
    frozen: NDArray[Any] = np.asarray(array).view()
    frozen.setflags(write=False)
    return frozen
