"""Train parsers and chunkers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.file_contents import check_no_model
from unkernel.cli.inputs.parsers import describe_parser, describe_result
from unkernel.cli.inputs.sentences import Input, Task, choose_reader
from unkernel.cli.learners import PARSERS
from unkernel.cli.options import shared_options
from unkernel.cli.options.command_signatures import given_options
from unkernel.cli.options.error_wording import name_options_in_errors
from unkernel.cli.options.estimator_options import (
    DerivedOption,
    check_parameters,
    default_value,
    derive_options,
    flag,
)
from unkernel.cli.output_files import check_model_output, require_output
from unkernel.cli.terminal.console import peak_memory
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.errors import FormatError
from unkernel.parsing import ArcEagerParser, TextParser
from unkernel.parsing.model_estimator import BaseParser

# The parameters of ArcEagerParser that are options of ``train text`` as well.
_TREE_PARSER_OPTIONS = ("templates", "beam", "epochs", "runs")
_NO_TOLERANCE = 1.0  # tolerance of learners that have no convergence criterion
_ONLINE, _BATCH = ("online",), ("svm", "logistic")
_LEARNERS_BY_OPTION = {
    "epochs": _ONLINE,
    "runs": _ONLINE,
    "exploration": _ONLINE,
    "min_updates": _ONLINE,
    "C": _BATCH,
    "gamma": _BATCH,
    "tol": _BATCH,
    "engine": _BATCH,
}

HELP = {
    "text": """Train a parser of raw text: a tokenizer, a tagger and a dependency parser in one file.

    DATA is a CoNLL-U treebank with trees and tags. Its text comes from the comments # text; without them, it
    is built from the words and SpaceAfter=No. With --dev, the best epoch of each part is kept, and the model
    is evaluated on the text of these sentences.

    --clusters helps with words that are not in the treebank: FILE is text of the same language, with one
    sentence per line and spaces between words, or CoNLL-U (*.conllu), or clusters saved from Python (*.uk).
    --beam 8 makes the parser more accurate and slower; parse and evaluate accept another --beam.

    \b
    [dim]$[/dim] unkernel train text train.conllu -o en.uk --dev dev.conllu
    [dim]$[/dim] unkernel train text train.conllu -o en.uk --clusters web.txt --beam 8 --epochs 5 --runs 1
    [dim]$[/dim] unkernel parse en.uk notes.txt --beam 4
    """,
    "parser": """Train a dependency parser on a treebank.

    DATA is in CoNLL-U, or in CoNLL-X with --format conllx. With --dev, the parser is evaluated on other
    sentences, and the best epoch of the online learner is kept.

    \b
    [dim]$[/dim] unkernel train parser train.conllu -o en.uk --dev dev.conllu
    [dim]$[/dim] unkernel train parser train.conllu -o en.uk --learner svm --templates chang
    [dim]$[/dim] unkernel train parser train.conll -o en.uk --format conllx --epochs 5 --jobs 4
    """,
    "bunsetsu": """Train a dependency parser of Japanese bunsetsu.

    DATA is in the format of KNP and CaboCha. With --dev, the parser is evaluated on other sentences.

    \b
    [dim]$[/dim] unkernel train bunsetsu train.knp -o ja.uk --degree 3
    [dim]$[/dim] unkernel train bunsetsu train.knp -o ja.uk --dev dev.knp --json
    [dim]$[/dim] unkernel train bunsetsu train.knp -o ja.uk --engine split --trie web.knp --trie-nodes 1M
    """,
    "chunker": """Train a chunker on columns of words, tags and chunks.

    DATA has one word per line, its part of speech in the second column and its tag in the last, as in
    CoNLL-2000; or a word and its tag alone. With --dev, the chunker is evaluated on other sentences.

    \b
    [dim]$[/dim] unkernel train chunker conll2000.txt.gz -o chunks.uk
    [dim]$[/dim] unkernel train chunker train.txt -o chunks.uk --direction backward --dev test.txt --json
    """,
}


def parser_options(estimator: type) -> Sequence[DerivedOption]:
    """Return the parser's parameters as options; for raw text, add parameters of its tree parser."""
    if estimator is not TextParser:
        return derive_options(estimator)
    tree_options = [
        replace(option, help=f"For the tree parser: {option.help[0].lower()}{option.help[1:]}")
        for option in derive_options(ArcEagerParser)
        if option.parameter in _TREE_PARSER_OPTIONS
    ]
    return [*derive_options(estimator), *tree_options]


