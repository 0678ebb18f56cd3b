"""The estimator of dependency parsers: the arc-eager system."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel._core import ArcEagerSpec
from unkernel.data.text.conll import Treebank
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.engines.compile_options import ENGINES
from unkernel.learners.parameters import COST
from unkernel.parsing.arc_eager.model import (
    SPLITS,
    ArcEagerModel,
    TreebankSource,
    new_spec,
    with_gold_trees,
)
from unkernel.parsing.arc_eager.training import Classifiers, OnlineLearner, RowLearner
from unkernel.parsing.base import BaseParser
from unkernel.parsing.beams import WIDEST_BEAM
from unkernel.parsing.cluster_parameter import ClusterParameter
from unkernel.parsing.parser_model import ParserModel
from unkernel.parsing.reporting import Reporter
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.text.clusters import WordClusters, clusters_of

# With clusters of words there are more.
_CLUSTER_TEMPLATES = """
[beside moves]
stack.cluster
input.cluster
input[1].cluster
[beside labels]
head.cluster
dependent.cluster
"""
TEMPLATES = {"default": "arc_eager.txt", "rich": "arc_eager_rich.txt", "chang": "chang.txt"}


class ArcEagerParser(ClusterParameter, BaseParser[TreebankSource]):
    """Finds the dependency tree of a sentence in one pass from left to right, greedily or with a beam.

    Words go over a stack, and a classifier on conjunctions of features decides at each step whether to shift
    the next word, to pop one, or to make an arc; a second one labels the arcs (Nivre 2003; Chang et al. 2010,
    section 5). Every input gets one tree with one root. Arcs that cross are learnt as lifted ones and put
    back after parsing (Nivre and Nilsson 2005).

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        The largest number of features in a conjunction.
    learner : {"online", "svm", "logistic"}, default="online"
        ``"online"`` is an averaged perceptron that follows its own mistakes while it learns (a dynamic
        oracle); the others learn from the right moves only: :class:`~unkernel.PolySVC`, one class against the
        rest, and :class:`~unkernel.PolyLogisticRegression` with an l1 penalty.
    templates : {"default", "rich", "chang"} or path, default="default"
        Which features there are: ours, more of ours (more accurate and slower by a third), those of Table 8
        of Chang et al., or a file of your own (docs/parsing.md).
    beam : int, default=1
        How many sequences of moves are followed at once, up to 64, both in training and in parsing. 1 is
        greedy; with 8, a parser of English was 1.6 points more accurate, and took eight times as long. For
        ``learner="online"``.
    epochs : int, default=10
        Passes of the online learner over the treebank. With a `dev` treebank the best of them is kept. With
        a beam, the first half is greedy.
    runs : int, default=2
        How often the online learner starts again, with the sentences in another order; the result has the
        mean of the weights of all runs. One run takes half the time; on English, two were .4 points better
        on the dev part and no better on the test part.
    exploration : float, default=0.9
        The probability with which the online learner follows its own wrong move.
    min_count : int, default=2
        Features that occur less often in training are left out.
    min_updates : int, default=4
        Conjunctions that the online learner corrected less often are left out.
    clusters : WordClusters, path or None, default=None
        A file of text without trees, or clusters of words that were learnt from it, as :class:`Tagger` takes
        them: they tell of words that the treebank does not have.
    split : {"labels", "both", "none"}, default="labels"
        Which classifiers are split into one for each part of speech: that of the dependent for labels, that
        of the next word (`xpos`) for moves, as in Chang et al.
    C : float, default=0.1
        Weight of the losses, for ``"svm"`` and ``"logistic"``.
    tol : float, default=0.01
        The relative duality gap at which their training stops.
    engine : str, default="auto"
        As for :func:`unkernel.compile`, but chosen by rules instead of measurements. All but ``"auto"`` and
        ``"expanded"`` need support vectors: ``learner="svm"`` and a degree above 1.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Order in which training visits sentences.
    verbose : int, default=0
        1 prints a line per epoch; 2 also one per part.

    Attributes
    ----------
    model_ : ArcEagerModel
        All that was learned.
    labels_ : list of str
        The relations that it can assign.
    n_features_ : int
        Features of moves and of labels, together.
    move_classifiers_, label_classifiers_ : list of CompiledClassifier or None
        One for each part; None for parts that have a single class.
    epochs_ : list of dict
        What each epoch of each run of the online learner saw: shares of wrong moves and labels (of wrong
        sentences, if it had a beam) and, with a `dev` treebank, ``uas`` and ``las``.
    best_epochs_ : list of int
        The epoch of each run that was kept.
    dev_result_ : TreeResult or None

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "it"], ["Dogs", "bark"]],
    ...     [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]],
    ...     heads=[[2, 0, 2], [2, 0]],
    ...     deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
    ... )
    >>> parser = ArcEagerParser(min_count=1, min_updates=1).fit(bank)
    >>> parser.parse([["We", "saw", "it"]], tags=[["PRON", "VERB", "PRON"]])[0].heads
    [2, 0, 2]
    """

    model_class = ArcEagerModel
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "learner": [StrOptions({"online", "svm", "logistic"})],
        "templates": [str, os.PathLike],
        "beam": [Interval(Integral, 1, WIDEST_BEAM, closed="both")],
        "epochs": [Interval(Integral, 1, 10_000, closed="both")],
        "runs": [Interval(Integral, 1, 1_000, closed="both")],
        "exploration": [Interval(Real, 0, 1, closed="both")],
        "min_count": [Interval(Integral, 1, 2**62, closed="both")],
        "min_updates": [Interval(Integral, 1, 2**31, closed="left")],
        "clusters": [WordClusters, str, os.PathLike, None],
        "split": [StrOptions(set(SPLITS))],
        "C": [COST],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "engine": [StrOptions(set(ENGINES) - {"pruned", "int16"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        learner: str = "online",
        templates: str | os.PathLike[str] = "default",
        beam: int = 1,
        epochs: int = 10,
        runs: int = 2,
        exploration: float = 0.9,
        min_count: int = 2,
        min_updates: int = 4,
        clusters: WordClusters | str | os.PathLike[str] | None = None,
        split: str = "labels",
        C: float = 0.1,
        tol: float = 0.01,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.learner = learner
        self.templates = templates
        self.beam = beam
        self.epochs = epochs
        self.runs = runs
        self.exploration = exploration
        self.min_count = min_count
        self.min_updates = min_updates
        self.clusters = clusters
        self.split = split
        self.C = C
        self.tol = tol
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.beam > 1 and self.learner != "online":
            raise ValueError(
                f"beam={self.beam} adds up scores of moves, which learner={self.learner!r} does not learn to "
                "compare: use learner='online' or beam=1"
            )

    # --- Training -------------------------------------------------------------------------------------

    def _corpus(self, source: TreebankSource) -> Treebank:
        return with_gold_trees(source)

    def _learned(self, bank: Treebank, dev: Treebank | None, report: Reporter) -> ArcEagerModel:
        template_text, name = read_templates(self.templates, TEMPLATES)
        clusters = clusters_of(self.clusters, bank, lambda words: report(f"clusters, {words}"))
        if clusters is not None:
            template_text += _CLUSTER_TEMPLATES
        spec = new_spec(template_text, name, self.split, int(self.min_count), clusters)
        spec.learn(bank._text)
        self._check_min_count(bank, spec.move_columns)
        report(
            f"{len(bank):,} sentences, {bank.n_words:,} words, {len(spec.labels)} relations, "
            f"{spec.move_columns + spec.arc_columns:,} features, {spec.lifted:,} words lifted"
        )
        self.epochs_: list[dict[str, float]] = []
        self.best_epochs_: list[int] = []
        moves, labels = self._learned_parts(spec, bank, dev, report)
        return ArcEagerModel(
            spec, template_text, int(self.beam), clusters, moves, labels, self._plain_parameters()
        )

    def _learned_parts(
        self, spec: ArcEagerSpec, bank: Treebank, dev: Treebank | None, report: Reporter
    ) -> tuple[Classifiers, Classifiers]:
        """The classifiers of moves and of labels."""
        if self.learner != "online":
            verbose = max(0, int(self.verbose) - 2)
            rows = RowLearner(
                spec,
                lambda: self._row_learner(gamma=1.0, verbose=verbose),
                self.engine,
                thread_count(self.n_jobs),
                report,
            )
            return rows.learn(bank)
        online = OnlineLearner(
            spec,
            bank,
            dev,
            degree=int(self.degree),
            epochs=int(self.epochs),
            runs=int(self.runs),
            exploration=float(self.exploration),
            min_updates=int(self.min_updates),
            beam=int(self.beam),
            report=report,
        )
        seeds = check_random_state(self.random_state).randint(2**31, size=int(self.runs))
        learned = online.learn(seeds)
        self.epochs_, self.best_epochs_ = online.epochs_seen, online.best_epochs
        return learned

    def _take(self, model: ParserModel) -> None:
        super()._take(model)
        self.epochs_, self.best_epochs_ = [], []

    # --- What was learned -----------------------------------------------------------------------------

    @property
    def labels_(self) -> list[str]:
        """The relations that it can assign."""
        labels: list[str] = self._fitted.labels_
        return labels

    @property
    def move_classifiers_(self) -> list[CompiledClassifier | None]:
        """The classifiers of moves, one for each part."""
        classifiers: list[CompiledClassifier | None] = self._fitted.move_classifiers_
        return classifiers

    @property
    def label_classifiers_(self) -> list[CompiledClassifier | None]:
        """The classifiers of labels, one for each part."""
        classifiers: list[CompiledClassifier | None] = self._fitted.label_classifiers_
        return classifiers

    # --- Answers --------------------------------------------------------------------------------------

    def parse(
        self,
        source: TreebankSource | Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        xpos: Sequence[Sequence[str]] | None = None,
        n_jobs: int | None = None,
    ) -> Treebank:
        """:meth:`ArcEagerModel.parse`; by default with the threads of the parser."""
        parsed: Treebank = self._fitted.parse(source, tags, xpos=xpos, n_jobs=self._jobs(n_jobs))
        return parsed
