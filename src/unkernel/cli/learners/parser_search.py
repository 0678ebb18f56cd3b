"""Tune parsers and chunkers: folds of sentences, and default grids."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import KFold

from unkernel.cli.inputs.sentences import TASKS, Input, Task, choose_reader
from unkernel.cli.learners.cross_validation import Fold
from unkernel.cli.learners.parser_training import new_parser, parser_options, read_corpus
from unkernel.cli.options.estimator_options import DerivedOption, default_value
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.parsing.bunsetsu.estimator import default_cost

# Parameters that affect the speed, but not the predictions.
_SPEED_PARAMETERS = frozenset({"engine", "memory", "rare", "threshold", "trie", "trie_nodes"})
_DEFAULT_EPOCHS = [5, 10, 20]


class ParserLearner:
    """Base class for a kind of parser: its options, training and measures."""

    task: ClassVar[Task]
    estimator: ClassVar[type]
    unit: ClassVar[str] = "sentence"
    takes_records: ClassVar[bool] = False
    percent: ClassVar[bool] = True
    criteria: ClassVar[tuple[str, ...]]  # measures to optimise, the default first
    measures: ClassVar[tuple[str, ...]]
    tune_help: ClassVar[str]

    def __init__(self, option_values: dict[str, Any]) -> None:
        self.option_values = option_values

    @classmethod
    def options(cls) -> list[DerivedOption]:
        """Return the parser's parameters as options, without parameters that affect only the speed."""
        options = parser_options(cls.estimator)
        return [option for option in options if option.parameter not in _SPEED_PARAMETERS]

    @classmethod
    def default_grid(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return a grid of values of C around the default or, for the online learner, of epochs."""
        (learner,) = grid.get("learner", [default_value(cls.estimator, "learner")])
        if learner == "online":
            return {"epochs": _DEFAULT_EPOCHS}
        (degree,) = grid.get("degree", [default_value(cls.estimator, "degree")])
        default_C = default_value(cls.estimator, "C")
        default_C = default_cost(learner, degree) if default_C is None else default_C
        return {"C": [float(f"{default_C * factor:g}") for factor in (0.1, 1, 10)]}

    def parameters(self, jobs: int) -> dict[str, Any]:
        """Return the parser's parameters, given by the options."""
        parameters: dict[str, Any] = new_parser(self.task, self.option_values, jobs).get_params(deep=False)
        return parameters

    def fit(self, estimator: Any, rows: Any, on_progress: Callable[[Any], None]) -> None:
        estimator.fit_reporting(rows, on_progress=on_progress)

    def measure(self, estimator: Any, rows: Any) -> dict[str, Any]:
        """Return accuracies in percent, as ``unkernel evaluate`` does."""
        result = estimator.evaluate(rows)
        return {name: getattr(result, name) for name in self.measures}


class TreeParserLearner(ParserLearner):
    """Dependency parsers."""

    task = TASKS["trees"]
    estimator = task.estimator
    criteria = ("las", "uas")
    measures = ("las", "uas", "las_no_punct", "uas_no_punct", "exact")
    tune_help = """Choose parameters of a dependency parser, on a treebank.

    {options}
    {sentences} Without any list or range, the online learner is tried with 5, 10 and 20 epochs, and the
    others with C at a tenth of its default, at its default, and at ten times that.

    \b
    [dim]$[/dim] unkernel tune parser train.conllu --dev dev.conllu --epochs 5,10,20
    [dim]$[/dim] unkernel tune parser train.conllu --learner svm --C 0.01:1 --cv 5 --by uas
    [dim]$[/dim] unkernel tune parser train.conllu --dev dev.conllu --templates default,rich -o best.uk
    """


class BunsetsuLearner(ParserLearner):
    """Parsers of Japanese bunsetsu."""

    task = TASKS["bunsetsu"]
    estimator = task.estimator
    criteria = ("dependency_accuracy", "sentence_accuracy")
    measures = criteria
    tune_help = """Choose parameters of a dependency parser of Japanese bunsetsu.

    {options}
    {sentences} Without any list or range, C is tried at a tenth of its default (which depends on the
    degree), at its default, and at ten times that.

    \b
    [dim]$[/dim] unkernel tune bunsetsu train.knp --dev dev.knp --C 0.0001:0.1
    [dim]$[/dim] unkernel tune bunsetsu train.knp --degree 1,2,3 --min-count 1,2 --cv 5 -o best.uk
    """


class ChunkLearner(ParserLearner):
    """Chunkers."""

    task = TASKS["chunks"]
    estimator = task.estimator
    criteria = ("f1", "accuracy")
    measures = ("f1", "precision", "recall", "accuracy")
    tune_help = """Choose parameters of a chunker, on columns of words, tags and chunks.

    {options}
    {sentences} Without any list or range, C is tried at a tenth of its default, at its default, and at
    ten times that.

    \b
    [dim]$[/dim] unkernel tune chunker conll2000.txt.gz --C 0.1:10 --cv 5
    [dim]$[/dim] unkernel tune chunker train.txt --dev test.txt --direction forward,backward -o best.uk
    """


PARSER_LEARNERS = {"parser": TreeParserLearner, "bunsetsu": BunsetsuLearner, "chunker": ChunkLearner}


@dataclasses.dataclass(frozen=True, eq=False)
class Sentences:
    """The sentences of a training file, and sentences of another file for evaluation."""

    file: str
    corpus: Any
    dev: Any  # sentences for evaluation; None for cross-validation on `corpus`

    @property
    def count(self) -> int:
        return len(self.corpus)


def read_sentences(task: Task, data: list[str], arguments: dict[str, Any], display: Display) -> Sentences:
    """Return the sentences for training and for evaluation."""
    file, dev = data[0], arguments["dev"]
    if len(data) > 1:
        raise ValueError(f"{data[1]}: a parser is trained on one file; join them first")
    if dev is not None and arguments["cv"] is not None:
        raise ValueError("--dev and --cv are two ways to measure; choose one")
    if file == dev == STANDARD_STREAM:
        raise ValueError("stdin can be read only once: give DATA or --dev a file")
    reader = choose_reader(task, arguments.get("format"))
    corpus = read_corpus(task, Input(file), reader, display)
    return Sentences(file, corpus, None if dev is None else read_corpus(task, Input(dev), reader, display))


def make_sentence_folds(sentences: Sentences, count: int, seed: int) -> list[Fold]:
    """Return folds of sentences (``KFold``, shuffled with the seed), or a single fold with --dev."""
    corpus, dev = sentences.corpus, sentences.dev
    if dev is not None:
        return [lambda: (corpus, dev)]
    if len(corpus) < count:
        raise ValueError(
            f"{sentences.file}: has {len(corpus)} sentences, fewer than the {count} folds of --cv"
        )
    splits = KFold(count, shuffle=True, random_state=seed).split(np.zeros(len(corpus)))
    return [partial(_split, corpus, *split) for split in splits]


def _split(corpus: Any, training: Any, held_out: Any) -> tuple[Any, Any]:
    return corpus[np.sort(training)], corpus[np.sort(held_out)]
