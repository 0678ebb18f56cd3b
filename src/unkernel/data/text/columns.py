"""Base classes of corpora in columns: treebanks (:mod:`.conll`) and chunked text (:mod:`.chunks`).

The core's ``ColumnText`` contains the bytes of a file and the offsets of its sentences, tokens and fields.
Corpora and sentences refer to a ``ColumnText``. When a corpus is written, only replaced columns differ from
the original file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from numbers import Number
from typing import Any, Generic, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import ColumnText, whole_sentences
from unkernel.data.files import Source, name_of, open_writer, read_blocks
from unkernel.data.repr_html import corpus_html
from unkernel.errors import FormatError

Format = Literal["conllu", "conllx", "chunks"]
OnError = Literal["raise", "skip"]

BLOCK_BYTES = 1 << 20
LONGEST_SENTENCE = 1 << 26
_MEMORY_NAME = "<memory>"


def read_columns(
    source: Source, format: Format, *, trees: str = "none", on_error: OnError = "raise"
) -> ColumnText:
    """Return the text of a whole file, parsed into columns."""
    skip = check_on_error(on_error)
    return ColumnText(b"".join(read_blocks(source)), name_of(source), format, 0, trees, skip, 1)


def parse_text(data: bytes, format: Format, *, name: str = _MEMORY_NAME) -> ColumnText:
    """Return a text that does not come from a file, parsed into columns."""
    return ColumnText(data, name, format, 0, "none", False, 1)


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun, which gets an "s" unless the count is 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def check_skipped(text: ColumnText) -> ColumnText:
    """Return `text`, whose columns were replaced; ValueError if reading it would skip other sentences."""
    if text.skip_bad_sentences and (text.trees != "none" or len(text.skipped())):
        reread = ColumnText(text.text, text.file, text.format, 0, text.trees, True, text.first_line)
        if reread.sentences != text.sentences:
            raise ValueError(
                f"reading the text again would give {pluralize(reread.sentences, 'sentence')} instead of "
                f"{text.sentences}, as bad ones were skipped: select the good ones (corpus[:]) before you "
                "replace columns"
            )
    return text


def check_on_error(on_error: str) -> bool:
    """Return whether `on_error` says that malformed sentences are skipped; ValueError if it is invalid."""
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    return on_error == "skip"


def read_column_blocks(
    source: Source,
    format: Format = "conllu",
    *,
    on_error: OnError = "raise",
    size: int = BLOCK_BYTES,
    longest: int = LONGEST_SENTENCE,
) -> Iterator[ColumnText]:
    r"""Read a file of any length as blocks of whole sentences, in bounded memory.

    The concatenated texts of all blocks equal the file. Line numbers refer to the file.

    Parameters
    ----------
    source : path or file object
        Plain or compressed, as for :func:`~unkernel.data.read_conllu`.
    format : {"conllu", "conllx", "chunks"}, default="conllu"
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled. "raise" raises a FormatError at the first one; "skip" skips them
        and lists them in ``skipped()`` of their block.
    size : int, default=1 MiB
        Approximate number of bytes per block.
    longest : int, default=64 MiB
        Largest number of bytes of a sentence. Longer sentences raise a FormatError even with
        ``on_error="skip"``.

    Yields
    ------
    ColumnText

    Examples
    --------
    >>> import io
    >>> from unkernel.data.text.columns import read_column_blocks
    >>> text = b"He PRP B-NP\nsaw VBD B-VP\n\nNo DT B-NP\n\n"
    >>> blocks = read_column_blocks(io.BytesIO(text), "chunks", size=30)
    >>> [(block.first_line, block.sentences, block.text) for block in blocks]
    [(1, 1, b'He PRP B-NP\nsaw VBD B-VP\n\n'), (4, 1, b'No DT B-NP\n\n')]
    """
    skip = check_on_error(on_error)
    return split_blocks(read_blocks(source, size), name_of(source), format, skip=skip, longest=longest)


def split_blocks(
    pieces: Iterable[bytes], name: str, format: Format, *, skip: bool, longest: int = LONGEST_SENTENCE
) -> Iterator[ColumnText]:
    """Yield blocks of whole sentences from a file that arrives in pieces of any length."""
    buffer, line, columns = b"", 1, 0  # columns: 0 until the first sentence determines their number
    for piece in pieces:
        buffer += piece
        end = len(buffer) if buffer.isspace() else whole_sentences(buffer, format)
        if not end and len(buffer) > longest:
            reason = f"a sentence of more than {longest} bytes; an empty line ends a sentence"
            raise FormatError(name, line, 0, reason)
        if end:
            block = ColumnText(buffer[:end], name, format, columns, "none", skip, line)
            line += buffer.count(b"\n", 0, end)
            buffer, columns = buffer[end:], block.columns or columns
            yield block
    if buffer:
        yield ColumnText(buffer, name, format, columns, "none", skip, line)


class DrawnSentence:
    """A sentence with a dependency tree; notebooks show the tree as a picture."""

    __slots__ = ()

    def to_svg(self) -> str:
        """Draw the dependency tree as arcs over the words or bunsetsu.

        Returns
        -------
        str
            A complete SVG image.
        """
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return the picture for notebooks."""
        return f'<div style="overflow-x: auto">{self.to_svg()}</div>'


