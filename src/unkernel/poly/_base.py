"""Base classes of the learners on polynomial feature maps: training rows, warm starts and models."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from unkernel._core import DistinctRows, FeatureMap, PolySolution, distinct_examples
from unkernel.data.memory import available_bytes
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.threads import thread_count
from unkernel.learners.base import Model, Outcome, RowLearner, read_only_view
from unkernel.learners.feature_maps import compute_gamma, make_support_vector_model
from unkernel.learners.parameters import COST
from unkernel.learners.prepared_classifier import PreparedLearner
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import (
    check_single_target,
    check_weights,
    compute_class_weights,
    encode_classes,
)
from unkernel.models import ConjunctionModel, Decision, Kernel, KernelModel
from unkernel.models.decision import Platt, Softmax
from unkernel.models.joint_conjunctions import renumber_conjunctions
from unkernel.poly.options import RowOptions, SparseOptions


@dataclass(frozen=True)
class DualStart:
    """Dual variables of rows, to start training under an l2 penalty from."""

    classes: NDArray[Any]
    hashes: NDArray[np.uint64]
    duals: NDArray[np.float64]


@dataclass(frozen=True)
class Start:
    """The solution that training starts from: dual variables (l2 penalty) or a model (l1 penalty)."""

    duals: DualStart | None = None
    model: ConjunctionModel | KernelModel | None = None


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The distinct rows, and one factor of C per class."""

    rows: DistinctRows
    factors: list[float]


