"""Treebanks in the CoNLL-U and CoNLL-X formats; docs/formats/columns.md describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel.data.files import Source
from unkernel.data.text.columns import (
    ColumnCorpus,
    OnError,
    check_field,
    check_lengths,
    check_skipped,
    flatten_values,
    head_numbers,
    number_names,
    parse_text,
    read_column_blocks,
    read_columns,
    sentence_lengths,
)
from unkernel.data.text.conll_sentence import COLUMN_NUMBERS, COLUMNS, Sentence

_ENDS_A_FIELD = re.compile(r"[\t\n\r\0]")

TreebankFormat = Literal["conllu", "conllx"]
# Sentences of CoNLL-U have one root; sentences of CoNLL-X may have several.
_TREES: dict[TreebankFormat, str] = {"conllu": "tree", "conllx": "forest"}


class Treebank(ColumnCorpus[Sentence]):
    """Sentences with their dependency trees, as read from CoNLL-U or CoNLL-X.

    A treebank is an immutable sequence of :class:`Sentence`: use ``len(bank)``, ``bank[0]`` and
    ``for sentence in bank``. Indexing with a slice or a list of indices (``bank[:100]``, ``bank[[3, 1]]``)
    returns a new treebank. Read a treebank with :func:`~unkernel.read_conllu` or :func:`read_conllx`, or make
    one with :meth:`from_words`.

    See Also
    --------
    unkernel.read_conllu : Read a treebank in the CoNLL-U format.
    read_conllx : Read a treebank in the CoNLL-X format.
    unkernel.parsing.ArcEagerParser : Train a dependency parser on a treebank.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> bank = Treebank.from_words([["They", "saw", "it"]], [["PRON", "VERB", "PRON"]])
    >>> parsed = bank.with_trees([[2, 0, 2]], [["nsubj", "root", "obj"]])
    >>> parsed[0].deprels
    ['nsubj', 'root', 'obj']
    """

    columns: ClassVar[tuple[str, ...]] = COLUMNS

    def _make_sentence(self, number: int) -> Sentence:
        return Sentence(self._text, number)

    @property
    def format(self) -> TreebankFormat:
        """Format of the file, ``"conllu"`` or ``"conllx"``."""
        format: TreebankFormat = self._format
        return format

    @property
    def heads(self) -> NDArray[np.int32]:
        """The heads of all words, counted from 1 in each sentence; 0 for roots, -1 for missing heads."""
        return np.asarray(self._text.heads)

    def symbols(self, column: str) -> tuple[NDArray[np.int32], list[str]]:
        """Encode a column of all words as integers.

        Parameters
        ----------
        column : {"form", "lemma", "upos", "xpos", "feats", "deprel", "deps", "misc"}
            Name of the column.

        Returns
        -------
        numbers : ndarray of int32
            One number per word: the index of its value in ``names``.
        names : list of str
            The distinct values, in the order of their first occurrence.

        Examples
        --------
        >>> Treebank.from_words([["a", "b"], ["a"]]).symbols("form")
        (array([0, 1, 0], dtype=int32), ['a', 'b'])
        """
        if column not in COLUMNS:
            raise ValueError(f"column must be one of {', '.join(COLUMNS)}, got {column!r}")
        numbers, names = self._text.symbols(COLUMN_NUMBERS[column])
        return np.asarray(numbers), list(names)

    def check_trees(self) -> None:
        """Check that the heads of every sentence form a tree.

        Every word must have a head, and heads must not form a cycle. Sentences of CoNLL-U must have exactly
        one root; sentences of CoNLL-X may have several.

        Raises
        ------
        FormatError
            If a sentence is not a tree. The message names its line.
        """
        self._text.check_trees(_TREES[self.format])

    def with_trees(
        self, heads: ArrayLike | Sequence[Sequence[int]], deprels: Sequence[str] | Sequence[Sequence[str]]
    ) -> Self:
        """Return a copy of the treebank with other heads and relations.

        Parameters
        ----------
        heads : array of int, or one sequence of int per sentence
            The number of each word's head, counted from 1 within the sentence; 0 for a root, -1 for a word
            without a head.
        deprels : sequence of str, or one sequence of str per sentence
            Dependency relations.

        Returns
        -------
        Treebank
            The same text with other heads and relations; every other byte is unchanged.
        """
        lengths = np.diff(self.offsets)
        relations, names = number_names(flatten_values(deprels, lengths, "relations"))
        return self._with_trees(head_numbers(flatten_values(heads, lengths, "heads")), relations, names)

    def _with_trees(self, heads: NDArray[np.int32], relations: NDArray[np.int32], names: list[str]) -> Self:
        """Return a copy with other trees; `relations` has each word's relation as an index into `names`."""
        return self._from_text(check_skipped(self._text.replace_trees(heads, relations, names)))

    @classmethod
    def from_words(
        cls,
        words: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        xpos: Sequence[Sequence[str]] | None = None,
        lemmas: Sequence[Sequence[str]] | None = None,
        heads: Sequence[Sequence[int]] | None = None,
        deprels: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Make a treebank from lists of words.

        Parameters
        ----------
        words : sequence of sequences of str
            The words of each sentence. They may contain spaces, but no tabs or line breaks.
        tags : sequence of sequences of str, default=None
            Universal parts of speech, one per word.
        xpos : sequence of sequences of str, default=None
            The treebank's own parts of speech.
        lemmas : sequence of sequences of str, default=None
            Dictionary forms.
        heads : sequence of sequences of int, default=None
            The number of each word's head, counted from 1 within the sentence; 0 for a root, -1 for a word
            without a head.
        deprels : sequence of sequences of str, default=None
            Dependency relations.

        Returns
        -------
        Treebank
            The sentences.

        Examples
        --------
        >>> bank = Treebank.from_words([["They", "saw", "it"], ["No"]], [["PRON", "VERB", "PRON"], ["INTJ"]])
        >>> bank
        <Treebank <memory>: 2 sentences, 4 words>
        >>> bank[1].upos
        ['INTJ']
        """
        lengths = sentence_lengths(words)
        annotations = {"tags": tags, "xpos": xpos, "lemmas": lemmas, "heads": heads, "deprels": deprels}
        for name, values in annotations.items():
            if values is not None:
                check_lengths([len(sentence_values) for sentence_values in values], lengths, name)
        columns = (words, lemmas, tags, xpos, None, heads, deprels, None, None)
        lines = (
            _format_lines(sentence, [None if column is None else column[sentence] for column in columns])
            for sentence in range(len(words))
        )
        return cls._from_text(parse_text("".join(lines).encode(), "conllu"))


def _format_lines(sentence: int, columns: list[Any]) -> str:
    """Return the lines of a sentence, given its number and its columns; None stands for an empty column."""
    lines = []
    for word in range(len(columns[0])):
        fields = ["_" if column is None else _format_field(column[word], sentence) for column in columns]
        lines.append("\t".join([str(word + 1), *fields]))
    return "\n".join([*lines, "\n"])


def _format_field(value: Any, sentence: int) -> str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return "_" if value == -1 else str(value)
    return check_field(value, sentence, _ENDS_A_FIELD)


def read_conllu(source: Source, *, trees: bool = False, on_error: OnError = "raise") -> Treebank:
    r"""Read a treebank in the CoNLL-U format.

    The treebank keeps the text of the file, and can write it again byte for byte.

    Parameters
    ----------
    source : path, or open binary or text file
        UTF-8 text, plain or compressed by gzip, xz, bzip2 or Zstandard. The compression is detected from the
        content, not from the name.
    trees : bool, default=False
        Whether every sentence must be a tree: all words have heads, exactly one word is the root, and there
        are no cycles. By default, a head may be any word of the sentence, 0 or ``_``.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled. "raise" raises a FormatError at the first one; "skip" skips them.
        Skipped sentences remain in the text and are listed in ``Treebank.skipped``.

    Returns
    -------
    Treebank
        The sentences.

    Raises
    ------
    FormatError
        If a line does not have ten columns, words are not numbered 1, 2, 3, ..., a head does not exist, or
        the text is not UTF-8. The message names the line and the character.
    OSError
        If the file cannot be read.

    See Also
    --------
    unkernel.data.read_conllx : Read CoNLL-X files.
    unkernel.data.read_conllu_parts : Read a file of any length in parts.
    read_trees : Read dependencies as trees for tree kernels.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_conllu
    >>> text = "1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    >>> bank = read_conllu(io.StringIO(text))
    >>> bank[0].forms, bank[0].heads
    (['dogs', 'bark'], [2, 0])
    >>> bank.to_bytes() == text.encode()
    True
    """
    return _read(source, "conllu", trees, on_error)


def read_conllx(source: Source, *, trees: bool = False, on_error: OnError = "raise") -> Treebank:
    r"""Read a treebank in the CoNLL-X format.

    The format is like CoNLL-U, without multiword tokens and empty nodes.

    Parameters
    ----------
    source : path, or open binary or text file
        UTF-8 text, plain or compressed by gzip, xz, bzip2 or Zstandard. The compression is detected from the
        content, not from the name.
    trees : bool, default=False
        Whether every word must have a head, and heads must lead to a root. There may be several roots.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled, as for :func:`~unkernel.read_conllu`.

    Returns
    -------
    Treebank
        The sentences. The columns CPOSTAG, POSTAG, PHEAD and PDEPREL are called ``upos``, ``xpos``, ``deps``
        and ``misc``.

    Raises
    ------
    FormatError
        If the file is malformed, as for :func:`~unkernel.read_conllu`.

    See Also
    --------
    unkernel.read_conllu : Read CoNLL-U files.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_conllx
    >>> bank = read_conllx(io.StringIO("1\tNee\tnee\tAdv\tAdv\t_\t0\tROOT\t_\t_\n\n"))
    >>> bank[0].xpos
    ['Adv']
    """
    return _read(source, "conllx", trees, on_error)


def read_conllu_parts(
    source: Source, *, on_error: OnError = "raise", size: int = 1 << 20
) -> Iterator[Treebank]:
    """Read a treebank of any length in parts of bounded size.

    Parameters
    ----------
    source : path, or open binary or text file
        UTF-8 text, plain or compressed, as for :func:`~unkernel.read_conllu`.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled, as for :func:`~unkernel.read_conllu`. Each part lists its skipped
        sentences.
    size : int, default=1048576
        Approximate number of bytes per part.

    Returns
    -------
    iterator of Treebank
        Whole sentences, with their line numbers in the file. The concatenated texts of all parts equal the
        file.

    See Also
    --------
    unkernel.read_conllu : Read the whole file at once.
    unkernel.parsing.parse_stream : Parse a file of any length.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import Treebank, read_conllu_parts
    >>> text = Treebank.from_words([["Go"], ["Stay", "here"]]).to_bytes()
    >>> [(len(part), part[0].forms, part[0].line) for part in read_conllu_parts(io.BytesIO(text), size=30)]
    [(1, ['Go'], 1), (1, ['Stay', 'here'], 3)]
    """
    return map(Treebank._from_text, read_column_blocks(source, "conllu", on_error=on_error, size=size))


def _read(source: Source, format: TreebankFormat, trees: bool, on_error: OnError) -> Treebank:
    check = _TREES[format] if trees else "none"
    return Treebank._from_text(read_columns(source, format, trees=check, on_error=on_error))
