"""Base classes of the fitted models of ``unkernel.parsing``, which need only NumPy."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data import file_memory_limit, repr_html
from unkernel.data.files import name_of
from unkernel.data.repr_html import HtmlRepr, Page
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.saved_object import RestoredObject, SavedObject
from unkernel.parsing.tag_check import TagFault, check_faults

if TYPE_CHECKING:
    from unkernel.engines import CompiledClassifier
    from unkernel.parsing.explanation import Decision, ExplainedDecision, HeavyConjunction

Arrays = dict[str, NDArray[Any]]
_PARAMETERS = "parameters"
_RENAMED = {"minimum": "min_count", "minimum_updates": "min_updates"}  # parameters in older files
_RUN_PARAMETERS = ("n_jobs",)  # parameters in older files that do not affect the model


class SavedFile(SavedObject, RestoredObject, ABC):
    """An object that is saved as a ``.uk`` file.

    Attributes
    ----------
    kind : str
        The kind of the object's files.
    noun : str
        The name of such objects in messages.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limit: float | str | None = None) -> Self:
        """Read a model or an estimator of this class from a file.

        A loaded estimator can be fitted again. To read a file of any kind as a model, use
        :func:`unkernel.load`.

        Parameters
        ----------
        path : str or path-like
            The file.
        limit : int or str, default=None
            Largest amount of memory in bytes that the model may take, as for :func:`unkernel.load`.

        Returns
        -------
        object
            A model or an estimator of this class.

        Raises
        ------
        FormatError
            If the file is damaged or holds another kind of model.
        """
        name = name_of(path)
        with file_memory_limit.limit_file(path, limit):
            kind, arrays, settings = container.read(path)
            if kind != cls.kind:
                raise FormatError(name, 0, 0, f"a file of kind {kind!r}, not a {cls.noun}")
            return cls.from_container(name, arrays, settings)


