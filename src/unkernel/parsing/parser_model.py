"""What all fitted parsers and chunkers share: answering and explaining. Needs numpy alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel.parsing.saved_model import Arrays, SavedModel
from unkernel.parsing.tag_check import TagFault, check_faults

if TYPE_CHECKING:
    from unkernel.parsing.explaining import Decided, ExplainedDecision, HeavyConjunction


class ParserModel(SavedModel):
    """What a parser or chunker has learned; immutable, and safe to use from many threads.

    Subclasses implement what :class:`SavedModel` asks for, and :meth:`_decided` for explanations.
    """

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
    def tag_faults(self, corpus: Any) -> list[TagFault]:
        """What is wrong with the tags of a corpus: they are missing, or many were not in training."""

    @abstractmethod
    def _answered(self, corpus: Any, n_jobs: int | None) -> bytes:
        """The text of a corpus with the answers in it."""

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


__all__ = ["Arrays", "ParserModel"]
