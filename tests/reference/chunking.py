"""The slow twin of chunking: tags, templates, features, decoding and counts, word by word."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Tags = Sequence[str]
Chunks = set[tuple[int, int, str]]
SCHEMES = ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES")


def find_chunks(tags: Tags) -> Chunks:
    """Return the first word, the last word and the type of each chunk, by the rules of CoNLL-2000."""
    padded = ["O", *tags, "O"]
    cuts = [_is_border(left, right) for left, right in itertools.pairwise(padded)]
    begins = [i for i in range(len(tags)) if tags[i] != "O" and cuts[i]]
    ends = [next(j for j in range(i, len(tags)) if cuts[j + 1]) for i in begins]
    return {(i, j, tags[i][2:]) for i, j in zip(begins, ends, strict=True)}


def _is_border(left: str, right: str) -> bool:
    """Return whether a chunk ends at the tag `left` or begins at the tag `right`, its successor."""
    return "O" in (left, right) or left[2:] != right[2:] or left[0] in "ES" or right[0] in "BS"


def write_tags(chunks: Chunks, words: int, scheme: str) -> list[str]:
    """Return one tag per word."""
    tags = ["O"] * words
    firsts, lasts = {(i, kind) for i, _, kind in chunks}, {(j, kind) for _, j, kind in chunks}
    for first, last, kind in chunks:
        for i in range(first, last + 1):
            begin, end = i == first, i == last
            mark = {
                "IOB1": "B" if begin and (i - 1, kind) in lasts else "I",
                "IOB2": "B" if begin else "I",
                "IOE1": "E" if end and (i + 1, kind) in firsts else "I",
                "IOE2": "E" if end else "I",
                "IOBES": "S" if begin and end else "B" if begin else "E" if end else "I",
            }[scheme]
            tags[i] = f"{mark}-{kind}" if kind else mark
    return tags


def valid(tags: Tags, scheme: str) -> bool:
    """Return whether the scheme would write these chunks with these tags."""
    return _is_valid(tuple(tags), scheme)


@functools.cache
def _is_valid(tags: tuple[str, ...], scheme: str) -> bool:
    return list(tags) == write_tags(find_chunks(tags), len(tags), scheme)


def scores_of(
    gold: Sequence[Tags], predicted: Sequence[Tags]
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return for each type the numbers of predicted, gold and correct chunks."""
    counts: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        sets = (
            find_chunks(predicted_tags),
            find_chunks(gold_tags),
            find_chunks(predicted_tags) & find_chunks(gold_tags),
        )
        for counter, chunks in zip(counts, sets, strict=True):
            counter.update(kind for _, _, kind in chunks)
    return counts


# --- Features -----------------------------------------------------------------------------------------