class SavedModel(HtmlRepr, SavedFile):
    """A fitted model with classifiers. Immutable, safe to use from many threads.

    Subclasses implement :meth:`_store` and :meth:`_restore`.

    Attributes
    ----------
    estimator : str
        The name of the class that fits the model.
    parameters : dict
        The parameters of the estimator that fitted the model, as JSON values.
    """

    noun = "parser"
    estimator: ClassVar[str]
    parameters: dict[str, Any]

    @property
    @abstractmethod
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that make the decisions, by name."""

    @property
    @abstractmethod
    def n_features_(self) -> int:
        """Number of features."""

    @abstractmethod
    def evaluate(self, source: Any, *, n_jobs: int | None = None) -> Any:
        """Analyse annotated sentences and compare the result with the correct annotation.

        Parameters
        ----------
        source : path, open file or corpus
            Sentences with the correct annotation. A tokenizer splits the text of these sentences;
            :meth:`Tokenizer.fit` describes how the text is read.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        TreeResult, BunsetsuResult, ChunkResult, TagResult or TextResult
            The accuracy and the speed. Chunks are counted by the rules of CoNLL-2000.
        """

    def report(self, source: Any, **options: Any) -> Page:
        """Evaluate on annotated sentences and write an HTML report.

        Parameters
        ----------
        source : path, open file or corpus
            Sentences with the correct annotation.
        **options
            Options for :func:`~unkernel.report.report`, for example ``top``, ``mistakes`` or ``title``.

        Returns
        -------
        Report
            The report: notebooks display it, ``save`` writes it to a file.
        """
        page: Page = repr_html.ask("report", {self.estimator: self}, source, **options)
        return page

    @abstractmethod
    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the arrays and settings of a file, without the parameters."""

    @classmethod
    @abstractmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        """Return a model made from the content of the file `name`; ValueError if the content is damaged."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(parts={len(self.parts_)}, features={self.n_features_})"

    @property
    def nbytes(self) -> int:
        """Size of all compiled tables in bytes."""
        return sum(part.nbytes for part in self.parts_.values())

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        arrays, settings = self._store()
        return self.kind, arrays, settings | {_PARAMETERS: self.parameters}

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        parameters = container.read_setting(name, settings, _PARAMETERS, dict)
        current = {
            _RENAMED.get(key, key): value for key, value in parameters.items() if key not in _RUN_PARAMETERS
        }
        try:
            model = cls._restore(name, arrays, settings, current)
            model.check_columns()
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(name, 0, 0, f"the {cls.noun} is damaged: {error}") from error
        return model

    def check_columns(self) -> None:
        """Check that every column of the classifiers has a feature.

        Raises
        ------
        ValueError
            If a classifier has more columns than there are features.
        """
        for name, part in self.parts_.items():
            if part.n_features_in_ > max(self.n_features_, 1):  # a classifier has at least one column
                raise ValueError(
                    f"its classifier {name!r} has {part.n_features_in_} columns, and there are "
                    f"{self.n_features_} features"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), *self.to_container()[1:])


class ParserModel(SavedModel):
    """Base class of trained parsers, taggers and chunkers.

    Models are immutable and safe to use from many threads. They need only NumPy.

    See Also
    --------
    ArcEagerModel : Dependency parser.
    BunsetsuModel : Japanese dependency parser.
    ChunkModel : Chunker.
    TaggerModel : Tagger.

    Examples
    --------
    >>> from unkernel.parsing import ArcEagerModel, ParserModel
    >>> issubclass(ArcEagerModel, ParserModel)
    True
    """

    @abstractmethod
    def class_names(self, part: str) -> list[str]:
        """Return the names of the classes of one of the classifiers.

        Parameters
        ----------
        part : str
            Name of the classifier in ``parts_``.

        Returns
        -------
        list of str
            Moves, relations or tags. For bunsetsu: "depends", and "waits" for a modifier that waits for a
            later head.
        """

    @abstractmethod
    def feature_names(self, part: str) -> Callable[[int], str]:
        """Return a function that names the features of one of the classifiers.

        Classifiers of the same kind, such as all classifiers of labels, share their features.

        Parameters
        ----------
        part : str
            Name of the classifier in ``parts_``.

        Returns
        -------
        callable
            A function from the number of a column to its name, such as ``stack.xpos=NN`` or
            ``suffix3[0]=ing``.
        """

    @abstractmethod
    def _trace_decisions(self, source: Any, tags: Any) -> Iterator[tuple[Decision, NDArray[np.int32]]]:
        """Yield each decision on a text with its row of features, an array of columns."""

    @abstractmethod
    def tag_faults(self, corpus: Any) -> list[TagFault]:
        """Check whether a corpus has the tags that the model needs.

        Parameters
        ----------
        corpus : corpus
            The sentences.

        Returns
        -------
        list of TagFault
            One entry for each missing column of tags, and for each column with many values that were not in
            training; empty for taggers, which need only words.
        """

    @abstractmethod
    def _annotate(self, corpus: Any, n_jobs: int | None) -> Any:
        """Return a copy of the corpus with the predictions filled in."""

    def check_tags(self, corpus: Any) -> None:
        """Raise an error if a corpus lacks tags that the model needs, and warn if many are unknown.

        Parameters
        ----------
        corpus : corpus
            The sentences.

        Raises
        ------
        ValueError
            If tags are missing.
        """
        check_faults(corpus.name, self.tag_faults(corpus))

    def explain(self, source: Any, tags: Any = None, *, top: int | None = 10) -> list[ExplainedDecision]:
        """Explain how sentences are analysed, decision by decision.

        Parameters
        ----------
        source : path, open file, corpus, or lists of words
            The sentences, as ``parse`` takes them.
        tags : lists of str, default=None
            Parts of speech, if the sentences are lists of words.
        top : int or None, default=10
            Number of conjunctions of features to list per decision; None lists all. They are sorted by the
            difference between the contributions to the chosen class and to the runner-up, largest first.

        Returns
        -------
        list of ExplainedDecision
            The decisions in the order in which they were made (for chunkers: in the order of the text).
        """
        from unkernel.parsing.explanation import explain_decision

        if top is not None and (isinstance(top, bool) or top < 0):
            raise ValueError(f"top must be a number of conjunctions, or None for all, got {top}")
        parts, classes = self.parts_, cache(self.class_names)
        features = cache(self.feature_names)
        return [
            explain_decision(
                decision,
                parts[decision.part],
                row,
                classes(decision.part),
                features(decision.part.partition(".")[0]),
                top=top,
            )
            for decision, row in self._trace_decisions(source, tags)
        ]

    def heaviest(self, top: int = 10) -> list[HeavyConjunction]:
        """List the conjunctions of features with the largest weights.

        Parameters
        ----------
        top : int, default=10
            Number of conjunctions to list for each kind of decision, such as moves or labels.

        Returns
        -------
        list of HeavyConjunction
            The conjunctions, grouped by kind of decision; largest absolute weights first.
        """
        from unkernel.parsing.explanation import heavy_conjunctions

        if isinstance(top, bool) or top < 0:
            raise ValueError(f"top must be a number of conjunctions, got {top}")
        by_kind: dict[str, list[HeavyConjunction]] = {}
        names = cache(self.feature_names)
        for part, classifier in self.parts_.items():
            kind = part.partition(".")[0]
            conjunctions = heavy_conjunctions(part, classifier, self.class_names(part), names(kind), top)
            by_kind.setdefault(kind, []).extend(conjunctions)
        return [
            conjunction
            for conjunctions in by_kind.values()
            for conjunction in sorted(conjunctions, key=lambda heavy: -abs(heavy.weight))[:top]
        ]


def _unpickle(kind: type[SavedModel], arrays: Arrays, settings: dict[str, Any]) -> SavedModel:
    return kind.from_container("<pickle>", arrays, settings)
