"""The plain text of a treebank, with the ends of its tokens and sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.data.text.conll import Treebank
from unkernel.data.text.conll_sentence import Sentence
from unkernel.errors import warn_caller
from unkernel.parsing.text.characters import is_blank

TOKEN, SENTENCE = 1, 2  # kinds of boundaries: only a token ends, or a sentence ends too
_PARAGRAPH = ("newpar", "newdoc")
_LINE_WIDTH = 80
_MAX_LAYOUT_SENTENCES = 20  # after this many sentences, the next layout is used within a paragraph


class GoldToken(NamedTuple):
    """A token: its form, whether a blank follows, and its words if it is a multiword token."""

    form: str
    blank_follows: bool
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class GoldSentence:
    """The tokens of a sentence, and whether a paragraph begins with it."""

    tokens: list[GoldToken]
    begins_paragraph: bool


@dataclass
class GoldText:
    """A text and its tokens.

    Attributes
    ----------
    text : bytes
    ends : ndarray of int64, shape (n_tokens,)
        The end of each token, in bytes.
    boundaries : ndarray of uint8, shape (n_tokens,)
        ``TOKEN`` or ``SENTENCE``.
    words : list of tuple of str
        The words of each multiword token; empty for other tokens.
    """

    text: bytes
    ends: NDArray[np.int64]
    boundaries: NDArray[np.uint8]
    words: list[tuple[str, ...]] = field(repr=False)


def read_gold_sentences(bank: Treebank) -> list[GoldSentence]:
    """Return the sentences of a treebank with their tokens; blanks come from ``# text`` or ``SpaceAfter``.

    If a comment ``# text`` contradicts the tokens, a ``UserWarning`` is given and the comment is ignored.
    """
    sentences, contradicted = [], []
    for sentence in bank:
        if not len(sentence):
            continue
        begins_paragraph, text = _read_comments(sentence)
        tokens = read_gold_tokens(sentence)
        aligned = _align(tokens, text) if text else tokens
        if aligned is None:
            contradicted.append(sentence)
        sentences.append(GoldSentence(_strip_forms(aligned or tokens), begins_paragraph))
    if contradicted:
        _warn_of_contradictions(bank.name, contradicted)
    return sentences


def warn_of_unknown_blanks(bank: Treebank, sentences: Sequence[GoldSentence]) -> None:
    """Warn if a treebank has punctuation but no information about blanks before it."""
    tokens = [token for sentence in sentences for token in sentence.tokens]
    if not all(token.blank_follows for token in tokens) or any(
        _read_comments(sentence)[1] for sentence in bank
    ):
        return
    if any(_is_punctuation(token.form) for token in tokens):
        warn_caller(
            f'{bank.name}: the treebank has neither "# text" nor SpaceAfter=No: the tokenizer can only split '
            "at spaces, and will not separate punctuation",
            UserWarning,
        )


def _is_punctuation(form: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in form)


def _read_comments(sentence: Sentence) -> tuple[bool, str]:
    """Return whether the sentence begins a paragraph, and its ``# text`` (empty if there is none)."""
    begins, text = False, ""
    for comment in sentence.comments:
        key, _, value = comment.partition("=")
        begins = begins or key.split(" ")[0].strip() in _PARAGRAPH
        text = value.strip() if key.strip() == "text" else text
    return begins, text


def _warn_of_contradictions(name: str, contradicted: list[Sentence]) -> None:
    first = contradicted[0]
    more = f", and {len(contradicted) - 1:,} more like it" if len(contradicted) > 1 else ""
    warn_caller(
        f"{name}:{first.line}: '# text = {first.text[:40]}' contradicts the words of its sentence"
        f"{more}: the comment is ignored, and spacing is taken from SpaceAfter=No",
        UserWarning,
    )


def read_gold_tokens(sentence: Sentence) -> list[GoldToken]:
    """Return the tokens of a sentence; spacing is taken from ``SpaceAfter``."""
    tokens: list[GoldToken] = []
    last_word = 0  # number of the last word of the current multiword token
    for line in str(sentence).split("\n"):
        columns = line.split("\t")
        if line.startswith("#") or len(columns) < 2 or "." in columns[0]:
            continue
        blank_follows = "SpaceAfter=No" not in columns[-1].split("|")
        first, _, last = columns[0].partition("-")
        if last:
            last_word = int(last)
            tokens.append(GoldToken(columns[1], blank_follows))
        elif int(first) > last_word:
            tokens.append(GoldToken(columns[1], blank_follows))
        else:
            tokens[-1] = tokens[-1]._replace(words=(*tokens[-1].words, columns[1]))
    return tokens


def _align(tokens: list[GoldToken], text: str) -> list[GoldToken] | None:
    """Return the tokens with the blanks found in `text`; None if the text does not match the tokens."""
    aligned, position = [], 0
    for token in tokens:
        if not text.startswith(token.form, position):
            return None
        position = end = position + len(token.form)
        while position < len(text) and is_blank(text[position]):
            position += 1
        aligned.append(token._replace(blank_follows=position > end))
    if position < len(text):
        return None
    aligned[-1] = aligned[-1]._replace(blank_follows=tokens[-1].blank_follows)
    return aligned


