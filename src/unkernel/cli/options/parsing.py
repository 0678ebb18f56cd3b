"""The options of ``unkernel parse``. Defaults are the parsers' own: ``--help`` reads them there."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unkernel.cli.inputs.sentences import TASKS
from unkernel.cli.learners.base import default_words
from unkernel.cli.options.shared import EngineName

_learning = partial(typer.Option, rich_help_panel="Learning")
_engine = partial(typer.Option, rich_help_panel="The engine")
_default = partial(default_words, {task.name: task.estimator for task in TASKS.values()})


class TaskName(StrEnum):
    trees = "trees"
    bunsetsu = "bunsetsu"
    chunks = "chunks"


class LearnerName(StrEnum):
    online = "online"
    svm = "svm"
    logistic = "logistic"


class PartsName(StrEnum):
    labels = "labels"
    both = "both"
    none = "none"


class DirectionName(StrEnum):
    forward = "forward"
    backward = "backward"


class SchemeName(StrEnum):
    iob1 = "IOB1"
    iob2 = "IOB2"
    ioe1 = "IOE1"
    ioe2 = "IOE2"
    iobes = "IOBES"


class FormatName(StrEnum):
    conllu = "conllu"
    conllx = "conllx"


class OnErrorName(StrEnum):
    stop = "stop"
    skip = "skip"


ParserFile = Annotated[Path, typer.Argument(metavar="MODEL", help="The file of a parser, such as en.uk.")]
TrainFile = Annotated[
    str,
    typer.Argument(
        metavar="TRAIN",
        help="CoNLL-U or CoNLL-X, bunsetsu in the style of KNP and CaboCha, or columns of chunks; plain or "
        ".gz, .xz, .bz2, .zst; - reads stdin.",
    ),
]
TestFile = Annotated[
    str, typer.Argument(metavar="FILE", help="Sentences with the right answers; - reads stdin.")
]
InputFile = Annotated[
    str,
    typer.Argument(
        metavar="[FILE]", show_default=False, help="Sentences, plain or compressed; - or nothing reads stdin."
    ),
]
DevFile = Annotated[
    str | None,
    typer.Option(
        "--dev", metavar="FILE", help="Sentences to measure on and, of --learner online, to choose the epoch."
    ),
]
TaskOption = Annotated[
    TaskName | None,
    typer.Option("--task", help="What TRAIN holds.", show_default="told by its first lines"),
]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Of treebanks.", show_default="conllu"),
]

Degree = Annotated[
    int | None,
    _learning(help="Features in a conjunction, at most.", show_default=_default("degree")),
]
Learner = Annotated[
    LearnerName | None,
    _learning(
        help="online: an averaged perceptron that follows its own mistakes, for trees; svm; logistic: "
        "log-linear, with an l1 penalty.",
        show_default=_default("learner"),
    ),
]
Templates = Annotated[
    str | None,
    _learning(
        metavar="NAME|FILE",
        help="Which features there are: default, rich or chang for trees, default or yamcha for chunks, "
        "or a file; for bunsetsu, default or a file with the name of a template a line.",
        show_default="default",
    ),
]
Epochs = Annotated[int | None, _learning(help="Passes of --learner online.", show_default=_default("epochs"))]
Runs = Annotated[
    int | None,
    _learning(
        help="How often --learner online begins anew; the weights are the mean of all runs.",
        show_default=_default("runs"),
    ),
]
Minimum = Annotated[
    int | None,
    _learning(
        help="Features that occur less often in training are left out.",
        show_default=_default("minimum"),
    ),
]
Cost = Annotated[
    float | None,
    _learning(
        "--C",
        "-C",
        help="Weight of the losses, of svm and logistic.",
        show_default=_default("C").replace("None", "by degree"),
    ),
]
Exploration = Annotated[
    float | None,
    _learning(
        help="How often --learner online follows its own wrong move, from 0 to 1.",
        show_default=_default("exploration"),
    ),
]
MinimumUpdates = Annotated[
    int | None,
    _learning(
        help="Conjunctions that --learner online corrected less often are left out.",
        show_default=_default("minimum_updates"),
    ),
]
Parts = Annotated[
    PartsName | None,
    _learning(
        "--split",
        help="Of trees: which classifiers are split by parts of speech: that of labels, both, or none.",
        show_default=_default("split"),
    ),
]
Gamma = Annotated[
    float | None,
    _learning(
        help="Of chunks: factor of the inner product in the kernel.",
        show_default=_default("gamma"),
    ),
]
Direction = Annotated[
    DirectionName | None,
    _learning(
        help="Of chunks: whether sentences are read from the first word on or from the last.",
        show_default=_default("direction"),
    ),
]
Scheme = Annotated[
    SchemeName | None,
    _learning(
        help="Of chunks: the tags that are learned; texts may be in any, and answers are in IOB2.",
        show_default=_default("scheme"),
    ),
]
Tolerance = Annotated[
    float | None,
    _learning(help="Relative duality gap at the end, of svm and logistic.", show_default=_default("tol")),
]
Seed = Annotated[
    int | None,
    _learning(min=0, max=2**32 - 1, help="Of the order of training.", show_default=_default("random_state")),
]

Engine = Annotated[
    EngineName | None,
    _engine(
        help="What decides, of svm and logistic; all but pruned, which is for bunsetsu, decide as the model "
        "does. auto goes by rules.",
        show_default=_default("engine"),
    ),
]
Memory = Annotated[
    str | None,
    _engine(
        metavar="BYTES",
        help="Of bunsetsu: what the engine may take, such as 200M or 1.5G.",
        show_default=_default("memory"),
    ),
]
Rare = Annotated[
    float | None,
    _engine(
        help="Of bunsetsu: features of fewer support vectors than this, or than this share, are rare.",
        show_default=_default("rare"),
    ),
]
Threshold = Annotated[
    float | None,
    _engine(help="Of bunsetsu, for pruned: conjunctions of smaller weight are dropped.", show_default="none"),
]
Trie = Annotated[
    str | None,
    _engine(
        metavar="FILE",
        help="Of bunsetsu: sentences to grow a prefix trie from; it is kept where it pays.",
        show_default="none",
    ),
]

Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write; the file appears when all is done, and not at all if the run stops.",
        show_default="stdout",
    ),
]
OnError = Annotated[
    OnErrorName,
    typer.Option(
        "--on-error",
        help="Of a sentence that is not as it should be: stop there, or skip it: it passes through as it is.",
    ),
]
Draw = Annotated[bool, typer.Option("--draw", help="Write drawings for the terminal in place of columns.")]
Svg = Annotated[
    Path | None,
    typer.Option(
        "--svg",
        metavar="PATH",
        help="Draw arcs: to a .svg file (one sentence), a .html page, or a folder, a numbered file a "
        "sentence. Columns are then written only with --output.",
    ),
]
Labels = Annotated[bool, typer.Option("--labels", help="Also show each relation.")]
