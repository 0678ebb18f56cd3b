"""Japanese sentences segmented into bunsetsu, in the formats of KNP and CaboCha."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import BunsetsuText, whole_bunsetsu_sentences
from unkernel.data.files import Source, name_of, read_blocks
from unkernel.data.text.columns import LONGEST_SENTENCE, Corpus, DrawnSentence, check_on_error, pluralize
from unkernel.errors import FormatError


class Morpheme(NamedTuple):
    """A morpheme of a bunsetsu: one line of a file.

    Attributes
    ----------
    surface : str
        Written form of the morpheme.
    reading : str
        Reading of the morpheme in kana.
    lemma : str
        Dictionary form of the morpheme.
    pos : str
        Part of speech.
    subpos : str
        Finer part of speech.
    ctype : str
        Type of conjugation.
    cform : str
        Form of conjugation.

    See Also
    --------
    BunsetsuSentence : A sentence of bunsetsu.

    Examples
    --------
    >>> from unkernel.data import Morpheme
    >>> Morpheme("本", "ほん", "本", "名詞", "普通名詞", "*", "*").pos
    '名詞'
    """

    surface: str
    reading: str
    lemma: str
    pos: str
    subpos: str
    ctype: str
    cform: str


class SkippedSentence(NamedTuple):
    """A sentence that was skipped: the line, the column and the reason of the error."""

    line: int
    column: int
    reason: str


@dataclass(frozen=True)
class BunsetsuSentence(DrawnSentence):
    """A Japanese sentence, segmented into bunsetsu, with its dependencies.

    Attributes
    ----------
    bunsetsu : tuple of tuples of Morpheme
        The morphemes of each bunsetsu.
    heads : tuple of int
        The number of the head of each bunsetsu, counted from 0; -1 for the root.
    types : str
        One letter per bunsetsu: the type of its dependency (D, P, I or A).
    source : str
        The sentence's lines in the file, from the comments to ``EOS``.

    See Also
    --------
    BunsetsuCorpus : A sequence of sentences.

    Examples
    --------
    >>> from unkernel.data import BunsetsuSentence, Morpheme
    >>> book = Morpheme("本", "ほん", "本", "名詞", "普通名詞", "*", "*")
    >>> particle = Morpheme("を", "を", "を", "助詞", "格助詞", "*", "*")
    >>> read = Morpheme("読む", "よむ", "読む", "動詞", "*", "子音動詞マ行", "基本形")
    >>> sentence = BunsetsuSentence(((book, particle), (read,)), (1, -1), "DD", "")
    >>> sentence.surfaces, sentence.text
    (('本を', '読む'), '本を読む')
    """

    bunsetsu: tuple[tuple[Morpheme, ...], ...]
    heads: tuple[int, ...]
    types: str
    source: str

    def __len__(self) -> int:
        """Return the number of bunsetsu."""
        return len(self.bunsetsu)

    def __str__(self) -> str:
        return self.source

    @cached_property
    def surfaces(self) -> tuple[str, ...]:
        """The text of each bunsetsu."""
        return tuple("".join(morpheme.surface for morpheme in morphemes) for morphemes in self.bunsetsu)

    @property
    def text(self) -> str:
        """The text of the sentence."""
        return "".join(self.surfaces)

    def draw(self, width: int | None = None) -> str:
        """Draw the dependency tree as text, one bunsetsu per line.

        Parameters
        ----------
        width : int, default=None
            Largest number of terminal cells per line; None sets no limit.

        Returns
        -------
        str
            The drawing, several lines.
        """
        from unkernel.data.text.drawing import draw_text

        return draw_text(self.surfaces, self.heads, base=0, width=width)

    def to_svg(self) -> str:
        from unkernel.data.text.drawing import draw_svg

        return draw_svg(self.surfaces, self.heads, base=0)


class BunsetsuCorpus(Corpus[BunsetsuSentence]):
    r"""Japanese sentences segmented into bunsetsu, with their dependencies.

    A corpus is a sequence of :class:`BunsetsuSentence`: use ``len(corpus)`` and ``corpus[3]``. Indexing with
    a slice or a list of indices (``corpus[3:7]``, ``corpus[[3, 7]]``) returns a new corpus. Read a corpus
    with :func:`read_bunsetsu`.

    All parameters except the first are also attributes.

    Parameters
    ----------
    text : BunsetsuText
        The text of the file, parsed by the core.
    heads : ndarray of int32
        The head of each bunsetsu of all sentences: its number, counted from 0 within the sentence; -1 for a
        root.
    types : bytes
        One letter per bunsetsu: the type of its dependency.
    name : str
        Name of the file in error messages.

    See Also
    --------
    read_bunsetsu : Read a corpus from a file.
    unkernel.parsing.BunsetsuParser : Train a dependency parser on a corpus.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_bunsetsu
    >>> lines = ["* 0 1D", "本 ほん 本 名詞 普通名詞 * *", "を を を 助詞 格助詞 * *"]
    >>> lines += ["* 1 -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS", ""]
    >>> corpus = read_bunsetsu(io.BytesIO("\n".join(lines).encode()))
    >>> corpus
    <BunsetsuCorpus of 1 sentence, 2 bunsetsu>
    >>> corpus.heads
    array([ 1, -1], dtype=int32)
    """

    def __init__(self, text: BunsetsuText, heads: NDArray[np.int32], types: bytes, name: str) -> None:
        self._text = text
        self.name = name
        self.heads = heads
        self.types = types
        heads.flags.writeable = False

    def __len__(self) -> int:
        """Return the number of sentences."""
        return int(self._text.sentences)

    def __repr__(self) -> str:
        return f"<BunsetsuCorpus of {pluralize(len(self), 'sentence')}, {self.n_bunsetsu} bunsetsu>"

    @overload
    def __getitem__(self, index: int) -> BunsetsuSentence: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> BunsetsuCorpus: ...
    def __getitem__(
        self, index: int | slice | Sequence[int] | NDArray[Any]
    ) -> BunsetsuSentence | BunsetsuCorpus:
        """Return a sentence; for a slice or a list of numbers, return a corpus of these sentences."""
        if not isinstance(index, int | np.integer) or isinstance(index, bool):
            chosen = np.arange(len(self))[index]
            if chosen.ndim != 1:
                raise IndexError("sentences are chosen by a number, a slice or a list of numbers")
            lines = b"".join(self._sentence_lines(number) for number in chosen.tolist())
            return parse_corpus(lines, f"{self.name} (part)", line=1, skip=False)
        number = range(len(self))[index]
        begin, end = self.first_bunsetsu[number : number + 2]
        return BunsetsuSentence(
            tuple(
                tuple(Morpheme(*fields) for fields in morphemes)
                for morphemes in self._text.morphemes_of(number)
            ),
            tuple(self.heads[begin:end].tolist()),
            self.types[begin:end].decode(),
            self._sentence_lines(number).decode(errors="surrogateescape"),
        )

    @property
    def n_bunsetsu(self) -> int:
        """Number of bunsetsu in all sentences."""
        return int(self._text.bunsetsu)

    @cached_property
    def first_bunsetsu(self) -> NDArray[np.int64]:
        """The number of the first bunsetsu of each sentence, followed by the total number of bunsetsu."""
        return np.asarray(self._text.first_bunsetsu)

    @property
    def skipped(self) -> list[SkippedSentence]:
        """The sentences skipped because of ``on_error="skip"``, each with its line and the reason."""
        return [SkippedSentence(*fault) for fault in self._text.skipped]

    def with_heads(self, heads: ArrayLike, types: bytes | None = None) -> BunsetsuCorpus:
        """Return a copy of the corpus with other dependencies.

        Parameters
        ----------
        heads : array-like of int
            The heads of all bunsetsu, in the form of the attribute ``heads``.
        types : bytes, default=None
            The types of the dependencies; None makes all of them D.

        Returns
        -------
        BunsetsuCorpus
            The same sentences with other heads.
        """
        head_array = np.asarray(heads)
        if head_array.ndim != 1 or (head_array.size and head_array.dtype.kind not in "iu"):
            raise ValueError(
                f"heads must be a list of integers, got an array of {head_array.dtype} with shape "
                f"{head_array.shape}"
            )
        if head_array.size and not np.array_equal(head_array, head_array.astype(np.int32)):
            raise ValueError("heads are numbers of bunsetsu, and some of them are too large")
        new_heads = head_array.astype(np.int32)
        letters = b"D" * len(new_heads) if types is None else types
        self._text.check_heads(new_heads, letters)
        return BunsetsuCorpus(self._text, new_heads, letters, self.name)

    def to_bytes(self) -> bytes:
        return self._text.with_heads(self.heads, self.types)

    def _sentence_lines(self, number: int) -> bytes:
        lines = self._text.sentence_with_heads(number, self.heads, self.types)
        return lines if lines.endswith(b"\n") else lines + b"\n"


def parse_corpus(data: bytes, file: str, *, line: int, skip: bool) -> BunsetsuCorpus:
    """Return a corpus of parsed sentences; `line` is the number of their first line in the file."""
    text = BunsetsuText(data, file, line, skip)
    return BunsetsuCorpus(text, np.asarray(text.heads), text.types, file)


def read_bunsetsu(source: Source, *, on_error: str = "raise") -> BunsetsuCorpus:
    r"""Read Japanese sentences with bunsetsu and dependencies, in the formats of KNP and CaboCha.

    Parameters
    ----------
    source : path or file object
        UTF-8 text, plain or compressed by gzip, xz, bzip2 or Zstandard. The compression is detected from the
        content, not from the name.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled. "raise" raises a FormatError at the first one; "skip" skips them
        and lists them in ``BunsetsuCorpus.skipped``.

    Returns
    -------
    BunsetsuCorpus
        The sentences.

    Raises
    ------
    FormatError
        If the file is malformed. The message names the line and the column.

    See Also
    --------
    read_bunsetsu_parts : Read a file of any length in parts.
    unkernel.parsing.BunsetsuParser : Train a dependency parser on a corpus.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_bunsetsu
    >>> lines = ["* 0 1D", "本 ほん 本 名詞 普通名詞 * *", "を を を 助詞 格助詞 * *"]
    >>> lines += ["* 1 -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS", ""]
    >>> corpus = read_bunsetsu(io.BytesIO("\n".join(lines).encode()))
    >>> corpus[0].surfaces, corpus[0].heads
    (('本を', '読む'), (1, -1))
    """
    skip = check_on_error(on_error)
    return parse_corpus(b"".join(read_blocks(source)), name_of(source), line=1, skip=skip)


def read_bunsetsu_parts(
    source: Source, *, on_error: str = "raise", part_bytes: int = 1 << 22
) -> Iterator[BunsetsuCorpus]:
    r"""Read bunsetsu sentences from a file of any length, in parts of bounded size.

    Parameters
    ----------
    source : path or file object
        UTF-8 text, plain or compressed, as for :func:`read_bunsetsu`.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled, as for :func:`read_bunsetsu`.
    part_bytes : int, default=4194304
        Approximate number of bytes per part.

    Returns
    -------
    iterator of BunsetsuCorpus
        Whole sentences. The concatenated texts of all parts equal the file.

    See Also
    --------
    read_bunsetsu : Read the whole file at once.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_bunsetsu_parts
    >>> sentence = "* 0 -1D\n読む よむ 読む 動詞 * 子音動詞マ行 基本形\nEOS\n"
    >>> [len(part) for part in read_bunsetsu_parts(io.BytesIO(sentence.encode() * 3), part_bytes=120)]
    [1, 2]
    """
    skip = check_on_error(on_error)
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be at least 1, got {part_bytes}")
    return split_parts(read_blocks(source, part_bytes), name_of(source), skip=skip)


def split_parts(
    pieces: Iterable[bytes], name: str, *, skip: bool, longest: int = LONGEST_SENTENCE
) -> Iterator[BunsetsuCorpus]:
    """Yield corpora of whole sentences from a file that arrives in pieces of any length."""
    line, buffer, n_searched = 1, b"", 0  # n_searched: bytes of the buffer in which no sentence ends
    for block in pieces:
        buffer += block
        end = whole_bunsetsu_sentences(buffer, n_searched)
        if not end and len(buffer) > longest:
            raise FormatError(name, line, 0, f"a sentence of more than {longest} bytes; EOS ends a sentence")
        if end:
            corpus = parse_corpus(buffer[:end], name, line=line, skip=skip)
            line += corpus._text.lines
            yield corpus
        buffer = buffer[end:]
        n_searched = len(buffer)
    if buffer:
        yield parse_corpus(buffer, name, line=line, skip=skip)


BunsetsuSource = Source | BunsetsuCorpus


def as_corpus(source: BunsetsuSource) -> BunsetsuCorpus:
    """Read a corpus from a source; if the source is a corpus, return it unchanged."""
    return source if isinstance(source, BunsetsuCorpus) else read_bunsetsu(source)