_Sentence = TypeVar("_Sentence")


class Corpus(Sequence[_Sentence], Generic[_Sentence]):
    """An immutable sequence of sentences from a file."""

    def to_bytes(self) -> bytes:
        """Return the text of the corpus.

        Returns
        -------
        bytes
            The bytes that were read, with the new columns, heads and types if any were replaced.
        """
        raise NotImplementedError

    def write(self, target: Source) -> None:
        """Write the text of the corpus to a file.

        Parameters
        ----------
        target : path, or open binary or text file
            The file to write. The suffix of a path selects the compression: .gz, .xz, .bz2 or .zst. An
            existing file is replaced in one step, or left unchanged if writing fails.
        """
        with open_writer(target) as write:
            write(self.to_bytes())

    def _repr_html_(self) -> str:
        """Return drawings of the first sentences as HTML for notebooks."""
        return corpus_html(self)


class ColumnSentence:
    """An immutable sentence of a text in columns."""

    __slots__ = ("_number", "_source")

    def __init__(self, source: ColumnText, number: int) -> None:
        self._source = source
        self._number = number

    def _get_token_range(self) -> tuple[int, int]:
        """Return the indices of the sentence's first token and of the token after its last one."""
        return self._source.first_token(self._number), self._source.first_token(self._number + 1)

    def _get_column(self, number: int) -> list[str]:
        return list(self._source.fields(number, *self._get_token_range()))

    @property
    def line(self) -> int:
        """Number of the first line of the sentence in its file."""
        return self._source.sentence_line(self._number)

    def __len__(self) -> int:
        begin, end = self._get_token_range()
        return end - begin

    def __str__(self) -> str:
        """Return the sentence's lines in the file, including comments."""
        return self._source.sentence_text(self._number).decode()

    @property
    def _content(self) -> tuple[Any, ...]:
        """The values that are compared and hashed."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


class ColumnCorpus(Corpus[_Sentence]):
    """An immutable sequence of the sentences of a text in columns."""

    _text: ColumnText

    @classmethod
    def _from_text(cls, text: ColumnText) -> Self:
        """Return a corpus of all sentences of a text."""
        corpus = cls.__new__(cls)
        corpus._text = text
        return corpus

    def _with_text(self, text: ColumnText) -> Self:
        """Return a corpus of another text, with the other attributes of this corpus."""
        return self._from_text(text)

    def _make_sentence(self, number: int) -> _Sentence:
        raise NotImplementedError

    # --- As a sequence --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._text.sentences

    @overload
    def __getitem__(self, selection: int) -> _Sentence: ...

    @overload
    def __getitem__(self, selection: slice | Sequence[int] | NDArray[Any]) -> Self: ...

    def __getitem__(self, selection: Any) -> _Sentence | Self:
        if isinstance(selection, int | np.integer) and not isinstance(selection, bool):
            if not -len(self) <= selection < len(self):
                raise IndexError(f"sentence {selection} of {len(self)}")
            return self._make_sentence(int(selection) % len(self))
        numbers = np.arange(len(self))[selection]
        if numbers.ndim != 1:
            raise IndexError("sentences are chosen by a number, a slice or a list of numbers")
        return self._with_text(
            parse_text(self._copy_sentences(numbers.tolist()), self._format, name=f"{self.name} (part)")
        )

    def _copy_sentences(self, numbers: Iterable[int]) -> bytes:
        parts = []
        for number in numbers:
            lines = self._text.sentence_text(number)
            end = b"\r\n" if b"\r\n" in lines else b"\n"
            parts += [lines, end] if lines.endswith(b"\n") else [lines, end, end]
        return b"".join(parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._format == other._format and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        size = f"{pluralize(len(self), 'sentence')}, {pluralize(self.n_words, 'word')}"
        return f"<{type(self).__name__} {self.name}: {size}>"

    # --- Properties ----------------------------------------------------------------------------------

    @property
    def _format(self) -> Any:
        return self._text.format

    @property
    def name(self) -> str:
        """Name of the file in error messages."""
        return self._text.file

    @property
    def n_words(self) -> int:
        """Number of words in all sentences."""
        return self._text.tokens

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Offsets of the sentences: sentence i has the words ``offsets[i]`` to ``offsets[i + 1] - 1``."""
        return np.asarray(self._text.first_tokens)

    @property
    def skipped(self) -> list[FormatError]:
        """The errors of the sentences that were skipped because of ``on_error="skip"``."""
        return list(self._text.skipped())

    # --- Writing --------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        return self._text.text


