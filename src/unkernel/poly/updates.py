"""Updates of models: training on new rows, with the summary of the old rows that the model stores.

The summary is a quadratic approximation of the loss of the old rows: its second derivatives (curvatures) with
respect to the weights, and its first derivatives (slopes) for single features.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel._core import DistinctRows
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.learners.base import Outcome, read_only_view
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_weights
from unkernel.models import ConjunctionModel
from unkernel.poly._base import PolyClassifier, PolyLearner, Start, TrainingSet
from unkernel.poly.options import OldModel, RowOptions, SparseOptions

_MAX_LISTED_CLASSES = 8
_STORAGES_WITHOUT_WEIGHTS = ("split", "kernel")
_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Examples:
    """Distinct rows with their targets.

    Attributes
    ----------
    rows : DistinctRows
        The rows, with the codes of their classes or targets.
    factors : list of float
        One factor of C per class; empty in regression.
    values : ndarray of float64
        The targets by code, minus the centre; empty for classes.
    """

    rows: DistinctRows
    factors: list[float]
    values: NDArray[np.float64]


class UpdatableLearner(PolyLearner):
    """Base class of learners whose models can be updated with new rows."""

    _may_lack_weights = True  # whether storage="auto" may choose a storage that computes no weights

    # --- What subclasses provide ----------------------------------------------------------------------

    @property
    @abstractmethod
    def _penalty(self) -> tuple[float, float]:
        """The factors of the l1 norm and of half of the squared l2 norm."""

    @abstractmethod
    def _get_smooth_loss(self) -> str:
        """Return the loss; raise a ``ValueError`` if it has no second derivative, which updates need."""

    @abstractmethod
    def _make_examples(self, training_set: Any) -> Examples:
        """Return the examples of a training set."""

    @abstractmethod
    def _encode_new_targets(
        self, targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the codes of new targets and, in regression, the values of the codes minus the centre."""

    @abstractmethod
    def _describe_examples(self, examples: Examples) -> dict[str, Any]:
        """Return the facts about the targets that the model stores for updates."""

    @abstractmethod
    def _get_factors(self, model: ConjunctionModel) -> list[float]:
        """Return one factor of C per class; an empty list in regression."""

    @property
    def _model_centre(self) -> float:
        """The part of the intercept that is not the weight of the constant feature."""
        return 0.0

    # --- Training -------------------------------------------------------------------------------------

    def _train_on(self, examples: Any, start: Start | None, on_progress: OnProgress | None) -> Start:
        if not self.updatable:
            return super()._train_on(examples, start, on_progress)
        self._get_smooth_loss()
        if self.storage in _STORAGES_WITHOUT_WEIGHTS:
            raise ValueError(
                f"updatable=True needs the weights of conjunctions, which storage={self.storage!r} does not "
                "compute: set storage='auto'"
            )
        reached = super()._train_on(examples, start, on_progress)
        assert isinstance(self.model_, ConjunctionModel)
        made = self._make_examples(examples)
        model = replace(self.model_, origin=self.model_.origin | self._describe_examples(made))
        classifier = CompiledClassifier(model)
        self._set_model(self._add_curvatures(model, classifier, made), classifier)
        return Start(reached.duals, self.model_)

    def _make_row_options(self, loss: str) -> RowOptions:
        options = super()._make_row_options(loss)
        if self.updatable and options.storage == "auto" and self._may_lack_weights:
            return replace(options, storage="condensed")
        return options

    def _add_curvatures(
        self, model: ConjunctionModel, classifier: CompiledClassifier, examples: Examples
    ) -> ConjunctionModel:
        """Return the model with the curvatures and slopes of the loss of the examples."""
        rows = CsrRows.of(*examples.rows.choose(np.arange(examples.rows.rows)), model.n_features)
        scores = classifier.score_csr(rows, thread_count(self.n_jobs)).reshape(rows.shape[0], -1)
        curvatures = examples.rows.curvatures(
            self._make_sparse_options(examples),
            feature_map=self._make_feature_map(),
            class_weights=examples.factors,
            keys=model.keys,
            scores=np.ascontiguousarray(scores.T).reshape(-1),
        )
        return _store_curvatures(model, *curvatures)

    def _make_sparse_options(self, examples: Examples) -> SparseOptions:
        l1, l2 = self._penalty
        return self._choose_sparse_options(self._get_smooth_loss(), l1, l2, examples.values)

    # --- Updates --------------------------------------------------------------------------------------

    def renumber_features(self, indices: NDArray[np.int64], n_features: int) -> None:
        """Change the columns of the fitted model, because an encoder got more features.

        Parameters
        ----------
        indices : ndarray of int64, shape (n_old_features,)
            The new column of each old column.
        n_features : int
            The new number of columns.
        """
        assert isinstance(self.model_, ConjunctionModel)
        model = replace(self.model_, columns=indices[self.model_.columns], n_features=n_features)
        self.n_features_in_ = n_features
        self._set_model(model)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def update(self, X: Any, y: ArrayLike, sample_weight: Any = None, *, forget: float = 0.0) -> Self:
        """Update the model with new rows, without the rows that it was fitted to.

        The update minimises the loss of the new rows, plus the penalty, plus an approximation of the loss of
        the old rows: a quadratic function of each weight. So a weight that many old rows support changes
        little. The certified gap refers to this problem. ``C`` and ``tol`` apply as in ``fit``; the feature
        map, and thus ``gamma_``, stays as it was fitted.

        New rows may contain features and conjunctions that the old rows did not have, but not new classes.
        The time depends on the new rows and on the model, and not on the old rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The new rows.
        y : array-like of shape (n_samples,)
            Their classes or values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the new rows.
        forget : float, default=0.0
            Share of the old rows to forget, from 0 to 1. With 0, old and new rows count equally; use larger
            values if the data change over time. With 1, only the new rows count.

        Returns
        -------
        estimator
            The updated estimator itself.
        """
        check_is_fitted(self)
        model = _check_updatable(self)
        if not (isinstance(forget, Real) and 0 <= forget <= 1):
            raise ValueError(f"forget must be a number from 0 to 1, got {forget!r}")
        check_inputs(X, y, sample_weight)
        rows, targets = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, reset=False
        )
        weights = None if sample_weight is None else check_weights(sample_weight, rows)
        codes, values = self._encode_new_targets(targets, weights)
        distinct = self._merge_equal_rows(canonical_rows(rows), codes, weights, merge_classes=not len(values))
        examples = Examples(_number_features(distinct, model), self._get_factors(model), values)
        self._update_on(examples, model, kept=1.0 - float(forget))
        return self

    def _update_on(self, examples: Examples, model: ConjunctionModel, *, kept: float) -> None:
        """Replace `model` by a model updated with examples; `kept` is the factor of the old rows' loss."""
        assert model.curvatures is not None and model.slopes is not None
        self._steps = "Newton steps"
        of_features, of_conjunctions = np.split(model.curvatures[1:].astype(np.float64), [len(model.columns)])
        solution, curvatures = examples.rows.update(
            self._make_sparse_options(examples),
            feature_map=self._make_feature_map(),
            class_weights=examples.factors,
            model=OldModel(
                model.keys,
                model.weights.reshape(-1),
                model.intercept - self._model_centre,
                model.curvatures[0].astype(np.float64),
                of_features.reshape(-1),
                of_conjunctions.reshape(-1),
                model.slopes.astype(np.float64).reshape(-1),
                kept,
            ),
            on_progress=self._choose_reporter(None, "conjunctions"),
        )
        self.__dict__.pop("_duals", None)  # they belong to the old rows
        facts = self._training_facts() | self._describe_examples(examples)
        updates = model.origin.get("updates", 0)
        facts["updates"] = 1 + (updates if isinstance(updates, int) else 0)

        def make_model(origin: dict[str, Any]) -> ConjunctionModel:
            updated = self._make_model(examples.rows, solution, origin)
            assert isinstance(updated, ConjunctionModel)
            origin = model.origin | updated.origin  # keeps the entries that describe records
            updated = replace(updated, threshold=model.threshold, origin=origin)
            return _store_curvatures(updated, *curvatures)

        about = f"{examples.rows.rows} distinct new rows, {solution.dimension} weights; "
        outcomes = [Outcome(*outcome) for outcome in solution.outcomes]
        self._finish_fit(outcomes, make_model, facts=facts, about=about)


