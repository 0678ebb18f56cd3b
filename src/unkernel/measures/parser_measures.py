"""Measures of parsers, chunkers and taggers. Sentences can be resampled."""

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
from unkernel.measures.base import Studied
from unkernel.measures.intervals import Counts, Numbers
from unkernel.parsing.chunks.result import ChunkResult, read_tags
from unkernel.parsing.parser_model import SavedModel
from unkernel.parsing.text.result import TITLES, ComparedTrees, TextResult, compare_trees

UAS, LAS = "UAS", "LAS"
WHOLE = "sentences without a mistake"
DEPENDENCIES = "dependencies"
F1, PRECISION, RECALL = "F1", "precision", "recall"


@dataclass(frozen=True, eq=False)
class ParserMeasures(Studied):
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

    drawn = "sentences"

    name: str
    parser: SavedModel
    gold: Any
    threads: int
    options: Mapping[str, Any]

    @cached_property
    def result(self) -> Any:
        """Return the result of the parser's own ``evaluate``."""
        return self.parser.evaluate(self.gold, n_jobs=self.threads, **self.options)

    @cached_property
    def parsed(self) -> Any:
        """Return the sentences with the parser's predictions."""
        parser: Any = self.parser
        return parser.parse(self.gold, n_jobs=self.threads)

    @property
    @abstractmethod
    def per_sentence(self) -> Numbers:
        """Return an array [sentence, ...], whose sum over sentences :meth:`of_sums` takes."""

    @abstractmethod
    def of_sums(self, sums: Any) -> dict[str, float]:
        """Return the measures from the sums over sentences."""

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures if each sentence counts `counts` times."""
        weights = np.ones(len(self.per_sentence)) if counts is None else counts
        return self.of_sums(np.tensordot(weights, self.per_sentence, axes=1))

    @property
    def n_drawn(self) -> int:
        return len(self.per_sentence)


class HeadMeasures(ParserMeasures):
    """Measures of parsers that find heads.

    Attributes
    ----------
    offsets : (sentences + 1,) int
        The first word of each sentence.
    right_heads : (words,) bool
        Whether each word's head is correct.
    lengths : (words,) int
        The distance of each word to its head; 0 where there is no dependency.
    right : (words,) bool
        Whether each word's head and relation are correct.
    """

    offsets: Any
    right_heads: Any
    lengths: Any
    right: Any

    @cached_property
    def mistakes(self) -> NDArray[Any]:
        """Return the number of mistakes in each sentence."""
        return _sums(~self.right, self.offsets)

    @property
    def counted(self) -> dict[str, tuple[float, float]]:
        """Return the number of sentences without a mistake, and of all."""
        return {WHOLE: (float((self.mistakes == 0).sum()), float(len(self.mistakes)))}


class TreeMeasures(HeadMeasures):
    """Measures of dependency parsers."""

    words: ClassVar[Mapping[str, str]] = {
        UAS: "the share of words with the right head",
        LAS: "the share of words with the right head and relation",
        WHOLE: "the share of sentences in which all heads and relations are right",
    }
    gold: Treebank

    @property
    def offsets(self) -> NDArray[Any]:
        return self.gold.offsets

    @cached_property
    def relations(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the correct and the predicted relation of each word."""
        return _texts(self.gold, "deprel"), _texts(self.parsed, "deprel")

    @property
    def given_relations(self) -> NDArray[Any]:
        """Return the predicted relations of all words."""
        return self.relations[1]

    @cached_property
    def right_heads(self) -> NDArray[np.bool_]:
        return np.asarray(self.parsed.heads == self.gold.heads)

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.right_heads & (self.relations[0] == self.relations[1]))

    @cached_property
    def lengths(self) -> NDArray[Any]:
        places = np.arange(self.gold.n_words) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1
        return np.where(self.gold.heads > 0, np.abs(self.gold.heads - places), 0)

    @cached_property
    def per_sentence(self) -> Numbers:
        columns = (np.ones(self.gold.n_words), self.right_heads, self.right)
        sums = [_sums(one, self.offsets) for one in columns]
        return np.column_stack([*sums, np.ones(len(self.gold)), sums[2] == sums[0]])

    def of_sums(self, sums: Any) -> dict[str, float]:
        """Return shares of words and of sentences."""
        words, heads, both, sentences, whole = sums.tolist()
        return {UAS: heads / words, LAS: both / words, WHOLE: whole / sentences}


