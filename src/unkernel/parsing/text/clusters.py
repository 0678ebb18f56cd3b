"""Clusters of words, learned from text without tags. Needs only NumPy."""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Integral
from pathlib import Path, PurePath
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ExchangeClusters
from unkernel.data.files import Source, name_of, read_text
from unkernel.data.text.columns import number_names
from unkernel.data.text.conll import Treebank, read_conllu
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing.input_checks import check_not_empty
from unkernel.parsing.parser_model import Arrays, SavedFile
from unkernel.parsing.stored_classifiers import pack_strings, unpack_strings

Lexicon = tuple[list[str], list[str]]  # words and their values
Text = Source | Treebank | Iterable[str | Iterable[str]]
_PLAIN = str.maketrans(
    string.ascii_uppercase + string.digits, string.ascii_lowercase + "0" * len(string.digits)
)
_END, _RARE = 0, 1  # tokens without a cluster (sentence ends, rare words); their numbers follow all words
_SNIFFED_BYTES = 1 << 12  # bytes at the beginning of a file that suffice to recognise a model
_MIN_MOVED_SHARE = 0.002  # training ends when fewer words than this share change their cluster


def plain_form(word: str) -> str:
    """Return the key of a word in lexicons: ASCII letters in lower case, and 0 for every digit.

    >>> plain_form("May-1984")
    'may-0000'
    """
    return word.translate(_PLAIN)


