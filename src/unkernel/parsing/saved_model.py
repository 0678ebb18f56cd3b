"""What all fitted models of this room share: their files. Needs numpy alone."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from unkernel.data import allowance, showing
from unkernel.data.files import name_of
from unkernel.data.showing import Page, Shown
from unkernel.errors import FormatError
from unkernel.models import container

if TYPE_CHECKING:
    from unkernel.engines import CompiledClassifier

Arrays = dict[str, NDArray[Any]]
_PARAMETERS = "parameters"
_RENAMED = {"minimum": "min_count", "minimum_updates": "min_updates"}  # parameters in older files
_OF_ONE_RUN = ("n_jobs",)  # parameters in older files that say nothing about what was learned


class SavedFile(ABC):
    """What has a ``.uk`` file.

    Attributes
    ----------
    kind : str
        The kind of its files.
    noun : str
        What messages call it.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]

    @abstractmethod
    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        """The content of its file: kind, arrays and settings."""

    @classmethod
    @abstractmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        """Check the content of the file `name` and make one of it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.uk`` file, whole or not at all; ``unkernel.load`` reads it."""
        container.write(path, *self.to_container())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limit: float | str | None = None) -> Self:
        """Read a file of this kind; ``unkernel.load`` reads those of any kind.

        Parameters
        ----------
        path : path
        limit : int or str, default=None
            Bytes of memory that may be taken, as ``unkernel.load`` has it.

        Raises
        ------
        FormatError
            If the file is of another kind, or is damaged.
        """
        name = name_of(path)
        with allowance.reading(path, limit):
            kind, arrays, settings = container.read(path)
            if kind != cls.kind:
                raise FormatError(name, 0, 0, f"a file of kind {kind!r}, which is no {cls.noun}")
            return cls.from_container(name, arrays, settings)


class SavedModel(Shown, SavedFile):
    """What was learned, with classifiers that decide: its file. Immutable, safe to use from many threads.

    Subclasses implement :meth:`_stored` and :meth:`_restored`.

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
        """The classifiers that decide, by name."""

    @property
    @abstractmethod
    def n_features_(self) -> int:
        """The number of features."""

    @abstractmethod
    def evaluate(self, source: Any, *, n_jobs: int | None = None) -> Any:
        """Answer, and compare with the answers that the text has."""

    def report(self, source: Any, **options: Any) -> Page:
        """How well sentences are answered: a page of HTML that a notebook shows, or a file keeps.

        Parameters
        ----------
        source : what ``evaluate`` takes
            Sentences with the right answers.
        **options
            Those of :func:`unkernel.report.report`, such as ``top``, ``mistakes`` and ``title``.

        Returns
        -------
        Report

        Examples
        --------
        >>> load("en.uk").report("test.conllu").save("report.html")  # doctest: +SKIP
        """
        page: Page = showing.ask("report", {self.estimator: self}, source, **options)
        return page

    @abstractmethod
    def _stored(self) -> tuple[Arrays, dict[str, Any]]:
        """The arrays and settings of a file, without the parameters."""

    @classmethod
    @abstractmethod
    def _restored(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        """Check the content of the file `name` and make a model of it; ValueError if it is not sound."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(parts={len(self.parts_)}, features={self.n_features_})"

    @property
    def nbytes(self) -> int:
        """Bytes of all compiled tables."""
        return sum(part.nbytes for part in self.parts_.values())

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        arrays, settings = self._stored()
        return self.kind, arrays, settings | {_PARAMETERS: self.parameters}

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        parameters = container.setting(name, settings, _PARAMETERS, dict, lambda _: True)
        current = {
            _RENAMED.get(key, key): value for key, value in parameters.items() if key not in _OF_ONE_RUN
        }
        try:
            model = cls._restored(name, arrays, settings, current)
            model.check_columns()
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(name, 0, 0, f"the {cls.noun} is damaged: {error}") from error
        return model

    def check_columns(self) -> None:
        """Raise ValueError if a classifier has columns that no feature has."""
        for name, part in self.parts_.items():
            if part.n_features_in_ > max(self.n_features_, 1):  # a classifier has one column at least
                raise ValueError(
                    f"its classifier {name!r} has {part.n_features_in_} columns, and there are "
                    f"{self.n_features_} features"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), *self.to_container()[1:])


def _unpickled(kind: type[SavedModel], arrays: Arrays, settings: dict[str, Any]) -> SavedModel:
    return kind.from_container("<pickle>", arrays, settings)
