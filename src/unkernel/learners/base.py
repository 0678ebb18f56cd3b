"""Base classes of all estimators: fitted attributes, warnings, predictions, explanations, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel.data.repr_html import Reportable
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_checks import check_inputs, plain_rows
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier, Heavy, TreeClassifier, compile
from unkernel.engines import load as load_classifier
from unkernel.engines.compilation import choose_default_engine
from unkernel.engines.delegation import delegate
from unkernel.engines.explain.linear_weights import LinearWeights
from unkernel.errors import FormatError, warn_caller
from unkernel.learners.parameters import Estimator, parameters_from_json, parameters_to_json
from unkernel.learners.progress import OnProgress, ProgressPrinter
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, TreeModel
from unkernel.models.history import History

Model = ConjunctionModel | KernelModel | LinearModel | TreeModel


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of training one problem, such as one class versus the rest.

    Attributes
    ----------
    objective : float
        The primal objective.
    bound : float
        A lower bound of the minimum of the objective: the dual objective, or the objective of the cuts.
    rounds : int
        Number of passes, Newton steps or rounds of the solver.
    converged : bool
        Whether the stop rule of the solver was met.
    history : ndarray of shape (n_passes, 3)
        Round, objective and bound, round by round.
    """

    objective: float
    bound: float
    rounds: int
    converged: bool
    history: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """The relative gap (P - D) / P of objective P and bound D, at least 0."""
        return max(self.objective - self.bound, 0.0) / self.objective if self.objective > 0 else 0.0


@dataclass(frozen=True, eq=False)
class LazyClassifier:
    """A fitted model and its classifier, which is built at the first prediction."""

    model: Model
    threads: int
    compiled: CompiledClassifier | TreeClassifier | None = None

    @cached_property
    def classifier(self) -> CompiledClassifier | TreeClassifier:
        """The classifier. Models of support vectors are compiled; other models are used directly."""
        if self.compiled is not None:
            return self.compiled
        if isinstance(self.model, TreeModel):
            return TreeClassifier(self.model)
        if isinstance(self.model, KernelModel):
            engine = choose_default_engine(self.model)
            return cast(CompiledClassifier, compile(self.model, engine=engine, n_jobs=self.threads))
        return CompiledClassifier(self.model)


