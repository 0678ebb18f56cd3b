"""The estimator of dependency parsers: the arc-eager system."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel._core import ArcEagerSpec
from unkernel.data.text.conll import Treebank
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.engines.delegation import delegate, delegate_property
from unkernel.engines.search.options import ENGINES
from unkernel.learners.parameters import COST
from unkernel.parsing.arc_eager.classifier_training import Classifiers, OnlineLearner, RowLearner
from unkernel.parsing.arc_eager.model import (
    SPLITS,
    ArcEagerModel,
    TreebankSource,
    new_spec,
    read_gold_trees,
)
from unkernel.parsing.input_checks import WIDEST_BEAM
from unkernel.parsing.model_estimator import ONLINE_CONSTRAINTS, BaseParser, ClusterParameter
from unkernel.parsing.parser_model import ParserModel
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.text.clusters import WordClusters, get_clusters
from unkernel.parsing.training_progress import Reporter

# Templates that are added if there are word clusters.
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


class ArcEagerParser(ClusterParameter, BaseParser[TreebankSource, ArcEagerModel]):
    """Transition-based dependency parser (arc-eager), greedy or with beam search.

    The parser reads a sentence from left to right. At each step a classifier on conjunctions of features
    chooses a move: to shift the next word, to reduce the stack or to make an arc. A second classifier labels
    the arcs [1]_ [2]_. Every sentence gets one tree with one root. Crossing arcs are lifted for training and
    restored after parsing [3]_.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction.
    learner : {"online", "svm", "logistic"}, default="online"
        Learning algorithm. "online" is an averaged perceptron that explores its own mistakes during training
        (a dynamic oracle). "svm" (:class:`~unkernel.PolySVC`, one versus the rest) and "logistic"
        (:class:`~unkernel.PolyLogisticRegression` with an l1 penalty) learn from the correct moves.
    templates : {"default", "rich", "chang"} or path, default="default"
        Feature templates: the default set, a larger and slower set ("rich"), the set of Chang et al. (2010,
        Table 8), or the path of a template file.
    beam : int, default=1
        Number of sequences of moves that are followed simultaneously, up to 64, in training and in parsing.
        1 is greedy. Wider beams are more accurate, and their time is proportional to the width. Only for
        ``learner="online"``.
    epochs : int, default=10
        Number of passes of the online learner over the treebank. With a ``dev`` treebank, the weights of the
        best epoch are kept. With a beam, the first half of the epochs is greedy.
    runs : int, default=2
        Number of times that the online learner is trained, each time with another order of the sentences. The
        final weights are the mean over all runs.
    exploration : float, default=0.9
        Probability with which the online learner follows its own move in training if the move is wrong.
    min_count : int, default=2
        Smallest number of occurrences of a feature in training; rarer features are ignored.
    min_updates : int, default=4
        Smallest number of updates of a conjunction by the online learner; conjunctions with fewer updates
        are dropped.
    clusters : WordClusters, path or None, default=None
        Word clusters, or a file: either saved clusters, or text without trees to learn clusters from.
        Clusters help with words that the treebank does not contain. :class:`Tagger` describes the files.
    split : {"labels", "both", "none"}, default="labels"
        Classifiers that are split by part of speech (``xpos``): those of labels by the tag of the dependent,
        and those of moves by the tag of the next word. See [2]_.
    C : float, default=0.1
        Weight of the loss, for ``learner="svm"`` and ``learner="logistic"``.
    tol : float, default=0.01
        Relative duality gap at which training stops, for ``learner="svm"`` and ``learner="logistic"``.
    engine : str, default="auto"
        Engine of the compiled classifiers, as for :func:`unkernel.compile`, except that "auto" decides by
        rules instead of measurements. All engines except "auto" and "expanded" need support vectors:
        ``learner="svm"`` and a degree above 1.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the order in which sentences are visited.
    verbose : int, default=0
        1 prints one line per epoch; 2 also one per classifier.

    Attributes
    ----------
    model_ : ArcEagerModel
        The fitted model.
    epochs_ : list of dict
        Statistics of each epoch of each run of the online learner: the shares of wrong moves and labels or,
        with a beam, the share of wrong sentences; ``uas`` and ``las`` if there is a ``dev`` treebank.
    best_epochs_ : list of int
        For each run, the epoch whose weights were kept.
    dev_result_ : TreeResult or None
        Result on the ``dev`` treebank.

    See Also
    --------
    TextParser : Parser of raw text; it also tokenizes and tags.
    ArcEagerModel : The fitted model.
    unkernel.read_conllu : Read a treebank.

    References
    ----------
    .. [1] J. Nivre, "An efficient algorithm for projective dependency parsing", IWPT 2003.
    .. [2] Y.-W. Chang, C.-J. Hsieh, K.-W. Chang, M. Ringgaard and C.-J. Lin, "Training and testing low-degree
       polynomial data mappings via linear SVM", Journal of Machine Learning Research 11, 2010.
    .. [3] J. Nivre and J. Nilsson, "Pseudo-projective dependency parsing", ACL 2005.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import ArcEagerParser
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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = ONLINE_CONSTRAINTS | {
        "learner": [StrOptions({"online", "svm", "logistic"})],
        "templates": [str, os.PathLike],
        "beam": [Interval(Integral, 1, WIDEST_BEAM, closed="both")],
        "exploration": [Interval(Real, 0, 1, closed="both")],
        "clusters": [WordClusters, str, os.PathLike, None],
        "split": [StrOptions(set(SPLITS))],
        "C": [COST],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "engine": [StrOptions(set(ENGINES) - {"pruned", "int16"})],
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
        self._set_parameters(locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.beam > 1 and self.learner != "online":
            raise ValueError(
                f"beam={self.beam} adds up scores of moves, which learner={self.learner!r} does not learn to "
                "compare: use learner='online' or beam=1"
            )

    # --- Training -------------------------------------------------------------------------------------

    def _read_corpus(self, source: TreebankSource) -> Treebank:
        return read_gold_trees(source)

    def _learn(self, bank: Treebank, dev: Treebank | None, report: Reporter) -> ArcEagerModel:
        template_text, name = read_templates(self.templates, TEMPLATES)
        clusters = get_clusters(self.clusters, bank, lambda message: report(f"clusters, {message}"))
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
        moves, labels = self._train_classifiers(spec, bank, dev, report)
        return ArcEagerModel(
            spec, template_text, int(self.beam), clusters, moves, labels, self._export_parameters()
        )

    def _train_classifiers(
        self, spec: ArcEagerSpec, bank: Treebank, dev: Treebank | None, report: Reporter
    ) -> tuple[Classifiers, Classifiers]:
        """Train the classifiers of moves and of labels."""
        if self.learner != "online":
            verbose = max(0, int(self.verbose) - 2)
            rows = RowLearner(
                spec,
                lambda: self._new_row_learner(gamma=1.0, verbose=verbose),
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

    def _adopt_model(self, model: ParserModel) -> None:
        super()._adopt_model(model)
        self.epochs_, self.best_epochs_ = [], []

    # --- Fitted attributes ----------------------------------------------------------------------------

    labels_: list[str] = delegate_property("labels_", "The dependency relations that the parser can assign.")
    move_classifiers_: list[CompiledClassifier | None] = delegate_property(
        "move_classifiers_", "The classifiers of moves, one per part; None for parts with a single class."
    )
    label_classifiers_: list[CompiledClassifier | None] = delegate_property(
        "label_classifiers_", "The classifiers of labels, one per part; None for parts with a single class."
    )

    # --- Answers --------------------------------------------------------------------------------------

    parse = delegate(ArcEagerModel.parse)
    evaluate = delegate(ArcEagerModel.evaluate)
