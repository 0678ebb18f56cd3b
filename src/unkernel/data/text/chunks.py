"""Chunked text in columns, as in CoNLL-2000 and YamCha; docs/formats/columns.md describes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ColumnText
from unkernel.data.files import Source
from unkernel.data.text.columns import (
    ColumnCorpus,
    ColumnSentence,
    OnError,
    check_field,
    check_lengths,
    check_skipped,
    flatten_values,
    number_names,
    parse_text,
    read_columns,
    sentence_lengths,
)
from unkernel.errors import FormatError

_ENDS_A_FIELD = re.compile(r"[ \t\n\r\0]")


class ChunkSentence(ColumnSentence):
    """A sentence of a ``ChunkCorpus``: its words, their attributes and their tags.

    Sentences are immutable. To get sentences, index a corpus.

    Parameters
    ----------
    source : ColumnText
        The text that contains the sentence.
    number : int
        Number of the sentence in the text, counted from 0.
    tagged : bool
        Whether the last column contains tags.

    See Also
    --------
    ChunkCorpus : A sequence of sentences.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> sentence = ChunkCorpus.from_words([["He", "saw"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])[0]
    >>> sentence.words, sentence.pos, sentence.tags
    (['He', 'saw'], ['PRP', 'VBD'], ['B-NP', 'B-VP'])
    """

    __slots__ = ("_tagged",)

    def __init__(self, source: ColumnText, number: int, tagged: bool) -> None:
        super().__init__(source, number)
        self._tagged = tagged

    @property
    def words(self) -> list[str]:
        """The words: the first column."""
        return self._get_column(0)

    @property
    def pos(self) -> list[str] | None:
        """The parts of speech: the second column, or None if there is none or if it contains the tags."""
        return self._get_column(1) if self._source.columns - self._tagged > 1 else None

    @property
    def tags(self) -> list[str] | None:
        """The tags, such as ``B-NP``: the last column, or None if the text has no tags."""
        return self._get_column(self._source.columns - 1) if self._tagged else None

    @property
    def columns(self) -> list[list[str]]:
        """All columns as lists of strings, including the tags."""
        return [self._get_column(number) for number in range(self._source.columns)]

    def draw(self) -> str:
        """Draw the sentence on one line, with its chunks in brackets.

        Returns
        -------
        str
            A line with the words and brackets.

        Examples
        --------
        >>> words, tags = [["He", "saw", "the", "sea"]], [["B-NP", "B-VP", "B-NP", "I-NP"]]
        >>> print(ChunkCorpus.from_words(words, tags=tags)[0].draw(), end="")
        [NP He] [VP saw] [NP the sea]
        """
        from unkernel.data.text.drawing import draw_chunks

        return f"{draw_chunks(self.words, self.tags or ['O'] * len(self))}\n"

    def _repr_html_(self) -> str:
        """Return the drawing for notebooks."""
        import html

        return f"<p>{html.escape(self.draw())}</p>"

    def __repr__(self) -> str:
        return f"<ChunkSentence of {len(self)} words: {' '.join(self.words)!r}>"

    @property
    def _content(self) -> tuple[Any, ...]:
        return self._tagged, *map(tuple, self.columns)

    def __reduce__(self) -> tuple[Any, ...]:
        lines = self._source.sentence_text(self._number)
        return _restore_sentence, (lines, self._source.file, self.line, self._tagged)


def _restore_sentence(lines: bytes, file: str, line: int, tagged: bool) -> ChunkSentence:
    """Return an unpickled sentence."""
    return ChunkSentence(ColumnText(lines, file, "chunks", 0, "none", False, line), 0, tagged)


class ChunkCorpus(ColumnCorpus[ChunkSentence]):
    """Sentences with one tag per word, for chunking and named-entity recognition.

    A corpus is an immutable sequence of :class:`ChunkSentence`: use ``len(corpus)``, ``corpus[0]`` and ``for
    sentence in corpus``. Indexing with a slice or a list of indices returns a new corpus. Read a corpus with
    :func:`read_chunks`, or make one with :meth:`from_words`.

    Attributes
    ----------
    tagged : bool
        Whether the last column contains tags.

    See Also
    --------
    read_chunks : Read a corpus from a file.
    unkernel.parsing.Chunker : Train a chunker on a corpus.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> corpus = ChunkCorpus.from_words([["He", "saw"]], [["PRP", "VBD"]])
    >>> print(corpus.with_tags([["B-NP", "B-VP"]]).to_bytes().decode(), end="")
    He PRP B-NP
    saw VBD B-VP
    <BLANKLINE>
    """

    tagged: bool

    @classmethod
    def _from_text(cls, text: ColumnText, tagged: bool = False) -> Self:
        corpus = super()._from_text(text)
        corpus.tagged = tagged
        return corpus

    def _with_text(self, text: ColumnText) -> Self:
        return self._from_text(text, self.tagged)

    def _make_sentence(self, number: int) -> ChunkSentence:
        return ChunkSentence(self._text, number, self.tagged)

    @property
    def n_columns(self) -> int:
        """Number of columns, including the tags; 0 if there are no sentences."""
        return self._text.columns

    def symbols(self, column: int) -> tuple[NDArray[np.int32], list[str]]:
        """Encode a column of all words as integers.

        Parameters
        ----------
        column : int
            Number of the column, counted from 0; -1 is the last.

        Returns
        -------
        numbers : ndarray of int32
            One number per word: the index of its value in ``names``.
        names : list of str
            The distinct values, in the order of their first occurrence.

        Examples
        --------
        >>> ChunkCorpus.from_words([["a", "b"], ["a"]]).symbols(0)
        (array([0, 1, 0], dtype=int32), ['a', 'b'])
        """
        numbers, names = self._text.symbols(column + self.n_columns if column < 0 else column)
        return np.asarray(numbers), list(names)

    def with_tags(self, tags: Sequence[str] | Sequence[Sequence[str]]) -> Self:
        """Return a copy of the corpus with other tags.

        Parameters
        ----------
        tags : sequence of str, or one sequence of str per sentence
            The new tags. They replace the existing tags, or become a new last column.

        Returns
        -------
        ChunkCorpus
            The same text with other tags; every other byte is unchanged.
        """
        changed = self._with_tags(*number_names(flatten_values(tags, np.diff(self.offsets), "tags")))
        check_skipped(changed._text)
        return changed

    def _with_tags(self, numbers: NDArray[np.int32], names: list[str]) -> Self:
        """Return a copy with other tags; `numbers` has each word's tag as an index into `names`."""
        column = self.n_columns - self.tagged
        text = self._text.replace_column(column, numbers, names) if len(self) else self._text
        return self._from_text(text, True)

    @classmethod
    def from_words(
        cls,
        words: Sequence[Sequence[str]],
        *columns: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Make a corpus from lists of words.

        Parameters
        ----------
        words : sequence of sequences of str
            The words of each sentence; they must not contain spaces.
        *columns : sequences of sequences of str
            Further columns, such as parts of speech, with one value per word.
        tags : sequence of sequences of str, default=None
            The tags.

        Returns
        -------
        ChunkCorpus
            The sentences.

        Examples
        --------
        >>> ChunkCorpus.from_words([["He", "saw"]], [["PRP", "VBD"]])
        <ChunkCorpus <memory>: 1 sentence, 2 words>
        """
        lengths = sentence_lengths(words)
        all_columns = (words, *columns) if tags is None else (words, *columns, tags)
        for number, column in enumerate(all_columns[1:], start=1):
            check_lengths([len(values) for values in column], lengths, f"entries of column {number}")
        lines = (_format_lines(i, [column[i] for column in all_columns]) for i in range(len(words)))
        return cls._from_text(parse_text("".join(lines).encode(), "chunks"), tags is not None)


def _format_lines(sentence: int, columns: list[Sequence[str]]) -> str:
    """Return the lines of a sentence, given its columns; error messages contain its number."""
    rows = zip(*columns, strict=True)
    lines = [" ".join(check_field(field, sentence, _ENDS_A_FIELD) for field in row) for row in rows]
    return "\n".join([*lines, "\n"])


def read_chunks(
    source: Source, *, tagged: bool | Literal["auto"] = "auto", on_error: OnError = "raise"
) -> ChunkCorpus:
    r"""Read text in columns: one word per line, with its attributes and its tag.

    Parameters
    ----------
    source : path, or open binary or text file
        UTF-8 text, plain or compressed by gzip, xz, bzip2 or Zstandard. The compression is detected from the
        content, not from the name.
    tagged : bool or "auto", default="auto"
        Whether the last column contains tags. "auto" assumes tags if there are three or more columns.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled. "raise" raises a FormatError at the first one; "skip" skips them.
        Skipped sentences remain in the text and are listed in ``ChunkCorpus.skipped``.

    Returns
    -------
    ChunkCorpus
        The sentences.

    Raises
    ------
    FormatError
        If a line has more or fewer columns than the first line, or the text is not UTF-8.
    OSError
        If the file cannot be read.

    See Also
    --------
    unkernel.parsing.Chunker : Train a chunker on a corpus.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_chunks
    >>> corpus = read_chunks(io.BytesIO(b"He PRP B-NP\nreckons VBZ B-VP\n\nNo UH B-INTJ\n"))
    >>> len(corpus), corpus[0].words, corpus[0].tags
    (2, ['He', 'reckons'], ['B-NP', 'B-VP'])
    """
    text = read_columns(source, "chunks", on_error=on_error)
    if tagged == "auto":
        return ChunkCorpus._from_text(text, text.columns > 2)
    if tagged and text.columns == 1:
        raise FormatError(
            text.file, text.sentence_line(0), 0, "1 column, but a word and its tag are expected"
        )
    return ChunkCorpus._from_text(text, bool(tagged))
