"""Align the words of two annotations of a text, by the rules of the CoNLL 2018 shared task.

Words are aligned if they cover the same characters. Words of multiword tokens need not occur in the text.
They are aligned by a longest common subsequence of their forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from unkernel.data.text.conll import Treebank

Span = tuple[int, int]  # begin and end, in characters; blanks are not counted


class AlignedTexts:
    """Two annotations of a text, with aligned words; ValueError if the texts differ."""

    def __init__(self, gold: Treebank, predicted: Treebank) -> None:
        self.gold, self.predicted = _read_treebank(gold), _read_treebank(predicted)
        _check_same_text(self.gold, self.predicted)
        self.pairs = list(_align_words(self.gold.words, self.predicted.words))
        self._gold_of = {id(predicted_word): gold_word for gold_word, predicted_word in self.pairs}

    def have_same_head(self, gold_word: AlignedWord, predicted_word: AlignedWord) -> bool:
        """Return whether the heads of two aligned words are aligned with each other."""
        if predicted_word.head is None or gold_word.head is None:
            return predicted_word.head is gold_word.head
        return self._gold_of.get(id(predicted_word.head)) is gold_word.head


@dataclass(eq=False)
class AlignedWord:
    """A word of a treebank with its span, its columns and its head; the head of a root is None."""

    span: Span
    is_in_multiword: bool
    columns: list[str]
    head: AlignedWord | None = None

    @property
    def number(self) -> int:
        return int(self.columns[0])

    @property
    def form(self) -> str:
        return self.columns[1].lower()


WordPair = tuple[AlignedWord, AlignedWord]  # a gold word and a predicted word


@dataclass
class _Text:
    """The characters of a treebank without blanks, and the spans of its tokens and sentences."""

    characters: str = ""
    tokens: list[Span] = field(default_factory=list)
    sentences: list[Span] = field(default_factory=list)
    words: list[AlignedWord] = field(default_factory=list)


def _read_treebank(bank: Treebank) -> _Text:
    """Return the text of a treebank with its tokens, sentences and words; empty nodes are left out."""
    text, pieces, position = _Text(), [], 0
    for sentence in bank:
        begin, words = position, []
        last_word = 0  # number of the last word of the current multiword token
        heads = sentence.heads
        for line in str(sentence).split("\n"):
            columns = line.split("\t")
            if line.startswith("#") or not line or "." in columns[0]:
                continue
            if "-" in columns[0] or int(columns[0]) > last_word:
                characters = "".join(columns[1].split())
                pieces.append(characters)
                text.tokens.append((position, position + len(characters)))
                position += len(characters)
            if "-" in columns[0]:
                last_word = int(columns[0].partition("-")[2])
            else:
                words.append(AlignedWord(text.tokens[-1], int(columns[0]) <= last_word, columns))
        for word, head in zip(words, heads, strict=True):
            word.head = words[head - 1] if head > 0 else None
        text.words += words
        text.sentences.append((begin, position))
    text.characters = "".join(pieces)
    return text


def _check_same_text(gold: _Text, predicted: _Text) -> None:
    """Raise a ``ValueError`` at the first difference between two texts, not counting blanks."""
    if gold.characters == predicted.characters:
        return
    pairs = zip(gold.characters, predicted.characters, strict=False)
    shorter_length = min(len(gold.characters), len(predicted.characters))
    position = next((k for k, (a, b) in enumerate(pairs) if a != b), shorter_length)
    excerpts = [text.characters[max(position - 10, 0) : position + 20] for text in (gold, predicted)]
    raise ValueError(
        f"the texts differ, blanks left out, after {position} characters: {excerpts[0]!r} in the treebank, "
        f"{excerpts[1]!r} in the output"
    )


def _align_words(gold: list[AlignedWord], predicted: list[AlignedWord]) -> Iterator[WordPair]:
    """Yield the pairs of aligned words: by their spans, but by their forms around multiword tokens."""
    i = j = 0
    while i < len(gold) and j < len(predicted):
        if gold[i].is_in_multiword or predicted[j].is_in_multiword:
            i, j = _find_region_begin(gold, i, predicted, j)
            last_i, last_j = _find_region_end(gold, i, predicted, j)
            yield from _find_common_sequence(gold[i:last_i], predicted[j:last_j])
            i, j = last_i, last_j
        elif gold[i].span == predicted[j].span:
            yield gold[i], predicted[j]
            i, j = i + 1, j + 1
        elif gold[i].span[0] <= predicted[j].span[0]:
            i += 1
        else:
            j += 1


def _find_region_begin(
    gold: list[AlignedWord], i: int, predicted: list[AlignedWord], j: int
) -> tuple[int, int]:
    """Return the indices of the first words of a region; skip a word that begins before a multiword token."""
    if gold[i].is_in_multiword:
        return i, j + (not predicted[j].is_in_multiword and predicted[j].span[0] < gold[i].span[0])
    return i + (gold[i].span[0] < predicted[j].span[0]), j


def _find_region_end(
    gold: list[AlignedWord], i: int, predicted: list[AlignedWord], j: int
) -> tuple[int, int]:
    """Return the ends, in both lists, of the region that begins at words i and j.

    A region contains all words that overlap its multiword tokens.
    """
    end = max(
        (words[k].span[1] for words, k in ((gold, i), (predicted, j)) if _is_in_multiword(words, k)),
        default=0,
    )
    while True:
        is_in_gold = i < len(gold) and gold[i].span[0] < end
        is_in_predicted = j < len(predicted) and predicted[j].span[0] < end
        if not is_in_gold and not is_in_predicted:
            return i, j
        take_gold = is_in_gold and (not is_in_predicted or gold[i].span[0] <= predicted[j].span[0])
        word = gold[i] if take_gold else predicted[j]
        if word.is_in_multiword:
            end = max(end, word.span[1])
        i, j = i + take_gold, j + (not take_gold)


def _is_in_multiword(words: list[AlignedWord], index: int) -> bool:
    return index < len(words) and words[index].is_in_multiword


def _find_common_sequence(gold: list[AlignedWord], predicted: list[AlignedWord]) -> Iterator[WordPair]:
    """Yield the pairs of words in a longest common subsequence of forms."""
    lengths = [[0] * (len(predicted) + 1) for _ in range(len(gold) + 1)]
    for i in reversed(range(len(gold))):
        for j in reversed(range(len(predicted))):
            if gold[i].form == predicted[j].form:
                lengths[i][j] = 1 + lengths[i + 1][j + 1]
            else:
                lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1])
    i = j = 0
    while i < len(gold) and j < len(predicted):
        if gold[i].form == predicted[j].form:
            yield gold[i], predicted[j]
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
