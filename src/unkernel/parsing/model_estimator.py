"""What all estimators of this room share: what they have learned, and its files."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Generic, Self, TypeVar

from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils.validation import check_is_fitted

from unkernel.data.files import name_of
from unkernel.data.showing import Page
from unkernel.data.threads import thread_count
from unkernel.errors import FormatError
from unkernel.learners.parameters import stored_parameters
from unkernel.parsing.reporting import OnStep, Reporter
from unkernel.parsing.saved_model import Arrays, SavedModel

Source = TypeVar("Source")  # what sentences are read from


class ModelEstimator(BaseEstimator, Generic[Source]):  # type: ignore[misc]
    """Fits a :class:`SavedModel`, which it keeps as ``model_``, and answers with it.

    Subclasses implement :meth:`_corpus` and :meth:`_learned`.
    """

    model_class: ClassVar[type[SavedModel]]

    model_: SavedModel
    n_jobs: int | None
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
    def n_features_(self) -> int:
        """The number of features that training has seen often enough."""
        return int(self._fitted.n_features_)

    @property
    def nbytes(self) -> int:
        """Bytes of all compiled tables."""
        return int(self._fitted.nbytes)

    def evaluate(self, source: Any, *, n_jobs: int | None = None) -> Any:
        """``evaluate`` of the model; by default with the threads of the estimator."""
        return self._fitted.evaluate(source, n_jobs=self._jobs(n_jobs))

    def report(self, source: Any, **options: Any) -> Page:
        """``report`` of the model."""
        page: Page = self._fitted.report(source, **options)
        return page

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
    def _of(cls, model: Any, file: str) -> Self:
        try:
            estimator = cls._unfitted(model)
            estimator._validate_params()
        except (TypeError, ValueError) as error:
            raise FormatError(file, 0, 0, f"the {model.noun} is damaged: {error}") from error
        estimator._take(model)
        return estimator

    @classmethod
    def _unfitted(cls, model: Any) -> Self:
        """An estimator with the parameters of a model; TypeError or ValueError if they are damaged."""
        return cls(**model.parameters)

    def _take(self, model: Any) -> None:
        """Become fitted with a model from a file, which does not say how training went."""
        self.model_ = model
        self.dev_result_: Any = None

    def _plain_parameters(self) -> dict[str, Any]:
        """The parameters as JSON values, without those that concern only this run."""
        stored = stored_parameters(self)
        stored.setdefault("random_state", None)  # a generator, whose state is not stored
        return stored

    # --- Training -------------------------------------------------------------------------------------

    def fit(self, source: Source, *, dev: Source | None = None) -> Self:
        """Learn from sentences with the right answers.

        Parameters
        ----------
        source : path, open file or corpus
            Plain or compressed. :class:`BunsetsuParser` reads the format of KNP and CaboCha, :class:`Chunker`
            one word per line, its part of speech in the second column, if there are any, and its tag in the
            last. All others read CoNLL-U: :class:`ArcEagerParser` learns from its trees (for CoNLL-X, give
            the result of :func:`~unkernel.data.read_conllx`), :class:`Tagger` from the columns of tags that
            it has, :class:`Tokenizer` from its text, and :class:`TextParser` from all of these. Its text is
            that of the comments ``# text``, or else of the forms, with blanks where ``SpaceAfter=No`` is
            missing; ``# newpar`` and ``# newdoc`` begin paragraphs.
        dev : path, open file or corpus, default=None
            Other sentences, to measure on when training has ended: see ``dev_result_``. What is learnt
            online, as all that reads CoNLL-U is by default, keeps its best epoch by them.
        """
        fitted: Self = self.fit_reporting(source, dev)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self, source: Source, dev: Source | None = None, *, on_progress: OnStep | None = None
    ) -> Self:
        """``fit``, with a callback that gets every :class:`~unkernel.parsing.Step`."""
        report = self._reporter(on_progress)
        self._check_parameters()
        corpus = self._corpus(source)
        dev_corpus = None if dev is None else self._corpus(dev)
        self.__dict__.pop("model_", None)  # a training that is stopped leaves no model, not the former one
        self.model_ = self._learned(corpus, dev_corpus, report)
        self._measure(dev_corpus, report)
        return self

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that exclude each other, before anything is read."""
        thread_count(self.n_jobs)

    def _corpus(self, source: Source) -> Any:
        """Sentences to learn from or to measure on; ValueError if there are none."""
        raise NotImplementedError

    def _learned(self, corpus: Any, dev: Any, report: Reporter) -> Any:
        """The model; `dev`, if it is not None, chooses what is best."""
        raise NotImplementedError

    def _measure(self, corpus: Any, report: Reporter) -> None:
        """Set ``dev_result_`` to what is reached on other sentences; None where there are none."""
        self.dev_result_ = None if corpus is None else self.evaluate(corpus)
        if corpus is not None:
            report(f"on {corpus.name}: {self.dev_result_}")

    def _reporter(self, on_progress: OnStep | None) -> Reporter:
        return Reporter(type(self).__name__, self.verbose, on_progress)

    def _jobs(self, n_jobs: int | None) -> int | None:
        return self.n_jobs if n_jobs is None else n_jobs
