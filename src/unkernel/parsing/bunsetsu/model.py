"""What a fitted bunsetsu parser has learned. Needs numpy alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import BunsetsuFeatures
from unkernel.data.text.bunsetsu import BunsetsuCorpus, BunsetsuSource, bunsetsu_corpus
from unkernel.data.threads import thread_count
from unkernel.engines.classifier import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing.bunsetsu.result import BunsetsuResult, result_of
from unkernel.parsing.given_texts import check_is_no_sentence
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.scoring import check_not_empty
from unkernel.parsing.stored_classifiers import restore_classifiers, store_classifiers
from unkernel.parsing.tag_check import MANY, TagFault, examples_of

if TYPE_CHECKING:
    from unkernel.parsing.explaining import Decided

_DECIDES = "depends"
DecisionRows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]


@dataclass(frozen=True, eq=False, repr=False)
class BunsetsuModel(ParserModel):
    """Finds the heads of bunsetsu. :class:`BunsetsuParser` fits it, and ``unkernel.load`` reads it.

    Attributes
    ----------
    features : BunsetsuFeatures
        The features that training has seen often enough.
    classifier_ : CompiledClassifier
        What decides; above 0 means that the left bunsetsu depends on the right one.
    n_decisions_ : int
        Decisions of the training set.
    parameters : dict
        The parameters of the estimator that fitted it.
    """

    kind = "bunsetsu_parser"
    estimator = "BunsetsuParser"

    features: BunsetsuFeatures
    classifier_: CompiledClassifier
    n_decisions_: int
    parameters: dict[str, Any]

    @property
    def n_features_(self) -> int:
        """Features that training has seen often enough."""
        return int(self.features.columns)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The one classifier that decides, by name."""
        return {_DECIDES: self.classifier_}

    def class_names(self, part: str) -> list[str]:
        """Whether the left bunsetsu depends on the right one, or waits for another."""
        return ["waits", "depends"]

    def feature_name(self, column: int) -> str:
        """The name of a column, such as ``"modifier.content.surface=本"``."""
        return str(self.features.column_name(column))

    def feature_names(self, part: str) -> Callable[[int], str]:
        """The names of columns: :meth:`feature_name`."""
        return self.feature_name

    # --- Answers --------------------------------------------------------------------------------------

    def parse(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuCorpus:
        """The sentences with the heads that the parser finds, all of type D.

        Parameters
        ----------
        source : path, open file or BunsetsuCorpus
        n_jobs : int, default=None
            Threads; None is 1 and -1 is all. The answers do not depend on it.

        Returns
        -------
        BunsetsuCorpus
        """
        check_is_no_sentence(source)
        corpus = bunsetsu_corpus(source)
        self.check_tags(corpus)
        return corpus.with_heads(self._heads(corpus, n_jobs))

    def evaluate(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuResult:
        """Parse sentences and compare with the heads that they have.

        Parameters
        ----------
        source : path, open file or BunsetsuCorpus
        n_jobs : int, default=None
            Threads; None is 1 and -1 is all.

        Returns
        -------
        BunsetsuResult
        """
        corpus = measurable(source)
        self.check_tags(corpus)
        begin = time.process_time()
        heads = self._heads(corpus, n_jobs)
        seconds = time.process_time() - begin
        return result_of(corpus, heads, seconds)

    def decision_rows(self, source: BunsetsuSource) -> DecisionRows:
        """The decisions that lead to the heads of sentences.

        Returns
        -------
        offsets, columns : ndarray
            The rows of features, as in a CSR matrix.
        labels : ndarray
            1 where the left bunsetsu depends on the right one.
        """
        corpus = bunsetsu_corpus(source)
        offsets, columns, labels = self.features.decisions(corpus._text, corpus.heads)
        return np.asarray(offsets), np.asarray(columns), np.asarray(labels)

    def tag_faults(self, corpus: BunsetsuCorpus) -> list[TagFault]:
        """Many function words have parts of speech that were not in training."""
        count, asked, examples = self.features.unknown_pos(corpus._text, most_examples=6)
        if count < max(MANY * asked, 1):
            return []
        reason = (
            f"the last words of {count / asked:.0%} of the bunsetsu have parts of speech that were not in "
            f"the training text ({examples_of(list(examples))}): expect poor answers; use the morphological "
            "analyser that the training text was made with"
        )
        return [TagFault(reason, fatal=False)]

    def _heads(self, corpus: BunsetsuCorpus, n_jobs: int | None) -> NDArray[np.int32]:
        threads = thread_count(n_jobs)
        return np.asarray(self.features.parse(corpus._text, self.classifier_._engine, threads))

    def _answered(self, corpus: BunsetsuCorpus, n_jobs: int | None) -> bytes:
        return corpus.with_heads(self._heads(corpus, n_jobs)).to_bytes()

    def _decided(self, source: Any, tags: Any) -> Iterator[tuple[Decided, NDArray[np.int32]]]:
        if tags is not None:
            raise ValueError("bunsetsu have their parts of speech with their morphemes: leave out tags")
        parsed = self.parse(source)
        offsets, columns, _ = self.decision_rows(parsed)
        from unkernel.parsing.decision_trace import decided_bunsetsu

        return decided_bunsetsu(parsed, offsets, columns, _DECIDES)

    # --- Files ----------------------------------------------------------------------------------------

    def _stored(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_classifiers(self.parts_)
        arrays |= {
            "feature_names": np.frombuffer(self.features.names, np.uint8),
            "feature_name_ends": np.asarray(self.features.name_ends),
            "template_begins": np.asarray(self.features.begins),
            "template_values": np.asarray(self.features.values),
        }
        templates, decisions = list(self.features.templates), int(self.n_decisions_)
        return arrays, settings | {"templates": templates, "decisions": decisions}

    @classmethod
    def _restored(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        parts = restore_classifiers(name, arrays, settings)
        if set(parts) != {_DECIDES} or parts[_DECIDES]._engine.scores != 1:
            raise FormatError(name, 0, 0, "a bunsetsu parser decides with one classifier of one score")
        features = BunsetsuFeatures(
            container.setting(name, settings, "templates", list, lambda _: True),
            arrays["feature_names"].astype(np.uint8, casting="no").tobytes(),
            arrays["feature_name_ends"].astype(np.int64, casting="no"),
            arrays["template_begins"].astype(np.int32, casting="no"),
            arrays["template_values"].astype(np.int32, casting="no"),
        )
        decisions = container.setting(name, settings, "decisions", int, lambda value: value >= 0)
        return cls(features, parts[_DECIDES], decisions, parameters)


def measurable(source: BunsetsuSource) -> BunsetsuCorpus:
    """A corpus to measure on; ValueError if it is empty."""
    corpus = bunsetsu_corpus(source)
    check_not_empty(corpus.name, corpus.n_bunsetsu)
    return corpus
