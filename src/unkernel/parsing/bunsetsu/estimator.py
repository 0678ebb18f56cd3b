"""Japanese dependency parsing: which bunsetsu depends on which."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unkernel._core import BunsetsuFeatures, BunsetsuText, bunsetsu_training
from unkernel.data.text.bunsetsu import BunsetsuCorpus, BunsetsuSource, bunsetsu_corpus
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.compile_options import ENGINES, check_options, check_trie, memory_bytes
from unkernel.engines.compiling import model_of
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing._base import (
    Arrays,
    BaseParser,
    Teller,
    Watch,
    check_empty,
    per_second,
    percentage,
    read_templates,
)
from unkernel.parsing.decision_trace import decided_bunsetsu
from unkernel.parsing.explaining import Decided
from unkernel.parsing.parts import restore_parts, store_parts
from unkernel.poly import PolyLogisticRegression, PolySVC

# Table 1 of Yoshinaga & Kitsuregawa (2009) with the refinements of J.DepP: the words around the pair, and
# whether the content words are the same, which tells of coordination.
TEMPLATES = (
    "before.last.surface",
    "modifier.content.surface",
    "modifier.content.subpos",
    "modifier.content.cform",
    "modifier.function.surface",
    "modifier.function.pos",
    "modifier.function.subpos",
    "modifier.function.cform",
    "modifier.last.surface",
    "modifier.beginning",
    "modifier.brackets",
    "modifier.punctuation",
    "modifier.particles",
    "candidate.first.surface",
    "candidate.first.subpos",
    "candidate.content.surface",
    "candidate.content.pos",
    "candidate.content.subpos",
    "candidate.content.cform",
    "candidate.function.surface",
    "candidate.function.subpos",
    "candidate.function.cform",
    "candidate.last.subpos",
    "candidate.end",
    "candidate.brackets",
    "candidate.punctuation",
    "candidate.particles",
    "after.first.surface",
    "after.content.surface",
    "after.last.surface",
    "same.before.candidate",
    "same.modifier.candidate",
    "same.modifier.after",
    "between.distance",
    "between.brackets",
    "between.particles",
)
_DECIDES = "depends"
_SVM_C = {1: 0.1, 2: 2.5e-3, 3: 6e-5, 4: 3e-6}  # the best on newspaper text; 4: a guess
_LOGISTIC_C = {1: 1.0, 2: 1.0, 3: 1.0}
_MOST_SAMPLE_ROWS = 20_000
_DEFAULT = "default"
_NO_TEXT = BunsetsuText(b"", "<none>", 1, False)


@dataclass(frozen=True)
class BunsetsuResult:
    """How well a parser did.

    Attributes
    ----------
    dependency_accuracy : float
        Percentage of bunsetsu whose head is right, without the last one of each sentence.
    sentence_accuracy : float
        Percentage of sentences in which all are.
    n_dependencies, n_sentences : int
        Sentences without bunsetsu are not counted.
    seconds : float
        CPU time of parsing; reading and scoring are not part of it.
    sentences_per_second : float
    """

    dependency_accuracy: float
    sentence_accuracy: float
    n_dependencies: int
    n_sentences: int
    seconds: float

    @property
    def sentences_per_second(self) -> float:
        return per_second(self.n_sentences, self.seconds)

    def __str__(self) -> str:
        return (
            f"{self.dependency_accuracy:.2f} % of {self.n_dependencies:,} dependencies, "
            f"{self.sentence_accuracy:.2f} % of {self.n_sentences:,} sentences; "
            f"{self.sentences_per_second:,.0f} sentences/s"
        )


class BunsetsuParser(BaseParser):
    """A dependency parser for Japanese: Sassano's linear-time algorithm, deciding with a polynomial kernel.

    From left to right, it is decided of pairs of bunsetsu whether the left one depends on the right one; so
    every bunsetsu but the last gets a head to its right, and dependencies do not cross.

    Parameters
    ----------
    degree : {1, 2, 3, 4}, default=2
        Features in a conjunction, at most. Degree 4 is trained by LIBSVM, which takes very long for more than
        some ten thousand decisions.
    C : float, default=None
        Weight of the losses. By default 0.1, 0.0025, 0.00006 and 0.000003 for degrees 1 to 4, and 1 for
        ``learner="logistic"``; those of degrees 2 and 3 were the best on newspaper text.
    learner : {"svm", "logistic"}, default="svm"
        "svm": the kernel ``(<x, z> + 1) ** degree`` and the hinge loss. "logistic": a log-linear model over
        conjunctions with an l1 penalty, up to degree 3.
    engine : str, default="auto"
        What decisions are made with; see :func:`unkernel.compile`. "expanded" is the papers' SVM-KE, "pruned"
        their SVM-HKE, and "inverted" their PKI; all but "pruned" decide exactly as the model does. Those but
        "auto" and "expanded" need support vectors: ``learner="svm"`` and a degree above 1. "auto" goes by
        rules instead of measuring, so that the same sentences always give the same file.
    memory : int or str, default="280M"
        Bytes that the engine's tables may take.
    rare : float, default=0.005
        Features that fewer support vectors have are summed up by the support vectors themselves where that is
        faster; a share of them, or a number. Memory and time depend on it, the result does not.
    threshold : float, default=None
        For ``engine="pruned"``: weights that are smaller are dropped.
    trie : path, file object or BunsetsuCorpus, default=None
        Sentences to grow a prefix trie from; only their bunsetsu matter. Whether one pays, and which layout
        is the fastest beside it, is measured, and may differ from run to run; the answers do not.
    trie_nodes : int, default=None
        Keep a trie of at most so many nodes, whether it pays or not. Nothing is measured then.
    templates : "default", path or sequence of str, default=None
        Names of templates of features, such as ``"modifier.content.lemma"``, or a file of them
        (docs/bunsetsu.md); ``"default"`` and None are ``TEMPLATES``.
    min_count : int, default=1
        Features that fewer decisions of the training set have are dropped.
    tol : float, default=0.01
        How near to the optimum training ends, see :class:`~unkernel.PolySVC`.
    n_jobs : int, default=None
        Threads; None is 1 and -1 is all. No result depends on it.
    random_state : int, RandomState or None, default=0
        Order in which training visits decisions.
    verbose : int, default=0
        1 says what was learned; 2 adds the progress of training.

    Attributes
    ----------
    classifier_ : CompiledClassifier
        What decides; above 0 means that the left bunsetsu depends on the right one.
    n_features_ : int
    n_decisions_ : int
        Decisions of the training set.
    dev_result_ : BunsetsuResult or None
        Where ``fit`` was given ``dev``.

    Examples
    --------
    >>> parser = BunsetsuParser(degree=3).fit("train.knp")  # doctest: +SKIP
    >>> parser.parse("test.knp").write("parsed.knp")  # doctest: +SKIP
    >>> print(parser.evaluate("test.knp"))  # doctest: +SKIP
    """

    kind = "bunsetsu_parser"
    _fitted_by = "classifier_"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "degree": [Interval(Integral, 1, 4, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither"), None],
        "learner": [StrOptions({"svm", "logistic"})],
        "engine": [StrOptions(set(ENGINES) - {"int16"})],
        "memory": [Integral, str, None],
        "rare": [Interval(Real, 0, None, closed="left")],
        "threshold": [Real, None],
        "trie": "no_validation",
        "trie_nodes": [Integral, None],
        "templates": ["array-like", tuple, str, os.PathLike, None],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float | None = None,
        learner: str = "svm",
        engine: str = "auto",
        memory: int | str | None = "280M",
        rare: float = 0.005,
        threshold: float | None = None,
        trie: BunsetsuSource | None = None,
        trie_nodes: int | None = None,
        templates: str | os.PathLike[str] | Sequence[str] | None = None,
        min_count: int = 1,
        tol: float = 1e-2,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.C = C
        self.learner = learner
        self.engine = engine
        self.memory = memory
        self.rare = rare
        self.threshold = threshold
        self.trie = trie
        self.trie_nodes = trie_nodes
        self.templates = templates
        self.min_count = min_count
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, source: BunsetsuSource, *, dev: BunsetsuSource | None = None) -> Self:
        """Train on sentences with their dependencies.

        Parameters
        ----------
        source : path, file object or BunsetsuCorpus
        dev : path, file object or BunsetsuCorpus, default=None
            Sentences to be scored on when training has ended.
        """
        fitted: Self = self.fit_watched(source, dev, None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_watched(self, source: BunsetsuSource, dev: BunsetsuSource | None, watch: Watch | None) -> Self:
        """``fit``, with a function that is shown every step."""
        tell = self._teller(watch)
        self._refuse_parameters()
        corpus = bunsetsu_corpus(source)
        dev_corpus = None if dev is None else _measurable(dev)
        names = _template_names(self.templates)
        self._features, decisions = bunsetsu_training(_text(corpus), corpus.heads, names, int(self.min_count))
        X, y = self._rows(decisions)
        self.n_features_ = X.shape[1]
        self.n_decisions_ = X.shape[0]
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"the training set has {X.shape[0]} decisions, all alike; "
                "it needs sentences of three bunsetsu and more"
            )
        tell(f"{len(corpus):,} sentences, {X.shape[0]:,} decisions, {X.shape[1]:,} features")
        self.classifier_ = self._compiled(self._trained(X, y, tell), X)
        tell(f"engine {self.classifier_.engine}, {self.classifier_.nbytes / 1e6:.0f} MB")
        self.dev_result_ = None if dev_corpus is None else self.evaluate(dev_corpus)
        if dev_corpus is not None:
            tell(f"dev: {self.dev_result_}")
        return self

    def _refuse_parameters(self) -> None:
        super()._refuse_parameters()
        check_options(self.engine, self.rare, self.threshold)
        check_trie(self.engine, self.trie, self.trie_nodes)
        memory_bytes(self.memory)

    def parse(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuCorpus:
        """The sentences with the heads that the parser finds, all of type D."""
        corpus = bunsetsu_corpus(source)
        return corpus.with_heads(self._heads(corpus, n_jobs))

    def evaluate(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuResult:
        """Parse sentences, and compare with the heads that they have."""
        corpus = _measurable(source)
        begin = time.process_time()
        heads = self._heads(corpus, n_jobs)
        seconds = time.process_time() - begin
        return _result(corpus, heads, seconds)

    def _answered(self, corpus: BunsetsuCorpus, n_jobs: int | None) -> bytes:
        return self.parse(corpus, n_jobs=n_jobs).to_bytes()

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The one classifier that decides, by name."""
        check_is_fitted(self)
        return {_DECIDES: self.classifier_}

    def _stored(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_parts(self.parts_)
        arrays |= {
            "feature_names": np.frombuffer(self._features.names, np.uint8),
            "feature_name_ends": np.asarray(self._features.name_ends),
            "template_begins": np.asarray(self._features.begins),
            "template_values": np.asarray(self._features.values),
        }
        templates, decisions = list(self._features.templates), int(self.n_decisions_)
        return arrays, settings | {"templates": templates, "decisions": decisions}

    def _stored_parameters(self) -> dict[str, Any]:
        """Without the trie's sentences: what they came to is in the classifier."""
        return super()._stored_parameters() | {"trie": None, "trie_nodes": None}

    def _restore(self, name: str, arrays: Arrays, settings: dict[str, Any]) -> None:
        parts = restore_parts(name, arrays, settings)
        if set(parts) != {_DECIDES} or parts[_DECIDES]._engine.scores != 1:
            raise FormatError(name, 0, 0, "a bunsetsu parser decides with one classifier of one score")
        self.classifier_ = parts[_DECIDES]
        self._features = BunsetsuFeatures(
            container.setting(name, settings, "templates", list, lambda _: True),
            arrays["feature_names"].astype(np.uint8, casting="no").tobytes(),
            arrays["feature_name_ends"].astype(np.int64, casting="no"),
            arrays["template_begins"].astype(np.int32, casting="no"),
            arrays["template_values"].astype(np.int32, casting="no"),
        )
        self.n_features_ = int(self._features.columns)
        self.n_decisions_ = container.setting(name, settings, "decisions", int, lambda value: value >= 0)
        self.dev_result_ = None

    def decisions(self, source: BunsetsuSource) -> tuple[Any, NDArray[np.int8]]:
        """The decisions that lead to the heads of sentences: rows of features, and 1 where one depends."""
        check_is_fitted(self, "classifier_")
        corpus = bunsetsu_corpus(source)
        return self._rows(self._features.decisions(_text(corpus), corpus.heads))

    def feature_name(self, column: int) -> str:
        """What a column of :meth:`decisions` stands for, such as ``"modifier.content.surface=本"``."""
        check_is_fitted(self, "classifier_")
        return str(self._features.column_name(column))

    def class_names(self, part: str) -> list[str]:
        """Whether the left bunsetsu depends on the right one, or waits for another."""
        return ["waits", "depends"]

    def feature_names(self, part: str) -> Callable[[int], str]:
        """What columns are called: :meth:`feature_name`."""
        return self.feature_name

    def _decided(self, source: Any, tags: Any) -> Iterator[tuple[Decided, NDArray[np.int32]]]:
        if tags is not None:
            raise ValueError("bunsetsu have their parts of speech with their morphemes: leave out tags")
        parsed = self.parse(source)
        return decided_bunsetsu(parsed, self.decisions(parsed)[0], _DECIDES)

    def _rows(self, decisions: tuple[Any, Any, Any]) -> tuple[Any, NDArray[np.int8]]:
        offsets, columns, labels = decisions
        shape = (len(labels), self._features.columns)
        return sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape), labels

    def _heads(self, corpus: BunsetsuCorpus, n_jobs: int | None) -> NDArray[np.int32]:
        check_is_fitted(self, "classifier_")
        engine, threads = self.classifier_._engine, self._threads(n_jobs)
        return np.asarray(self._features.parse(_text(corpus), engine, threads))

    def _trained(self, X: Any, y: NDArray[np.int8], tell: Teller) -> Any:
        estimator = self._estimator()
        if not isinstance(estimator, PolySVC | PolyLogisticRegression):
            return estimator.fit(X, y)
        return estimator.fit_reporting(X, y, None, tell.on_progress)

    def _estimator(self) -> Any:
        degree, usual = int(self.degree), _LOGISTIC_C if self.learner == "logistic" else _SVM_C
        if degree not in usual:
            raise ValueError(f"learner='logistic' has degrees up to 3, got {degree}")
        C = usual[degree] if self.C is None else self.C
        if degree > 3:
            from sklearn.svm import SVC

            return SVC(kernel="poly", degree=degree, C=C, gamma=1.0, coef0=1.0, tol=self.tol)
        return self._row_learner(C=C, gamma=1.0, verbose=max(0, int(self.verbose) - 1))

    def _compiled(self, estimator: Any, X: Any) -> CompiledClassifier:
        model = model_of(estimator)
        step = max(1, X.shape[0] // _MOST_SAMPLE_ROWS)
        options: dict[str, Any] = {
            "memory": self.memory,
            "sample": X[::step],
            "rare": self.rare,
            "threshold": self.threshold,
            "n_jobs": self.n_jobs or 1,
        }
        made = compile(model, self.engine, **options, measure=False)  # the same data gives the same file
        if self.trie is not None:
            assert isinstance(made, CompiledClassifier)
            self.classifier_ = made  # what parses the trie's sentences
            options |= {"trie": self._met_rows(self.trie), "trie_nodes": self.trie_nodes}
            made = compile(model, self.engine, **options, measure=self.trie_nodes is None)
        assert isinstance(made, CompiledClassifier)
        return made

    def _met_rows(self, source: BunsetsuSource) -> Any:
        """The rows that are met while these sentences are parsed: the heads that come out tell which."""
        return self.decisions(self.parse(source))[0]


def _result(corpus: BunsetsuCorpus, heads: NDArray[np.int32], seconds: float) -> BunsetsuResult:
    """Score heads by those of the corpus; the last bunsetsu of a sentence is no dependency."""
    first = corpus.first_bunsetsu
    begins = first[:-1][np.diff(first) > 0]  # of sentences that have any
    right = np.asarray(heads == corpus.heads)
    right[first[1:][np.diff(first) > 0] - 1] = True
    dependencies = len(right) - len(begins)
    wrong = int((~right).sum())
    whole = int(np.logical_and.reduceat(right, begins).sum()) if len(begins) else 0
    return BunsetsuResult(
        dependency_accuracy=percentage(dependencies - wrong, dependencies, of_none=100.0),
        sentence_accuracy=percentage(whole, len(begins)),
        n_dependencies=dependencies,
        n_sentences=len(begins),
        seconds=seconds,
    )


def _template_names(templates: str | os.PathLike[str] | Sequence[str] | None) -> list[str]:
    """By default ours; else those of a list or of a file."""
    if templates is None or (isinstance(templates, str) and templates == _DEFAULT):
        return list(TEMPLATES)
    if isinstance(templates, str | os.PathLike):
        return _names_in(*read_templates(templates, {_DEFAULT: ""}))
    if not len(templates):
        raise ValueError("templates has no name of a template; None stands for ours")
    return list(templates)


def _names_in(text: str, file: str) -> list[str]:
    """A name a line, checked one by one, so that a mistake can be told with its line."""
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        if name:
            try:
                bunsetsu_training(_NO_TEXT, np.empty(0, np.int32), [*names, name], 1)
            except ValueError as error:
                raise FormatError(file, number, 0, str(error)) from None
            names.append(name)
    if not names:
        raise FormatError(file, 0, 0, "there is no template in it; it has the name of one a line")
    return names


def _measurable(source: BunsetsuSource) -> BunsetsuCorpus:
    corpus = bunsetsu_corpus(source)
    check_empty(corpus.name, corpus.n_bunsetsu)
    return corpus


def _text(corpus: BunsetsuCorpus) -> BunsetsuText:
    return corpus._text
