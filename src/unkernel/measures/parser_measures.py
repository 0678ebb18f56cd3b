"""Measures of parsers, chunkers and taggers. Sentences may count several times, as in bootstrap samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel._core import count_chunks
from unkernel.data.text.bunsetsu import BunsetsuCorpus
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.data.text.conll import Treebank
from unkernel.measures.base import PredictionMeasures
from unkernel.measures.intervals import Counts, Numbers
from unkernel.parsing.chunks.result import ChunkResult, read_tags
from unkernel.parsing.parser_model import SavedModel
from unkernel.parsing.text.result import TITLES, ComparedTrees, TextResult, compare_trees

UAS, LAS = "UAS", "LAS"
WHOLE = "sentences without a mistake"
DEPENDENCIES = "dependencies"
F1, PRECISION, RECALL = "F1", "precision", "recall"


@dataclass(frozen=True, eq=False)
class ParserMeasures(PredictionMeasures):
    """All measures of one parser's predictions.

    Attributes
    ----------
    name : str
    parser : SavedModel
    gold : Treebank, BunsetsuCorpus or ChunkCorpus
        Annotated sentences.
    threads : int
    options : mapping
        Options of the parser's ``evaluate``.
    """

    resampled_unit = "sentences"

    name: str
    parser: SavedModel
    gold: Any
    threads: int
    options: Mapping[str, Any]

    @cached_property
    def result(self) -> Any:
        """Return the result of the parser's method ``evaluate``."""
        return self.parser.evaluate(self.gold, n_jobs=self.threads, **self.options)

    @cached_property
    def parsed(self) -> Any:
        """Return the sentences with the parser's predictions."""
        parser: Any = self.parser
        return parser.parse(self.gold, n_jobs=self.threads)

    @property
    @abstractmethod
    def counts_per_sentence(self) -> Numbers:
        """Return one row of counts per sentence; the sum of the rows is the argument of :meth:`from_sums`."""

    @abstractmethod
    def from_sums(self, sums: Any) -> dict[str, float]:
        """Return the measures, given the sums of the counts over sentences."""

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures, counting sentence i `counts[i]` times; None means once each."""
        weights = np.ones(len(self.counts_per_sentence)) if counts is None else counts
        return self.from_sums(np.tensordot(weights, self.counts_per_sentence, axes=1))

    @property
    def n_resampled(self) -> int:
        return len(self.counts_per_sentence)


class HeadMeasures(ParserMeasures):
    """Measures of parsers that find heads.

    Attributes
    ----------
    offsets : (sentences + 1,) int
        The first word of each sentence.
    correct_heads : (words,) bool
        Whether each word's head is correct.
    lengths : (words,) int
        The distance from each word to its head; 0 if there is no dependency.
    correct : (words,) bool
        Whether each word's head and relation are correct.
    """

    offsets: Any
    correct_heads: Any
    lengths: Any
    correct: Any

    @cached_property
    def mistakes(self) -> NDArray[Any]:
        """Return the number of mistakes in each sentence."""
        return _sum_by_sentence(~self.correct, self.offsets)

    @property
    def share_counts(self) -> dict[str, tuple[float, float]]:
        """Return the number of sentences without a mistake, and the number of all sentences."""
        return {WHOLE: (float((self.mistakes == 0).sum()), float(len(self.mistakes)))}


class TreeMeasures(HeadMeasures):
    """Measures of dependency parsers."""

    meanings: ClassVar[Mapping[str, str]] = {
        UAS: "the share of words with the correct head",
        LAS: "the share of words with the correct head and relation",
        WHOLE: "the share of sentences in which all heads and relations are correct",
    }
    gold: Treebank

    @property
    def offsets(self) -> NDArray[Any]:
        return self.gold.offsets

    @cached_property
    def relations(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the correct and the predicted relation of each word."""
        return _list_values(self.gold, "deprel"), _list_values(self.parsed, "deprel")

    @property
    def predicted_relations(self) -> NDArray[Any]:
        """Return the predicted relations of all words."""
        return self.relations[1]

    @cached_property
    def correct_heads(self) -> NDArray[np.bool_]:
        return np.asarray(self.parsed.heads == self.gold.heads)

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        return np.asarray(self.correct_heads & (self.relations[0] == self.relations[1]))

    @cached_property
    def lengths(self) -> NDArray[Any]:
        # Heads are numbers of words in the sentence, counted from 1; 0 is the root.
        positions = np.arange(self.gold.n_words) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1
        return np.where(self.gold.heads > 0, np.abs(self.gold.heads - positions), 0)

    @cached_property
    def counts_per_sentence(self) -> Numbers:
        columns = (np.ones(self.gold.n_words), self.correct_heads, self.correct)
        sums = [_sum_by_sentence(column, self.offsets) for column in columns]
        return np.column_stack([*sums, np.ones(len(self.gold)), sums[2] == sums[0]])

    def from_sums(self, sums: Any) -> dict[str, float]:
        """Return shares of words and of sentences."""
        words, heads, labelled, sentences, faultless = sums.tolist()
        return {UAS: heads / words, LAS: labelled / words, WHOLE: faultless / sentences}


