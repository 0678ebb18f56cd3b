"""Japanese sentences cut into bunsetsu, in the style of KNP and CaboCha."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import BunsetsuText, whole_bunsetsu_sentences
from unkernel.data.files import Source, name_of, read_blocks, writing
from unkernel.data.notebooks import corpus_html
from unkernel.data.text.columns import LONGEST_SENTENCE
from unkernel.errors import FormatError

ON_ERROR = ("raise", "skip")


class Morpheme(NamedTuple):
    """One line of a bunsetsu."""

    surface: str
    reading: str
    lemma: str
    pos: str
    subpos: str
    ctype: str
    cform: str


class SkippedSentence(NamedTuple):
    """A sentence that was left out: where it is bad, and why."""

    line: int
    column: int
    reason: str


@dataclass(frozen=True)
class BunsetsuSentence:
    """A sentence.

    Attributes
    ----------
    bunsetsu : tuple of tuples of Morpheme
    heads : tuple of int
        Of each bunsetsu the number, from 0, of the one that it depends on; -1 for the root.
    types : str
        A letter for each bunsetsu: the way in which it depends (D, P, I or A).
    source : str
        Its lines, from its comments to its ``EOS``.
    """

    bunsetsu: tuple[tuple[Morpheme, ...], ...]
    heads: tuple[int, ...]
    types: str
    source: str

    def __len__(self) -> int:
        """The number of bunsetsu."""
        return len(self.bunsetsu)

    def __str__(self) -> str:
        return self.source

    @cached_property
    def surfaces(self) -> tuple[str, ...]:
        """The text of each bunsetsu."""
        return tuple("".join(morpheme.surface for morpheme in own) for own in self.bunsetsu)

    @property
    def text(self) -> str:
        """The text of the sentence."""
        return "".join(self.surfaces)

    def draw(self, width: int | None = None) -> str:
        """The tree for the terminal, one bunsetsu per line, in lines of at most `width` cells."""
        from unkernel.data.text.drawing import draw_text

        return draw_text(self.surfaces, self.heads, base=0, width=width)

    def to_svg(self) -> str:
        """The tree as arcs over the bunsetsu, a whole SVG picture."""
        from unkernel.data.text.drawing import draw_svg

        return draw_svg(self.surfaces, self.heads, base=0)

    def _repr_html_(self) -> str:
        """Give notebooks the picture."""
        return f'<div style="overflow-x: auto">{self.to_svg()}</div>'


class BunsetsuCorpus(Sequence[BunsetsuSentence]):
    """Sentences of a file, with their dependencies; all its other bytes are kept.

    Made by :func:`read_bunsetsu`. ``corpus[3]`` is a sentence; ``corpus[3:7]`` and ``corpus[[3, 7]]`` are
    corpora of sentences.

    Attributes
    ----------
    name : str
        What error messages call the file.
    heads : ndarray of int32
        Of all bunsetsu, one sentence after another: the number, from 0, of the bunsetsu of the sentence that
        each depends on, and -1 for a root.
    types : bytes
        A letter for each bunsetsu.
    skipped : list of SkippedSentence
        What was left out under ``on_error="skip"``. Their bytes are written as they were read.
    """

    def __init__(self, text: BunsetsuText, heads: NDArray[np.int32], types: bytes, name: str) -> None:
        self._text = text
        self.name = name
        self.heads = heads
        self.types = types
        heads.flags.writeable = False

    def __len__(self) -> int:
        """The number of sentences."""
        return int(self._text.sentences)

    def __repr__(self) -> str:
        return f"<BunsetsuCorpus of {len(self)} sentences, {self.n_bunsetsu} bunsetsu>"

    def _repr_html_(self) -> str:
        """Give notebooks the first sentences."""
        return corpus_html(self)

    @overload
    def __getitem__(self, index: int) -> BunsetsuSentence: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> BunsetsuCorpus: ...
    def __getitem__(
        self, index: int | slice | Sequence[int] | NDArray[Any]
    ) -> BunsetsuSentence | BunsetsuCorpus:
        """A sentence, or a corpus of those that a slice or a list of numbers chooses."""
        if not isinstance(index, int | np.integer) or isinstance(index, bool):
            chosen = np.arange(len(self))[index]
            if chosen.ndim != 1:
                raise IndexError("sentences are chosen by a number, a slice or a list of numbers")
            lines = b"".join(self._lines(number) for number in chosen.tolist())
            return corpus_of(lines, f"{self.name} (part)", line=1, skip=False)
        number = range(len(self))[index]
        begin, end = self.first_bunsetsu[number : number + 2]
        return BunsetsuSentence(
            tuple(tuple(Morpheme(*fields) for fields in own) for own in self._text.morphemes_of(number)),
            tuple(self.heads[begin:end].tolist()),
            self.types[begin:end].decode(),
            self._lines(number).decode(errors="surrogateescape"),
        )

    @property
    def n_bunsetsu(self) -> int:
        """Bunsetsu of all sentences."""
        return int(self._text.bunsetsu)

    @cached_property
    def first_bunsetsu(self) -> NDArray[np.int64]:
        """Where the bunsetsu of each sentence begin, and the total number."""
        return np.asarray(self._text.first_bunsetsu)

    @property
    def skipped(self) -> list[SkippedSentence]:
        """The sentences that were left out."""
        return [SkippedSentence(*found) for found in self._text.skipped]

    def with_heads(self, heads: ArrayLike, types: bytes | None = None) -> BunsetsuCorpus:
        """The same sentences with other dependencies, all of type D unless types are given."""
        given = np.asarray(heads)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError(
                f"heads are a list of integers, got an array of {given.dtype} with shape {given.shape}"
            )
        if given.size and not np.array_equal(given, given.astype(np.int32)):
            raise ValueError("heads are numbers of bunsetsu, and some of these are far too large")
        own = given.astype(np.int32)
        letters = b"D" * len(own) if types is None else types
        self._text.check_heads(own, letters)
        return BunsetsuCorpus(self._text, own, letters, self.name)

    def to_bytes(self) -> bytes:
        """The file: but for heads and types, every byte as it was read."""
        return self._text.with_heads(self.heads, self.types)

    def write(self, target: Source) -> None:
        """Write the file, to a path (whole or not at all, compressed as its suffix says) or an open file."""
        with writing(target) as write:
            write(self.to_bytes())

    def _lines(self, number: int) -> bytes:
        lines = self._text.sentence_with_heads(number, self.heads, self.types)
        return lines if lines.endswith(b"\n") else lines + b"\n"


def corpus_of(data: bytes, file: str, *, line: int, skip: bool) -> BunsetsuCorpus:
    """Sentences of a file from its given line on; bad ones are an error or are skipped."""
    text = BunsetsuText(data, file, line, skip)
    return BunsetsuCorpus(text, np.asarray(text.heads), text.types, file)


def read_bunsetsu(source: Source, *, on_error: str = "raise") -> BunsetsuCorpus:
    r"""Read bunsetsu and their dependencies; docs/formats/bunsetsu.md describes what is read.

    Parameters
    ----------
    source : path or file object
        Plain, or compressed by gzip, xz, bzip2 or Zstandard, whatever its name is.
    on_error : {"raise", "skip"}, default="raise"
        "skip" leaves out sentences that are not what they should be; ``skipped`` of the corpus lists them.

    Returns
    -------
    BunsetsuCorpus

    Raises
    ------
    FormatError
        If the file is not what it should be; line and column are named.

    Examples
    --------
    >>> import io
    >>> lines = ["* 0 1D", "本 ほん 本 名詞 普通名詞 * *", "を を を 助詞 格助詞 * *"]
    >>> lines += ["* 1 -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS", ""]
    >>> corpus = read_bunsetsu(io.BytesIO("\n".join(lines).encode()))
    >>> corpus[0].surfaces, corpus[0].heads
    (('本を', '読む'), (1, -1))
    """
    _check_on_error(on_error)
    return corpus_of(b"".join(read_blocks(source)), name_of(source), line=1, skip=on_error == "skip")


def read_bunsetsu_parts(
    source: Source, *, on_error: str = "raise", part_bytes: int = 1 << 22
) -> Iterator[BunsetsuCorpus]:
    """The sentences of a file of any length, about ``part_bytes`` of text at a time.

    What the parts write, one after another, is what the whole corpus would.
    """
    _check_on_error(on_error)
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be at least 1, got {part_bytes}")
    return parts_of(read_blocks(source, part_bytes), name_of(source), skip=on_error == "skip")


def parts_of(
    pieces: Iterable[bytes], name: str, *, skip: bool, longest: int = LONGEST_SENTENCE
) -> Iterator[BunsetsuCorpus]:
    """The sentences of a file that comes in pieces of any length."""
    line, held, seen = 1, b"", 0
    for block in pieces:
        held += block
        end = whole_bunsetsu_sentences(held, seen)
        if not end and len(held) > longest:
            raise FormatError(name, line, 0, f"a sentence of more than {longest} bytes; EOS ends a sentence")
        if end:
            corpus = corpus_of(held[:end], name, line=line, skip=skip)
            line += corpus._text.lines
            yield corpus
        held = held[end:]
        seen = len(held)
    if held:
        yield corpus_of(held, name, line=line, skip=skip)


def _check_on_error(on_error: str) -> None:
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error must be one of {', '.join(ON_ERROR)}, got {on_error!r}")


BunsetsuSource = Source | BunsetsuCorpus


def bunsetsu_corpus(source: BunsetsuSource) -> BunsetsuCorpus:
    """The corpus itself, or the one that is read from the source."""
    return source if isinstance(source, BunsetsuCorpus) else read_bunsetsu(source)
