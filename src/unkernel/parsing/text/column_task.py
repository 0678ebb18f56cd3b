"""The task of learning a column of tags: its classes, classifiers and certain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data.text.conll import Treebank
from unkernel.parsing.text.clusters import plain_form
from unkernel.parsing.text.learned_column import LEMMA, CertainClasses
from unkernel.parsing.text.lemmas import find_edit

# A word needs no classifier if it occurred this number of times in training, nearly always with one class.
_MIN_CERTAIN_COUNT = {"upos": 5, "xpos": 5, "feats": 5, LEMMA: 1}
_MIN_CERTAIN_SHARE = 0.99
MIN_KNOWN_COUNT = 5  # occurrences of a word that is known while a tagger learns
_MIN_TAG_SHARE = 0.02  # tags of a smaller share of a word's occurrences are left out

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Answers:
    """The correct values of a column: for each word, the number of a name."""

    numbers: Numbers
    names: list[str]

    @classmethod
    def of(cls, bank: Treebank, name: str) -> Self:
        """Read a column of a treebank; lemmas become edits of the words."""
        numbers, names = bank.symbols(name)
        if name != LEMMA:
            return cls(numbers, names)
        forms, form_names = bank.symbols("form")
        pairs, inverse = np.unique(_join_pairs(forms, numbers), return_inverse=True)
        edits = [find_edit(form_names[pair >> 32], names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
        known = {edit: number for number, edit in enumerate(dict.fromkeys(edits))}
        return cls(np.array([known[edit] for edit in edits], np.int32)[inverse], list(known))

    def numbers_in(self, names: list[str]) -> Numbers:
        """Return the answers as indices into another list of names; -1 for names that it lacks."""
        places = {name: number for number, name in enumerate(names)}
        return np.array([places.get(name, -1) for name in self.names], np.int32)[self.numbers]


@dataclass(frozen=True)
class ColumnTask:
    """The task of learning a column.

    Attributes
    ----------
    names : list of str
        The classes.
    split : int
        How many of the earlier columns split the decisions into parts.
    cases : list of (list of int, int)
        Combinations of classes of these columns, and the part that decides for each.
    classes : list of list of int
        The classes that each part chooses among; classes of a single, certain word are left out.
    certain : CertainClasses
    """

    names: list[str]
    split: int
    cases: list[tuple[list[int], int]]
    classes: list[list[int]]
    certain: CertainClasses

    @classmethod
    def of(cls, bank: Treebank, name: str, answers: Answers, before: list[Numbers]) -> Self:
        """Make the task of a column; `before` has the answers of the columns that split its decisions."""
        cases, parts = _number_cases(before, bank.n_words)
        certain = _find_certain(bank, answers.numbers, parts, _MIN_CERTAIN_COUNT[name])
        is_certain = _look_up_certain(certain, bank, parts) >= 0
        forms = bank.symbols("form")[0]
        classes = _choose_classes(len(cases), parts, answers.numbers, forms, is_certain)
        return cls(answers.names, len(before), cases, classes, certain)

    def parts(self, before: list[Numbers], n_words: int) -> Numbers:
        """Return the part that decides for each word, given the answers of earlier columns."""
        if not self.split:
            return np.zeros(n_words, np.int32)
        part_of = {tuple(case): part for case, part in self.cases}
        cases = zip(*(numbers.tolist() for numbers in before[: self.split]), strict=True)
        return np.array([part_of.get(case, 0) for case in cases], np.int32)

    def to_learn(self, answers: Numbers, before: list[Numbers]) -> tuple[Numbers, Numbers]:
        """Return classes and parts of the training words; part -1 for classes that are not learned."""
        parts = self.parts(before, len(answers))
        learnt = {(part, number) for part, part_classes in enumerate(self.classes) for number in part_classes}
        pairs, inverse = np.unique(_join_pairs(parts, answers), return_inverse=True)
        is_learnt = np.array([(pair >> 32, pair & 0xFFFFFFFF) in learnt for pair in pairs.tolist()])[inverse]
        return answers, np.where(is_learnt, parts, -1).astype(np.int32)

    def to_answer(self, bank: Treebank, before: list[Numbers]) -> tuple[Numbers, Numbers]:
        """Return classes and parts of the words of another treebank; part -1 for certain words."""
        parts = self.parts(before, bank.n_words)
        known = _look_up_certain(self.certain, bank, parts)
        return known, np.where(known < 0, parts, -1).astype(np.int32)


def collect_seen_tags(bank: Treebank, answers: Answers, at_least: int) -> tuple[list[str], list[str]]:
    """Return the plain forms of words with `at_least` occurrences, and the classes of each word."""
    forms, form_names = bank.symbols("form")
    plain = {name: number for number, name in enumerate(dict.fromkeys(map(plain_form, form_names)))}
    words = np.array([plain[plain_form(name)] for name in form_names])[forms]
    counts = np.bincount(words, minlength=len(plain))
    pairs, times = np.unique(_join_pairs(words, answers.numbers), return_counts=True)
    tags_of: dict[int, list[tuple[int, int]]] = {}
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        word = pair >> 32
        if counts[word] >= at_least and count >= _MIN_TAG_SHARE * counts[word]:
            tags_of.setdefault(word, []).append((-count, pair & 0xFFFFFFFF))
    names = list(plain)
    seen_tags = {
        names[word]: "|".join(answers.names[number] for _, number in sorted(tags))
        for word, tags in tags_of.items()
    }
    return list(seen_tags), list(seen_tags.values())


def _join_pairs(high: NDArray[np.integer], low: NDArray[np.integer]) -> NDArray[np.int64]:
    """Join pairs of 32-bit numbers into 64-bit keys."""
    return high.astype(np.int64) << 32 | low


def _number_cases(before: list[Numbers], n_words: int) -> tuple[list[tuple[list[int], int]], Numbers]:
    """Return cases with their parts, and the part of each word."""
    if not before:
        return [([], 0)], np.zeros(n_words, np.int32)
    distinct_cases, parts = np.unique(np.stack(before, axis=1), axis=0, return_inverse=True)
    cases = [(case, number) for number, case in enumerate(distinct_cases.tolist())]
    return cases, parts.reshape(-1).astype(np.int32)


def _find_certain(bank: Treebank, answers: Numbers, parts: Numbers, min_count: int) -> CertainClasses:
    """Return the words that were frequent and nearly always had the same class in a part."""
    forms, form_names = bank.symbols("form")
    keys_of_words, place, counts = np.unique(
        _join_pairs(forms, parts), return_inverse=True, return_counts=True
    )
    pairs, times = np.unique(_join_pairs(place, answers), return_counts=True)
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
    known = [table.get((names[pair >> 32], pair & 0xFFFFFFFF), -1) for pair in pairs.tolist()]
    return np.array(known, np.int32)[inverse]


def _choose_classes(
    n_parts: int, parts: Numbers, answers: Numbers, forms: Numbers, is_certain: NDArray[np.bool_]
) -> list[list[int]]:
    """Return the classes that each part chooses among."""
    triples = np.unique(np.stack([parts, answers, forms], axis=1), axis=0)
    pairs, n_forms = np.unique(triples[:, :2], axis=0, return_counts=True)
    uncertain = set(map(tuple, np.unique(np.stack([parts, answers], axis=1)[~is_certain], axis=0).tolist()))
    every: list[list[int]] = [[] for _ in range(n_parts)]
    chosen: list[list[int]] = [[] for _ in range(n_parts)]
    for (part, number), is_shared in zip(pairs.tolist(), (n_forms > 1).tolist(), strict=True):
        every[part].append(number)
        if is_shared or (part, number) in uncertain:
            chosen[part].append(number)
    return [learned or seen for learned, seen in zip(chosen, every, strict=True)]
