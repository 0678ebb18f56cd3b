"""Accuracy of splitting, tagging and parsing: the measures of the CoNLL 2018 shared task.

A tag of the output is correct if the aligned word of the treebank has the same tag. A head is correct if it
is aligned with the head in the treebank. F1 is the harmonic mean of precision (correct words divided by all
words of the output) and recall (correct words divided by all words of the treebank).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.text.conll import Treebank
from unkernel.parsing.arc_eager.model import TreebankSource, as_treebank
from unkernel.parsing.input_checks import check_not_empty
from unkernel.parsing.score_figures import compute_percentage, compute_rate
from unkernel.parsing.text.aligned_words import AlignedTexts, AlignedWord, Span
from unkernel.parsing.text.learned_column import find_tagged_columns

# The universal features of Universal Dependencies, version 2. Language-specific features are not compared.
_UNIVERSAL_FEATURES = {
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case",
    "Definite", "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person",
    "Polite",
}  # fmt: skip


SPLITTING = ("tokens", "sentences", "words")
_TAGS = {"upos": "upos", "xpos": "xpos", "ufeats": "feats", "lemmas": "lemma"}  # measure: column
ALL_MEASURES = (*SPLITTING, "upos", "xpos", "ufeats", "all_tags", "lemmas", "uas", "las")


def list_measures(columns: Sequence[str], *, trees: bool = True) -> tuple[str, ...]:
    """Return the names of all measures that need no other columns of tags, and trees only if `trees`.

    >>> list_measures(["upos", "lemma"])
    ('tokens', 'sentences', 'words', 'upos', 'lemmas', 'uas', 'las')
    """
    missing = {measure for measure, column in _TAGS.items() if column not in columns}
    if missing - {"lemmas"}:
        missing.add("all_tags")
    if not trees:
        missing |= {"uas", "las"}
    return tuple(name for name in ALL_MEASURES if name not in missing)


@dataclass(frozen=True)
class Score:
    """Precision, recall and F1 of one measure.

    Attributes
    ----------
    n_gold : int
        Number of items in the annotated text.
    n_found : int
        Number of items in the output.
    n_right : int
        Number of correct items in the output.

    See Also
    --------
    TextResult : The scores of all measures.

    Examples
    --------
    >>> from unkernel.parsing import Score
    >>> score = Score(n_gold=5, n_found=4, n_right=3)
    >>> score.precision, score.recall
    (75.0, 60.0)
    """

    n_gold: int
    n_found: int
    n_right: int

    @property
    def precision(self) -> float:
        """Percentage of the items in the output that are correct."""
        return compute_percentage(self.n_right, self.n_found)

    @property
    def recall(self) -> float:
        """Percentage of the annotated items that were found."""
        return compute_percentage(self.n_right, self.n_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in percent."""
        return compute_percentage(2 * self.n_right, self.n_found + self.n_gold)

    def __str__(self) -> str:
        return f"{self.f1:.2f} %"


@dataclass(frozen=True)
class TextResult:
    """Accuracy and speed of a parser of raw text, with the measures of the CoNLL 2018 shared task.

    Attributes
    ----------
    tokens : Score
        Tokens; a multiword token is one token and several words.
    sentences : Score
        Sentences.
    words : Score
        Words.
    upos : Score
        Words with the correct universal part of speech.
    xpos : Score
        Words with the correct part of speech of the treebank.
    ufeats : Score
        Words with the correct universal features.
    all_tags : Score
        Words whose ``upos``, ``xpos`` and ``ufeats`` are correct.
    lemmas : Score
        Words with the correct lemma; words that have no lemma in the treebank count as correct.
    uas : Score
        Words with the correct head.
    las : Score
        Words with the correct head and relation, without subtypes of relations.
    seconds : float, default=nan
        CPU time; NaN if it was not measured.
    measured : tuple of str, default=all
        Names of the meaningful scores: their values were predicted, and the treebank has them too.
    answer : Treebank or None, default=None
        The predicted annotation that was compared with the treebank.

    See Also
    --------
    compare_text : Compare two treebanks of the same text.
    TextParserModel.evaluate : Evaluate a parser.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import compare_text
    >>> gold = Treebank.from_words([["can", "not"], ["go"]], [["AUX", "PART"], ["VERB"]])
    >>> result = compare_text(gold, Treebank.from_words([["cannot", "go"]], [["AUX", "VERB"]]))
    >>> result.words.n_right, list(result.scores())
    (1, ['tokens', 'sentences', 'words', 'upos'])
    """

    tokens: Score
    sentences: Score
    words: Score
    upos: Score
    xpos: Score
    ufeats: Score
    all_tags: Score
    lemmas: Score
    uas: Score
    las: Score
    seconds: float = field(default=float("nan"), compare=False)
    measured: tuple[str, ...] = ALL_MEASURES
    answer: Treebank | None = field(default=None, compare=False, repr=False)

    @property
    def words_per_second(self) -> float:
        """Number of words per second of CPU time."""
        return compute_rate(self.words.n_found, self.seconds)

    def scores(self) -> dict[str, Score]:
        """Return the meaningful scores by name.

        Returns
        -------
        dict of str to Score
            The scores in ``measured``.
        """
        return {name: getattr(self, name) for name in self.measured}

    def to_frame(self) -> Any:
        """Return the meaningful scores as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per score.
        """
        return frame_of(
            [
                {"measure": name, "precision": score.precision, "recall": score.recall, "f1": score.f1}
                for name, score in self.scores().items()
            ]
        )

    def __str__(self) -> str:
        return ", ".join(f"{TITLES[name]} {score.f1:.2f}" for name, score in self.scores().items())

    def table(self) -> str:
        """Return the meaningful scores as a text table.

        Returns
        -------
        str
            One line per score, with precision, recall and F1.
        """
        lines = ["            precision   recall       F1"]
        for name, score in self.scores().items():
            shares = (score.precision, score.recall, score.f1)
            lines.append(f"{TITLES[name]:11}" + "".join(f"{share:8.2f} %" for share in shares))
        return "\n".join(lines)


