"""The estimator of taggers: parts of speech, features and lemmas of words."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from unkernel._core import SequenceFeatures, SequenceTrainer
from unkernel.data.text.conll import Treebank
from unkernel.data.threads import thread_count
from unkernel.engines.delegation import delegate, delegate_property
from unkernel.parsing.arc_eager.model import TreebankSource, read_nonempty
from unkernel.parsing.averaged_perceptron import Weights, average_parts
from unkernel.parsing.model_estimator import ONLINE_CONSTRAINTS, BaseParser, ClusterParameter
from unkernel.parsing.score_figures import compute_percentage
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.text.clusters import WordClusters, get_clusters
from unkernel.parsing.text.column_task import (
    MIN_KNOWN_COUNT,
    ColumnTask,
    GoldColumn,
    Numbers,
    collect_seen_tags,
)
from unkernel.parsing.text.learned_column import (
    CLUSTER,
    LEMMA,
    TAGGED,
    LearnedColumn,
    Lexicons,
    find_tagged_columns,
    list_feature_sources,
)
from unkernel.parsing.text.tagger_model import TaggerModel
from unkernel.parsing.training_progress import Reporter

_TEMPLATES = {"first": "tagger.txt", "next": "tagger_next.txt", LEMMA: "tagger_lemma.txt"}
# Templates that are added before and after all others if there are word clusters. Lemmas use no clusters.
_CLUSTER_TEMPLATES = {
    "first": ("cluster[0]\ncluster[1]\n", "cluster[-2]\ncluster[-1]\ncluster[2]\n"),
    "next": ("cluster[0]\ncluster[1]\n", "cluster[-1]\n"),
}
# How many earlier columns may select the part, that is, the classifier, that decides on a word.
_MAX_SPLIT_COLUMNS = {"xpos": 1, "feats": 2, LEMMA: 1}
_GOLD_EPOCHS = 2  # epochs that use gold tags of neighbouring words; later epochs use predicted tags


class Tagger(ClusterParameter, BaseParser[TreebankSource, TaggerModel]):
    """Tagger of parts of speech, morphological features and lemmas.

    Columns are filled one after another: universal parts of speech, the treebank's own parts of speech,
    features and lemmas. Each column uses all earlier ones, and chooses among the values that occurred with
    them in training. The classifiers are averaged perceptrons on conjunctions of features.

    Parameters
    ----------
    columns : sequence of {"upos", "xpos", "feats", "lemma"} or None, default=None
        Columns to predict; None means all columns of tags that the treebank has.
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction.
    epochs : int, default=8
        Number of passes over the treebank. With a ``dev`` treebank, the weights of the best epoch are kept.
    runs : int, default=1
        Number of times that the classifiers are trained, each time with another order of the sentences. The
        final weights are the mean over all runs.
    min_count : int, default=2
        Smallest number of occurrences of a feature in training; rarer features are ignored.
    min_updates : int, default=4
        Smallest number of updates of a conjunction; conjunctions with fewer updates are dropped.
    clusters : WordClusters, path or None, default=None
        Word clusters, or the path of saved clusters (``.uk``) or of a text to learn clusters from. Clusters
        help with words that the treebank does not contain. A text is CoNLL-U, or has one sentence per line
        with spaces between words. The words of the treebank are added to it.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the order in which sentences are visited.
    verbose : int, default=0
        1 prints one line per epoch.

    Attributes
    ----------
    model_ : TaggerModel
        The fitted model.
    dev_result_ : TagResult or None
        Result on the ``dev`` treebank.

    See Also
    --------
    TextParser : Parser of raw text, which contains a tagger.
    TaggerModel : The fitted model.
    WordClusters : Clusters of words.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tagger
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "dogs"], ["Dogs", "bark"]] * 5,
    ...     [["PRON", "VERB", "NOUN"], ["NOUN", "VERB"]] * 5,
    ...     lemmas=[["they", "see", "dog"], ["dog", "bark"]] * 5,
    ... )
    >>> sentence = Tagger().fit(bank).tag([["They", "bark"]])[0]
    >>> sentence.upos, sentence.lemmas
    (['PRON', 'VERB'], ['they', 'bark'])
    """

    model_class = TaggerModel
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = ONLINE_CONSTRAINTS | {
        "columns": ["array-like", None],
        "clusters": [WordClusters, str, os.PathLike, None],
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
        clusters: WordClusters | str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _check_parameters(self) -> None:
        thread_count(self.n_jobs)  # raises a ValueError; there is no engine or learner to check

    def _read_corpus(self, source: TreebankSource) -> Treebank:
        return read_nonempty(source)

    def _learn(self, bank: Treebank, dev: Treebank | None, report: Reporter) -> TaggerModel:
        columns = self._choose_columns(bank)
        report(f"{len(bank):,} sentences, {bank.n_words:,} words; {', '.join(columns)}")
        clusters = get_clusters(self.clusters, bank, lambda message: report(f"clusters, {message}"))
        learner = _ColumnLearner(self, bank, dev, clusters, report)
        for name in columns:
            learner.learn(name)
        return TaggerModel(learner.columns, self._export_parameters())

    def _choose_columns(self, bank: Treebank) -> list[str]:
        """Return the columns to learn, in the order in which they are predicted."""
        if self.columns is not None and (unknown := sorted(set(self.columns) - set(TAGGED))):
            raise ValueError(f"columns are some of {', '.join(TAGGED)}, got {', '.join(map(repr, unknown))}")
        available = find_tagged_columns(bank)
        chosen = available if self.columns is None else [name for name in TAGGED if name in set(self.columns)]
        if missing := [name for name in chosen if name not in available]:
            raise ValueError(f"{bank.name} has no {missing[0]} to learn from")
        if not chosen:
            raise ValueError(f"{bank.name} has no tags to learn from: all of its columns are empty")
        return chosen

    # --- Answers -----------------------------------------------------------------------------------------

    columns_: list[str] = delegate_property("columns_", "The columns that the tagger fills.")

    tag = delegate(TaggerModel.tag)
    evaluate = delegate(TaggerModel.evaluate)

    parse = tag


class _ColumnLearner:
    """Learns one column after another."""

    def __init__(
        self,
        tagger: Tagger,
        bank: Treebank,
        dev: Treebank | None,
        clusters: WordClusters | None,
        report: Reporter,
    ) -> None:
        self.tagger, self.clusters, self.report = tagger, clusters, report
        self.bank, self.dev = bank, dev
        self.columns: list[LearnedColumn] = []
        self._gold_classes: list[Numbers] = []  # the correct classes of the learned columns
        self._dev_gold_classes: list[Numbers] = []

    def learn(self, name: str) -> None:
        """Learn a column, and append it to `columns`."""
        gold = GoldColumn.from_bank(self.bank, name)
        earlier = [column.name for column in self.columns]
        which = name if name == LEMMA else "next" if earlier else "first"
        templates, file = read_templates(which, _TEMPLATES)
        lexicons: Lexicons = []
        if self.clusters is not None and which in _CLUSTER_TEMPLATES:
            prepended, appended = _CLUSTER_TEMPLATES[which]
            templates = prepended + templates + appended
            lexicons.append((CLUSTER, self.clusters.to_lexicon()))
        # Treat rare words as unknown in training: the classifiers must learn to tag unknown words.
        training_lexicons = [("seen", collect_seen_tags(self.bank, gold, MIN_KNOWN_COUNT)), *lexicons]
        all_lexicons = [("seen", collect_seen_tags(self.bank, gold, 1)), *lexicons]
        templates += "".join(f"{column}[0]\n" for column in earlier)
        features = SequenceFeatures(templates, file, **list_feature_sources(earlier, training_lexicons))
        features.learn(self.bank._text, gold.numbers, backward=False, min_count=int(self.tagger.min_count))
        split = min(_MAX_SPLIT_COLUMNS.get(name, 0), len(earlier))
        task = ColumnTask.from_bank(self.bank, name, gold, self._gold_classes[:split])
        runs = self._train_runs(name, features, gold.numbers, task)
        self.columns.append(
            LearnedColumn(
                name=name,
                templates=templates,
                earlier=tuple(earlier),
                features=features,
                lexicons=training_lexicons,
                names=gold.names,
                split=split,
                cases=task.cases,
                classes=task.classes,
                classifiers=average_parts(
                    runs,
                    task.classes,
                    degree=int(self.tagger.degree),
                    columns=int(features.features),
                    learner="Tagger",
                ),
                certain=task.certain,
            ).with_lexicons(all_lexicons)
        )
        self._gold_classes.append(gold.numbers)
        if self.dev is not None:
            self._dev_gold_classes.append(GoldColumn.from_bank(self.dev, name).renumber(gold.names))

    def _train_runs(
        self, name: str, features: SequenceFeatures, gold: Numbers, task: ColumnTask
    ) -> list[list[Weights]]:
        """Return the weights of each part, run by run, from the best dev epoch or else the last epoch."""
        tagger = self.tagger
        seeds = check_random_state(tagger.random_state).randint(2**31, size=int(tagger.runs))
        score = None if self.dev is None else self._new_dev_score(name, self.dev, task)
        runs = []
        for run, seed in enumerate(seeds, 1):
            trainer = SequenceTrainer(
                features,
                self.bank._text,
                *task.prepare_training(gold, self._gold_classes),
                task.classes,
                degree=int(tagger.degree),
                min_updates=int(tagger.min_updates),
                gold_epochs=_GOLD_EPOCHS,
                seed=int(seed),
            )
            run_name = f"{name}, run {run}" if tagger.runs > 1 else name
            runs.append(self._train_run(run_name, trainer, len(task.classes), score))
        return runs

    def _new_dev_score(
        self, name: str, dev: Treebank, task: ColumnTask
    ) -> Callable[[SequenceTrainer], float]:
        """Return a function that computes the accuracy of a trainer on the dev treebank, in percent."""
        gold = GoldColumn.from_bank(dev, name).renumber(task.names)
        classes_and_parts = task.prepare_prediction(dev, self._dev_gold_classes)

        def score(trainer: SequenceTrainer) -> float:
            predicted = np.asarray(trainer.answers(dev._text, *classes_and_parts))
            return compute_percentage(int(np.count_nonzero(predicted == gold)), len(predicted))

        return score

    def _train_run(
        self,
        run_name: str,
        trainer: SequenceTrainer,
        parts: int,
        score: Callable[[SequenceTrainer], float] | None,
    ) -> list[Weights]:
        best = -1.0
        for epoch in range(1, int(self.tagger.epochs) + 1):
            start = time.process_time()
            words, wrong = trainer.run_epoch()
            message = f"{run_name}, epoch {epoch}: {compute_percentage(wrong, max(words, 1)):.2f} % wrong"
            # Without a dev treebank, the last epoch is the best.
            accuracy = 0.0 if epoch == int(self.tagger.epochs) else -1.0
            if score is not None:
                accuracy = score(trainer)
                message += f"; dev {accuracy:.2f} % right"
            if accuracy > best:
                best, weights = accuracy, [trainer.weights(part) for part in range(parts)]
            self.report(f"{message} ({time.process_time() - start:.1f} s)")
        return weights