class BunsetsuMeasures(HeadMeasures):
    """Measures of parsers of Japanese bunsetsu."""

    words: ClassVar[Mapping[str, str]] = {
        DEPENDENCIES: "the share of bunsetsu with the right head, without the last one of each sentence",
        WHOLE: "the share of sentences in which all heads are right",
    }
    gold: BunsetsuCorpus

    @property
    def offsets(self) -> NDArray[Any]:
        return np.asarray(self.gold.first_bunsetsu)

    @cached_property
    def _is_dependency(self) -> NDArray[np.bool_]:
        """Return True for all bunsetsu except the last of each sentence."""
        found = np.ones(len(self.gold.heads), dtype=bool)
        found[self.offsets[1:][np.diff(self.offsets) > 0] - 1] = False
        return found

    @cached_property
    def right_heads(self) -> NDArray[np.bool_]:
        return np.asarray((self.parsed.heads == self.gold.heads) | ~self._is_dependency)

    @property
    def right(self) -> NDArray[np.bool_]:
        return self.right_heads

    @cached_property
    def lengths(self) -> NDArray[Any]:
        places = np.arange(len(self.gold.heads)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return np.where(self._is_dependency, self.gold.heads - places, 0)

    @cached_property
    def per_sentence(self) -> Numbers:
        right = _sums(self.right_heads & self._is_dependency, self.offsets)
        return np.column_stack(
            [_sums(self._is_dependency, self.offsets), right, np.ones(len(right)), self.mistakes == 0]
        )

    def of_sums(self, sums: Any) -> dict[str, float]:
        """Return shares of dependencies and of sentences."""
        all_of_them, right, sentences, whole = sums.tolist()
        share = right / all_of_them if all_of_them else 1.0
        return {DEPENDENCIES: share, WHOLE: whole / sentences}


class ChunkMeasures(ParserMeasures):
    """Measures of chunkers."""

    words: ClassVar[Mapping[str, str]] = {
        F1: "the harmonic mean of precision and recall, of all types",
        PRECISION: "the share of chunks that were found and are right",
        RECALL: "the share of right chunks that were found",
    }
    gold: ChunkCorpus
    result: ChunkResult

    @cached_property
    def per_sentence(self) -> Numbers:
        """Return an array [sentence, 3]: the numbers of predicted, correct and matching chunks."""
        found, types = read_tags(self.parsed, [])
        right, types = read_tags(self.gold, types)
        offsets = self.gold.offsets
        counted = [
            count_chunks(np.array([0, end - begin]), right[begin:end], found[begin:end], len(types))[0]
            for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]
        return np.array([np.asarray(one).sum(axis=0) for one in counted], dtype=np.float64)

    def of_sums(self, sums: Any) -> dict[str, float]:
        """Return the measures by the rules of CoNLL-2000."""
        found, right, correct = sums.tolist()
        return {
            F1: 2 * correct / (found + right) if found + right else 0.0,
            PRECISION: correct / found if found else 0.0,
            RECALL: correct / right if right else 0.0,
        }


class TagMeasures(ParserMeasures):
    """Measures of taggers."""

    words: ClassVar[Mapping[str, str]] = {}
    gold: Treebank

    @cached_property
    def columns(self) -> list[str]:
        """Return the columns that are measured."""
        return list(self.result.accuracy)

    def texts(self, column: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the correct and the predicted values of a column."""
        return _texts(self.gold, column), _texts(self.parsed, column)

    @cached_property
    def per_sentence(self) -> Numbers:
        right = [np.equal(*self.texts(column)) for column in self.columns]
        columns = [np.ones(self.gold.n_words), *right, np.logical_and.reduce(right)]
        return np.column_stack([_sums(one, self.gold.offsets) for one in columns])

    def of_sums(self, sums: Any) -> dict[str, float]:
        """Return shares of words."""
        words, *right = sums.tolist()
        names = [*self.columns, "all columns"] if len(self.columns) > 1 else self.columns
        return {name: part / words for name, part in zip(names, right, strict=False)}


class TextMeasures(ParserMeasures):
    """Measures of tokenizers and parsers of raw text: F1 scores of the CoNLL 2018 shared task.

    Sentences may be split in other places than in the treebank, so they cannot be resampled. The interval is
    that of a share of words.
    """

    words: ClassVar[Mapping[str, str]] = {}
    drawn = "words"
    result: TextResult

    @property
    def per_sentence(self) -> Numbers:
        return np.empty((0, 0))

    def of_sums(self, sums: Any) -> dict[str, float]:
        """Return the result of the parser's own ``evaluate``."""
        return {f"{TITLES[name]} F1": score.f1 / 100 for name, score in self.result.scores().items()}

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures; resampling is not possible."""
        return self.of_sums(None)

    @property
    def counted(self) -> dict[str, tuple[float, float]]:
        """Return part and whole of F1: matches, and the mean number of predicted and gold words."""
        return {
            f"{TITLES[name]} F1": (float(score.n_right), (score.n_found + score.n_gold) / 2)
            for name, score in self.result.scores().items()
        }


class TextTreeMeasures(TextMeasures):
    """Measures of dependency parsers of raw text, over the words that they found."""

    @cached_property
    def _trees(self) -> ComparedTrees:
        assert self.result.answer is not None
        return compare_trees(self.gold, self.result.answer)

    @property
    def relations(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the correct relation of each word, and the relation of the word found in its place."""
        return self._trees.relations, self._trees.found_relations

    @property
    def given_relations(self) -> NDArray[Any]:
        """Return the predicted relations of all words."""
        return self._trees.given_relations

    @property
    def right_heads(self) -> NDArray[np.bool_]:
        """Return whether each head is correct."""
        return self._trees.right_heads

    @property
    def right(self) -> NDArray[np.bool_]:
        """Return whether each head and relation are correct."""
        return np.asarray(self.right_heads & (self.relations[0] == self.relations[1]))

    @property
    def lengths(self) -> NDArray[Any]:
        """Return the distance of each word to its head; 0 for roots."""
        return self._trees.lengths


def _sums(values: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any]:
    """Return the sum over each sentence; 0 for empty ones."""
    total = np.concatenate([[0.0], np.cumsum(values.astype(np.float64))])
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]])


def _texts(bank: Treebank, column: str) -> NDArray[Any]:
    """Return a column of all words, as texts that can be compared with those of another treebank."""
    codes, names = bank.symbols(column)
    return np.array(names, dtype=object)[np.asarray(codes)]