@dataclass(frozen=True, eq=False, repr=False)
class WordClusters(SavedFile):
    """Clusters of words that occur next to the same words.

    Clusters help a :class:`Tagger` or a parser with words that its treebank does not contain. They are the
    classes of a class bigram model, found by the exchange algorithm [1]_. ``clusters[word]`` is the number of
    the cluster of a word, or None.

    Attributes
    ----------
    words : list of str
        The words in lower case with 0 for every digit, most frequent first.
    clusters : ndarray of int32
        The cluster of each word.

    See Also
    --------
    Tagger : Tagger that can use clusters.
    ArcEagerParser : Parser that can use clusters.

    References
    ----------
    .. [1] S. Martin, J. Liermann and H. Ney, "Algorithms for bigram and trigram word clustering", Speech
       Communication 24, 1998.

    Examples
    --------
    >>> from unkernel.parsing import WordClusters
    >>> text = ["the cat sleeps", "a cat runs", "the dog runs", "a dog sleeps"] * 9
    >>> clusters = WordClusters.learn(text, n_clusters=3)
    >>> clusters["runs"] == clusters["sleeps"], clusters["Cat"] == clusters["dog"], clusters["fish"]
    (True, True, None)
    """

    kind = "word_clusters"
    noun = "file of clusters"

    words: list[str]
    clusters: NDArray[np.int32]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.clusters) or len(set(self.words)) != len(self.words):
            raise ValueError("there must be one cluster per word, and every word must be unique")
        if len(self.clusters) and self.clusters.min() < 0:
            raise ValueError("the number of a cluster is negative")

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, word: str) -> int | None:
        """Return the cluster of a word; None for unknown words."""
        index = self._index_of_word.get(plain_form(word))
        return None if index is None else int(self.clusters[index])

    @cached_property
    def _index_of_word(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def __repr__(self) -> str:
        return f"WordClusters({len(self)} words, {len(np.unique(self.clusters))} clusters)"

    @classmethod
    def learn(
        cls,
        *texts: Text,
        n_clusters: int = 256,
        min_count: int = 3,
        epochs: int = 20,
        on_progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Learn clusters from text that is split into words.

        Parameters
        ----------
        *texts : path, open file, Treebank, or sentences
            Texts. A file contains CoNLL-U if its name contains ``.conllu``, and otherwise one sentence per
            line with spaces between words. Files may be compressed. Sentences are lists of words, or strings
            with spaces between words.
        n_clusters : int, default=256
            Number of clusters.
        min_count : int, default=3
            Smallest number of occurrences of a word; rarer words get no cluster.
        epochs : int, default=20
            Largest number of passes over all words; training ends earlier when few words change clusters.
        on_progress : callable, default=None
            Called with a line of text after each pass.

        Returns
        -------
        WordClusters
            The clusters; the same texts always give the same clusters.
        """
        for name, value in (("n_clusters", n_clusters), ("min_count", min_count), ("epochs", epochs)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an int of 1 or more, got {value!r}")
        tokens, words = _count_words([_read_words(text) for text in texts], min_count)
        if not words:
            raise ValueError(f"no word of the texts occurs {min_count} times")
        learner = ExchangeClusters(tokens, vocabulary=len(words), others=2, clusters=n_clusters)
        for epoch in range(1, epochs + 1):
            moved = learner.run_epoch()
            if on_progress is not None:
                on_progress(f"epoch {epoch}: {moved:,} of {len(words):,} words moved")
            if moved <= _MIN_MOVED_SHARE * len(words):
                break
        return cls(words, np.asarray(learner.clusters()))

    def to_lexicon(self) -> Lexicon:
        """Return the words and the numbers of their clusters as strings.

        Returns
        -------
        words : list of str
            The words.
        clusters : list of str
            Their clusters.
        """
        return self.words, [str(cluster) for cluster in self.clusters.tolist()]

    @classmethod
    def from_lexicon(cls, lexicon: Lexicon) -> Self:
        """Make clusters from the result of :meth:`to_lexicon`.

        Parameters
        ----------
        lexicon : (list of str, list of str)
            The words and their clusters.

        Returns
        -------
        WordClusters
            The clusters.

        Raises
        ------
        ValueError
            If the lexicon is damaged.
        """
        words, clusters = lexicon
        return cls(words, np.array(clusters, np.int32))

    # --- Files ----------------------------------------------------------------------------------------

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        return self.kind, {"words": pack_strings(self.words), "clusters": self.clusters}, {}

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Self:
        clusters = container.read_array(name, arrays, "clusters", [np.dtype("<i4")], 1)
        try:
            return cls(unpack_strings(name, arrays, "words"), np.array(clusters))
        except ValueError as error:
            raise FormatError(name, 0, 0, f"the clusters are damaged: {error}") from error


def get_clusters(
    clusters: WordClusters | str | os.PathLike[str] | None,
    bank: Treebank,
    on_progress: Callable[[str], None] | None = None,
) -> WordClusters | None:
    """Return the clusters that the value of a parameter `clusters` stands for.

    A path names a file of clusters, or a text. From a text, clusters are learned together with the treebank.
    """
    if clusters is None or isinstance(clusters, WordClusters):
        return clusters
    if _is_model(clusters):
        return WordClusters.load(clusters)
    return WordClusters.learn(clusters, bank, on_progress=on_progress)


def _is_model(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a model, by its suffix or its content."""
    with Path(path).open("rb") as file:
        return Path(path).suffix == ".uk" or container.begins_as_model(file.read(_SNIFFED_BYTES))


@dataclass(frozen=True)
class _Words:
    """A text: the index of each word in `names`, and the positions at which sentences begin."""

    numbers: NDArray[np.int32]
    names: list[str]
    begins: NDArray[np.int64]


def _read_words(text: Text) -> _Words:
    if isinstance(text, str | os.PathLike) or hasattr(text, "read"):
        return _read_file(cast(Source, text))
    if isinstance(text, Treebank):
        check_not_empty(text.name, text.n_words)
        return _Words(*text.symbols("form"), text.offsets[:-1])
    sentences = [_split_sentence(sentence) for sentence in text]
    sentences = [words for words in sentences if words]
    lengths = np.array([len(words) for words in sentences], np.int64)
    return _Words(*number_names(chain.from_iterable(sentences)), np.cumsum(lengths) - lengths)


def _split_sentence(sentence: str | Iterable[str]) -> list[str]:
    words = sentence.split() if isinstance(sentence, str) else list(sentence)
    if not all(isinstance(word, str) for word in words):
        raise TypeError("each sentence must be a string or a list of strings")
    return words


def _read_file(file: Source) -> _Words:
    name = name_of(file)
    is_treebank = ".conllu" in PurePath(name).suffixes
    words = _read_words(read_conllu(file) if is_treebank else read_text(file).split("\n"))
    if not words.names:
        raise FormatError(name, 0, 0, "the text has no words to learn clusters from")
    return words


def _count_words(texts: list[_Words], min_count: int) -> tuple[NDArray[np.int32], list[str]]:
    """Return the tokens of all texts, including sentence ends, and the words, most frequent first.

    A token is the index of a word, or the number of words plus ``_END`` or ``_RARE``.
    """
    code_of: dict[str, int] = {}
    codes = []
    for text in texts:
        name_codes = [code_of.setdefault(plain_form(name), len(code_of)) for name in text.names]
        codes.append(np.array(name_codes, np.int64)[text.numbers])
    counts = np.zeros(len(code_of), np.int64)
    for text_codes in codes:
        counts += np.bincount(text_codes, minlength=len(code_of))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_count]
    rank = np.full(len(code_of), len(order) + _RARE, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    end = np.int32(len(order) + _END)
    tokens = [
        np.insert(rank[text_codes], text.begins, end) for text_codes, text in zip(codes, texts, strict=True)
    ]
    names = list(code_of)
    return np.concatenate([*tokens, np.array([end], np.int32)]), [names[word] for word in order.tolist()]