# --- Values from Python -------------------------------------------------------------------------------


def flatten_values(values: Any, lengths: NDArray[np.int64], what: str) -> Any:
    """Return one value per word; lists of values per sentence are concatenated."""
    if len(values) and not isinstance(values[0], str | Number):
        check_lengths([len(sentence_values) for sentence_values in values], lengths.tolist(), what)
        values = list(chain.from_iterable(values))
    if len(values) != lengths.sum():
        raise ValueError(f"{len(values)} {what} for {lengths.sum()} words")
    return values


def sentence_lengths(words: Any) -> list[int]:
    """Return the length of each list of words; check that all are lists and none is empty."""
    if isinstance(words, str) or any(isinstance(sentence, str) for sentence in words):
        raise TypeError("words are lists of words, one list per sentence: [['They', 'saw', 'it']]")
    lengths = [len(sentence) for sentence in words]
    if 0 in lengths:
        raise ValueError(f"sentence {lengths.index(0)} has no words")
    return lengths


def check_lengths(lengths: list[int], expected: list[int], what: str) -> None:
    if len(lengths) != len(expected):
        raise ValueError(f"{what} of {pluralize(len(lengths), 'sentence')}, but there are {len(expected)}")
    for sentence, (length, words) in enumerate(zip(lengths, expected, strict=True)):
        if length != words:
            raise ValueError(f"sentence {sentence} has {words} words and {length} {what}")


def number_names(names: Iterable[str]) -> tuple[NDArray[np.int32], list[str]]:
    """Number distinct names by their first occurrence; return each name's number and the distinct names."""
    number_of: dict[str, int] = {}
    numbers = np.fromiter((number_of.setdefault(name, len(number_of)) for name in names), np.int32)
    return numbers, list(number_of)


def head_numbers(heads: ArrayLike) -> NDArray[np.int32]:
    """Return checked heads as an array for the core."""
    array = np.asarray(heads)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"heads must be integers, got {array.dtype}")
    if array.size and not -1 <= array.min() <= array.max() < 2**31:
        raise ValueError("a head is the number of a word, or 0 for the root")
    return np.ascontiguousarray(array, np.int32)


def check_field(value: Any, sentence: int, forbidden: re.Pattern[str]) -> str:
    """Return a field given by the caller, after checking that a file can contain it."""
    if not isinstance(value, str):
        raise TypeError(f"sentence {sentence}: {value!r} is not a string")
    if not value or forbidden.search(value):
        reason = "is empty" if not value else "has a character that ends a column or a line"
        raise ValueError(f"sentence {sentence}: {value!r} {reason}")
    return value
