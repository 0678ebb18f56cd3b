"""What the estimators of all parsers and chunkers share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unkernel.data.files import name_of
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.learners.parameters import stored_parameters
from unkernel.parsing.explaining import ExplainedDecision, HeavyConjunction
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.reporting import OnStep, Reporter
from unkernel.poly import PolyLogisticRegression, PolySVC

_OF_SUPPORT_VECTORS = ("inverted", "bitsliced", "split", "pruned")  # engines that need support vectors


Source = TypeVar("Source")  # what a parser reads sentences from


class BaseParser(BaseEstimator, Generic[Source]):  # type: ignore[misc]
    """Fits a :class:`ParserModel`, which it keeps as ``model_``, and answers with it."""

    model_class: ClassVar[type[ParserModel]]

    model_: ParserModel
    degree: int
    C: float | None
    learner: str
    engine: str
    min_count: int
    tol: float
    n_jobs: int | None
    random_state: Any
    verbose: int

    # --- What was learned -----------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The kind of its files."""
        return self.model_class.kind

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def _fitted(self) -> Any:
        """The model; NotFittedError if there is none."""
        check_is_fitted(self, "model_")
        return self.model_

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that decide, by name."""
        parts: dict[str, CompiledClassifier] = self._fitted.parts_
        return parts

    @property
    def n_features_(self) -> int:
        """The number of features that training has seen often enough."""
        return int(self._fitted.n_features_)

    @property
    def nbytes(self) -> int:
        """Bytes of all compiled tables."""
        return int(self._fitted.nbytes)

    def class_names(self, part: str) -> list[str]:
        """The names of the classes that a classifier of ``parts_`` chooses among."""
        names: list[str] = self._fitted.class_names(part)
        return names

    def feature_names(self, part: str) -> Callable[[int], str]:
        """A function from the columns of a classifier of ``parts_`` to their names."""
        names: Callable[[int], str] = self._fitted.feature_names(part)
        return names

    def explain(self, source: Any, tags: Any = None, *, top: int | None = 10) -> list[ExplainedDecision]:
        """:meth:`ParserModel.explain`."""
        explained: list[ExplainedDecision] = self._fitted.explain(source, tags, top=top)
        return explained

    def heaviest(self, top: int = 10) -> list[HeavyConjunction]:
        """:meth:`ParserModel.heaviest`."""
        found: list[HeavyConjunction] = self._fitted.heaviest(top)
        return found

    def evaluate(self, source: Any, *, n_jobs: int | None = None) -> Any:
        """``evaluate`` of the model; by default with the threads of the parser."""
        return self._fitted.evaluate(source, n_jobs=self._jobs(n_jobs))

    def _answered(self, corpus: Any, n_jobs: int | None) -> bytes:
        return bytes(self._fitted._answered(corpus, self._jobs(n_jobs)))

    # --- Files ----------------------------------------------------------------------------------------

    def to_model(self) -> Any:
        """What was learned; it needs numpy alone."""
        return self._fitted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a ``.uk`` file, whole or not at all; ``unkernel.load`` reads it."""
        self._fitted.save(path)

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        """The content of its file: kind, arrays and settings."""
        content: tuple[str, Arrays, dict[str, Any]] = self._fitted.to_container()
        return content

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of this kind into an estimator that can be fitted again.

        ``unkernel.load`` reads files of any kind and returns the model alone.

        Raises
        ------
        FormatError
            If the file is of another kind, or is damaged.
        """
        return cls._of(cls.model_class.load(path), name_of(path))

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: dict[str, Any]) -> Self:
        """Check the content of the file `name` and make an estimator of it."""
        return cls._of(cls.model_class.from_container(name, arrays, settings), name)

    @classmethod
    def _of(cls, model: ParserModel, file: str) -> Self:
        try:
            parser = cls(**model.parameters)
            parser._validate_params()
        except (TypeError, ValueError) as error:
            raise FormatError(file, 0, 0, f"the {model.noun} is damaged: {error}") from error
        parser._take(model)
        return parser

    def _take(self, model: ParserModel) -> None:
        """Become fitted with a model from a file, which does not say how training went."""
        self.model_ = model
        self.dev_result_: Any = None

    def _plain_parameters(self) -> dict[str, Any]:
        """The parameters as JSON values, without those that concern only this run."""
        stored = stored_parameters(self)
        stored.setdefault("random_state", None)  # a generator, whose state is not stored
        return stored

    # --- For training ---------------------------------------------------------------------------------

    def fit(self, source: Source, *, dev: Source | None = None) -> Self:
        """Learn from sentences with the right answers.

        Parameters
        ----------
        source : path, open file or corpus
            Plain or compressed. :class:`ArcEagerParser` reads CoNLL-U (for CoNLL-X, give the result of
            :func:`~unkernel.data.read_conllx`), :class:`BunsetsuParser` the format of KNP and CaboCha, and
            :class:`Chunker` one word per line, its part of speech in the second column, if there are any, and
            its tag in the last.
        dev : path, open file or corpus, default=None
            Other sentences, to measure on when training has ended: see ``dev_result_``. The online learner of
            :class:`ArcEagerParser` chooses its best epoch with them.
        """
        fitted: Self = self.fit_reporting(source, dev)
        return fitted

    def fit_reporting(
        self, source: Source, dev: Source | None = None, *, on_progress: OnStep | None = None
    ) -> Self:
        """``fit``, with a callback that gets every :class:`~unkernel.parsing.Step`."""
        raise NotImplementedError

    def _measure(self, corpus: Any, report: Reporter) -> None:
        """Set ``dev_result_`` to what the parser reaches on other sentences; None where there are none."""
        self.dev_result_ = None if corpus is None else self.evaluate(corpus)
        if corpus is not None:
            report(f"on {corpus.name}: {self.dev_result_}")

    def _reporter(self, on_progress: OnStep | None) -> Reporter:
        return Reporter(type(self).__name__, self.verbose, on_progress)

    def _jobs(self, n_jobs: int | None) -> int | None:
        return self.n_jobs if n_jobs is None else n_jobs

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that exclude each other, before anything is read."""
        thread_count(self.n_jobs)
        if self.engine in _OF_SUPPORT_VECTORS and (self.learner != "svm" or self.degree == 1):
            raise ValueError(
                f"engine={self.engine!r} sums over support vectors, which learner={self.learner!r} of degree "
                f"{self.degree} does not have: use engine='auto'"
            )

    def _check_min_count(self, features: int) -> None:
        """Raise ValueError where `min_count` has left no feature; some templates give none at all."""
        if self.min_count > 1 and not features:
            raise ValueError(f"no feature occurs {self.min_count} times: lower min_count")

    def _row_learner(self, **others: Any) -> PolySVC | PolyLogisticRegression:
        """An estimator of rows with the parser's parameters and some others."""
        if self.engine in _OF_SUPPORT_VECTORS:
            others = {"storage": "split"} | others  # which gives support vectors, not weights
        chosen = {
            "degree": self.degree,
            "C": self.C,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        } | others
        return PolyLogisticRegression(**chosen) if self.learner == "logistic" else PolySVC(**chosen)
