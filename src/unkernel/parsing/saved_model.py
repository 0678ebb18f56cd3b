"""Base classes of all fitted models of this room: their files. Needs only NumPy."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from unkernel.data import file_memory_limit, repr_html
from unkernel.data.files import name_of
from unkernel.data.repr_html import HtmlRepr, Page
from unkernel.errors import FormatError
from unkernel.models import container

if TYPE_CHECKING:
    from unkernel.engines import CompiledClassifier

Arrays = dict[str, NDArray[Any]]
_PARAMETERS = "parameters"
_RENAMED = {"minimum": "min_count", "minimum_updates": "min_updates"}  # parameters in older files
_RUN_PARAMETERS = ("n_jobs",)  # parameters in older files that do not affect the model


class SavedFile(ABC):
    """An object that is saved as a ``.uk`` file.

    Attributes
    ----------
    kind : str
        The kind of its files.
    noun : str
        Its name in messages.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]

    @abstractmethod
    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        """Return what a file holds.

        Returns
        -------
        kind : str
            Kind of the file.
        arrays : dict of str to ndarray
            The arrays of the model.
        settings : dict
            Everything else, ready for JSON.
        """

    @classmethod
    @abstractmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        """Make a model from the arrays and settings of a file, and check them.

        Parameters
        ----------
        name : str
            Name of the file in error messages.
        arrays : dict of str to ndarray
            The arrays.
        settings : dict
            The settings.

        Returns
        -------
        model
            A model of this class.

        Raises
        ------
        FormatError
            If the arrays and settings do not make a model.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.uk`` file, which :func:`unkernel.load` reads.

        The file is replaced in one step, or left unchanged if writing fails.

        Parameters
        ----------
        path : str or path-like
            Where to write the file.
        """
        container.write(path, *self.to_container())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limit: float | str | None = None) -> Self:
        """Read a file of this kind; :func:`unkernel.load` reads files of any kind.

        Parameters
        ----------
        path : str or path-like
            The file.
        limit : int or str, default=None
            Largest amount of memory in bytes that the model may take, as for :func:`unkernel.load`.

        Returns
        -------
        model
            A model of this class.

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
        The name of the class that fits it.
    parameters : dict
        The parameters that its estimator was fitted with, as JSON values.
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
            Sentences with the correct annotation. A tokenizer splits their text, as :meth:`Tokenizer.fit`
            reads it.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        TreeResult, BunsetsuResult, ChunkResult, TagResult or TextResult
            The accuracy and the speed; chunks are counted by the rules of CoNLL-2000.
        """

    def report(self, source: Any, **options: Any) -> Page:
        """Evaluate on annotated sentences and write an HTML report.

        Parameters
        ----------
        source : path, open file or corpus
            Sentences with the correct annotation.
        **options
            Passed on to :func:`~unkernel.report.report`, for example ``top``, ``mistakes`` or ``title``.

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
        """Make a model from the content of the file `name`; ValueError if it is damaged."""

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


def _unpickle(kind: type[SavedModel], arrays: Arrays, settings: dict[str, Any]) -> SavedModel:
    return kind.from_container("<pickle>", arrays, settings)
