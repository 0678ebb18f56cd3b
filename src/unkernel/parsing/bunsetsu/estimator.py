"""The estimator of Japanese dependency parsers."""

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
from unkernel.engines.delegation import delegate, delegate_property
from unkernel.engines.model_sources import find_model
from unkernel.engines.search.options import ENGINES, check_options, check_trie, parse_memory
from unkernel.learners.parameters import COST
from unkernel.parsing.bunsetsu.model import BunsetsuModel, DecisionRows, read_nonempty
from unkernel.parsing.bunsetsu.templates import template_names
from unkernel.parsing.model_estimator import RUN_CONSTRAINTS, BaseParser
from unkernel.parsing.training_progress import Reporter
from unkernel.poly import PolyLogisticRegression, PolySVC

# Default C by degree. Degrees 1 to 3 were tuned on newspaper text; the value of degree 4 is extrapolated.
_SVM_C = {1: 0.1, 2: 2.5e-3, 3: 6e-5, 4: 3e-6}
_LOGISTIC_C = {1: 1.0, 2: 1.0, 3: 1.0}
_MAX_SAMPLE_ROWS = 20_000


def default_cost(learner: str, degree: int) -> float:
    """Return the default C of a learner; ValueError if it does not support the degree."""
    costs = _LOGISTIC_C if learner == "logistic" else _SVM_C
    if degree not in costs:
        raise ValueError(f"learner='logistic' supports degrees up to 3, got {degree}")
    return costs[degree]


