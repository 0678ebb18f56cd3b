"""What a tagger is to learn of a column: classes, the parts that choose among them, and what is certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data.text.conll import Treebank
from unkernel.parsing.text.clusters import plain_form
from unkernel.parsing.text.lemmas import find_edit
from unkernel.parsing.text.tagger_model import LEMMA, CertainClasses

# A word needs no classifier if training saw it so often, and nearly always with one class.
_CERTAIN = {"upos": 5, "xpos": 5, "feats": 5, LEMMA: 1}
_NEARLY_ALWAYS = 0.99
KNOWN_WORD = 5  # how often a word must occur to be known, while a tagger learns
_RARE_TAG = 0.02  # a share of a word's tags that is left out

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Answers:
    """The right values of a column: for each word the number of one of the names."""

    numbers: Numbers
    names: list[str]

    @classmethod
    def of(cls, bank: Treebank, name: str) -> Self:
        """Those of a treebank; of lemmas, the edits that make them."""
        numbers, names = bank.symbols(name)
        if name != LEMMA:
            return cls(numbers, names)
        forms, form_names = bank.symbols("form")
        pairs, inverse = np.unique(_join_pairs(forms, numbers), return_inverse=True)
        edits = [find_edit(form_names[pair >> 32], names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
        known = {edit: number for number, edit in enumerate(dict.fromkeys(edits))}
        return cls(np.array([known[edit] for edit in edits], np.int32)[inverse], list(known))

    def numbers_in(self, names: list[str]) -> Numbers:
        """The same as numbers of other names; -1 for those that are not among them."""
        places = {name: number for number, name in enumerate(names)}
        return np.array([places.get(name, -1) for name in self.names], np.int32)[self.numbers]


@dataclass(frozen=True)
class ColumnTask:
    """What is to be learnt.

    Attributes
    ----------
    names : list of str
        The classes.
    split : int
        By how many of the first columns decisions are split into parts.
    cases : list of (list of int, int)
        Classes of those columns, and the part that decides for them.
    classes : list of list of int
        The classes that each part chooses among: not those that one word has alone, and has for certain.
    certain : CertainClasses
    """

    names: list[str]
    split: int
    cases: list[tuple[list[int], int]]
    classes: list[list[int]]
    certain: CertainClasses

    @classmethod
    def of(cls, bank: Treebank, name: str, answers: Answers, before: list[Numbers]) -> Self:
        """That of a column; `before` has the answers of those that decisions are split by."""
        cases, parts = _number_cases(before, bank.n_words)
        certain = _find_certain(bank, answers.numbers, parts, _CERTAIN[name])
        is_certain = _look_up_certain(certain, bank, parts) >= 0
        forms = bank.symbols("form")[0]
        classes = _choose_classes(len(cases), parts, answers.numbers, forms, is_certain)
        return cls(answers.names, len(before), cases, classes, certain)

    def parts(self, before: list[Numbers], n_words: int) -> Numbers:
        """The part that decides for each word with these answers before."""
        if not self.split:
            return np.zeros(n_words, np.int32)
        part_of = {tuple(case): part for case, part in self.cases}
        found = zip(*(own.tolist() for own in before[: self.split]), strict=True)
        return np.array([part_of.get(case, 0) for case in found], np.int32)

    def to_learn(self, answers: Numbers, before: list[Numbers]) -> tuple[Numbers, Numbers]:
        """Classes and parts of the words of the treebank; part -1 for classes that are not learnt."""
        parts = self.parts(before, len(answers))
        learnt = {(part, one) for part, own in enumerate(self.classes) for one in own}
        pairs, inverse = np.unique(_join_pairs(parts, answers), return_inverse=True)
        is_learnt = np.array([(pair >> 32, pair & 0xFFFFFFFF) in learnt for pair in pairs.tolist()])[inverse]
        return answers, np.where(is_learnt, parts, -1).astype(np.int32)

    def to_answer(self, bank: Treebank, before: list[Numbers]) -> tuple[Numbers, Numbers]:
        """Classes and parts of the words of another treebank; part -1 for classes that are certain."""
        parts = self.parts(before, bank.n_words)
        known = _look_up_certain(self.certain, bank, parts)
        return known, np.where(known < 0, parts, -1).astype(np.int32)


def collect_seen_tags(bank: Treebank, answers: Answers, at_least: int) -> tuple[list[str], list[str]]:
    """Words of so many occurrences, in their plain form, and the classes that training saw them with."""
    forms, form_names = bank.symbols("form")
    plain = {name: number for number, name in enumerate(dict.fromkeys(map(plain_form, form_names)))}
    words = np.array([plain[plain_form(name)] for name in form_names])[forms]
    counts = np.bincount(words, minlength=len(plain))
    pairs, times = np.unique(_join_pairs(words, answers.numbers), return_counts=True)
    own: dict[int, list[tuple[int, int]]] = {}
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        word = pair >> 32
        if counts[word] >= at_least and count >= _RARE_TAG * counts[word]:
            own.setdefault(word, []).append((-count, pair & 0xFFFFFFFF))
    names = list(plain)
    found = {
        names[word]: "|".join(answers.names[one] for _, one in sorted(tags)) for word, tags in own.items()
    }
    return list(found), list(found.values())


def _join_pairs(high: NDArray[np.integer], low: NDArray[np.integer]) -> NDArray[np.int64]:
    """Two numbers as one."""
    return high.astype(np.int64) << 32 | low


def _number_cases(before: list[Numbers], n_words: int) -> tuple[list[tuple[list[int], int]], Numbers]:
    """Cases with their parts, and the part of each word."""
    if not before:
        return [([], 0)], np.zeros(n_words, np.int32)
    found, parts = np.unique(np.stack(before, axis=1), axis=0, return_inverse=True)
    cases = [(case, number) for number, case in enumerate(found.tolist())]
    return cases, parts.reshape(-1).astype(np.int32)


def _find_certain(bank: Treebank, answers: Numbers, parts: Numbers, often: int) -> CertainClasses:
    """The class that a word nearly always had when a part was asked, if that was often enough."""
    forms, form_names = bank.symbols("form")
    asked, place, counts = np.unique(_join_pairs(forms, parts), return_inverse=True, return_counts=True)
    given, times = np.unique(_join_pairs(place, answers), return_counts=True)
    chosen = given[times >= np.maximum(_NEARLY_ALWAYS * counts[given >> 32], often)]
    keys = asked[chosen >> 32]
    return CertainClasses(
        [form_names[key >> 32] for key in keys.tolist()],
        (keys & 0xFFFFFFFF).astype(np.int32),
        (chosen & 0xFFFFFFFF).astype(np.int32),
    )


def _look_up_certain(certain: CertainClasses, bank: Treebank, parts: Numbers) -> Numbers:
    """The certain classes of words; -1 for others."""
    table = {
        (word, part): one
        for word, part, one in zip(
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
    """The classes that each part chooses among."""
    triples = np.unique(np.stack([parts, answers, forms], axis=1), axis=0)
    pairs, n_forms = np.unique(triples[:, :2], axis=0, return_counts=True)
    doubted = set(map(tuple, np.unique(np.stack([parts, answers], axis=1)[~is_certain], axis=0).tolist()))
    every: list[list[int]] = [[] for _ in range(n_parts)]
    chosen: list[list[int]] = [[] for _ in range(n_parts)]
    for (part, one), several in zip(pairs.tolist(), (n_forms > 1).tolist(), strict=True):
        every[part].append(one)
        if several or (part, one) in doubted:
            chosen[part].append(one)
    return [own or others for own, others in zip(chosen, every, strict=True)]