def parse_sections(text: str) -> tuple[list[list[tuple[str, int]]], list[list[tuple[str, int]]]]:
    """Return pairs of attribute and position, before and after the line [beside]; tags come last in both."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    result: tuple[list[list[tuple[str, int]]], list[list[tuple[str, int]]]] = ([], [])
    in_beside_section = False
    for line in filter(None, lines):
        if line == "[beside]":
            in_beside_section = True
        else:
            parts = re.findall(r"(\w+)\[([+-]?\d+)\]", line)
            result[in_beside_section].append([(name, int(offset)) for name, offset in parts])
    for section in result:
        section.sort(key=lambda template: any(name == "tag" for name, _ in template))
    return result


def parse_templates(text: str) -> list[list[tuple[str, int]]]:
    """Return the templates of both sections."""
    core, beside = parse_sections(text)
    return core + beside


def lower_ascii(word: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in word)


def lexicon_form(word: str) -> str:
    """Return the word in the form of lexicons."""
    return re.sub("[0-9]", "0", lower_ascii(word))


def attribute_value(attribute: str, word: str, pos: str) -> str:
    """Return the value of an attribute for a word."""
    if attribute.startswith("prefix"):
        return lower_ascii(word)[: int(attribute[6:])]
    if attribute.startswith("suffix"):
        return lower_ascii(word)[-int(attribute[6:]) :]
    if attribute == "shape":
        kinds = [
            "X"
            if c.isascii() and c.isupper()
            else "x"
            if not c.isascii() or c.islower()
            else "d"
            if c.isdigit()
            else c
            for c in word
        ]
        return "".join(kind for kind, _ in itertools.groupby(kinds))
    return {"word": word, "lower": lower_ascii(word), "pos": pos}[attribute]


Feature = tuple[int, tuple[str | int, ...]]


def features_at(
    templates: list[list[tuple[str, int]]],
    words: Sequence[str],
    pos: Sequence[str],
    tags: Sequence[int],
    i: int,
) -> list[Feature]:
    """Return the features of the i-th word in reading order; `tags` are the classes of earlier words."""

    def part_value(attribute: str, offset: int) -> str | int:
        position = i + offset
        if not 0 <= position < len(words):
            return ("<", ">")[position >= 0] * 2
        return (
            tags[position]
            if attribute == "tag"
            else "=" + attribute_value(attribute, words[position], pos[position])
        )

    return [
        (number, tuple(part_value(*part) for part in template)) for number, template in enumerate(templates)
    ]


@dataclass
class Sentence:
    words: list[str]
    pos: list[str]
    tags: list[int]


def order_by_frequency(features: list[Feature], counts: Counter[Feature]) -> list[Feature]:
    """Order features by template, then by descending frequency, then by first appearance."""
    return sorted(features, key=lambda feature: (feature[0], -counts[feature]))


def numbered_rows(
    templates: list[list[tuple[str, int]]], sentences: Sequence[Sentence], backward: bool, min_count: int
) -> tuple[dict[Feature, int], list[list[int]]]:
    """Number the features, and return the rows of all words in reading order."""
    features_of_words: list[list[Feature]] = []
    for sentence in sentences:
        step = -1 if backward else 1
        words, pos, tags = sentence.words[::step], sentence.pos[::step], sentence.tags[::step]
        features_of_words += [features_at(templates, words, pos, tags, i) for i in range(len(words))]
    counts = Counter(
        feature for row in features_of_words for feature in row
    )  # in the order of first appearance
    frequent = [feature for feature, count in counts.items() if count >= min_count]
    numbers = {feature: number for number, feature in enumerate(order_by_frequency(frequent, counts))}
    return numbers, [sorted(numbers[f] for f in row if f in numbers) for row in features_of_words]


@dataclass
class Model:
    templates: list[list[tuple[str, int]]]
    numbers: dict[Feature, int]
    classes: list[str]
    score: Callable[[list[int]], Sequence[float]]
    scheme: str
    backward: bool
    beam: int = 1

    @property
    def n_visible_tags(self) -> int:
        """Return the number of earlier tags that can affect the decision on a word."""
        parts = [part for template in self.templates for part in template]
        return max([1, *(-offset for attribute, offset in parts if attribute == "tag")])

    def score_tags(self, words: list[str], pos: list[str], earlier_tags: list[int]) -> list[float]:
        """Return the scores of the next word's tags; with a beam, logarithms of probabilities."""
        features = features_at(self.templates, words, pos, earlier_tags, len(earlier_tags))
        scores = self.score(sorted(self.numbers[f] for f in features if f in self.numbers))
        scores = list(scores) if len(self.classes) > 2 else [-scores, scores]
        if self.beam == 1:
            return scores
        doubled = [2.0 * score for score in scores]
        total = max(doubled) + math.log(sum(math.exp(score - max(doubled)) for score in doubled))
        return [score - total for score in doubled]


Tagging = tuple[float, list[int]]


def decode(words: list[str], pos: list[str], model: Model) -> list[str]:
    """Return the tags of a sentence in the model's scheme: the best found by a beam."""
    step = -1 if model.backward else 1
    words, pos = words[::step], pos[::step]
    beam: list[Tagging] = [(0.0, [])]
    for i in range(len(words)):
        extended: list[Tagging] = []
        for total, tags in beam:
            scores = model.score_tags(words, pos, tags)
            allowed = _list_allowed_classes(model.classes, tags, model.scheme, step, i == len(words) - 1)
            earlier = total if model.beam > 1 else 0.0
            extended += [(earlier + scores[k], [*tags, k]) for k in allowed]
        beam = _best_taggings(extended, model)
    return [model.classes[k] for k in beam[0][1]][::step]


def _best_taggings(taggings: list[Tagging], model: Model) -> list[Tagging]:
    """Return the best taggings, best first, among those whose tags affect later words differently."""
    by_end: dict[tuple[int, ...], Tagging] = {}
    for score, tags in sorted(taggings, key=lambda tagging: -tagging[0]):
        by_end.setdefault(tuple(tags[-model.n_visible_tags :]), (score, tags))
    best = list(by_end.values())[: model.beam]
    return [tagging for tagging in best if tagging[0] >= best[0][0] - 3.0]


def most_probable(words: list[str], pos: list[str], model: Model) -> list[str]:
    """Return the best of all valid taggings, by trying each."""
    step = -1 if model.backward else 1
    words, pos = words[::step], pos[::step]
    best, best_tags = -math.inf, []
    for tagging in itertools.product(range(len(model.classes)), repeat=len(words)):
        tags = [model.classes[k] for k in tagging][::step]
        if not valid(tags, model.scheme):
            continue
        total = sum(model.score_tags(words, pos, list(tagging[:i]))[k] for i, k in enumerate(tagging))
        if total > best:
            best, best_tags = total, tags
    return best_tags


def _list_allowed_classes(
    classes: list[str], earlier_classes: list[int], scheme: str, step: int, is_last: bool
) -> list[int]:
    """Return the classes of the next word with which the tags of the sentence can be valid."""
    ends: list[list[str]] = [[]] if is_last else [[], *([tag] for tag in classes)]
    earlier_tags = [classes[k] for k in earlier_classes]
    return [
        k
        for k, tag in enumerate(classes)
        if any(valid([*earlier_tags, tag, *end][::step], scheme) for end in ends)
    ]
