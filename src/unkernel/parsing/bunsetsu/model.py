"""Fitted bunsetsu parsers. Needs only NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import BunsetsuFeatures
from unkernel.data.text.bunsetsu import BunsetsuCorpus, BunsetsuSource, as_corpus
from unkernel.data.threads import thread_count
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing.bunsetsu.result import BunsetsuResult, score_heads
from unkernel.parsing.input_checks import check_is_no_sentence, check_not_empty
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.stored_classifiers import restore_classifiers, store_classifiers
from unkernel.parsing.tag_check import MAX_UNKNOWN_SHARE, TagFault, format_examples

if TYPE_CHECKING:
    from unkernel.parsing.explanation import Decision

_DECIDES = "depends"
DecisionRows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]


@dataclass(frozen=True, eq=False, repr=False)
class BunsetsuModel(ParserModel):
    r"""Trained parser of bunsetsu, made by ``BunsetsuParser`` or loaded from a file.

    Attributes
    ----------
    features : BunsetsuFeatures
        The features.
    classifier_ : CompiledClassifier
        The classifier; positive scores mean that the left bunsetsu depends on the right one.
    n_decisions_ : int
        Number of decisions in the training set.
    parameters : dict
        Parameters of the estimator that fitted the model.

    See Also
    --------
    BunsetsuParser : The estimator.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_bunsetsu
    >>> from unkernel.parsing import BunsetsuParser
    >>> read = ["本 ほん 本 名詞 普通名詞 * *", "* 2 -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS"]
    >>> lines = ["* 0 2D", "私 わたし 私 名詞 普通名詞 * *", "* 1 2D", *read]
    >>> lines += ["* 0 1D", "古い ふるい 古い 形容詞 * イ形容詞 基本形", "* 1 2D", *read, ""]
    >>> corpus = read_bunsetsu(io.BytesIO("\n".join(lines).encode()))
    >>> model = BunsetsuParser(C=1.0).fit(corpus).to_model()
    >>> model.n_decisions_, model.evaluate(corpus).dependency_accuracy
    (2, 100.0)
    """

    kind = "bunsetsu_parser"
    estimator = "BunsetsuParser"

    features: BunsetsuFeatures
    classifier_: CompiledClassifier
    n_decisions_: int
    parameters: dict[str, Any]

    @property
    def n_features_(self) -> int:
        """Number of features."""
        return int(self.features.columns)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifier, by its name ``"depends"``."""
        return {_DECIDES: self.classifier_}

    def class_names(self, part: str) -> list[str]:
        return ["waits", "depends"]

    def feature_name(self, column: int) -> str:
        """Return the name of a column.

        Parameters
        ----------
        column : int
            Number of the column.

        Returns
        -------
        str
            The name, such as ``"modifier.content.surface=本"``.
        """
        return str(self.features.column_name(column))

    def feature_names(self, part: str) -> Callable[[int], str]:
        return self.feature_name

    # --- Answers --------------------------------------------------------------------------------------

    def parse(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuCorpus:
        """Find the heads of the bunsetsu of sentences.

        Parameters
        ----------
        source : path, open file or BunsetsuCorpus
            The sentences.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

        Returns
        -------
        BunsetsuCorpus
            The sentences with predicted heads; all dependencies have the type D.
        """
        check_is_no_sentence(source)
        corpus = as_corpus(source)
        self.check_tags(corpus)
        return corpus.with_heads(self._heads(corpus, n_jobs))

    def evaluate(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuResult:
        corpus = read_nonempty(source)
        self.check_tags(corpus)
        begin = time.process_time()
        heads = self._heads(corpus, n_jobs)
        seconds = time.process_time() - begin
        return score_heads(corpus, heads, seconds)

    def decision_rows(self, source: BunsetsuSource) -> DecisionRows:
        """Return the decisions that lead to the given heads of sentences.

        Parameters
        ----------
        source : path, open file or BunsetsuCorpus
            Sentences with heads.

        Returns
        -------
        offsets : ndarray of int64
            Row pointers, as in a CSR matrix: row r has the features ``columns[offsets[r]:offsets[r + 1]]``.
        columns : ndarray of int32
            The features of the rows.
        labels : ndarray of int8
            For each decision, 1 if the left bunsetsu depends on the right one, else 0.
        """
        corpus = as_corpus(source)
        offsets, columns, labels = self.features.decisions(corpus._text, corpus.heads)
        return np.asarray(offsets), np.asarray(columns), np.asarray(labels)

    def tag_faults(self, corpus: BunsetsuCorpus) -> list[TagFault]:
        count, total, examples = self.features.unknown_pos(corpus._text, most_examples=6)
        if count < max(MAX_UNKNOWN_SHARE * total, 1):
            return []
        reason = (
            f"the last words of {count / total:.0%} of the bunsetsu have parts of speech that were not in "
            f"the training text ({format_examples(list(examples))}): expect poor predictions; use the same "
            "morphological analyser as for the training text"
        )
        return [TagFault(reason, fatal=False)]

    def _heads(self, corpus: BunsetsuCorpus, n_jobs: int | None) -> NDArray[np.int32]:
        threads = thread_count(n_jobs)
        return np.asarray(self.features.parse(corpus._text, self.classifier_._engine, threads))

    def _annotate(self, corpus: BunsetsuCorpus, n_jobs: int | None) -> BunsetsuCorpus:
        return corpus.with_heads(self._heads(corpus, n_jobs))

    def _trace_decisions(self, source: Any, tags: Any) -> Iterator[tuple[Decision, NDArray[np.int32]]]:
        if tags is not None:
            raise ValueError("the morphemes of bunsetsu have parts of speech already: leave out tags")
        parsed = self.parse(source)
        offsets, columns, _ = self.decision_rows(parsed)
        from unkernel.parsing.decision_trace import trace_bunsetsu

        return trace_bunsetsu(parsed, offsets, columns, _DECIDES)

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
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
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        parts = restore_classifiers(name, arrays, settings)
        if set(parts) != {_DECIDES} or parts[_DECIDES]._engine.scores != 1:
            raise FormatError(name, 0, 0, "a bunsetsu parser must have one classifier with one score")
        features = BunsetsuFeatures(
            container.read_setting(name, settings, "templates", list),
            arrays["feature_names"].astype(np.uint8, casting="no").tobytes(),
            arrays["feature_name_ends"].astype(np.int64, casting="no"),
            arrays["template_begins"].astype(np.int32, casting="no"),
            arrays["template_values"].astype(np.int32, casting="no"),
        )
        decisions = container.read_setting(name, settings, "decisions", int, lambda value: value >= 0)
        return cls(features, parts[_DECIDES], decisions, parameters)


def read_nonempty(source: BunsetsuSource) -> BunsetsuCorpus:
    """Return a corpus for evaluation; ValueError if it is empty."""
    corpus = as_corpus(source)
    check_not_empty(corpus.name, corpus.n_bunsetsu)
    return corpus
