"""Aligned words of two annotations of a text, by the rules of the CoNLL 2018 shared task.

Words are aligned if they cover the same characters. Words of multiword tokens, whose characters are not in
the text, are aligned by a longest common subsequence of their forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from unkernel.data.text.conll import Treebank

Span = tuple[int, int]  # begin and end among all characters except blanks


class AlignedTexts:
    """Two annotations of a text, with aligned words; ValueError if the texts differ."""

    def __init__(self, gold: Treebank, found: Treebank) -> None:
        self.gold, self.found = _read_treebank(gold), _read_treebank(found)
        _check_same_text(self.gold, self.found)
        self.pairs = list(_align_words(self.gold.words, self.found.words))
        self._gold_of = {id(found_word): gold_word for gold_word, found_word in self.pairs}

    def same_head(self, gold_word: AlignedWord, found_word: AlignedWord) -> bool:
        """Return whether the heads of two words are aligned, too."""
        if found_word.head is None or gold_word.head is None:
            return found_word.head is gold_word.head
        return self._gold_of.get(id(found_word.head)) is gold_word.head


@dataclass(eq=False)
class AlignedWord:
    """A word, and its span among all characters except blanks."""

    span: Span
    in_multiword: bool
    columns: list[str]
    head: AlignedWord | None = None

    @property
    def number(self) -> int:
        return int(self.columns[0])

    @property
    def form(self) -> str:
        return self.columns[1].lower()


WordPair = tuple[AlignedWord, AlignedWord]  # of the treebank and of the output


@dataclass
class _Text:
    """The content of a treebank for the comparison."""

    characters: str = ""
    tokens: list[Span] = field(default_factory=list)
    sentences: list[Span] = field(default_factory=list)
    words: list[AlignedWord] = field(default_factory=list)


def _read_treebank(bank: Treebank) -> _Text:
    text, pieces, place = _Text(), [], 0
    for sentence in bank:
        begin, words, until = place, [], 0  # the last word of the current multiword token
        heads = sentence.heads
        for line in str(sentence).split("\n"):
            columns = line.split("\t")
            if line.startswith("#") or not line or "." in columns[0]:
                continue
            if "-" in columns[0] or int(columns[0]) > until:
                characters = "".join(columns[1].split())
                pieces.append(characters)
                text.tokens.append((place, place + len(characters)))
                place += len(characters)
            if "-" in columns[0]:
                until = int(columns[0].partition("-")[2])
            else:
                words.append(AlignedWord(text.tokens[-1], int(columns[0]) <= until, columns))
        for word, head in zip(words, heads, strict=True):
            word.head = words[head - 1] if head > 0 else None
        text.words += words
        text.sentences.append((begin, place))
    text.characters = "".join(pieces)
    return text


def _check_same_text(gold: _Text, found: _Text) -> None:
    if gold.characters == found.characters:
        return
    pairs = zip(gold.characters, found.characters, strict=False)
    shorter = min(len(gold.characters), len(found.characters))
    place = next((k for k, (one, other) in enumerate(pairs) if one != other), shorter)
    excerpts = [text.characters[max(place - 10, 0) : place + 20] for text in (gold, found)]
    raise ValueError(
        f"the texts differ, blanks left out, after {place} characters: {excerpts[0]!r} in the treebank, "
        f"{excerpts[1]!r} in the answer"
    )


def _align_words(gold: list[AlignedWord], found: list[AlignedWord]) -> Iterator[WordPair]:
    i = j = 0
    while i < len(gold) and j < len(found):
        if gold[i].in_multiword or found[j].in_multiword:
            i, j = _begin_of_region(gold, i, found, j)
            last_i, last_j = _end_of_region(gold, i, found, j)
            yield from _find_common_sequence(gold[i:last_i], found[j:last_j])
            i, j = last_i, last_j
        elif gold[i].span == found[j].span:
            yield gold[i], found[j]
            i, j = i + 1, j + 1
        elif gold[i].span[0] <= found[j].span[0]:
            i += 1
        else:
            j += 1


def _begin_of_region(gold: list[AlignedWord], i: int, found: list[AlignedWord], j: int) -> tuple[int, int]:
    """Skip a word that begins before the multiword token of the other text."""
    if gold[i].in_multiword:
        return i, j + (not found[j].in_multiword and found[j].span[0] < gold[i].span[0])
    return i + (gold[i].span[0] < found[j].span[0]), j


def _end_of_region(gold: list[AlignedWord], i: int, found: list[AlignedWord], j: int) -> tuple[int, int]:
    """Return the ends of the words that overlap with a multiword token, or with tokens that overlap it."""
    end = max(
        (words[k].span[1] for words, k in ((gold, i), (found, j)) if _is_in_multiword(words, k)), default=0
    )
    while True:
        in_gold = i < len(gold) and gold[i].span[0] < end
        in_found = j < len(found) and found[j].span[0] < end
        if not in_gold and not in_found:
            return i, j
        take_gold = in_gold and (not in_found or gold[i].span[0] <= found[j].span[0])
        word = gold[i] if take_gold else found[j]
        if word.in_multiword:
            end = max(end, word.span[1])
        i, j = i + take_gold, j + (not take_gold)


def _is_in_multiword(words: list[AlignedWord], place: int) -> bool:
    return place < len(words) and words[place].in_multiword


def _find_common_sequence(gold: list[AlignedWord], found: list[AlignedWord]) -> Iterator[WordPair]:
    """Yield the pairs of a longest common subsequence of forms."""
    lengths = [[0] * (len(found) + 1) for _ in range(len(gold) + 1)]
    for i in reversed(range(len(gold))):
        for j in reversed(range(len(found))):
            if gold[i].form == found[j].form:
                lengths[i][j] = 1 + lengths[i + 1][j + 1]
            else:
                lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1])
    i = j = 0
    while i < len(gold) and j < len(found):
        if gold[i].form == found[j].form:
            yield gold[i], found[j]
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
