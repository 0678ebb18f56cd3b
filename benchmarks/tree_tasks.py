"""The tasks of the tree benchmark: TREC's questions, and predicates with their arguments from PropBank.

Predicate/argument trees (Moschitti, 2004) are made for every predicate and every *candidate*, a node of the
constituency tree. In "The dog chased a cat", the predicate "chased" and the candidate "a cat" give

    (VP (VBD-P chased) (NP-B (DT a) (NN cat)))

This is the smallest tree that joins the two. From their lowest common ancestor, one path leads down to the
predicate's part of speech, marked -P, with its word; another leads to the candidate, marked -B, which keeps
its whole subtree. Everything beside these paths is removed. The candidate "The dog" gives

    (S (NP-B (DT The) (NN dog)) (VP (VBD-P chased)))

All nodes are candidates, including parts of speech and punctuation, except for

- the predicate's part of speech and the nodes above it, because a node that contains the predicate is not its
  argument;
- only children, because they have the same words as their parents.

A candidate is positive, and has a role, if its words are exactly those of an argument. Arguments without such
a candidate are left out: 174 of the 81,360 arguments of the training part. This part has 1,463,591
candidates; 81,186 of them are positive (1:17).
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from unkernel import datasets

Item = TypeVar("Item")

CACHE = Path("build/benchmarks/tree")

_TOKEN = re.compile(r"\((?P<label>[^\s()]*)|(?P<word>[^\s()]+)|\)")


def trec(split: str = "train") -> tuple[list[str], list[str]]:
    """Return the coarse classes (ABBR, DESC, ENTY, HUM, LOC, NUM) and the trees of TREC's questions."""
    rows = [line.split("\t") for line in _lines("trec-const", split)]
    return [row[0] for row in rows], [row[2] for row in rows]


def propbank_boundaries(
    split: str = "train", limit: int | None = None, seed: int = 0
) -> tuple[np.ndarray, list[str]]:
    """Return labels of candidates, +1 for arguments and -1 for others (about 1:17), and trees.

    `limit` draws so many of all candidates with the seed, and keeps them in the order of the corpus.
    """
    predicates = list(_predicates(split))
    total = sum(len(predicate.candidates) for predicate in predicates)
    everything = ((predicate, node) for predicate in predicates for node in predicate.candidates)
    labels, trees = [], []
    for predicate, node in _draw_examples(everything, total, limit, seed):
        labels.append(1 if node in predicate.roles else -1)
        trees.append(predicate.tree(node))
    return np.array(labels), trees