class Learner(Reportable, Estimator):
    """Base class of all estimators.

    Subclasses add parameters, ``fit`` and, if loading needs more than the model, ``_restore``. After
    training, they call :meth:`_finish_fit` with the outcomes and a function that makes the model. Predictions
    need only the model. A loaded estimator therefore has the model, the parameters and the fitted attributes.
    """

    _kind: ClassVar[str]  # name of the learner in its models; estimators on a cluster use the same name
    _steps: str = "passes"  # unit of n_iter_ in messages

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # classes_ and similar attributes exist before training ends

    # --- Training -------------------------------------------------------------------------------------

    def _choose_reporter(self, on_progress: OnProgress | None, unit: str) -> OnProgress:
        """Return the callback of the caller or, without one, a callback that prints progress."""
        return on_progress or ProgressPrinter(type(self).__name__, self.verbose, unit).on_progress

    def _finish_fit(
        self,
        outcomes: Sequence[Outcome],
        make_model: Callable[[dict[str, Any]], Model],
        *,
        facts: dict[str, Any],
        about: str = "",
    ) -> Self:
        """Set the fitted attributes, and warn if training did not converge.

        ``make_model`` is called with the description of the training, including ``facts``, which the model
        stores. ``about`` begins the line that ``verbose`` prints.
        """
        self.objective_ = float(sum(outcome.objective for outcome in outcomes))
        self.gap_ = float(max(outcome.gap for outcome in outcomes))
        self.n_iter_ = int(max(outcome.rounds for outcome in outcomes))
        self.history_ = History.sum_problems([outcome.history for outcome in outcomes])
        self._set_model(make_model(self._describe_training(facts)))
        if self.verbose:
            print(
                f"[{type(self).__name__}] {about}{self.n_iter_} {self._steps}, "
                f"objective {self.objective_:.6g}, gap {self.gap_:.2g}"
            )
        if not all(outcome.converged for outcome in outcomes):
            warn_caller(
                f"{type(self).__name__} stopped after {self._describe_shortfall()}", ConvergenceWarning
            )
        return self

    def _describe_shortfall(self) -> str:
        """Describe where training stopped before it converged, and name a remedy."""
        return (
            f"max_iter={self.max_iter} {self._steps} at a relative gap of {self.gap_:.2g} "
            f"(tol={self.tol:g}): raise max_iter or tol, or scale the features and lower C"
        )

    def _describe_training(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the description of the training that the model stores."""
        origin = {"learner": self._kind, "C": float(self.C)} | facts
        origin |= {"objective": self.objective_, "gap": self.gap_, "n_iter": self.n_iter_}
        origin["history"] = self.history_.to_json()
        if hasattr(self, "feature_names_in_"):
            origin["feature_names"] = [str(name) for name in self.feature_names_in_]
        return origin | {"parameters": parameters_to_json(self)}

    def _set_model(self, model: Model, compiled: CompiledClassifier | TreeClassifier | None = None) -> None:
        self.model_ = model
        self._lazy_classifier = LazyClassifier(model, thread_count(self.n_jobs), compiled)

    def _copy_with_each(self, Cs: Iterable[float], prepared: Self) -> Iterator[Self]:
        """Yield one unfitted copy for each C, with the attributes that `prepared` has from the examples."""
        for C in Cs:
            copy = clone(self).set_params(C=C)
            copy._validate_params()
            for name, value in vars(prepared).items():
                vars(copy).setdefault(name, value)
            yield copy

    # --- Predictions ----------------------------------------------------------------------------------

    @property
    def _fitted_classifier(self) -> CompiledClassifier | TreeClassifier:
        check_is_fitted(self)
        return self._lazy_classifier.classifier

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model, of shape (examples, scores)."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of trees
            The examples, in the form that ``fit`` takes.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One score per example for two classes (positive scores mean ``classes_[1]``) and for rankings;
            otherwise one score per class.
        """
        scores = self._scores(X)
        return self.model_.decision.decide(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of trees
            The examples, in the form that ``fit`` takes.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predicted classes.
        """
        scores = self._scores(X)  # before any other use: raises an error if the estimator is not fitted
        return self.model_.decision.choose(scores)

    def heaviest(self, top: int = 10) -> list[Heavy]:
        """List the features, conjunctions or tree fragments with the largest weights.

        Parameters
        ----------
        top : int, default=10
            Number of weights to list.

        Returns
        -------
        list of Heavy
            The largest weights of all classes, each with its label and the class that it supports. The
            largest absolute weights come first.
        """
        return self._fitted_classifier.heaviest(top)

    def _report_subject(self) -> Any:
        return {type(self).__name__: self._fitted_classifier}

    # --- Models and files -----------------------------------------------------------------------------

    def to_model(self) -> Any:
        """Return the fitted model as plain data.

        Returns
        -------
        ConjunctionModel, KernelModel, LinearModel or TreeModel
            The model that :func:`unkernel.compile` takes and :func:`unkernel.write_model` writes.
        """
        check_is_fitted(self)
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a ``.uk`` file.

        The file is replaced in one step: if writing fails, an existing file is left unchanged.
        :func:`unkernel.load` reads the file as a compiled classifier, :meth:`load` as an estimator of this
        class.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        model = self.to_model()
        # Save support vectors with their compiled tables: loading then need not compile them again.
        saved = self._fitted_classifier if isinstance(model, KernelModel) else model
        saved.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved model as a fitted estimator of this class.

        The model, the fitted attributes and the parameters are restored. Parameters that a file cannot hold
        (such as a ``RandomState`` or a Dask client) get their default values. The state of the solver is not
        stored. After loading, a warm start begins from the weights of the model or, if the solver needs dual
        variables, from zero. Files of early versions lack ``n_iter_`` and some of the parameters.

        Parameters
        ----------
        path : str or path-like
            A file written by :meth:`save` or by the command line.

        Returns
        -------
        estimator
            A fitted estimator with the same predictions as the saved estimator.

        Raises
        ------
        FormatError
            If the file is damaged, or if another kind of estimator wrote it. Use :func:`unkernel.load` for
            a file of any kind.
        """
        classifier = load_classifier(path)
        model = classifier.model
        learner_name = cls._find_learner_name(model)
        if learner_name != cls._kind:
            content = (
                f"a model of {learner_name}"
                if learner_name
                else "a model that no estimator of unkernel trained"
            )
            raise FormatError(
                os.fspath(path), 0, 0, f"{content}, not of {cls.__name__}; unkernel.load reads it"
            )
        try:
            return cls.from_model(model, classifier)
        except ValueError as error:
            raise FormatError(os.fspath(path), 0, 0, f"{error}; unkernel.load reads the model") from error

    @classmethod
    def from_model(cls, model: Model, classifier: CompiledClassifier | TreeClassifier | None = None) -> Self:
        """Return a fitted estimator with a model that an estimator of this class has trained.

        Parameters
        ----------
        model : ConjunctionModel, KernelModel, LinearModel or TreeModel
            The model.
        classifier : CompiledClassifier or TreeClassifier, default=None
            The compiled model, if there is one.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        names = cls._get_param_names()
        parameters = cls._infer_parameters(model) | parameters_from_json(model.origin.get("parameters"))
        learner = cls(**{name: value for name, value in parameters.items() if name in names})
        learner._restore(model)
        learner._set_model(model, classifier)
        return learner

    @classmethod
    def _find_learner_name(cls, model: Model) -> str | None:
        """Return the name of the learner of a model; None if the model does not contain it."""
        name = model.origin.get("learner")
        return name if isinstance(name, str) else None

    @classmethod
    def _infer_parameters(cls, model: Model) -> dict[str, Any]:
        """Infer the parameters from a model that does not list them, as in files of older versions."""
        C = model.origin.get("C")
        return {"C": C} if isinstance(C, float) else {}

    def _restore(self, model: Model) -> None:
        """Set the fitted attributes from the model."""
        for attribute, fact in (("objective_", "objective"), ("gap_", "gap"), ("n_iter_", "n_iter")):
            if isinstance(model.origin.get(fact), int | float):
                setattr(self, attribute, model.origin[fact])
        history = History.from_json(model.origin.get("history"))
        if history is not None:
            self.history_ = history
        if len(model.decision.classes):
            self.classes_ = model.decision.classes


class RowLearner(LinearWeights, Learner):
    """Base class of learners whose examples are rows of numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        rows = self._check_rows(X)
        classifier = cast(CompiledClassifier, self._lazy_classifier.classifier)
        return classifier.score_csr(rows, thread_count(self.n_jobs))

    def _check_rows(self, X: ArrayLike) -> CsrRows:
        """Return the rows of X, checked by scikit-learn unless X is a plain array."""
        if hasattr(self, "model_") and not hasattr(self, "feature_names_in_"):
            rows = plain_rows(X, self.n_features_in_)
            if rows is not None:
                return rows
        check_is_fitted(self)
        check_inputs(X)
        checked = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, reset=False
        )
        return canonical_rows(checked)

    explain = delegate(CompiledClassifier.explain, to="_fitted_classifier")

    def _get_linear_model(self) -> Any:
        if not hasattr(self, "model_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no weights yet")
        return self.model_

    def _restore(self, model: Model) -> None:
        super()._restore(model)
        assert not isinstance(model, TreeModel)
        self.n_features_in_ = model.n_features
        names = model.origin.get("feature_names")
        if isinstance(names, list):
            self.feature_names_in_ = np.array(names, dtype=object)


def read_only_view(array: Any) -> NDArray[Any]:
    """Return a read-only view. Models must not change once a classifier has been built from them."""
    view: NDArray[Any] = np.asarray(array).view()
    view.setflags(write=False)
    return view
