"""The estimator of tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from unkernel._core import Multiwords, TokenizerSpec, split_rows
from unkernel.data.text.conll import Treebank
from unkernel.engines import CompiledClassifier
from unkernel.engines.delegation import delegate
from unkernel.parsing.arc_eager.model import TreebankSource, read_nonempty
from unkernel.parsing.averaged_perceptron import LabelledRows, PerceptronLearner, index_known_features
from unkernel.parsing.model_estimator import ONLINE_CONSTRAINTS, ModelEstimator
from unkernel.parsing.text.characters import build_character_tables, lower
from unkernel.parsing.text.gold_text import (
    GoldText,
    build_gold_text,
    read_gold_sentences,
    warn_of_unknown_blanks,
)
from unkernel.parsing.text.splits import Splits, learn_splits
from unkernel.parsing.text.tokenizer_model import TokenizerModel, new_multiwords
from unkernel.parsing.training_progress import Reporter

_LAYOUTS = (0, 0, 1, 0, 0, 2)  # the paragraphs of the training text use these in turn: `build_gold_text`
_N_BOUNDARIES, _N_SPLITS = 3, 2  # numbers of classes: kinds of boundaries; whole or split


class Tokenizer(ModelEstimator[TreebankSource, TokenizerModel]):
    """Tokenizer: splits plain text into sentences, tokens and words, as a treebank does.

    A token or a sentence may end after each character. At positions where the training text leaves no choice,
    as between two letters in English, no decision is made. At all other positions, an averaged perceptron on
    conjunctions of features decides. Its features are the nearby characters, the token so far, the previous
    and the next word, and how these words were used in training. Blank lines always end a sentence. Multiword
    tokens (``don't``, French ``du``) are split as in training, or by their endings if they are new.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction.
    epochs : int, default=8
        Number of passes over the decisions. With a ``dev`` treebank, the weights of the best epoch are kept.
    runs : int, default=2
        Number of times that the classifiers are trained, each time with another order of the decisions. The
        final weights are the mean over all runs.
    min_count : int, default=1
        Smallest number of occurrences of a feature in training; rarer features are ignored.
    min_updates : int, default=2
        Smallest number of updates of a conjunction; conjunctions with fewer updates are dropped.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the order in which decisions are visited.
    verbose : int, default=0
        1 prints one line per epoch.

    Attributes
    ----------
    model_ : TokenizerModel
        The fitted model.
    dev_result_ : TextResult or None
        Result on the text of the ``dev`` treebank.

    See Also
    --------
    TextParser : Parser of raw text, which contains a tokenizer.
    TokenizerModel : The fitted model.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tokenizer
    >>> bank = Treebank.from_words([["Dogs", "bark"], ["They", "saw", "it"]] * 9)
    >>> tokenizer = Tokenizer(min_count=1).fit(bank)
    >>> [sentence.forms for sentence in tokenizer.tokenize("They bark Dogs saw it")]
    [['They', 'bark'], ['Dogs', 'saw', 'it']]
    """

    model_class = TokenizerModel
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = ONLINE_CONSTRAINTS

    def __init__(
        self,
        degree: int = 2,
        *,
        epochs: int = 8,
        runs: int = 2,
        min_count: int = 1,
        min_updates: int = 2,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    # --- Training -------------------------------------------------------------------------------------

    def _read_corpus(self, source: TreebankSource) -> Treebank:
        return read_nonempty(source)

    def _learn(self, bank: Treebank, dev: Treebank | None, report: Reporter) -> TokenizerModel:
        sentences = read_gold_sentences(bank)
        warn_of_unknown_blanks(bank, sentences)
        text = build_gold_text(sentences, layouts=_LAYOUTS)
        dev_text = None if dev is None else build_gold_text(read_gold_sentences(dev))
        arrays = build_character_tables(text.text.decode())
        spec = TokenizerSpec(arrays)
        spec.learn(text.text, text.ends, text.boundaries, min_count=int(self.min_count))
        arrays |= {name: np.asarray(array) for name, array in spec.learnt().items()}
        rows = _build_boundary_rows(spec, text)
        report(
            f"{len(sentences):,} sentences, {len(text.ends):,} tokens, {len(rows.labels):,} decisions, "
            f"{spec.columns:,} features"
        )
        dev_rows = None if dev_text is None else _build_boundary_rows(spec, dev_text)
        learner = self._new_learner(report)
        boundaries = learner.learn("boundaries", rows, dev_rows, classes=_N_BOUNDARIES, columns=spec.columns)
        tokens = [(token.form, token.words) for sentence in sentences for token in sentence.tokens]
        splits = learn_splits(tokens, partial(lower, cases=arrays["cases"]))
        arrays |= _split_arrays(spec, splits)
        split_decisions = _SplitDecisions(spec, new_multiwords(splits.rules, arrays, splits.longest_ending))
        split, arrays["split_features"] = self._learn_splits(split_decisions, text, dev_text, learner)
        return TokenizerModel.from_parts(
            arrays,
            splits.rules,
            splits.longest_ending,
            {"boundaries": boundaries, "splits": split},
            self._export_parameters(),
        )

    def _learn_splits(
        self,
        split_decisions: _SplitDecisions,
        text: GoldText,
        dev: GoldText | None,
        learner: PerceptronLearner,
    ) -> tuple[CompiledClassifier | None, NDArray[np.uint64]]:
        """Return the classifier of ambiguous tokens (None if there are no such tokens), and its features."""
        features, labels = split_decisions.extract(text)
        names, counts = np.unique(features, return_counts=True)
        vocabulary = names[counts >= self.min_count]
        if len(labels) == 0:
            return None, vocabulary
        rows = index_known_features(features, labels, vocabulary)
        dev_rows = None if dev is None else index_known_features(*split_decisions.extract(dev), vocabulary)
        dev_rows = dev_rows if dev_rows is not None and len(dev_rows.labels) else None
        return learner.learn(
            "multiword tokens", rows, dev_rows, classes=_N_SPLITS, columns=len(vocabulary)
        ), vocabulary

    def _new_learner(self, report: Reporter) -> PerceptronLearner:
        seeds = check_random_state(self.random_state).randint(2**31, size=int(self.runs))
        return PerceptronLearner(
            degree=int(self.degree),
            epochs=int(self.epochs),
            min_updates=int(self.min_updates),
            seeds=seeds.tolist(),
            origin=type(self).__name__,
            report=report,
        )

    # --- Fitted attributes ----------------------------------------------------------------------------

    tokenize = delegate(TokenizerModel.tokenize)
    evaluate = delegate(TokenizerModel.evaluate)


@dataclass(frozen=True)
class _SplitDecisions:
    """Makes rows of features for ambiguous tokens, which are split in some contexts and not in others."""

    spec: TokenizerSpec
    multiwords: Multiwords

    def extract(self, text: GoldText) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the features of the ambiguous tokens, one row per token, and whether each one is split."""
        rows = split_rows(self.spec, self.multiwords, text.text, text.ends, text.boundaries)
        tokens = np.asarray(rows["tokens"])
        is_split = np.array([len(text.words[token]) > 1 for token in tokens], np.int32)
        features = np.asarray(rows["features"])
        return features.reshape(len(tokens), -1 if len(tokens) else 0), is_split


def _build_boundary_rows(spec: TokenizerSpec, text: GoldText) -> LabelledRows:
    """Return one row per position that needs a decision, labelled with the kind of its boundary."""
    rows = spec.rows(text.text, text.ends, text.boundaries)
    return LabelledRows(*(np.asarray(rows[name]) for name in ("offsets", "columns", "answers")))


def _split_arrays(spec: TokenizerSpec, splits: Splits) -> dict[str, NDArray[Any]]:
    """Return the arrays that store which rule splits a token or an ending."""
    return {
        "tokens": np.asarray(spec.token_keys(list(splits.tokens))),
        "token_rules": np.array(list(splits.tokens.values()), np.int32),
        "endings": np.asarray(spec.ending_keys(list(splits.endings))),
        "ending_rules": np.array(list(splits.endings.values()), np.int32),
        "split_features": np.zeros(0, np.uint64),
    }
