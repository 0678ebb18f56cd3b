"""What all fitted parsers and chunkers share: answering, explaining, files. Needs numpy alone."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data import allowance
from unkernel.data.files import name_of
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing.tag_check import TagFault, check_faults

if TYPE_CHECKING:
    from unkernel.engines import CompiledClassifier
    from unkernel.parsing.explaining import Decided, ExplainedDecision, HeavyConjunction

Arrays = dict[str, NDArray[Any]]
_PARAMETERS = "parameters"
_RENAMED = {"minimum": "min_count", "minimum_updates": "min_updates"}  # parameters in older files
_OF_ONE_RUN = ("n_jobs",)  # parameters in older files that say nothing about what was learned


class ParserModel(ABC):
    """What a parser or chunker has learned; immutable, and safe to use from many threads.

    Subclasses implement :meth:`_stored` and :meth:`_restored` for files, and :meth:`_decided` for
    explanations.

    Attributes
    ----------
    kind : str
        The kind of its files.
    estimator : str
        The name of the class that fits it.
    parameters : dict
        The parameters that its estimator was fitted with, as JSON values.
    """

    kind: ClassVar[str]
    noun: ClassVar[str] = "parser"
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
    def class_names(self, part: str) -> list[str]:
        """The names of the classes that a classifier of ``parts_`` chooses among."""

    @abstractmethod
    def feature_names(self, part: str) -> Callable[[int], str]:
        """A function from the columns of a classifier of ``parts_`` to their names.

        Parts of one kind, such as ``"labels"``, have the same columns.
        """

    @abstractmethod
    def _decided(self, source: Any, tags: Any) -> Iterator[tuple[Decided, NDArray[np.int32]]]:
        """The decisions on a text, each with the row of features it was made on."""

    @abstractmethod
    def evaluate(self, source: Any, *, n_jobs: int | None = None) -> Any:
        """Answer, and compare with the answers that the text has."""

    @abstractmethod
    def tag_faults(self, corpus: Any) -> list[TagFault]:
        """What is wrong with the tags of a corpus: they are missing, or many were not in training."""

    @abstractmethod
    def _answered(self, corpus: Any, n_jobs: int | None) -> bytes:
        """The text of a corpus with the answers in it."""

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

    def check_tags(self, corpus: Any) -> None:
        """Raise ValueError if a corpus lacks the tags that training had; warn if many are unknown."""
        check_faults(corpus.name, self.tag_faults(corpus))

    def explain(self, source: Any, tags: Any = None, *, top: int | None = 10) -> list[ExplainedDecision]:
        """Why sentences get the answers that they get, decision by decision.

        Parameters
        ----------
        source : path, open file, corpus, or lists of words
            As ``parse`` takes it.
        tags : lists of str, default=None
            The parts of speech of lists of words.
        top : int, default=10
            The number of conjunctions of features to list for each decision, those first that made the
            largest difference between the winner and the runner-up; None lists all.

        Returns
        -------
        list of ExplainedDecision
            In the order in which they were made (for chunkers: in the order of the text).
        """
        from unkernel.parsing.explaining import explained

        if top is not None and (isinstance(top, bool) or top < 0):
            raise ValueError(f"top must be a number of conjunctions, or None for all, got {top}")
        parts, classes = self.parts_, cache(self.class_names)
        features = cache(self.feature_names)
        return [
            explained(
                decided,
                parts[decided.part],
                row,
                classes(decided.part),
                features(decided.part.partition(".")[0]),
                top=top,
            )
            for decided, row in self._decided(source, tags)
        ]

    def heaviest(self, top: int = 10) -> list[HeavyConjunction]:
        """The conjunctions of features with the largest weights.

        Parameters
        ----------
        top : int, default=10
            The number of conjunctions for each kind of decisions, such as moves and labels.

        Returns
        -------
        list of HeavyConjunction
            Kind by kind; the largest weights first.
        """
        from unkernel.parsing.explaining import heavy_conjunctions

        if isinstance(top, bool) or top < 0:
            raise ValueError(f"top must be a number of conjunctions, got {top}")
        by_kind: dict[str, list[HeavyConjunction]] = {}
        names = cache(self.feature_names)
        for part, classifier in self.parts_.items():
            kind = part.partition(".")[0]
            found = heavy_conjunctions(part, classifier, self.class_names(part), names(kind), top)
            by_kind.setdefault(kind, []).extend(found)
        return [
            one for found in by_kind.values() for one in sorted(found, key=lambda one: -abs(one.weight))[:top]
        ]

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.uk`` file, whole or not at all; ``unkernel.load`` reads it."""
        container.write(path, *self.to_container())

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        """The content of its file: kind, arrays and settings."""
        arrays, settings = self._stored()
        return self.kind, arrays, settings | {_PARAMETERS: self.parameters}

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

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        """Check the content of the file `name` and make a model of it."""
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
            if part.n_features_in_ > self.n_features_:
                raise ValueError(
                    f"its classifier {name!r} has {part.n_features_in_} columns, and there are "
                    f"{self.n_features_} features"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), *self.to_container()[1:])


def _unpickled(kind: type[ParserModel], arrays: Arrays, settings: dict[str, Any]) -> ParserModel:
    return kind.from_container("<pickle>", arrays, settings)
