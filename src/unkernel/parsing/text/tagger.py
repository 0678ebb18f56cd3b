"""The estimator of taggers: parts of speech, features and lemmas of words."""

from __future__ import annotations

import string
import time
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from unkernel._core import SequenceFeatures, SequenceTrainer
from unkernel.data.text.conll import Treebank
from unkernel.data.threads import thread_count
from unkernel.parsing.arc_eager.model import TreebankSource, treebank_of
from unkernel.parsing.base import BaseParser
from unkernel.parsing.online import Weights, classifier_of_runs
from unkernel.parsing.reporting import OnStep, Reporter
from unkernel.parsing.scoring import check_not_empty, percentage
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.text.lemmas import edit_of
from unkernel.parsing.text.tagger_model import (
    LEMMA,
    TAGGED,
    CertainClasses,
    LearnedColumn,
    Lexicons,
    TaggerModel,
    feature_sources,
)

_TEMPLATES = {"first": "tagger.txt", "next": "tagger_next.txt", LEMMA: "tagger_lemma.txt"}
_SPLITS = {"xpos": 1, "feats": 2, LEMMA: 1}  # by how many columns at most
_GOLD_EPOCHS = 2  # before words see the tags that were given, right or wrong
# How often a word must have had one class, and no other, to need no classifier.
_CERTAIN = {"upos": 20, "xpos": 10, "feats": 5, LEMMA: 1}
_KNOWN_WORD = 5  # how often training must have seen a word to know its tags
_RARE_TAG = 0.02  # a share of a word's tags that is left out
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Tagger(BaseParser[TreebankSource]):
    """Finds parts of speech, morphological features and lemmas of words.

    Columns are filled one after the other, each word by word: universal parts of speech, then the treebank's
    own, features and lemmas. A later column sees all earlier ones and chooses among the values that occurred
    with them. An averaged perceptron on conjunctions of features learns them, from its own mistakes.

    Parameters
    ----------
    columns : sequence of {"upos", "xpos", "feats", "lemma"} or None, default=None
        What to find; None is all that the treebank has.
    degree : {1, 2, 3}, default=2
        The largest number of features in a conjunction.
    epochs : int, default=8
        Passes over the treebank. With a `dev` treebank the best of them is kept.
    runs : int, default=1
        How often training starts again, with the sentences in another order; the result has the mean of all.
    min_count : int, default=2
        Features that occur less often in training are left out.
    min_updates : int, default=4
        Conjunctions that were corrected less often are left out.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Order in which training visits sentences.
    verbose : int, default=0
        1 prints a line per epoch.

    Attributes
    ----------
    model_ : TaggerModel
        All that was learned.
    columns_ : list of str
        The columns that it fills.
    dev_result_ : TagResult or None

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "dogs"], ["Dogs", "bark"]],
    ...     [["PRON", "VERB", "NOUN"], ["NOUN", "VERB"]],
    ...     lemmas=[["they", "see", "dog"], ["dog", "bark"]],
    ... )
    >>> tagger = Tagger(min_count=1, min_updates=1).fit(bank)
    >>> sentence = tagger.tag([["Dogs", "saw", "them"]])[0]
    >>> sentence.upos[:2], sentence.lemmas[:2]
    (['NOUN', 'VERB'], ['dog', 'see'])
    """

    model_class = TaggerModel
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "columns": ["array-like", None],
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "epochs": [Interval(Integral, 1, 10_000, closed="both")],
        "runs": [Interval(Integral, 1, 1_000, closed="both")],
        "min_count": [Interval(Integral, 1, 2**62, closed="both")],
        "min_updates": [Interval(Integral, 1, 2**31, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        degree: int = 2,
        epochs: int = 8,
        runs: int = 1,
        min_count: int = 2,
        min_updates: int = 4,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.columns = columns
        self.degree = degree
        self.epochs = epochs
        self.runs = runs
        self.min_count = min_count
        self.min_updates = min_updates
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self, source: TreebankSource, dev: TreebankSource | None = None, *, on_progress: OnStep | None = None
    ) -> Self:
        report = self._reporter(on_progress)
        thread_count(self.n_jobs)
        bank = treebank_of(source)
        check_not_empty(bank.name, bank.n_words)
        dev_bank = None if dev is None else treebank_of(dev)
        if dev_bank is not None:
            check_not_empty(dev_bank.name, dev_bank.n_words)
        wanted = self._wanted(bank)
        report(f"{len(bank):,} sentences, {bank.n_words:,} words; {', '.join(wanted)}")
        self.__dict__.pop("model_", None)  # a training that is stopped leaves no tagger, not the former one
        learner = _ColumnLearner(self, bank, dev_bank, report)
        for name in wanted:
            learner.learn(name)
        self.model_ = TaggerModel(learner.columns, self._plain_parameters())
        self._measure(dev_bank, report)
        return self

    def _wanted(self, bank: Treebank) -> list[str]:
        """The columns to learn, in the order in which they are found."""
        if self.columns is not None and (unknown := sorted(set(self.columns) - set(TAGGED))):
            raise ValueError(f"columns are some of {', '.join(TAGGED)}, got {', '.join(map(repr, unknown))}")
        given = columns_of(bank)
        chosen = given if self.columns is None else [name for name in TAGGED if name in set(self.columns)]
        if missing := [name for name in chosen if name not in given]:
            raise ValueError(f"{bank.name} has no {missing[0]} to learn from")
        if not chosen:
            raise ValueError(f"{bank.name} has no tags to learn from: all of its columns are empty")
        return chosen

    # --- Answers --------------------------------------------------------------------------------------

    @property
    def columns_(self) -> list[str]:
        """The columns that it fills."""
        columns: list[str] = self._fitted.columns_
        return columns

    def tag(self, source: TreebankSource | Sequence[Sequence[str]], *, n_jobs: int | None = None) -> Treebank:
        """:meth:`TaggerModel.tag`; by default with the threads of the tagger."""
        tagged: Treebank = self._fitted.tag(source, n_jobs=self._jobs(n_jobs))
        return tagged

    parse = tag


def columns_of(bank: Treebank) -> list[str]:
    """The columns that a treebank has tags in."""
    return [name for name in TAGGED if set(bank.symbols(name)[1]) - {"_"}]


@dataclass
class _Answers:
    """The right values of a column: numbers of names."""

    numbers: NDArray[np.int32]
    names: list[str]


class _ColumnLearner:
    """Learns one column after the other."""

    def __init__(self, tagger: Tagger, bank: Treebank, dev: Treebank | None, report: Reporter) -> None:
        self.tagger, self.bank, self.dev, self.report = tagger, bank, dev, report
        self.columns: list[LearnedColumn] = []
        self._before: list[_Answers] = []  # the right answers of these columns

    def learn(self, name: str) -> None:
        answers = _answers(self.bank, name)
        before = [column.name for column in self.columns]
        which = name if name == LEMMA else "next" if before else "first"
        templates, file = read_templates(which, _TEMPLATES)
        templates += "".join(f"{one}[0]\n" for one in before)
        lexicons: Lexicons = [("seen", _seen(self.bank, answers))]
        features = SequenceFeatures(templates, file, **feature_sources(before, lexicons))
        features.learn(self.bank._text, answers.numbers, backward=False, min_count=int(self.tagger.min_count))
        split = min(_SPLITS.get(name, 0), len(before))
        cases, parts, classes = _parts([one.numbers for one in self._before[:split]], answers.numbers)
        dev = None if self.dev is None else self._dev_answers(name, answers.names, split, cases)
        runs = self._runs(name, features, (answers.numbers, parts, classes), dev)
        self.columns.append(
            LearnedColumn(
                name=name,
                templates=templates,
                before=tuple(before),
                features=features,
                lexicons=lexicons,
                names=answers.names,
                split=split,
                cases=cases,
                classes=classes,
                classifiers=[
                    classifier_of_runs(
                        [run[part] for run in runs],
                        degree=int(self.tagger.degree),
                        classes=np.array(own),
                        columns=int(features.features),
                        learner="Tagger",
                    )
                    if len(own) > 1
                    else None
                    for part, own in enumerate(classes)
                ],
                certain=_certain(self.bank, answers.numbers, parts, _CERTAIN[name]),
            )
        )
        self._before.append(answers)

    def _dev_answers(
        self, name: str, names: list[str], split: int, cases: list[tuple[list[int], int]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The right classes in the dev treebank, -1 for others, and the part that decides for each word."""
        assert self.dev is not None
        before = [
            _numbers_in(one.names, _answers(self.dev, column.name))
            for one, column in zip(self._before[:split], self.columns, strict=False)
        ]
        parts = {tuple(case): part for case, part in cases}
        found = [parts.get(case, 0) for case in zip(*(own.tolist() for own in before), strict=True)]
        own = np.array(found if split else np.zeros(self.dev.n_words), np.int32)
        return _numbers_in(names, _answers(self.dev, name)), own

    def _runs(
        self,
        name: str,
        features: SequenceFeatures,
        task: tuple[NDArray[np.int32], NDArray[np.int32], list[list[int]]],
        dev: tuple[NDArray[np.int32], NDArray[np.int32]] | None,
    ) -> list[list[Weights]]:
        """The weights of each part, run by run: of the epoch that is best on the dev part, or the last."""
        tagger = self.tagger
        seeds = check_random_state(tagger.random_state).randint(2**31, size=int(tagger.runs))
        runs = []
        for run, seed in enumerate(seeds, 1):
            trainer = SequenceTrainer(
                features,
                self.bank._text,
                *task,
                degree=int(tagger.degree),
                min_updates=int(tagger.min_updates),
                gold_epochs=_GOLD_EPOCHS,
                seed=int(seed),
            )
            which = f"{name}, run {run}" if tagger.runs > 1 else name
            runs.append(self._run(which, trainer, len(task[2]), dev))
        return runs

    def _run(
        self,
        which: str,
        trainer: SequenceTrainer,
        parts: int,
        dev: tuple[NDArray[np.int32], NDArray[np.int32]] | None,
    ) -> list[Weights]:
        best = -1.0
        for epoch in range(1, int(self.tagger.epochs) + 1):
            start = time.process_time()
            words, wrong = trainer.run_epoch()
            text = f"{which}, epoch {epoch}: {percentage(wrong, max(words, 1)):.2f} % wrong"
            right = 0.0 if epoch == int(self.tagger.epochs) else -1.0  # without a dev treebank: the last
            if dev is not None and self.dev is not None:
                found = np.asarray(trainer.answers(self.dev._text, dev[1]))
                right = percentage(int(np.count_nonzero(found == dev[0])), len(found))
                text += f"; dev {right:.2f} % right"
            if right > best:
                best, weights = right, [trainer.weights(part) for part in range(parts)]
            self.report(f"{text} ({time.process_time() - start:.1f} s)")
        return weights


def _answers(bank: Treebank, name: str) -> _Answers:
    numbers, names = bank.symbols(name)
    if name != LEMMA:
        return _Answers(numbers, names)
    forms, form_names = bank.symbols("form")
    pairs, inverse = np.unique(forms.astype(np.int64) << 32 | numbers, return_inverse=True)
    edits = [edit_of(form_names[pair >> 32], names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
    known = {edit: number for number, edit in enumerate(dict.fromkeys(edits))}
    return _Answers(np.array([known[edit] for edit in edits], np.int32)[inverse], list(known))


def _numbers_in(names: list[str], answers: _Answers) -> NDArray[np.int32]:
    """Answers as numbers of other names; -1 for those that are not among them."""
    places = {name: number for number, name in enumerate(names)}
    return np.array([places.get(name, -1) for name in answers.names], np.int32)[answers.numbers]


def _seen(bank: Treebank, answers: _Answers) -> tuple[list[str], list[str]]:
    """Frequent words, in lower case, and the classes that training has seen them with."""
    forms, form_names = bank.symbols("form")
    lower = {
        name: number for number, name in enumerate(dict.fromkeys(n.translate(_SMALL) for n in form_names))
    }
    words = np.array([lower[name.translate(_SMALL)] for name in form_names])[forms]
    counts = np.bincount(words, minlength=len(lower))
    pairs, times = np.unique(words.astype(np.int64) << 32 | answers.numbers, return_counts=True)
    own: dict[int, list[tuple[int, int]]] = {}
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        word = pair >> 32
        if counts[word] >= _KNOWN_WORD and count >= _RARE_TAG * counts[word]:
            own.setdefault(word, []).append((-count, pair & 0xFFFFFFFF))
    names = list(lower)
    found = {
        names[word]: "|".join(answers.names[one] for _, one in sorted(tags)) for word, tags in own.items()
    }
    return list(found), list(found.values())


def _certain(
    bank: Treebank, answers: NDArray[np.int32], parts: NDArray[np.int32], times: int
) -> CertainClasses:
    """The words that had the same class whenever a part was asked, if that was often enough."""
    forms, form_names = bank.symbols("form")
    asked, inverse, counts = np.unique(
        forms.astype(np.int64) << 32 | parts, return_inverse=True, return_counts=True
    )
    lowest = np.full(len(asked), np.iinfo(np.int32).max, np.int32)
    highest = np.zeros(len(asked), np.int32)
    np.minimum.at(lowest, inverse, answers)
    np.maximum.at(highest, inverse, answers)
    chosen = np.flatnonzero((lowest == highest) & (counts >= times))
    return CertainClasses(
        [form_names[pair >> 32] for pair in asked[chosen].tolist()],
        (asked[chosen] & 0xFFFFFFFF).astype(np.int32),
        highest[chosen],
    )


def _parts(
    before: list[NDArray[np.int32]], answers: NDArray[np.int32]
) -> tuple[list[tuple[list[int], int]], NDArray[np.int32], list[list[int]]]:
    """Cases with their parts, the part of each word, and the classes of each part."""
    if not before:
        return [([], 0)], np.zeros(len(answers), np.int32), [np.unique(answers).tolist()]
    found, parts = np.unique(np.stack(before, axis=1), axis=0, return_inverse=True)
    own: NDArray[np.int32] = parts.reshape(-1).astype(np.int32)
    pairs = np.unique(np.stack([own, answers], axis=1), axis=0)
    classes: list[list[int]] = [[] for _ in found]
    for part, one in pairs.tolist():
        classes[part].append(one)
    return [(case, number) for number, case in enumerate(found.tolist())], own, classes
