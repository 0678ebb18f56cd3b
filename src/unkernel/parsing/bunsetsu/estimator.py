"""The estimator of Japanese dependency parsers: which bunsetsu depends on which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel._core import bunsetsu_training
from unkernel.data.text.bunsetsu import BunsetsuCorpus, BunsetsuSource
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.compile_options import ENGINES, check_options, check_trie, memory_bytes
from unkernel.engines.sources import model_of
from unkernel.learners.parameters import COST
from unkernel.parsing.base import BaseParser
from unkernel.parsing.bunsetsu.model import BunsetsuModel, DecisionRows, measurable
from unkernel.parsing.bunsetsu.templates import template_names
from unkernel.parsing.reporting import Reporter
from unkernel.poly import PolyLogisticRegression, PolySVC

_SVM_C = {1: 0.1, 2: 2.5e-3, 3: 6e-5, 4: 3e-6}  # the best on newspaper text; 4: a guess
_LOGISTIC_C = {1: 1.0, 2: 1.0, 3: 1.0}
_MOST_SAMPLE_ROWS = 20_000


def default_cost(learner: str, degree: int) -> float:
    """The C that a learner has by default; ValueError if it does not have the degree."""
    usual = _LOGISTIC_C if learner == "logistic" else _SVM_C
    if degree not in usual:
        raise ValueError(f"learner='logistic' has degrees up to 3, got {degree}")
    return usual[degree]


class BunsetsuParser(BaseParser[BunsetsuSource]):
    """A dependency parser for Japanese: Sassano's linear-time algorithm, deciding with a polynomial kernel.

    From left to right, it is decided of pairs of bunsetsu whether the left one depends on the right one; so
    every bunsetsu but the last gets a head to its right, and dependencies do not cross.

    Parameters
    ----------
    degree : {1, 2, 3, 4}, default=2
        The largest number of features in a conjunction. Degree 4 is trained by LIBSVM, which takes very long
        for more than some ten thousand decisions.
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
        Seed of the order in which rows are visited in training.
    verbose : int, default=0
        1 says what was learned; 2 adds the progress of training.

    Attributes
    ----------
    model_ : BunsetsuModel
        All that was learned.
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

    model_class = BunsetsuModel
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "degree": [Interval(Integral, 1, 4, closed="both")],
        "C": [COST, None],
        "learner": [StrOptions({"svm", "logistic"})],
        "engine": [StrOptions(set(ENGINES) - {"int16"})],
        "memory": [Integral, str, None],
        "rare": [Interval(Real, 0, None, closed="left")],
        "threshold": [Real, None],
        "trie": "no_validation",
        "trie_nodes": [Integral, None],
        "templates": ["array-like", tuple, str, os.PathLike, None],
        "min_count": [Interval(Integral, 1, 2**62, closed="both")],
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

    # --- Training -------------------------------------------------------------------------------------

    def _corpus(self, source: BunsetsuSource) -> BunsetsuCorpus:
        return measurable(source)

    def _learned(self, corpus: BunsetsuCorpus, dev: BunsetsuCorpus | None, report: Reporter) -> BunsetsuModel:
        names = template_names(self.templates)
        features, decisions = bunsetsu_training(corpus._text, corpus.heads, names, int(self.min_count))
        self._check_min_count(corpus, features.columns)
        X, y = _matrix(decisions, features.columns)
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"the training set has {X.shape[0]} decisions, all alike; "
                "it needs sentences of three bunsetsu and more"
            )
        report(f"{len(corpus):,} sentences, {X.shape[0]:,} decisions, {X.shape[1]:,} features")
        trained = model_of(self._trained(X, y, report))
        model = self._compiled(trained, X, features)
        report(f"engine {model.classifier_.engine}, {model.classifier_.nbytes / 1e6:.0f} MB")
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_options(self.engine, self.rare, self.threshold)
        check_trie(self.engine, self.trie, self.trie_nodes)
        memory_bytes(self.memory)

    def _trained(self, X: Any, y: NDArray[np.int8], report: Reporter) -> Any:
        estimator = self._estimator()
        if not isinstance(estimator, PolySVC | PolyLogisticRegression):
            return estimator.fit(X, y)
        return estimator.fit_reporting(X, y, None, report.solver_callback)

    def _estimator(self) -> Any:
        degree = int(self.degree)
        usual = default_cost(self.learner, degree)
        C = usual if self.C is None else self.C
        if degree > 3:
            from sklearn.svm import SVC

            return SVC(kernel="poly", degree=degree, C=C, gamma=1.0, coef0=1.0, tol=self.tol)
        return self._row_learner(C=C, gamma=1.0, verbose=max(0, int(self.verbose) - 1))

    def _compiled(self, trained: Any, X: Any, features: Any) -> BunsetsuModel:
        step = max(1, X.shape[0] // _MOST_SAMPLE_ROWS)
        options: dict[str, Any] = {
            "memory": self.memory,
            "sample": X[::step],
            "rare": self.rare,
            "threshold": self.threshold,
            "n_jobs": self.n_jobs or 1,
        }

        def model(classifier: Any) -> BunsetsuModel:
            assert isinstance(classifier, CompiledClassifier)
            return BunsetsuModel(features, classifier, X.shape[0], self._plain_parameters())

        made = model(compile(trained, self.engine, **options, measure=False))  # the same data, the same file
        if self.trie is None:
            return made
        options |= {"trie": _met_rows(made, self.trie), "trie_nodes": self.trie_nodes}
        return model(compile(trained, self.engine, **options, measure=self.trie_nodes is None))

    def _plain_parameters(self) -> dict[str, Any]:
        """Without the sentences of the trie: the classifier has what they amount to."""
        return super()._plain_parameters() | {"trie": None, "trie_nodes": None}

    # --- What was learned -----------------------------------------------------------------------------

    @property
    def classifier_(self) -> CompiledClassifier:
        """What decides."""
        classifier: CompiledClassifier = self._fitted.classifier_
        return classifier

    @property
    def n_decisions_(self) -> int:
        """Decisions of the training set."""
        return int(self._fitted.n_decisions_)

    def feature_name(self, column: int) -> str:
        """The name of a column of :meth:`decisions`, such as ``"modifier.content.surface=本"``."""
        return str(self._fitted.feature_name(column))

    def decisions(self, source: BunsetsuSource) -> tuple[Any, NDArray[np.int8]]:
        """The decisions that lead to the heads of sentences: a CSR matrix of features, and 1 for depends."""
        return _matrix(self._fitted.decision_rows(source), self.n_features_)

    # --- Answers --------------------------------------------------------------------------------------

    def parse(self, source: BunsetsuSource, *, n_jobs: int | None = None) -> BunsetsuCorpus:
        """:meth:`BunsetsuModel.parse`; by default with the threads of the parser."""
        parsed: BunsetsuCorpus = self._fitted.parse(source, n_jobs=self._jobs(n_jobs))
        return parsed


def _matrix(decisions: DecisionRows, features: int) -> tuple[Any, NDArray[np.int8]]:
    offsets, columns, labels = decisions
    shape = (len(labels), features)
    return sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape), labels


def _met_rows(model: BunsetsuModel, source: BunsetsuSource) -> Any:
    """The rows that the parser meets in these sentences, which follow from the heads that it finds."""
    return _matrix(model.decision_rows(model.parse(source)), model.n_features_)[0]
