"""Chunking, the way of YamCha: a classifier tags words one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unkernel._core import ChunkFeatures, ColumnText, recode_chunks
from unkernel.data import ChunkCorpus, read_chunks
from unkernel.data.files import Source
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.parsing._base import Arrays, BaseParser, Teller, Watch, check_empty, read_templates
from unkernel.parsing.chunks.model import (
    DIRECTIONS,
    ENGINES,
    SCHEMES,
    ChunkModel,
    check_without_pos,
    compiled,
)
from unkernel.parsing.chunks.result import ChunkResult, read_tags, result_of
from unkernel.parsing.decision_trace import decided_chunks
from unkernel.parsing.explaining import Decided
from unkernel.parsing.feature_names import ChunkFeatureNames
from unkernel.poly import PolyLogisticRegression, PolySVC

_TAGS = "tags"
_TEMPLATES = {"default": "chunk.txt", "yamcha": "yamcha.txt"}


class Chunker(BaseParser):
    """Finds phrases: tags words one after another, each answer a feature of the next ones.

    The way of Kudo and Matsumoto (2001): a kernel machine decides from the words and parts of speech around a
    word and from the tags of the two words read before. Tags are always valid: of those that may stand beside
    the one before, the best is taken.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Features in a conjunction, at most.
    C : float, default=1.0
        Weight of the losses; larger fits the training text more closely.
    gamma : float, default=0.1
        Factor of the inner product in the kernel ``(gamma <x, z> + 1) ** degree``.
    learner : {"svm", "logistic"}, default="svm"
        :class:`~unkernel.PolySVC`, one class against the rest, or
        :class:`~unkernel.PolyLogisticRegression` with an l1 penalty.
    templates : {"default", "yamcha"} or path, default="default"
        Which features there are: ours, those of the paper, or a file of your own (docs/chunking.md).
    direction : {"forward", "backward"}, default="forward"
        Whether sentences are read from their first word on or from their last.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES"}, default="IOB2"
        How chunks are written as tags inside. Answers are in IOB2 always, and texts may be in any.
    minimum : int, default=1
        Features that occur less often in the training text are left out.
    engine : str, default="auto"
        As for :func:`unkernel.compile`, but for ``"auto"``, which does not measure: it is ``"split"`` for
        support vectors and ``"expanded"`` for weights. Those but ``"auto"`` and ``"expanded"`` need support
        vectors: ``learner="svm"`` and a degree above 1.
    tol : float, default=0.01
        Training stops at this relative duality gap.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Order in which training visits examples.
    verbose : int, default=0
        1 says what was learned; 2 adds the progress of training.

    Attributes
    ----------
    classes_ : ndarray of str
        The tags, in the scheme that is used inside.
    types_ : list of str
        The types of chunks.
    n_features_ : int
    classifier_ : CompiledClassifier
    model_ : ChunkModel
        All that was learned.
    dev_result_ : ChunkResult or None
        How good it is on the text that ``fit`` was given as `dev`.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> words = [["He", "sees", "her"], ["She", "saw", "the", "old", "man"]]
    >>> pos = [["PRP", "VBZ", "PRP"], ["PRP", "VBD", "DT", "JJ", "NN"]]
    >>> tags = [["B-NP", "B-VP", "B-NP"], ["B-NP", "B-VP", "B-NP", "I-NP", "I-NP"]]
    >>> chunker = Chunker().fit(ChunkCorpus.from_words(words, pos, tags=tags))
    >>> chunker.parse([["They", "saw", "the", "sea"]], tags=[["PRP", "VBD", "DT", "NN"]])[0].tags
    ['B-NP', 'B-VP', 'B-NP', 'I-NP']
    """

    kind = "chunker"
    _noun = "chunker"
    _fitted_by = "model_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "learner": [StrOptions({"svm", "logistic"})],
        "templates": [str, os.PathLike],
        "direction": [StrOptions(set(DIRECTIONS))],
        "scheme": [StrOptions(set(SCHEMES))],
        "minimum": [Interval(Integral, 1, None, closed="left")],
        "engine": [StrOptions(set(ENGINES))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        gamma: float = 0.1,
        learner: str = "svm",
        templates: str | os.PathLike[str] = "default",
        direction: str = "forward",
        scheme: str = "IOB2",
        minimum: int = 1,
        engine: str = "auto",
        tol: float = 0.01,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.C = C
        self.gamma = gamma
        self.learner = learner
        self.templates = templates
        self.direction = direction
        self.scheme = scheme
        self.minimum = minimum
        self.engine = engine
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- Training -------------------------------------------------------------------------------------

    def fit(self, source: Source | ChunkCorpus, *, dev: Source | ChunkCorpus | None = None) -> Self:
        """Learn from a tagged text.

        Parameters
        ----------
        source : path, open file or ChunkCorpus
            A word a line; its part of speech in the second column, its tag in the last.
        dev : path, open file or ChunkCorpus, default=None
            Another text, to measure what was learned: see ``dev_result_``.
        """
        fitted: Self = self.fit_watched(source, dev, None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_watched(
        self, source: Source | ChunkCorpus, dev: Source | ChunkCorpus | None, watch: Watch | None
    ) -> Self:
        """``fit``, with a function that is shown every step."""
        tell = self._teller(watch)
        self._refuse_parameters()
        corpus = _tagged(source)
        dev_corpus = None if dev is None else _measurable(dev)
        model = self._learned(corpus, tell)
        self.model_, self.dev_result_ = model, None
        if dev_corpus is not None:
            self.dev_result_ = self.evaluate(dev_corpus)
            tell(f"on {dev_corpus.name}: {self.dev_result_}")
        return self

    def _learned(self, corpus: ChunkCorpus, tell: Teller) -> ChunkModel:
        templates, name = read_templates(self.templates, _TEMPLATES)
        features = ChunkFeatures(templates, name)
        check_without_pos(features, corpus, "; or give templates without pos")
        tags, types = read_tags(corpus, [])
        recoded = np.asarray(recode_chunks(corpus.offsets, tags, self.scheme))
        classes, answers = np.unique(recoded, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{corpus.name}: Chunker needs a text with at least two different tags")
        return ChunkModel(
            templates=templates,
            features=features,
            types=types,
            classes=classes,
            scheme=self.scheme,
            direction=self.direction,
            columns=corpus.n_columns,
            engine=self.engine,
            classifier=self._classifier(corpus, features, answers.reshape(-1).astype(np.int32), tell),
        )

    def _classifier(
        self, corpus: ChunkCorpus, features: ChunkFeatures, answers: NDArray[np.int32], tell: Teller
    ) -> CompiledClassifier:
        """Decides a word's class; the features are numbered on the way."""
        offsets, columns = features.learn(
            corpus._text, answers, backward=self.direction == "backward", minimum=int(self.minimum)
        )
        if not features.features:
            raise ValueError(f"no feature occurs {self.minimum} times: lower minimum")
        tell(
            f"{len(corpus):,} sentences, {corpus.n_words:,} words, {answers.max() + 1} tags, "
            f"{features.features:,} features"
        )
        shape = (len(answers), features.features)
        rows = sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape)
        model = self._learner().fit_reporting(rows, answers, None, tell.on_progress).to_model()
        classifier = compiled(model, self.engine, thread_count(self.n_jobs))
        tell(f"{classifier}, {classifier.nbytes / 1e6:,.1f} MB")
        return classifier

    def _learner(self) -> PolySVC | PolyLogisticRegression:
        others: dict[str, Any] = {"gamma": float(self.gamma), "verbose": max(0, int(self.verbose) - 1)}
        if self.learner == "svm" and self.degree > 1:
            # Most conjunctions of words occur once: a weight of each for every tag would take many times the
            # memory that support vectors do, and no less time.
            others["storage"] = "split"
        return self._row_learner(**others)

    # --- What was learned -----------------------------------------------------------------------------

    @property
    def _fitted(self) -> ChunkModel:
        check_is_fitted(self, "model_")
        model: ChunkModel = self.model_
        return model

    @property
    def n_features_(self) -> int:
        """Features that training has seen often enough."""
        return int(self._fitted.features.features)

    @property
    def classes_(self) -> NDArray[np.str_]:
        """The tags, in the scheme that is used inside."""
        return np.array(self._fitted.tag_names)[self._fitted.classes]

    @property
    def types_(self) -> list[str]:
        """The types of chunks."""
        return list(self._fitted.types)

    @property
    def classifier_(self) -> CompiledClassifier:
        """What decides."""
        return self._fitted.classifier

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The one classifier that decides, by name."""
        return {_TAGS: self._fitted.classifier}

    def class_names(self, part: str) -> list[str]:
        """The tags, in the scheme that is used inside."""
        return [str(tag) for tag in self.classes_]

    def feature_names(self, part: str) -> Callable[[int], str]:
        """What columns are called, such as ``word[-1]=the``."""
        model, tags = self._fitted, self.class_names(part)
        return ChunkFeatureNames(model.templates, model.features.arrays(), self.n_features_, tags)

    def _decided(self, source: Any, tags: Any) -> Iterator[tuple[Decided, NDArray[np.int32]]]:
        model = self._fitted
        corpus = _untagged(source, tags, model.columns)
        return decided_chunks(model, corpus, model.tags(corpus, self._threads(None)), _TAGS)

    # --- Answers --------------------------------------------------------------------------------------

    def parse(
        self,
        source: Source | ChunkCorpus | Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> ChunkCorpus:
        """Find the chunks of a text.

        Parameters
        ----------
        source : path, open file, ChunkCorpus or lists of words
            A text of as many columns as the training text has tags in its last, which are replaced; one of
            fewer columns gets tags as a new last column.
        tags : lists of str, default=None
            The parts of speech of lists of words.
        n_jobs : int, default=None
            Threads; by default those of the chunker. The answers do not depend on it.

        Returns
        -------
        ChunkCorpus
            The text with tags in IOB2.
        """
        model = self._fitted
        corpus = _untagged(source, tags, model.columns)
        return corpus._with_tags(model.tags(corpus, self._threads(n_jobs)), model.tag_names)

    def _answered(self, corpus: ChunkCorpus, n_jobs: int | None) -> bytes:
        """The text with tags; unlike that of ``parse``, it is not read again."""
        model = self._fitted
        tags = model.tags(corpus, self._threads(n_jobs))
        return corpus._tagged_bytes(tags, model.tag_names)

    def evaluate(self, source: Source | ChunkCorpus, *, n_jobs: int | None = None) -> ChunkResult:
        """Find the chunks of a text that has tags, and compare, by the rules of CoNLL-2000.

        Parameters
        ----------
        source : path, open file or ChunkCorpus
        n_jobs : int, default=None
            Threads; by default those of the chunker.

        Returns
        -------
        ChunkResult
        """
        model, corpus, threads = self._fitted, _measurable(source), self._threads(n_jobs)
        model.prepare()
        start = time.process_time()
        found = model.tags(corpus, threads)
        return result_of(corpus, found, model.types, time.process_time() - start)

    # --- Files ----------------------------------------------------------------------------------------

    def _stored(self) -> tuple[Arrays, dict[str, Any]]:
        return self._fitted.to_container()

    def _restore(self, name: str, arrays: Arrays, settings: dict[str, Any]) -> None:
        self.model_, self.dev_result_ = ChunkModel.from_container(name, arrays, settings), None


def _tagged(source: Source | ChunkCorpus) -> ChunkCorpus:
    return source if isinstance(source, ChunkCorpus) else read_chunks(source, tagged=True)


def _measurable(source: Source | ChunkCorpus) -> ChunkCorpus:
    corpus = _tagged(source)
    check_empty(corpus.name, corpus.n_words)
    return corpus


def _untagged(
    source: Source | ChunkCorpus | Sequence[Sequence[str]],
    pos: Sequence[Sequence[str]] | None,
    columns: int,
) -> ChunkCorpus:
    """A text to answer for; one of all columns of the training text has tags, which will be replaced."""
    if isinstance(source, list | tuple):
        return ChunkCorpus.from_words(source, *([] if pos is None else [pos]))
    if pos is not None:
        raise ValueError("tags go with lists of words; a text has parts of speech in its second column")
    if isinstance(source, ChunkCorpus):
        return source
    return to_answer(read_chunks(cast(Source, source), tagged=False)._text, columns)


def to_answer(text: ColumnText, columns: int) -> ChunkCorpus:
    """A corpus whose tags are the last of `columns`, where it has so many."""
    if text.columns > columns:
        raise ValueError(f"{text.file} has {text.columns} columns, and the training text had {columns}")
    return ChunkCorpus._of(text, text.columns == columns)
