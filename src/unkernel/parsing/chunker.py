"""Chunking, the way of YamCha: a classifier tags words one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib import resources
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unkernel._core import (
    ChunkFeatures,
    chunk_tag_names,
    chunk_text,
    recode_chunks,
    restored_chunk_features,
)
from unkernel.data import ChunkCorpus, read_chunks
from unkernel.data.files import Source
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.compiling import ENGINES
from unkernel.errors import FormatError
from unkernel.learners import thread_count
from unkernel.models import ConjunctionModel, KernelModel, container
from unkernel.parsing.chunk_result import ChunkResult, read_tags, result_of
from unkernel.parsing.parts import restore_parts, store_parts
from unkernel.poly import PolyLogisticRegression, PolySVC

KIND = "chunker"
_FILES = {"default": "chunk.txt", "yamcha": "yamcha.txt"}
_FEATURES = "features."
# Features of fewer support vectors stay with these: their conjunctions, at a weight for every tag, would be
# most of the tables. A smaller number makes larger tables that are no faster, a larger one slower ones.
_RARE = 32


class Chunker(BaseEstimator):  # type: ignore[misc]
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
        support vectors and ``"expanded"`` for weights.
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
    n_columns_ : int
        Columns of the training text, the tag included.
    classifier_ : CompiledClassifier
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "learner": [StrOptions({"svm", "logistic"})],
        "templates": [str, os.PathLike],
        "direction": [StrOptions({"forward", "backward"})],
        "scheme": [StrOptions({"IOB1", "IOB2", "IOE1", "IOE2", "IOBES"})],
        "minimum": [Interval(Integral, 1, None, closed="left")],
        "engine": [StrOptions(set(ENGINES) - {"pruned"})],
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

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, source: Source | ChunkCorpus, *, dev: Source | ChunkCorpus | None = None) -> Self:
        """Learn from a tagged text.

        Parameters
        ----------
        source : path, open file or ChunkCorpus
            A word a line; its part of speech in the second column, its tag in the last.
        dev : path, open file or ChunkCorpus, default=None
            Another text, to measure what was learned: see ``dev_result_``.
        """
        corpus = _tagged(source)
        dev_corpus = None if dev is None else _tagged(dev)
        self._template_text, name = _read_templates(self.templates)
        self._features = ChunkFeatures(self._template_text, name)
        self._refuse_without_pos(corpus)
        tags, self.types_ = read_tags(corpus, [])
        self._classes, answers = np.unique(
            np.asarray(recode_chunks(corpus.offsets, tags, self.scheme)), return_inverse=True
        )
        if len(self._classes) < 2:
            raise ValueError(f"{corpus.name}: Chunker needs a text with at least two different tags")
        self.n_columns_ = corpus.n_columns
        self._learn(corpus, answers.reshape(-1).astype(np.int32))
        self.dev_result_ = None
        if dev_corpus is not None:
            self.dev_result_ = self.evaluate(dev_corpus)
            if self.verbose:
                print(f"[Chunker] on {dev_corpus.name}: {self.dev_result_}")
        return self

    def _learn(self, corpus: ChunkCorpus, answers: NDArray[np.int32]) -> None:
        offsets, columns = self._features.learn(
            corpus._text, answers, backward=self._backward, minimum=int(self.minimum)
        )
        if not self.n_features_:
            raise ValueError(f"no feature occurs {self.minimum} times: lower minimum")
        rows = sparse.csr_matrix(
            (np.ones(len(columns)), columns, offsets), shape=(len(answers), self.n_features_)
        )
        if self.verbose:
            print(
                f"[Chunker] {len(corpus):,} sentences, {corpus.n_words:,} words, {len(self._classes)} tags, "
                f"{self.n_features_:,} features"
            )
        model = self._learner().fit(rows, answers).to_model()
        self.classifier_ = compiled = self._compiled(model)
        if self.verbose:
            print(f"[Chunker] {compiled}, {compiled.nbytes / 1e6:,.1f} MB")

    def _learner(self) -> PolySVC | PolyLogisticRegression:
        shared: dict[str, Any] = {
            "degree": self.degree,
            "C": self.C,
            "gamma": float(self.gamma),
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
            "verbose": max(0, int(self.verbose) - 1),
        }
        if self.learner == "logistic":
            return PolyLogisticRegression(**shared)
        # Most conjunctions of words occur once: a weight of each for every tag would take many times the
        # memory that support vectors do, and no less time.
        return PolySVC(**shared, storage="split" if self.degree > 1 else "auto")

    def _compiled(self, model: KernelModel | ConjunctionModel) -> CompiledClassifier:
        """Ready to answer; not by a measurement, so that the same text always gives the same file."""
        engine = self.engine
        if engine == "auto":
            engine = "split" if isinstance(model, KernelModel) else "expanded"
        compiled = compile(model, engine=engine, rare=_RARE, n_jobs=thread_count(self.n_jobs))
        assert isinstance(compiled, CompiledClassifier)
        return compiled

    @property
    def _backward(self) -> bool:
        return self.direction == "backward"

    @property
    def n_features_(self) -> int:
        """Features of words that training has seen."""
        return int(self._features.features)

    @property
    def classes_(self) -> NDArray[np.str_]:
        """The tags, in the scheme that is used inside."""
        return np.array(chunk_tag_names(self.types_))[self._classes]

    def _refuse_without_pos(self, corpus: ChunkCorpus) -> None:
        if self._features.needs_pos and len(corpus) and corpus.n_columns - corpus.tagged < 2:
            raise ValueError(
                f"{corpus.name}: the templates look at parts of speech, and the text has none: it needs a "
                "second column, or give templates without pos"
            )

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
        corpus = self._corpus(source, tags)
        return corpus._with_tags(self._answers(corpus, n_jobs), chunk_tag_names(self.types_))

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
        check_is_fitted(self, "classifier_")
        corpus = _tagged(source)
        _ = self.classifier_._engine  # made when first needed, which is no part of answering
        start = time.process_time()
        found = self._answers(corpus, n_jobs)
        return result_of(corpus, found, self.types_, time.process_time() - start)

    def _corpus(self, source: Any, tags: Sequence[Sequence[str]] | None) -> ChunkCorpus:
        check_is_fitted(self, "classifier_")
        if isinstance(source, list | tuple):
            return ChunkCorpus.from_words(source, *([] if tags is None else [tags]))
        if tags is not None:
            raise ValueError(
                "tags are given with lists of words; a text has parts of speech in its second column"
            )
        if isinstance(source, ChunkCorpus):
            return source
        corpus = read_chunks(source, tagged=False)
        if corpus.n_columns > self.n_columns_:
            raise ValueError(
                f"{corpus.name} has {corpus.n_columns} columns, and the training text had {self.n_columns_}"
            )
        return ChunkCorpus._of(corpus._text, corpus.n_columns == self.n_columns_)

    def _answers(self, corpus: ChunkCorpus, n_jobs: int | None) -> NDArray[np.int32]:
        """Tags of all words, in IOB2."""
        self._refuse_without_pos(corpus)
        threads = thread_count(self.n_jobs if n_jobs is None else n_jobs)
        found = chunk_text(
            corpus._text,
            self._features,
            self.classifier_._engine,
            self._classes,
            scheme=self.scheme,
            backward=self._backward,
            threads=threads,
        )
        return np.asarray(found)

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chunker to a ``.uk`` file, whole or not at all."""
        container.write(path, *self.to_container())

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """What a file holds of it: the kind, arrays and settings."""
        check_is_fitted(self, "classifier_")
        arrays, settings = store_parts({"tags": self.classifier_})
        arrays |= {_FEATURES + name: np.asarray(array) for name, array in self._features.arrays().items()}
        arrays["classes"] = self._classes
        settings |= {
            "parameters": self._stored_parameters(),
            "templates": self._template_text,
            "types": self.types_,
            "features": self.n_features_,
            "columns": self.n_columns_,
        }
        return KIND, arrays, settings

    def _stored_parameters(self) -> dict[str, Any]:
        stored = self.get_params(deep=False)
        stored["templates"] = os.fspath(self.templates)
        if not isinstance(self.random_state, int | None):
            stored["random_state"] = None
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in stored.items()
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what ``save`` wrote.

        Raises
        ------
        FormatError
            If the file is not a chunker, or is damaged.
        """
        kind, arrays, settings = container.read(path)
        if kind != KIND:
            raise FormatError(os.fspath(path), 0, 0, f"a file of kind {kind!r}, which is no chunker")
        return cls.from_container(os.fspath(path), arrays, settings)

    @classmethod
    def from_container(cls, name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Self:
        """Check what the file `name` holds and make a chunker of it."""
        try:
            return cls._restored(name, arrays, settings)
        except FormatError:
            raise
        except (TypeError, ValueError) as error:
            raise FormatError(name, 0, 0, f"the chunker is damaged: {error}") from error

    @classmethod
    def _restored(cls, name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Self:
        chunker = cls(**container.setting(name, settings, "parameters", dict, lambda _: True))
        chunker._validate_params()
        chunker._template_text = container.setting(name, settings, "templates", str, lambda _: True)
        chunker.n_columns_ = container.setting(name, settings, "columns", int, lambda count: count >= 1)
        chunker.types_ = container.setting(name, settings, "types", list, _are_names)
        chunker.dev_result_ = None
        count = container.setting(name, settings, "features", int, lambda number: 0 <= number < 2**31)
        own = {
            key.removeprefix(_FEATURES): np.asarray(array)
            for key, array in arrays.items()
            if key.startswith(_FEATURES)
        }
        chunker._features = restored_chunk_features(chunker._template_text, name, own, count)
        chunker._classes = np.array(container.proper_array(name, arrays, "classes", [np.dtype(np.int32)], 1))
        tags = len(chunk_tag_names(chunker.types_))
        if len(chunker._classes) < 2 or chunker._classes.min() < 0 or chunker._classes.max() >= tags:
            raise FormatError(name, 0, 0, "the chunker's tags are not those of its types")
        chunker.classifier_ = _only_part(name, restore_parts(name, arrays, settings))
        chunker.parse([])  # the classifier must be one of these tags
        return chunker

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_features" in state:
            state["_features"] = (
                {n: np.asarray(a) for n, a in self._features.arrays().items()},
                self.n_features_,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_features" in state:
            self._features = restored_chunk_features(self._template_text, "<pickle>", *state["_features"])


def _only_part(name: str, parts: dict[str, CompiledClassifier]) -> CompiledClassifier:
    if list(parts) != ["tags"]:
        raise FormatError(name, 0, 0, "a chunker holds one classifier, of tags")
    return parts["tags"]


def _are_names(names: list[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _tagged(source: Source | ChunkCorpus) -> ChunkCorpus:
    return source if isinstance(source, ChunkCorpus) else read_chunks(source, tagged=True)


def _read_templates(templates: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of templates, and what messages call it."""
    if templates in _FILES:
        file = resources.files("unkernel.parsing") / "templates" / _FILES[str(templates)]
        return file.read_text("utf-8"), f"templates {templates!r}"
    try:
        return Path(templates).read_text("utf-8"), os.fspath(templates)
    except UnicodeDecodeError as error:
        raise FormatError(os.fspath(templates), 0, 0, "templates are UTF-8 text") from error