class PolyLearner(PreparedLearner, RowLearner):
    """Base class of learners whose model has one weight per conjunction."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [COST],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "feature_map": [StrOptions({"kernel", "plain"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _finish = "auto"  # the method that finishes training after passes over the rows; benchmarks set others

    # --- Training -------------------------------------------------------------------------------------

    def _prepare(self, X: Any, y: Any, sample_weight: Any, **_: Any) -> Any:
        self._check_parameters()
        check_inputs(X, y, sample_weight)
        check_single_target(y, self)
        rows, targets = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            accept_large_sparse=True,
            y_numeric=isinstance(self, RegressorMixin),
        )
        weights = None if sample_weight is None else check_weights(sample_weight, rows)
        training_set = self._make_training_set(canonical_rows(rows), targets, weights)
        self.gamma_ = compute_gamma(self.gamma, training_set.rows, int(self.n_features_in_))
        return training_set

    @abstractmethod
    def _make_training_set(
        self, rows: CsrRows, targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> Any:
        """Return the distinct rows with the encoded targets."""

    def _train_on(self, examples: Any, start: Start | None, on_progress: OnProgress | None) -> Start:
        rows = examples.rows
        if start is None:
            start = self._choose_start() if self.warm_start else Start()
        solution = self._train(examples, start, on_progress)
        outcomes = [Outcome(*outcome) for outcome in solution.outcomes]
        about = f"{rows.rows} distinct rows, storage={solution.storage}, {solution.dimension} weights; "
        make_model = partial(self._make_model, rows, solution)
        self._finish_fit(outcomes, make_model, facts=self._training_facts(), about=about)
        duals = self._get_duals(rows, solution)
        if self.warm_start and duals is not None:
            self._duals = duals
        assert isinstance(self.model_, ConjunctionModel | KernelModel)
        return Start(duals, self.model_)

    def _get_duals(self, rows: DistinctRows, solution: PolySolution) -> DualStart | None:
        if solution.duals is None:
            return None
        return DualStart(self._decision.classes, np.asarray(rows.hashes), np.asarray(solution.duals))

    def _check_parameters(self) -> None:
        """Raise a ``ValueError`` for incompatible parameters."""

    @property
    @abstractmethod
    def _decision(self) -> Decision:
        """The rule that turns scores into predictions."""

    @abstractmethod
    def _train(self, training_set: Any, start: Start, on_progress: OnProgress | None) -> PolySolution:
        """Return the weights and the outcome of the training."""

    @abstractmethod
    def _training_facts(self) -> dict[str, Any]:
        """Return facts about the training that the model stores in addition to C."""

    def _choose_start(self) -> Start:
        """Return the solution to start from: for a warm start, the solution of the previous fit."""
        return Start(getattr(self, "_duals", None), getattr(self, "model_", None))

    def _merge_equal_rows(
        self,
        rows: CsrRows,
        codes: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        *,
        merge_classes: bool = True,
    ) -> DistinctRows:
        return distinct_examples(
            rows,
            classes=codes,
            weights=np.empty(0) if weights is None else weights,
            merge_classes=merge_classes,
            threads=thread_count(self.n_jobs),
        )

    def _make_feature_map(self) -> FeatureMap:
        return FeatureMap(
            degree=int(self.degree), kind=self.feature_map, gamma=self.gamma_, coef0=float(self.coef0)
        )

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _train_rows(
        self, training_set: TrainingSet, start: Start, on_progress: OnProgress | None, *, loss: str
    ) -> PolySolution:
        """Train all weights under an l2 penalty, row by row."""
        is_softmax = loss == "logistic" and len(training_set.factors) > 2
        self._steps = "Newton steps" if is_softmax else "epochs"
        hashes, duals = self._match_duals(start.duals)
        return training_set.rows.train(
            self._make_row_options(loss),
            feature_map=self._make_feature_map(),
            class_weights=training_set.factors,
            start_hashes=hashes,
            start_duals=duals,
            on_progress=self._choose_reporter(on_progress, "rows"),
        )

    def _match_duals(self, start: DualStart | None) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the row hashes and dual variables of a start; empty arrays if its classes differ."""
        if start is None or not np.array_equal(start.classes, self._decision.classes):
            return np.empty(0, np.uint64), np.empty(0)
        return start.hashes, start.duals.reshape(-1)

    @property
    def _cost(self) -> float:
        """The cost of a row of weight 1, in the units of the training set."""
        return float(self.C)

    def _make_row_options(self, loss: str) -> RowOptions:
        return RowOptions(
            loss=loss,
            C=self._cost,
            storage=self.storage,
            memory=float(available_bytes()),
            tolerance=float(self.tol),
            finish=self._finish,
            max_epochs=int(self.max_iter),
            seed=self._draw_seed(),
            threads=thread_count(self.n_jobs),
        )

    def _train_sparse(
        self,
        training_set: Any,
        start: Start,
        on_progress: OnProgress | None,
        *,
        loss: str,
        l1: float,
        l2: float,
        targets: NDArray[np.float64] | None = None,
        centre: float = 0.0,
    ) -> PolySolution:
        """Train weights under a penalty with an l1 part, column by column.

        In regression, `targets` has the target of each code relative to the mean, and the intercept of the
        start model contains `centre`.
        """
        self._steps = "Newton steps"
        keys, weights, intercept = self._match_conjunctions(start.model, training_set.rows)
        solution: PolySolution = training_set.rows.train_sparse(
            self._choose_sparse_options(loss, l1, l2, targets),
            feature_map=self._make_feature_map(),
            class_weights=training_set.factors,
            start_keys=keys,
            start_weights=weights.reshape(-1),
            start_intercept=intercept - centre,
            on_progress=self._choose_reporter(on_progress, "conjunctions"),
        )
        return solution

    def _choose_sparse_options(
        self, loss: str, l1: float, l2: float, targets: NDArray[np.float64] | None = None
    ) -> SparseOptions:
        return SparseOptions(
            loss=loss,
            l1=float(l1),
            l2=float(l2),
            C=self._cost,
            memory=float(available_bytes()),
            tolerance=float(self.tol),
            max_steps=int(self.max_iter),
            seed=self._draw_seed(),
            threads=thread_count(self.n_jobs),
            targets=np.empty(0) if targets is None else targets,
        )

    def _match_conjunctions(
        self, model: ConjunctionModel | KernelModel | None, rows: DistinctRows
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """Return keys, weights and intercepts of a model's conjunctions of the features of `rows`.

        The arrays are empty if the model has another degree, other classes or another kind of conjunctions.
        """
        is_usable = (
            isinstance(model, ConjunctionModel)
            and model.degree == self.degree
            and model.sets == rows.binary
            and np.array_equal(model.classes, self._decision.classes)
        )
        if not is_usable:
            return np.empty(0, np.uint64), np.empty(0), np.empty(0)
        assert isinstance(model, ConjunctionModel)
        if np.array_equal(model.columns, rows.columns):
            return model.keys, model.weights, model.intercept
        keys, weights = renumber_conjunctions(model, np.asarray(rows.columns), sets=model.sets)
        order = np.argsort(keys)
        return keys[order], weights[order], model.intercept

    def _describe_shortfall(self) -> str:
        return super()._describe_shortfall() + " or gamma"

    # --- Models ---------------------------------------------------------------------------------------

    def _make_model(
        self, rows: DistinctRows, solution: PolySolution, origin: dict[str, Any]
    ) -> ConjunctionModel | KernelModel:
        if solution.storage in ("split", "kernel"):
            return self._make_kernel_model(rows, solution, origin)
        return self._make_conjunction_model(rows, solution, origin)

    def _make_conjunction_model(
        self, rows: DistinctRows, solution: PolySolution, origin: dict[str, Any]
    ) -> ConjunctionModel:
        decision = self._decision
        assert not isinstance(decision.probability, Platt)
        return ConjunctionModel(
            degree=int(self.degree),
            sets=bool(rows.binary),
            feature_map=self.feature_map,
            gamma=self.gamma_,
            coef0=float(self.coef0),
            n_features=int(self.n_features_in_),
            columns=read_only_view(rows.columns),
            keys=read_only_view(solution.keys),
            weights=read_only_view(solution.weights),
            intercept=read_only_view(solution.intercept),
            classes=decision.classes,
            probability=decision.probability,
            ranking=decision if decision.scheme == "regression" else None,
            origin=origin,
        )

    def _make_kernel_model(
        self, distinct: DistinctRows, solution: PolySolution, origin: dict[str, Any]
    ) -> KernelModel:
        """Return a model of the rows with nonzero dual variables, which become the coefficients."""
        return make_support_vector_model(
            distinct,
            np.asarray(solution.duals),
            Kernel("polynomial", int(self.degree), self.gamma_, float(self.coef0)),
            self._decision,
            n_features=int(self.n_features_in_),
            origin=origin,
        )

    def to_model(self) -> ConjunctionModel | KernelModel:
        """Return the fitted model as plain data.

        Returns
        -------
        ConjunctionModel or KernelModel
            The nonzero weights of the conjunctions. If ``storage_`` is "split" or "kernel", training did not
            compute these weights; the model then consists of support vectors and their coefficients.
        """
        model: ConjunctionModel | KernelModel = super().to_model()
        return model

    @classmethod
    def _find_learner_name(cls, model: Model) -> str | None:
        name = super()._find_learner_name(model)
        if name is None and isinstance(model, ConjunctionModel) and "loss" in model.origin:
            return "PolyLogisticRegression" if model.origin["loss"] == "logistic" else "PolySVC"
        return name

    @classmethod
    def _infer_parameters(cls, model: Model) -> dict[str, Any]:
        parameters = super()._infer_parameters(model)
        if isinstance(model, ConjunctionModel):
            parameters |= {"degree": model.degree, "coef0": model.coef0, "feature_map": model.feature_map}
            parameters |= {"gamma": model.gamma}
        from_origin = {name: model.origin.get(name) for name in ("loss", "penalty", "l1_ratio")}
        return parameters | {name: value for name, value in from_origin.items() if value is not None}

    def _restore(self, model: Model) -> None:
        super()._restore(model)
        assert isinstance(model, ConjunctionModel | KernelModel)
        self.gamma_ = model.gamma if isinstance(model, ConjunctionModel) else model.kernel.gamma
        storage = model.origin.get("storage")
        if isinstance(storage, str):
            self.storage_ = storage


class PolyClassifier(ClassifierMixin, PolyLearner):  # type: ignore[misc]
    """Base class of classifiers whose model has one weight per conjunction."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolyLearner._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _probability: Softmax | None = None  # how the model computes probabilities; None if it has none

    def _make_training_set(
        self, rows: CsrRows, targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> TrainingSet:
        check_classification_targets(targets)
        self.classes_, codes = encode_classes(targets, weights, type(self).__name__)
        factors = compute_class_weights(self.class_weight, self.classes_, codes, weights)
        return TrainingSet(self._merge_equal_rows(rows, codes, weights), factors)

    @property
    def _decision(self) -> Decision:
        scheme = "binary" if len(self.classes_) == 2 else "one_vs_rest"
        return Decision(scheme, self.classes_, probability=self._probability)