def _strip_forms(tokens: Iterable[GoldToken]) -> list[GoldToken]:
    """Return tokens with blanks stripped from their forms, without tokens that consist of blanks."""
    stripped = (token._replace(form=token.form.strip()) for token in tokens)
    return [token for token in stripped if token.form]


def build_gold_text(sentences: Sequence[GoldSentence], *, layouts: Sequence[int] = (0,)) -> GoldText:
    """Join sentences into a text, with blank lines between paragraphs.

    Paragraphs, or parts of long paragraphs, use `layouts` in turn. Layout 0 has no line ends, layout 1 has a
    line end after each sentence, and layout 2 breaks long lines at blanks.
    """
    pieces: list[str] = []
    ends, boundaries, words = [], [], []
    size = column = 0
    for sentence, layout, ends_paragraph in _lay_out(sentences, layouts):
        for number, token in enumerate(sentence.tokens):
            ends_sentence = number == len(sentence.tokens) - 1
            size += len(token.form.encode())
            ends.append(size)
            boundaries.append(SENTENCE if ends_sentence else TOKEN)
            words.append(token.words)
            column += len(token.form)
            blank = " " if token.blank_follows else ""
            if blank and layout == 2 and column > _LINE_WIDTH:
                blank, column = "\n", 0
            if ends_sentence:
                if ends_paragraph:
                    blank = "\n\n"
                elif layout == 1:
                    blank = "\n"
            column += len(blank)
            size += len(blank)
            pieces += [token.form, blank]
    text = "".join(pieces).encode()
    return GoldText(text, np.array(ends, np.int64), np.array(boundaries, np.uint8), words)


def _lay_out(
    sentences: Sequence[GoldSentence], layouts: Sequence[int]
) -> Iterator[tuple[GoldSentence, int, bool]]:
    """Yield each sentence with its layout, and whether it is the last one of a paragraph."""
    layout_index = n_sentences = 0
    for number, sentence in enumerate(sentences):
        n_sentences += 1
        if sentence.begins_paragraph or n_sentences > _MAX_LAYOUT_SENTENCES:
            layout_index, n_sentences = layout_index + 1, 0
        next_sentences = sentences[number + 1 : number + 2]
        ends_paragraph = not next_sentences or next_sentences[0].begins_paragraph
        yield sentence, layouts[layout_index % len(layouts)], ends_paragraph


def plain_text(bank: Treebank) -> str:
    r"""Return the text of a treebank, with a blank line before each paragraph.

    >>> bank = Treebank.from_words([["Dogs", "bark"], ["They", "bark"]])
    >>> plain_text(bank)
    'Dogs bark They bark\n'
    """
    pieces = []
    for number, sentence in enumerate(read_gold_sentences(bank)):
        if number:
            pieces.append("\n\n" if sentence.begins_paragraph else " ")
        pieces += [token.form + " " * token.blank_follows for token in sentence.tokens[:-1]]
        pieces.append(sentence.tokens[-1].form)
    return "".join(pieces) + "\n"


_ESCAPES = {"s": " ", "t": "\t", "n": "\n", "r": "\r", "0": "\0", "p": "|", "\\": "\\"}


def original_text(bank: Treebank) -> str:
    """Restore the text that a tokenizer split, with all its blanks.

    Blanks are taken from ``SpacesBefore=`` and ``SpacesAfter=``. If both are missing, no blank follows a
    token with ``SpaceAfter=No``, and one space follows any other token.

    Parameters
    ----------
    bank : Treebank
        Sentences, as :meth:`Tokenizer.tokenize` returns them.

    Returns
    -------
    str
        The text.

    See Also
    --------
    TokenizerModel.tokenize : Split a text.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import original_text
    >>> original_text(Treebank.from_words([["Dogs", "bark"]]))
    'Dogs bark '
    """
    tokens = (token for sentence in bank for token in text_tokens(sentence))
    return "".join(token.before + token.form + token.after for token in tokens)


class TextToken(NamedTuple):
    """A token, the blanks around it, and the indices of its words in the sentence."""

    before: str
    form: str
    after: str
    words: range


def text_tokens(sentence: Sentence) -> Iterator[TextToken]:
    """Yield the tokens of a sentence, with the blanks of the text."""
    last_word = 0  # number of the last word of the previous token
    for line in str(sentence).split("\n"):
        columns = line.split("\t")
        first, _, last = columns[0].partition("-")
        if line.startswith("#") or len(columns) < 2 or "." in first:
            continue
        if not last and int(first) <= last_word:  # a word of a multiword token
            continue
        last_word = int(last or first)
        misc = dict(item.partition("=")[::2] for item in columns[-1].split("|"))
        after = "" if misc.get("SpaceAfter") == "No" else _unescape(misc.get("SpacesAfter", " "))
        before = _unescape(misc.get("SpacesBefore", ""))
        yield TextToken(before, columns[1], after, range(int(first) - 1, last_word))


def _unescape(blanks: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), blanks)
