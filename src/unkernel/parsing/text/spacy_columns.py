"""Convert sentences to the columns of a ``spacy.tokens.Doc`` with exactly the same text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unkernel.data.text.conll_sentence import Sentence
from unkernel.parsing.text.gold_text import TextToken, text_tokens

_ROOT = "ROOT"  # spaCy's name for the relation of a root


@dataclass
class _Entry:
    """A token of the ``Doc``."""

    words: str
    spaces: bool = False
    pos: str = ""
    tags: str = ""
    morphs: str = ""
    lemmas: str = ""
    heads: int = 0
    deps: str = ""
    sent_starts: bool = False

    @classmethod
    def of_blanks(cls, blanks: str, head: int) -> _Entry:
        return cls(blanks, pos="SPACE", tags="_SP", lemmas=blanks, heads=head, deps="dep")


def make_spacy_columns(sentences: Iterable[Sentence]) -> dict[str, list[Any]]:
    """Return the arguments of the constructor of ``Doc``: the columns of all tokens, by name."""
    entries: list[_Entry] = []
    for sentence in sentences:
        begin = len(entries)
        _add_sentence(sentence, entries)
        if len(entries) > begin:
            entries[begin].sent_starts = True
    return {name: [getattr(entry, name) for entry in entries] for name in _Entry.__dataclass_fields__}


def _add_sentence(sentence: Sentence, entries: list[_Entry]) -> None:
    """Append the entries of a sentence, with their heads as indices of entries."""
    rows = _Rows(sentence)
    entry_index_of: dict[int, int] = {}  # the entry of each word
    entries_with_tops: list[tuple[_Entry, int]] = []  # entries with their topmost words
    for token in text_tokens(sentence):
        if token.before:
            entries.append(_Entry.of_blanks(token.before, len(entries) + 1))
        for words in rows.split_token(token):
            entry, top = rows.make_entry(token.form, words)
            entry_index_of |= dict.fromkeys(words, len(entries))
            entries_with_tops.append((entry, top))
            entries.append(entry)
        last = len(entries) - 1
        entries[last].spaces = token.after.startswith(" ")
        if blanks := token.after.removeprefix(" "):
            entries.append(_Entry.of_blanks(blanks, last))
    for entry, top in entries_with_tops:
        head = sentence.heads[top]
        entry.heads = entry_index_of[head - 1] if head else entry_index_of[top]


class _Rows:
    """The words of a sentence with their annotation."""

    def __init__(self, sentence: Sentence) -> None:
        self._forms = sentence.forms
        self._heads = sentence.heads
        self._tags = {
            "pos": _blank_missing(sentence.upos),
            "tags": _blank_missing(sentence.xpos),
            "morphs": _blank_missing(sentence.feats),
            "lemmas": _blank_missing(sentence.lemmas),
            "deps": _blank_missing(sentence.deprels),
        }

    def split_token(self, token: TextToken) -> list[range]:
        """Return the words of each entry: one word each if they concatenate to the token, else one entry."""
        if "".join(self._forms[word] for word in token.words) != token.form:
            return [token.words]
        return [range(word, word + 1) for word in token.words]

    def make_entry(self, form: str, words: range) -> tuple[_Entry, int]:
        """Return an entry for words, and the topmost word, whose head becomes the head of the entry."""
        top = min(words, key=self._compute_depth)
        values: dict[str, Any] = {name: column[top] for name, column in self._tags.items()}
        if len(words) > 1:
            values["tags"] = "_".join(self._list_values("tags", words))
            values["lemmas"] = " ".join(self._list_values("lemmas", words))
            values["morphs"] = _merge_features(self._list_values("morphs", words))
        else:
            form = self._forms[top]
        if not self._heads[top]:
            values["deps"] = _ROOT
        return _Entry(form, **values), top

    def _list_values(self, name: str, words: range) -> list[str]:
        return [self._tags[name][word] for word in words if self._tags[name][word]]

    def _compute_depth(self, word: int) -> int:
        depth = 0
        while self._heads[word] and depth <= len(self._heads):
            word, depth = self._heads[word] - 1, depth + 1
        return depth


def _merge_features(features: list[str]) -> str:
    """Merge the features of several words: each feature once, with the values of all words."""
    values: dict[str, set[str]] = {}
    for feature in "|".join(features).split("|"):
        name, _, feature_values = feature.partition("=")
        if name:
            values.setdefault(name, set()).update(feature_values.split(","))
    return "|".join(f"{name}={','.join(sorted(values[name]))}" for name in sorted(values))


def _blank_missing(column: list[str]) -> list[str]:
    return ["" if value == "_" else value for value in column]