def train_parser(kind: str, task: Task, arguments: dict[str, Any], display: Display) -> dict[str, Any]:
    """Train and save a parser; return its description for JSON."""
    start = time.perf_counter()
    check_no_model(arguments["data"][0], "sentences")
    output = require_output(arguments["output"], f"train {kind}", arguments["data"])
    (data, *more_files), dev, trie = arguments["data"], arguments["dev"], arguments.get("trie")
    if more_files:
        raise ValueError(f"{more_files[0]}: a parser is trained on one file; join them first")
    _check_outputs(
        output,
        data,
        dev,
        trie,
        arguments.get("templates"),
        arguments.get("clusters"),
        force=arguments["force"],
    )
    options = given_options(arguments, parser_options(task.estimator))
    parser = new_parser(task, options, shared_options.count_threads(arguments["jobs"]))
    reader = choose_reader(task, arguments.get("format"))
    corpus = read_corpus(task, Input(data), reader, display)
    dev_corpus = None if dev is None else Input(dev).read(reader, display)
    if trie is not None:
        parser.set_params(trie=Input(trie).read(reader, display))
    seconds, messages = fit_parser(parser, corpus, dev_corpus, display)
    parser.save(output)
    result = {"model": str(output), "model_bytes": output.stat().st_size, "data": data, "task": task.name}
    result |= {"sentences": len(corpus), "words": task.count(corpus), "unit": task.unit}
    result |= describe_parser(parser.model_) | _describe_training(parser, dev)
    result |= {"warnings": messages, "peak_memory_bytes": peak_memory()}
    return result | {"seconds": {"training": seconds, "total": time.perf_counter() - start}}


def read_corpus(task: Task, source: Input, reader: Any, display: Display) -> Any:
    """Return the training sentences; if the file cannot be read, the error names its likely content."""
    try:
        corpus = source.read(reader, display)
        if not len(corpus):
            raise FormatError(source.name, 0, 0, "there are no sentences in it")
        return corpus
    except FormatError as error:
        likely_task = source.task()
        if likely_task is None or likely_task.read is task.read:
            raise
        kind = next(kind for kind, (name, _) in PARSERS.items() if name == likely_task.name)
        reason = f"{error.reason}; the file seems to hold {likely_task.content}, for unkernel train {kind}"
        raise FormatError(error.file, error.line, error.column, reason) from error


def new_parser(task: Task, option_values: dict[str, Any], threads: int) -> BaseParser[Any, Any]:
    """Return an unfitted parser with checked options."""
    options = parser_options(task.estimator)
    if any(option.parameter == "learner" for option in options):
        _check_for_learner(
            option_values.get("learner", default_value(task.estimator, "learner")),
            [option.name for option in options if option.name in option_values],
        )
    parameters = {
        option.parameter: option_values[option.name] for option in options if option.name in option_values
    }
    if task.estimator is TextParser:
        parameters = _nest_parser(parameters)
    parser = task.estimator(**parameters, n_jobs=threads)
    check_parameters(parser)
    with name_options_in_errors():
        parser._check_parameters()
    return parser


def _nest_parser(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with a tree parser in place of the tree parser's own parameters."""
    tree_parameters = {name: parameters[name] for name in _TREE_PARSER_OPTIONS if name in parameters}
    if not tree_parameters:
        return parameters
    parser = ArcEagerParser(**tree_parameters)
    check_parameters(parser)
    return {name: value for name, value in parameters.items() if name not in tree_parameters} | {
        "parser": parser
    }


def _check_for_learner(learner: str, options: list[str]) -> None:
    """Raise ``ValueError`` if an option does not apply to the learner."""
    for option in options:
        learners = _LEARNERS_BY_OPTION.get(option, (learner,))
        if learner not in learners:
            raise ValueError(
                f"{flag(option)} is not for --learner {learner}, but for {' and '.join(learners)}"
            )


def _check_outputs(output: Path, *inputs: str | None, force: bool) -> None:
    if inputs.count(STANDARD_STREAM) > 1:
        raise ValueError("stdin can be read only once: give DATA or --dev a file")
    check_model_output(output, *inputs, force=force)


def fit_parser(
    parser: BaseParser[Any, Any], corpus: Any, dev: Any, display: Display
) -> tuple[float, list[str]]:
    """Train a parser; return the seconds that training took, and the warnings."""
    start = time.perf_counter()
    with (
        display.show_steps(getattr(parser, "tol", _NO_TOLERANCE)) as on_progress,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        parser.fit_reporting(corpus, dev, on_progress=on_progress)
    return time.perf_counter() - start, [str(warning.message) for warning in caught]


def _describe_training(parser: BaseParser[Any, Any], dev: str | None) -> dict[str, Any]:
    dev_result = parser.dev_result_
    return {
        "epochs": getattr(parser, "epochs_", None),
        "best_epochs": getattr(parser, "best_epochs_", None),
        "dev": None if dev_result is None else {"file": dev} | describe_result(dev_result),
    }