class BunsetsuParser(BaseParser[BunsetsuSource, BunsetsuModel]):
    r"""Dependency parser for Japanese bunsetsu, with Sassano's linear-time algorithm.

    The parser reads a sentence from left to right. A classifier with a polynomial kernel decides for pairs of
    bunsetsu whether the left one depends on the right one. Every bunsetsu except the last gets a head to its
    right, and dependencies do not cross.

    Parameters
    ----------
    degree : {1, 2, 3, 4}, default=2
        Largest number of features in a conjunction. LIBSVM trains degree 4; it is slow for more than about
        ten thousand decisions.
    C : float, default=None
        Weight of the loss. By default 0.1, 0.0025, 0.00006 and 0.000003 for degrees 1 to 4, and 1 for
        ``learner="logistic"``.
    learner : {"svm", "logistic"}, default="svm"
        Learning algorithm. "svm" uses the kernel ``(<x, z> + 1) ** degree`` and the hinge loss, "logistic" a
        log-linear model on conjunctions with an l1 penalty, up to degree 3.
    engine : str, default="auto"
        Engine of the compiled classifier, see :func:`unkernel.compile`. "expanded" is SVM-KE, "pruned"
        SVM-HKE and "inverted" PKI in the papers. All engines except "auto" and "expanded" need support
        vectors: ``learner="svm"`` and a degree above 1. "auto" decides by rules instead of measurements: the
        same sentences always give the same file.
    memory : int or str, default="280M"
        Largest size of the compiled tables in bytes.
    rare : float, default=0.005
        A feature is rare if it occurs in fewer support vectors than this number. A value below 1 is a share
        of the support vectors. This parameter affects memory and time, not the result.
    threshold : float, default=None
        Weights with a smaller absolute value are dropped, for ``engine="pruned"``.
    trie : path, file object or BunsetsuCorpus, default=None
        Sentences to grow a prefix trie from; their dependencies do not matter. The trie is kept if it is
        faster when measured. This choice may differ from run to run; the predictions do not.
    trie_nodes : int, default=None
        Keep a trie of at most this number of nodes, without measuring its speed.
    templates : "default", path or sequence of str, default=None
        Feature templates, such as ``"modifier.content.lemma"``, or the path of a file that lists templates;
        None and "default" mean the default set.
    min_count : int, default=1
        Smallest number of training decisions in which a feature occurs; rarer features are ignored.
    tol : float, default=0.01
        Relative duality gap at which training stops.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the order in which rows are visited.
    verbose : int, default=0
        1 prints a summary of the training data and the model; 2 also prints the progress of training.

    Attributes
    ----------
    model_ : BunsetsuModel
        The fitted model.
    dev_result_ : BunsetsuResult or None
        Result on the ``dev`` sentences.

    See Also
    --------
    BunsetsuModel : The fitted model.
    unkernel.data.read_bunsetsu : Read sentences.

    References
    ----------
    .. [1] M. Sassano, "Linear-time dependency analysis for Japanese", COLING 2004.
    .. [2] N. Yoshinaga and M. Kitsuregawa, "Polynomial to linear: efficient classification with conjunctive
       features", EMNLP 2009.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import read_bunsetsu
    >>> from unkernel.parsing import BunsetsuParser
    >>> read = ["本 ほん 本 名詞 普通名詞 * *", "* 2 -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS"]
    >>> lines = ["* 0 2D", "私 わたし 私 名詞 普通名詞 * *", "* 1 2D", *read]
    >>> lines += ["* 0 1D", "古い ふるい 古い 形容詞 * イ形容詞 基本形", "* 1 2D", *read, ""]
    >>> corpus = read_bunsetsu(io.BytesIO("\n".join(lines).encode()))
    >>> parser = BunsetsuParser(C=1.0).fit(corpus)
    >>> [sentence.heads for sentence in parser.parse(corpus)]
    [(2, 2, -1), (1, 2, -1)]
    """

    model_class = BunsetsuModel
    _parameter_constraints: ClassVar[dict[str, Any]] = RUN_CONSTRAINTS | {
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
        self._set_parameters(locals())

    # --- Training -------------------------------------------------------------------------------------

    def _read_corpus(self, source: BunsetsuSource) -> BunsetsuCorpus:
        return read_nonempty(source)

    def _learn(self, corpus: BunsetsuCorpus, dev: BunsetsuCorpus | None, report: Reporter) -> BunsetsuModel:
        names = template_names(self.templates)
        features, decisions = bunsetsu_training(corpus._text, corpus.heads, names, int(self.min_count))
        self._check_min_count(corpus, features.columns)
        X, y = _build_matrix(decisions, features.columns)
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"the training set has {X.shape[0]} decisions, all of one class; "
                "it needs sentences of three or more bunsetsu"
            )
        report(f"{len(corpus):,} sentences, {X.shape[0]:,} decisions, {X.shape[1]:,} features")
        trained = find_model(self._train(X, y, report))
        model = self._compile(trained, X, features)
        report(f"engine {model.classifier_.engine}, {model.classifier_.nbytes / 1e6:.0f} MB")
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_options(self.engine, self.rare, self.threshold)
        check_trie(self.engine, self.trie, self.trie_nodes)
        parse_memory(self.memory)

    def _train(self, X: Any, y: NDArray[np.int8], report: Reporter) -> Any:
        estimator = self._new_estimator()
        if not isinstance(estimator, PolySVC | PolyLogisticRegression):
            return estimator.fit(X, y)
        return estimator.fit_reporting(X, y, None, report.solver_callback)

    def _new_estimator(self) -> Any:
        degree = int(self.degree)
        default = default_cost(self.learner, degree)  # raises a ValueError for unsupported degrees
        C = default if self.C is None else self.C
        if degree > 3:
            from sklearn.svm import SVC

            return SVC(kernel="poly", degree=degree, C=C, gamma=1.0, coef0=1.0, tol=self.tol)
        return self._new_row_learner(C=C, gamma=1.0, verbose=max(0, int(self.verbose) - 1))

    def _compile(self, trained: Any, X: Any, features: Any) -> BunsetsuModel:
        step = max(1, X.shape[0] // _MAX_SAMPLE_ROWS)
        options: dict[str, Any] = {
            "memory": self.memory,
            "sample": X[::step],
            "rare": self.rare,
            "threshold": self.threshold,
            "n_jobs": self.n_jobs or 1,
        }

        def new_model(classifier: Any) -> BunsetsuModel:
            assert isinstance(classifier, CompiledClassifier)
            return BunsetsuModel(features, classifier, X.shape[0], self._export_parameters())

        # Do not measure engines: measured times would make the files of two trainings differ.
        compiled = new_model(compile(trained, self.engine, **options, measure=False))
        if self.trie is None:
            return compiled
        # Grow the trie from the decisions that lead to the predicted heads.
        decisions = compiled.decision_rows(compiled.parse(self.trie))
        options |= {"trie": _build_matrix(decisions, compiled.n_features_)[0], "trie_nodes": self.trie_nodes}
        return new_model(compile(trained, self.engine, **options, measure=self.trie_nodes is None))

    def _export_parameters(self) -> dict[str, Any]:
        """Return the parameters without `trie`, because files store the trie with the classifier."""
        return super()._export_parameters() | {"trie": None, "trie_nodes": None}

    # --- Fitted attributes ----------------------------------------------------------------------------

    classifier_: CompiledClassifier = delegate_property(
        "classifier_", "The classifier; positive scores mean that the left bunsetsu depends on the right one."
    )
    n_decisions_: int = delegate_property("n_decisions_", "Number of decisions in the training set.")

    feature_name = delegate(BunsetsuModel.feature_name)

    def decisions(self, source: BunsetsuSource) -> tuple[Any, NDArray[np.int8]]:
        """Return the decisions that lead to the given heads of sentences, as rows for a classifier.

        Parameters
        ----------
        source : path, open file or BunsetsuCorpus
            Sentences with heads.

        Returns
        -------
        X : scipy.sparse.csr_matrix
            One row of features per decision.
        y : ndarray of int8
            For each decision, 1 if the left bunsetsu depends on the right one, else 0.
        """
        return _build_matrix(self._fitted_model.decision_rows(source), self.n_features_)

    # --- Answers --------------------------------------------------------------------------------------

    parse = delegate(BunsetsuModel.parse)
    evaluate = delegate(BunsetsuModel.evaluate)


def _build_matrix(decisions: DecisionRows, features: int) -> tuple[Any, NDArray[np.int8]]:
    offsets, columns, labels = decisions
    shape = (len(labels), features)
    return sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape), labels