def propbank_roles(
    split: str = "train", limit: int | None = None, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Return the roles (ARG0, ARGM-LOC, ...) of the candidates that are arguments, and their trees.

    `limit` draws so many of them with the seed, and keeps them in the order of the corpus.
    """
    predicates = list(_predicates(split))
    total = sum(len(predicate.roles) for predicate in predicates)
    everything = ((predicate, *item) for predicate in predicates for item in predicate.roles.items())
    roles, trees = [], []
    for predicate, node, role in _draw_examples(everything, total, limit, seed):
        roles.append(role)
        trees.append(predicate.tree(node))
    return roles, trees


def propbank_candidates(split: str = "train") -> Iterator[tuple[str | None, str]]:
    """Yield the role (or None) and the tree of every candidate, in the order of the corpus."""
    for predicate in _predicates(split):
        for node in predicate.candidates:
            yield predicate.roles.get(node), predicate.tree(node)


def _draw_examples(items: Iterable[Item], total: int, limit: int | None, seed: int) -> Iterable[Item]:
    if limit is None or limit >= total:
        return items
    keep = np.zeros(total, bool)
    keep[np.random.default_rng(seed).choice(total, limit, replace=False)] = True
    return compress(items, keep)


def _lines(name: str, split: str) -> Iterator[str]:
    with lzma.open(datasets.path(name, split), "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


# --- Predicates -------------------------------------------------------------------------------------


@dataclass
class _Sentence:
    """A constituency tree, its nodes numbered parents first; a part of speech holds one word."""

    labels: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)  # first and last word
    inner: list[str] = field(default_factory=list)  # the text of what is below
    topmost: list[int] = field(default_factory=list)  # the nodes that are not an only child
    parts_of_speech: list[int] = field(default_factory=list)  # of each word, the node above it


def _parse(text: str) -> _Sentence:
    sentence = _Sentence()
    below: list[list[str]] = []  # of every node, the texts of its children
    open_nodes = [-1]
    for token in _TOKEN.finditer(text):
        if token["label"] is not None:
            open_nodes.append(len(sentence.labels))
            sentence.labels.append(token["label"])
            sentence.parents.append(open_nodes[-2])
            sentence.spans.append((len(sentence.parts_of_speech), -1))
            below.append([])
        elif token["word"] is not None:
            sentence.parts_of_speech.append(open_nodes[-1])
            below[open_nodes[-1]].append(token["word"])
        else:
            node = open_nodes.pop()
            first_word, _ = sentence.spans[node]
            sentence.spans[node] = first_word, len(sentence.parts_of_speech) - 1
            if open_nodes[-1] >= 0:
                below[open_nodes[-1]].append(f"({sentence.labels[node]} {' '.join(below[node])})")
    sentence.inner = [" ".join(texts) for texts in below]
    sentence.topmost = [
        node for node, parent in enumerate(sentence.parents) if parent < 0 or len(below[parent]) > 1
    ]
    return sentence


class _Predicate:
    """A predicate of a sentence: its candidates, and the tree that joins it with each of them."""

    def __init__(self, sentence: _Sentence, word: int, arguments: dict[tuple[int, int], str]) -> None:
        self._sentence = sentence
        self._node = sentence.parts_of_speech[word]
        # Of every node above the predicate, what is left below it on the predicate's side.
        self._sides: dict[int, str] = {}
        node, text = self._node, f"({sentence.labels[self._node]}-P {sentence.inner[self._node]})"
        while (node := sentence.parents[node]) >= 0:
            self._sides[node] = text
            text = f"({sentence.labels[node]} {text})"
        self.candidates = [n for n in sentence.topmost if n not in self._sides and n != self._node]
        spans = sentence.spans
        self.roles = {n: arguments[spans[n]] for n in self.candidates if spans[n] in arguments}

    def tree(self, node: int) -> str:
        labels, parents = self._sentence.labels, self._sentence.parents
        text = f"({labels[node]}-B {self._sentence.inner[node]})"
        candidate_is_first = node < self._node
        while (node := parents[node]) not in self._sides:
            text = f"({labels[node]} {text})"
        sides = (text, self._sides[node]) if candidate_is_first else (self._sides[node], text)
        return f"({labels[node]} {' '.join(sides)})"


def _predicates(split: str) -> Iterator[_Predicate]:
    """Yield all predicates. A line `document, number, tree` precedes its `P, word, lemma, sense, roles`."""
    sentence = _Sentence()
    for line in _lines("ewt-propbank", split):
        fields = line.split("\t")
        if fields[0] == "P":
            yield _Predicate(sentence, int(fields[1]), dict(_arguments(fields[4:])))
        else:
            sentence = _parse(fields[2])


def _arguments(fields: list[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield spans and roles of fields such as `ARG1:4-7`, without V, the predicate itself."""
    for text in fields:
        role, _, span = text.rpartition(":")
        first, _, last = span.partition("-")
        if role != "V":
            yield (int(first), int(last)), role


# --- Files of examples --------------------------------------------------------------------------------


def load_examples(task: str, split: str) -> tuple[Iterable[Any], Iterable[str]]:
    """Return labels and trees of a task such as "trec", "boundaries-10k", "roles-81k" or "boundaries-all"."""
    name, _, size = task.partition("-")
    if name == "trec":
        return trec(split)
    limit = None if size == "all" else int(size.removesuffix("k")) * 1000
    draw = {"boundaries": propbank_boundaries, "roles": propbank_roles}[name]
    return draw(split, limit if split == "train" else 10_000)


def find_file(task: str, split: str = "train", positive: str | None = None) -> Path:
    """Return a file of one example per line; with `positive`, that class is +1, and all others are -1."""
    path = CACHE / f"{task}.{split}{'' if positive is None else '.' + positive}.dat"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = candidate_lines(split) if task == "boundaries-all" else example_lines(task, split, positive)
        part = path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        part.rename(path)
    return path


def example_lines(task: str, split: str, positive: str | None) -> Iterator[str]:
    for label, tree in zip(*load_examples(task, split), strict=True):
        sign = label if positive is None else "+1" if label == positive else "-1"
        yield f"{sign} |BT| {tree} |ET|\n"


def candidate_lines(split: str) -> Iterator[str]:
    """Yield the lines of all candidates, without keeping them in memory."""
    for role, tree in propbank_candidates(split):
        yield f"{-1 if role is None else 1} |BT| {tree} |ET|\n"


# --- Bags, to compare with ----------------------------------------------------------------------------


def leaves(tree: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\s([^\s()]+)\)", tree)]


def leaf_pairs(tree: str) -> list[str]:
    result = leaves(tree)
    return result + [" ".join(pair) for pair in pairwise(result)]


def productions(tree: str) -> list[str]:
    """Return each node with its children, the fragments of one production."""
    result: list[str] = []
    path: list[list[str]] = []
    for token in re.finditer(r"\(([^\s()]*)|([^\s()]+)|\)", tree):
        if token[1] is not None:
            path.append([token[1]])
        elif token[2]:
            path[-1].append(token[2])
        else:
            node = path.pop()
            result.append(" ".join(node))
            if path:
                path[-1].append(node[0])
    return result