def _store_curvatures(
    model: ConjunctionModel,
    of_intercepts: NDArray[np.float64],
    of_features: NDArray[np.float64],
    of_conjunctions: NDArray[np.float64],
    slopes: NDArray[np.float64],
) -> ConjunctionModel:
    """Return the model with the arrays that updates need, as 32-bit numbers."""

    def shorten(array: NDArray[np.float64]) -> NDArray[np.float32]:
        return read_only_view(array.clip(-_FLOAT32_MAX, _FLOAT32_MAX).astype(np.float32))

    curvatures = shorten(np.vstack([of_intercepts, of_features, of_conjunctions]))
    return replace(model, curvatures=curvatures, slopes=shorten(slopes))


def _check_updatable(learner: Any) -> ConjunctionModel:
    """Return the model of a learner; raise a ``ValueError`` if it cannot be updated."""
    model = learner.model_
    curvatures, slopes = getattr(model, "curvatures", None), getattr(model, "slopes", None)
    if curvatures is None or slopes is None:
        raise ValueError(
            f"this {type(learner).__name__} keeps nothing of its training rows that an update could use: "
            "fit it with updatable=True"
        )
    assert isinstance(model, ConjunctionModel)  # others have no curvatures
    if not (np.isfinite(curvatures).all() and (curvatures >= 0).all() and np.isfinite(slopes).all()):
        raise ValueError("the curvatures of the model are damaged: fit a new model")
    _check_same_parameters(learner, model)
    return model