class BunsetsuMeasures(HeadMeasures):
    """Measures of parsers of Japanese bunsetsu."""

    meanings: ClassVar[Mapping[str, str]] = {
        DEPENDENCIES: "the share of bunsetsu with the correct head, without the last one of each sentence",
        WHOLE: "the share of sentences in which all heads are correct",
    }
    gold: BunsetsuCorpus

    @property
    def offsets(self) -> NDArray[Any]:
        return np.asarray(self.gold.first_bunsetsu)

    @cached_property
    def _is_dependency(self) -> NDArray[np.bool_]:
        """Return whether each bunsetsu has a head; the last bunsetsu of a sentence has none."""
        is_dependency = np.ones(len(self.gold.heads), dtype=bool)
        is_dependency[self.offsets[1:][np.diff(self.offsets) > 0] - 1] = False
        return is_dependency

    @cached_property
    def correct_heads(self) -> NDArray[np.bool_]:
        return np.asarray((self.parsed.heads == self.gold.heads) | ~self._is_dependency)

    @property
    def correct(self) -> NDArray[np.bool_]:
        return self.correct_heads

    @cached_property
    def lengths(self) -> NDArray[Any]:
        positions = np.arange(len(self.gold.heads)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return np.where(self._is_dependency, self.gold.heads - positions, 0)

    @cached_property
    def counts_per_sentence(self) -> Numbers:
        correct = _sum_by_sentence(self.correct_heads & self._is_dependency, self.offsets)
        return np.column_stack(
            [
                _sum_by_sentence(self._is_dependency, self.offsets),
                correct,
                np.ones(len(correct)),
                self.mistakes == 0,
            ]
        )

    def from_sums(self, sums: Any) -> dict[str, float]:
        """Return shares of dependencies and of sentences."""
        dependencies, correct, sentences, faultless = sums.tolist()
        share = correct / dependencies if dependencies else 1.0
        return {DEPENDENCIES: share, WHOLE: faultless / sentences}


class ChunkMeasures(ParserMeasures):
    """Measures of chunkers."""

    meanings: ClassVar[Mapping[str, str]] = {
        F1: "the harmonic mean of precision and recall, of all types",
        PRECISION: "the share of predicted chunks that are correct",
        RECALL: "the share of gold chunks that are predicted",
    }
    gold: ChunkCorpus
    result: ChunkResult

    @cached_property
    def counts_per_sentence(self) -> Numbers:
        """Return the numbers of predicted, gold and matching chunks; shape (sentences, 3)."""
        predicted, types = read_tags(self.parsed, [])
        gold_tags, types = read_tags(self.gold, types)
        offsets = self.gold.offsets
        counts = []
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            sentence = np.array([0, end - begin])
            by_type = count_chunks(sentence, gold_tags[begin:end], predicted[begin:end], len(types))[0]
            counts.append(np.asarray(by_type).sum(axis=0))
        return np.array(counts, dtype=np.float64)

    def from_sums(self, sums: Any) -> dict[str, float]:
        """Return the measures by the rules of CoNLL-2000."""
        predicted, gold, correct = sums.tolist()
        return {
            F1: 2 * correct / (predicted + gold) if predicted + gold else 0.0,
            PRECISION: correct / predicted if predicted else 0.0,
            RECALL: correct / gold if gold else 0.0,
        }


class TagMeasures(ParserMeasures):
    """Measures of taggers."""

    meanings: ClassVar[Mapping[str, str]] = {}
    gold: Treebank

    @cached_property
    def columns(self) -> list[str]:
        """Return the columns that the tagger predicts."""
        return list(self.result.accuracy)

    def list_values(self, column: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the correct and the predicted values of a column."""
        return _list_values(self.gold, column), _list_values(self.parsed, column)

    @cached_property
    def counts_per_sentence(self) -> Numbers:
        is_correct = [np.equal(*self.list_values(column)) for column in self.columns]
        columns = [np.ones(self.gold.n_words), *is_correct, np.logical_and.reduce(is_correct)]
        return np.column_stack([_sum_by_sentence(column, self.gold.offsets) for column in columns])

    def from_sums(self, sums: Any) -> dict[str, float]:
        """Return shares of words."""
        words, *correct = sums.tolist()
        names = [*self.columns, "all columns"] if len(self.columns) > 1 else self.columns
        return {name: count / words for name, count in zip(names, correct, strict=False)}


class TextMeasures(ParserMeasures):
    """Measures of tokenizers and parsers of raw text: F1 scores of the CoNLL 2018 shared task.

    Sentences cannot be resampled, because predicted sentences may differ from the sentences of the treebank.
    Confidence intervals are Wilson's intervals of shares of words.
    """

    meanings: ClassVar[Mapping[str, str]] = {}
    resampled_unit = "words"
    result: TextResult

    @property
    def counts_per_sentence(self) -> Numbers:
        return np.empty((0, 0))

    def from_sums(self, sums: Any) -> dict[str, float]:
        """Return the result of the parser's method ``evaluate``."""
        return {f"{TITLES[name]} F1": score.f1 / 100 for name, score in self.result.scores().items()}

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures; `counts` must be None, because sentences cannot be resampled."""
        return self.from_sums(None)

    @property
    def share_counts(self) -> dict[str, tuple[float, float]]:
        """Return (part, whole) of F1: matches, and the mean of the predicted and gold counts."""
        return {
            f"{TITLES[name]} F1": (float(score.n_right), (score.n_found + score.n_gold) / 2)
            for name, score in self.result.scores().items()
        }


class TextTreeMeasures(TextMeasures):
    """Measures of dependency parsers of raw text, which also split the text into words."""

    @cached_property
    def _trees(self) -> ComparedTrees:
        assert self.result.answer is not None
        return compare_trees(self.gold, self.result.answer)

    @property
    def relations(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the gold relation of each word, and the relation of the predicted word aligned with it."""
        return self._trees.relations, self._trees.aligned_relations

    @property
    def predicted_relations(self) -> NDArray[Any]:
        """Return the predicted relations of all words."""
        return self._trees.predicted_relations

    @property
    def correct_heads(self) -> NDArray[np.bool_]:
        """Return whether each head is correct."""
        return self._trees.correct_heads

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Return whether each head and relation are correct."""
        return np.asarray(self.correct_heads & (self.relations[0] == self.relations[1]))

    @property
    def lengths(self) -> NDArray[Any]:
        """Return the distance from each word to its head; 0 for roots."""
        return self._trees.lengths


def _sum_by_sentence(values: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of `values` over each sentence; 0 for empty sentences."""
    total = np.concatenate([[0.0], np.cumsum(values.astype(np.float64))])
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]])


def _list_values(treebank: Treebank, column: str) -> NDArray[Any]:
    """Return the values of a column of all words, as strings."""
    codes, names = treebank.symbols(column)
    return np.array(names, dtype=object)[np.asarray(codes)]
