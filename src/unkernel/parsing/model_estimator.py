"""Base classes of all estimators of ``unkernel.parsing``: fitting, predicting and files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, TypeVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from unkernel.data.files import name_of
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.engines.delegation import delegate, delegate_property
from unkernel.errors import FormatError
from unkernel.learners.parameters import Estimator, parameters_to_json
from unkernel.parsing.parser_model import Arrays, ParserModel, SavedFile, SavedModel
from unkernel.parsing.training_progress import OnStep, Reporter
from unkernel.poly import PolyLogisticRegression, PolySVC

_SUPPORT_VECTOR_ENGINES = ("inverted", "bitsliced", "split", "pruned")

# Constraints on the parameters that all estimators of this room share, and on those of online learners.
RUN_CONSTRAINTS: dict[str, list[Any]] = {
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
ONLINE_CONSTRAINTS = RUN_CONSTRAINTS | {
    "degree": [Interval(Integral, 1, 3, closed="both")],
    "epochs": [Interval(Integral, 1, 10_000, closed="both")],
    "runs": [Interval(Integral, 1, 1_000, closed="both")],
    "min_count": [Interval(Integral, 1, 2**62, closed="both")],
    "min_updates": [Interval(Integral, 1, 2**31, closed="left")],
}

Source = TypeVar("Source")  # a path, an open file or a corpus
Model = TypeVar("Model", bound=SavedModel)
Parser = TypeVar("Parser", bound=ParserModel)


class ModelEstimator(SavedFile, Estimator, Generic[Source, Model]):
    """Base class of estimators that fit a :class:`SavedModel`, ``model_``, and predict with it.

    Subclasses implement :meth:`_read_corpus` and :meth:`_learn`.
    """

    model_class: ClassVar[type[SavedModel]]

    model_: Model
    n_jobs: int | None
    verbose: int

    # --- Fitted attributes ----------------------------------------------------------------------------

    @property
    def kind(self) -> str:  # type: ignore[override]  # model classes have a class attribute of this name
        """Kind of the ``.uk`` files that store the model."""
        return self.model_class.kind

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def _fitted_model(self) -> Model:
        """The model; NotFittedError if there is none."""
        check_is_fitted(self, "model_")
        return self.model_

    n_features_: int = delegate_property("n_features_", "Number of features of the fitted model.")
    nbytes: int = delegate_property("nbytes", "Size of all compiled tables in bytes.")

    evaluate = delegate(SavedModel.evaluate)
    report = delegate(SavedModel.report)  # type: ignore[arg-type]  # as it has **options

    # --- Files ----------------------------------------------------------------------------------------

    def to_model(self) -> Model:
        """Return the fitted model, which needs only NumPy.

        Returns
        -------
        model
            The model; :func:`unkernel.load` returns the same from a file.
        """
        return self._fitted_model

    to_container = delegate(SavedModel.to_container)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limit: float | str | None = None) -> Self:
        return cls._from_model(cls.model_class.load(path, limit=limit), name_of(path))

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        return cls._from_model(cls.model_class.from_container(name, arrays, settings), name)

    @classmethod
    def _from_model(cls, model: Any, file: str) -> Self:
        try:
            estimator = cls._new_unfitted(model)
            estimator._validate_params()
        except (TypeError, ValueError) as error:
            raise FormatError(file, 0, 0, f"the {model.noun} is damaged: {error}") from error
        estimator._adopt_model(model)
        return estimator

    @classmethod
    def _new_unfitted(cls, model: Any) -> Self:
        """Return an estimator with the parameters of a model; TypeError or ValueError if they are damaged."""
        return cls(**model.parameters)

    def _adopt_model(self, model: Any) -> None:
        """Adopt a model read from a file, without training results, which files do not store."""
        self.model_ = model
        self.dev_result_: Any = None

    def _export_parameters(self) -> dict[str, Any]:
        """Return the parameters that a model stores, as JSON values."""
        stored = parameters_to_json(self)
        stored.setdefault("random_state", None)  # the state of a generator is not stored
        return stored

    # --- Training -------------------------------------------------------------------------------------

    def fit(self, source: Source, *, dev: Source | None = None) -> Self:
        """Fit the model to annotated sentences.

        Parameters
        ----------
        source : path, open file or corpus
            Training sentences, plain or compressed. :class:`BunsetsuParser` reads the format of KNP and
            CaboCha. :class:`Chunker` reads one word per line, with its tag in the last column and,
            optionally, its part of speech in the second. All other estimators read CoNLL-U:
            :class:`ArcEagerParser` learns from the trees (for CoNLL-X, pass the result of
            :func:`~unkernel.data.read_conllx`), :class:`Tagger` from the columns of tags, :class:`Tokenizer`
            from the text, and :class:`TextParser` from trees, tags and text. The text of a sentence is its
            comment ``# text`` or, if there is none, its forms, joined by spaces except after
            ``SpaceAfter=No``; ``# newpar`` and ``# newdoc`` begin paragraphs.
        dev : path, open file or corpus, default=None
            Development sentences. The fitted model is evaluated on them (``dev_result_``), and online
            learners keep the weights of the epoch with the best result on them.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(source, dev)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self, source: Source, dev: Source | None = None, *, on_progress: OnStep | None = None
    ) -> Self:
        """Fit the model and report progress while training.

        Parameters
        ----------
        source : path, open file or corpus
            Training sentences, as in :meth:`fit`.
        dev : path, open file or corpus, default=None
            Development sentences.
        on_progress : callable, default=None
            Called with a :class:`~unkernel.parsing.Step` after each step of the training.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        report = Reporter(type(self).__name__, self.verbose, on_progress)
        self._check_parameters()
        corpus = self._read_corpus(source)
        dev_corpus = None if dev is None else self._read_corpus(dev)
        self.__dict__.pop("model_", None)  # an interrupted training leaves no model
        self.model_ = self._learn(corpus, dev_corpus, report)
        self._measure(dev_corpus, report)
        return self

    def _check_parameters(self) -> None:
        """Raise ValueError for incompatible parameters, before any sentence is read."""
        thread_count(self.n_jobs)

    def _read_corpus(self, source: Source) -> Any:
        """Return sentences for training or evaluation; ValueError if there are none."""
        raise NotImplementedError

    def _learn(self, corpus: Any, dev: Any, report: Reporter) -> Any:
        """Return a trained model. Online learners select the best epoch on `dev` unless it is None."""
        raise NotImplementedError

    def _measure(self, corpus: Any, report: Reporter) -> None:
        """Set ``dev_result_`` to the result on development sentences, or to None without such sentences."""
        self.dev_result_ = None if corpus is None else self.evaluate(corpus)
        if corpus is not None:
            report(f"on {corpus.name}: {self.dev_result_}")


class BaseParser(ModelEstimator[Source, Parser]):
    """Base class of estimators that fit a :class:`ParserModel`, ``model_``, and predict with it."""

    model_class: ClassVar[type[ParserModel]]

    degree: int
    C: float | None
    learner: str
    engine: str
    min_count: int
    tol: float
    random_state: Any

    # --- Fitted attributes ----------------------------------------------------------------------------

    parts_: dict[str, CompiledClassifier] = delegate_property(
        "parts_", "The classifiers that make the decisions, by name."
    )

    class_names = delegate(ParserModel.class_names)
    feature_names = delegate(ParserModel.feature_names)
    explain = delegate(ParserModel.explain)
    heaviest = delegate(ParserModel.heaviest)

    # --- For training ---------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.engine in _SUPPORT_VECTOR_ENGINES and (self.learner != "svm" or self.degree == 1):
            raise ValueError(
                f"engine={self.engine!r} sums over support vectors, which learner={self.learner!r} of degree "
                f"{self.degree} does not have: use engine='auto'"
            )

    def _check_min_count(self, corpus: Any, features: int) -> None:
        """Raise ValueError if `min_count` leaves no features; 1 is accepted, as templates may give none."""
        if self.min_count > 1 and not features:
            raise ValueError(
                f"{corpus.name}: no feature occurs {self.min_count} times in {len(corpus):,} "
                f"sentence{'s' * (len(corpus) != 1)}: give more sentences, or lower min_count"
            )

    def _new_row_learner(self, **overrides: Any) -> PolySVC | PolyLogisticRegression:
        """Return an estimator for rows, with the parser's parameters updated by `overrides`."""
        parameters = {
            "degree": self.degree,
            "C": self.C,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        }
        if self.engine in _SUPPORT_VECTOR_ENGINES:
            parameters["storage"] = "split"  # makes the model keep support vectors instead of weights
        parameters |= overrides
        return PolyLogisticRegression(**parameters) if self.learner == "logistic" else PolySVC(**parameters)


class ClusterParameter:
    """Mixin for estimators with the parameter `clusters`: word clusters, or the path of a file with clusters.

    Files of models store the clusters themselves, never the path. In an estimator that was loaded from such
    a file, the parameter holds the stored clusters.
    """

    def _export_parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super()._export_parameters()  # type: ignore[misc]
        return {name: value for name, value in parameters.items() if name != "clusters"}

    @classmethod
    def _new_unfitted(cls, model: Any) -> Self:
        return cls(**(model.parameters | {"clusters": model.clusters}))