def _check_same_parameters(learner: Any, model: ConjunctionModel) -> None:
    """Raise a ``ValueError`` if parameters that define the model have changed since it was fitted."""
    fitted = {"degree": model.degree, "coef0": model.coef0, "feature_map": model.feature_map}
    fitted |= {name: model.origin[name] for name in ("loss", "penalty") if name in model.origin}
    for name, value in fitted.items():
        if hasattr(learner, name) and getattr(learner, name) != value:
            raise ValueError(
                f"{name} is now {getattr(learner, name)!r}, and the model was fitted with {value!r}: an "
                "update cannot change it"
            )


def _number_features(rows: DistinctRows, model: ConjunctionModel) -> DistinctRows:
    """Return the rows with features numbered as in the model; features that it lacks come last."""
    if model.sets and not rows.binary:
        raise ValueError(
            "X has values other than 0 and 1, and the model was fitted to rows of 0 and 1: it can only be "
            "updated with such rows"
        )
    is_new = ~np.isin(rows.columns, model.columns)
    columns = np.concatenate([model.columns, rows.columns[is_new]])
    return rows.renumbered(columns, binary=model.sets)


class UpdatableClassifier(UpdatableLearner, PolyClassifier):
    """Base class of classifiers whose models can be updated with new rows."""

    def _make_examples(self, training_set: TrainingSet) -> Examples:
        return Examples(training_set.rows, training_set.factors, np.empty(0))

    def _describe_examples(self, examples: Examples) -> dict[str, Any]:
        return {"class_factors": examples.factors}

    def _get_factors(self, model: ConjunctionModel) -> list[float]:
        factors = model.origin.get("class_factors")
        if not (
            isinstance(factors, list)
            and len(factors) == len(model.classes)
            and all(isinstance(factor, int | float) for factor in factors)
        ):
            raise ValueError("the model's factors of C are damaged: fit a new model")
        return [float(factor) for factor in factors]

    def _encode_new_targets(
        self, targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        known = set(self.classes_.tolist())
        unknown = [label for label in targets.tolist() if label not in known]
        if unknown:
            classes = ", ".join(map(str, self.classes_[:_MAX_LISTED_CLASSES].tolist()))
            raise ValueError(
                f"y has the class {unknown[0]!r}, and the model only has {classes}: fit a new model "
                "to old and new rows"
            )
        return np.searchsorted(self.classes_, targets).astype(np.int32), np.empty(0)
