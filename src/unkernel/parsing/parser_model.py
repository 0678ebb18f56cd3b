"""Base class of fitted parsers, taggers and chunkers. Needs only NumPy."""

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
    from unkernel.parsing.explanation import Decision, ExplainedDecision, HeavyConjunction


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
            Moves, relations or tags; for bunsetsu, "waits" (for a later bunsetsu) and "depends".
        """

    @abstractmethod
    def feature_names(self, part: str) -> Callable[[int], str]:
        """Return a function that names the features of one of the classifiers.

        Classifiers of one kind, such as ``"labels"``, share their features.

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
        """Yield the decisions on a text, each with its row of features."""

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
            One entry for each column of tags that is missing or has many values that training did not see;
            empty for taggers, which need only words.
        """

    @abstractmethod
    def _annotate(self, corpus: Any, n_jobs: int | None) -> bytes:
        """Return the text of a corpus with the answers filled in."""

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
            How many conjunctions of features to list per decision, those first that made the largest
            difference between the chosen class and the runner-up; None lists all.

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
            How many to list for each kind of decision, such as moves and labels.

        Returns
        -------
        list of HeavyConjunction
            Kind by kind, largest absolute weight first.
        """
        from unkernel.parsing.explanation import heavy_conjunctions

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