TITLES = {
    "tokens": "Tokens", "sentences": "Sentences", "words": "Words", "upos": "UPOS", "xpos": "XPOS",
    "ufeats": "UFeats", "all_tags": "AllTags", "lemmas": "Lemmas", "uas": "UAS", "las": "LAS",
}  # fmt: skip


def compare_text(
    gold: TreebankSource,
    found: TreebankSource,
    *,
    seconds: float = float("nan"),
    measures: Sequence[str] = ALL_MEASURES,
) -> TextResult:
    """Evaluate an annotation against the correct annotation of the same text.

    The two annotations may split the text differently.

    Parameters
    ----------
    gold : path, open file or Treebank
        The correct annotation.
    found : path, open file or Treebank
        The annotation to evaluate.
    seconds : float, default=nan
        CPU time that the annotation took; the result reports it.
    measures : sequence of str, default=all
        Names of the scores to compute. Scores for annotation that the treebank lacks are left out.

    Returns
    -------
    TextResult
        The accuracy.

    Raises
    ------
    ValueError
        If the texts differ in more than blanks.

    See Also
    --------
    TextParserModel.evaluate : Evaluate a parser.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import compare_text
    >>> gold = Treebank.from_words([["can", "not"], ["go"]], [["AUX", "PART"], ["VERB"]])
    >>> found = Treebank.from_words([["cannot", "go"]], [["AUX", "VERB"]])
    >>> result = compare_text(gold, found)
    >>> str(result.words), str(result.upos), str(result.sentences)
    ('40.00 %', '40.00 %', '0.00 %')
    """
    bank, answer = as_treebank(gold), as_treebank(found)
    check_not_empty(bank.name, len(bank))
    texts = AlignedTexts(bank, answer)
    annotated = list_measures(find_tagged_columns(bank), trees=bool((bank.heads >= 0).any()))

    def score(is_correct: Callable[[AlignedWord, AlignedWord], bool]) -> Score:
        count = sum(is_correct(gold, predicted) for gold, predicted in texts.pairs)
        return Score(len(texts.gold.words), len(texts.predicted.words), count)

    def have_same(read: Callable[[AlignedWord], Any]) -> Callable[[AlignedWord, AlignedWord], bool]:
        return lambda gold, predicted: read(gold) == read(predicted)

    def has_correct_arc(gold: AlignedWord, predicted: AlignedWord) -> bool:
        return texts.have_same_head(gold, predicted) and _get_relation(gold) == _get_relation(predicted)

    return TextResult(
        tokens=_score_spans(texts.gold.tokens, texts.predicted.tokens),
        sentences=_score_spans(texts.gold.sentences, texts.predicted.sentences),
        words=score(lambda gold, predicted: True),
        upos=score(have_same(lambda word: word.columns[3])),
        xpos=score(have_same(lambda word: word.columns[4])),
        ufeats=score(have_same(_list_universal_features)),
        all_tags=score(have_same(lambda word: (*word.columns[3:5], _list_universal_features(word)))),
        lemmas=score(lambda gold, predicted: gold.columns[2] in ("_", predicted.columns[2])),
        uas=score(texts.have_same_head),
        las=score(has_correct_arc),
        seconds=seconds,
        measured=tuple(name for name in measures if name in annotated),
        answer=answer,
    )


@dataclass(frozen=True, eq=False)
class ComparedTrees:
    """A word-by-word comparison of the trees of two treebanks of one text, possibly split differently.

    Attributes
    ----------
    relations : ndarray of str, shape (n_words,)
        The correct relation of each word, without its subtype.
    aligned_relations : ndarray of str, shape (n_words,)
        The relation of the output word aligned with each word; ``NO_WORD`` if there is none.
    predicted_relations : ndarray of str
        The relations of all words of the output.
    correct_heads : ndarray of bool, shape (n_words,)
        Whether the predicted head of each word is correct.
    lengths : ndarray of int, shape (n_words,)
        Distance from each word to its correct head; 0 for roots.
    """

    relations: NDArray[Any]
    aligned_relations: NDArray[Any]
    predicted_relations: NDArray[Any]
    correct_heads: NDArray[np.bool_]
    lengths: NDArray[np.int64]


NO_WORD = "(no such word)"


def compare_trees(gold: Treebank, predicted: Treebank) -> ComparedTrees:
    """Compare the trees of two treebanks of the same text."""
    texts = AlignedTexts(gold, predicted)
    predicted_of = {id(gold_word): predicted_word for gold_word, predicted_word in texts.pairs}
    pairs = [(word, predicted_of.get(id(word))) for word in texts.gold.words]
    return ComparedTrees(
        np.array([_get_relation(word) for word, _ in pairs], dtype=object),
        np.array([NO_WORD if other is None else _get_relation(other) for _, other in pairs], dtype=object),
        np.array([_get_relation(word) for word in texts.predicted.words], dtype=object),
        np.array([other is not None and texts.have_same_head(word, other) for word, other in pairs]),
        np.array([0 if word.head is None else abs(word.head.number - word.number) for word, _ in pairs]),
    )


def _score_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> Score:
    return Score(len(gold), len(predicted), len(set(gold) & set(predicted)))


def _get_relation(word: AlignedWord) -> str:
    return word.columns[7].partition(":")[0]


def _list_universal_features(word: AlignedWord) -> list[str]:
    return sorted(
        feature for feature in word.columns[5].split("|") if feature.partition("=")[0] in _UNIVERSAL_FEATURES
    )
