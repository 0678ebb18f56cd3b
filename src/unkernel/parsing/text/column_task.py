"""The task of learning a column of tags: its classes, its classifiers, and the words that need none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data.text.conll import Treebank
from unkernel.parsing.text.clusters import plain_form
from unkernel.parsing.text.learned_column import LEMMA, CertainClasses
from unkernel.parsing.text.lemmas import find_edit

# A word is certain, and needs no classifier, if it occurred at least this often in training and at least this
# share of its occurrences had the same class.
_MIN_CERTAIN_COUNT = {"upos": 5, "xpos": 5, "feats": 5, LEMMA: 1}
_MIN_CERTAIN_SHARE = 0.99
MIN_KNOWN_COUNT = 5  # rarer words are treated as unknown while a tagger learns
_MIN_TAG_SHARE = 0.02  # tags with a smaller share of a word's occurrences are left out

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class GoldColumn:
    """The correct values of a column: for each word, an index into `names`."""

    numbers: Numbers
    names: list[str]

    @classmethod
    def from_bank(cls, bank: Treebank, name: str) -> Self:
        """Return a column of a treebank; lemmas are replaced by edits of the words."""
        numbers, names = bank.symbols(name)
        if name != LEMMA:
            return cls(numbers, names)
        forms, form_names = bank.symbols("form")
        pairs, inverse = np.unique(_join_pairs(forms, numbers), return_inverse=True)
        edits = [find_edit(form_names[pair >> 32], names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
        number_of = {edit: number for number, edit in enumerate(dict.fromkeys(edits))}
        return cls(np.array([number_of[edit] for edit in edits], np.int32)[inverse], list(number_of))

    def renumber(self, names: list[str]) -> Numbers:
        """Return the values as indices into another list of names; -1 for names that the list lacks."""
        number_of = {name: number for number, name in enumerate(names)}
        return np.array([number_of.get(name, -1) for name in self.names], np.int32)[self.numbers]


@dataclass(frozen=True)
class ColumnTask:
    """The task of learning a column.

    Attributes
    ----------
    names : list of str
        The classes.
    split : int
        Number of earlier columns whose classes select the part, that is, the classifier.
    cases : list of (list of int, int)
        Combinations of classes of these earlier columns, each with the part that it selects.
    classes : list of list of int
        The classes that each part chooses among. Classes that occur only on certain words are left out.
    certain : CertainClasses
    """

    names: list[str]
    split: int
    cases: list[tuple[list[int], int]]
    classes: list[list[int]]
    certain: CertainClasses

    @classmethod
    def from_bank(cls, bank: Treebank, name: str, gold: GoldColumn, earlier: list[Numbers]) -> Self:
        """Return the task of a column; `earlier` has the classes of the columns that select the part."""
        cases, parts = _number_cases(earlier, bank.n_words)
        certain = _find_certain(bank, gold.numbers, parts, _MIN_CERTAIN_COUNT[name])
        is_certain = _look_up_certain(certain, bank, parts) >= 0
        forms = bank.symbols("form")[0]
        classes = _choose_classes(len(cases), parts, gold.numbers, forms, is_certain)
        return cls(gold.names, len(earlier), cases, classes, certain)

    def select_parts(self, earlier: list[Numbers], n_words: int) -> Numbers:
        """Return, for each word, the part that decides on its class, given the classes of earlier columns."""
        if not self.split:
            return np.zeros(n_words, np.int32)
        part_of = {tuple(case): part for case, part in self.cases}
        cases = zip(*(numbers.tolist() for numbers in earlier[: self.split]), strict=True)
        return np.array([part_of.get(case, 0) for case in cases], np.int32)

    def prepare_training(self, gold: Numbers, earlier: list[Numbers]) -> tuple[Numbers, Numbers]:
        """Return the classes and parts of the training words; a part is -1 if the class is not learned."""
        parts = self.select_parts(earlier, len(gold))
        learnt = {(part, number) for part, part_classes in enumerate(self.classes) for number in part_classes}
        pairs, inverse = np.unique(_join_pairs(parts, gold), return_inverse=True)
        is_learnt = np.array([(pair >> 32, pair & 0xFFFFFFFF) in learnt for pair in pairs.tolist()])[inverse]
        return gold, np.where(is_learnt, parts, -1).astype(np.int32)

    def prepare_prediction(self, bank: Treebank, earlier: list[Numbers]) -> tuple[Numbers, Numbers]:
        """Return the class of each certain word and the part of each other word; -1 elsewhere."""
        parts = self.select_parts(earlier, bank.n_words)
        classes = _look_up_certain(self.certain, bank, parts)
        return classes, np.where(classes < 0, parts, -1).astype(np.int32)


def collect_seen_tags(bank: Treebank, gold: GoldColumn, min_count: int) -> tuple[list[str], list[str]]:
    """Return words with at least `min_count` occurrences, and the classes of each, most frequent first.

    Words are in their plain form. The classes of a word are joined by ``|``.
    """
    forms, form_names = bank.symbols("form")
    plain = {name: number for number, name in enumerate(dict.fromkeys(map(plain_form, form_names)))}
    words = np.array([plain[plain_form(name)] for name in form_names])[forms]
    counts = np.bincount(words, minlength=len(plain))
    pairs, times = np.unique(_join_pairs(words, gold.numbers), return_counts=True)
    tags_of: dict[int, list[tuple[int, int]]] = {}
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        word = pair >> 32
        if counts[word] >= min_count and count >= _MIN_TAG_SHARE * counts[word]:
            tags_of.setdefault(word, []).append((-count, pair & 0xFFFFFFFF))
    names = list(plain)
    seen_tags = {
        names[word]: "|".join(gold.names[number] for _, number in sorted(tags))
        for word, tags in tags_of.items()
    }
    return list(seen_tags), list(seen_tags.values())


def _join_pairs(high: NDArray[np.integer], low: NDArray[np.integer]) -> NDArray[np.int64]:
    """Join pairs of 32-bit numbers into 64-bit keys."""
    return high.astype(np.int64) << 32 | low


def _number_cases(earlier: list[Numbers], n_words: int) -> tuple[list[tuple[list[int], int]], Numbers]:
    """Return the distinct combinations of classes, numbered as parts, and the part of each word."""
    if not earlier:
        return [([], 0)], np.zeros(n_words, np.int32)
    distinct_cases, parts = np.unique(np.stack(earlier, axis=1), axis=0, return_inverse=True)
    cases = [(case, number) for number, case in enumerate(distinct_cases.tolist())]
    return cases, parts.reshape(-1).astype(np.int32)


def _find_certain(bank: Treebank, gold: Numbers, parts: Numbers, min_count: int) -> CertainClasses:
    """Return the words that occurred often enough and nearly always had the same class in a part."""
    forms, form_names = bank.symbols("form")
    keys_of_words, key_index, counts = np.unique(
        _join_pairs(forms, parts), return_inverse=True, return_counts=True
    )
    pairs, times = np.unique(_join_pairs(key_index, gold), return_counts=True)
    chosen = pairs[times >= np.maximum(_MIN_CERTAIN_SHARE * counts[pairs >> 32], min_count)]
    keys = keys_of_words[chosen >> 32]
    return CertainClasses(
        [form_names[key >> 32] for key in keys.tolist()],
        (keys & 0xFFFFFFFF).astype(np.int32),
        (chosen & 0xFFFFFFFF).astype(np.int32),
    )


def _look_up_certain(certain: CertainClasses, bank: Treebank, parts: Numbers) -> Numbers:
    """Return the class of each word that is certain; -1 for other words."""
    table = {
        (word, part): number
        for word, part, number in zip(
            certain.words, certain.parts.tolist(), certain.classes.tolist(), strict=True
        )
    }
    forms, names = bank.symbols("form")
    pairs, inverse = np.unique(_join_pairs(forms, parts), return_inverse=True)
    classes = [table.get((names[pair >> 32], pair & 0xFFFFFFFF), -1) for pair in pairs.tolist()]
    return np.array(classes, np.int32)[inverse]


def _choose_classes(
    n_parts: int, parts: Numbers, gold: Numbers, forms: Numbers, is_certain: NDArray[np.bool_]
) -> list[list[int]]:
    """Return the classes that each part chooses among: those with several words or an uncertain word."""
    triples = np.unique(np.stack([parts, gold, forms], axis=1), axis=0)
    pairs, n_forms = np.unique(triples[:, :2], axis=0, return_counts=True)
    uncertain = set(map(tuple, np.unique(np.stack([parts, gold], axis=1)[~is_certain], axis=0).tolist()))
    all_classes: list[list[int]] = [[] for _ in range(n_parts)]
    chosen: list[list[int]] = [[] for _ in range(n_parts)]
    for (part, number), is_shared in zip(pairs.tolist(), (n_forms > 1).tolist(), strict=True):
        all_classes[part].append(number)
        if is_shared or (part, number) in uncertain:
            chosen[part].append(number)
    # A part needs at least one class. If all of its words are certain, it gets all of their classes.
    return [learned or occurring for learned, occurring in zip(chosen, all_classes, strict=True)]
