"""``unkernel parse train``: a treebank, bunsetsu or chunks become a parser."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.files import STANDARD_STREAM, check_special_file, check_unwritable
from unkernel.cli.inputs.parsers import Parser, describe_parser, parser_facts
from unkernel.cli.inputs.sentences import TASKS, Input, Task, reader
from unkernel.cli.learners.base import check_parameters, default_of, flag, parameter_options, plain_options
from unkernel.cli.options import parsing as own
from unkernel.cli.options import shared as options
from unkernel.cli.options.wording import in_words_of_options
from unkernel.cli.render.console import (
    many,
    note,
    peak_memory,
    percent,
    print_facts,
    print_json,
    seconds,
    size,
    warn,
)
from unkernel.cli.render.progress import Display
from unkernel.cli.render.results import describe_result, print_labels, result_facts

_ONLINE, _OTHERS = ("online",), ("svm", "logistic")
_LEARNERS_OF = {
    "epochs": _ONLINE,
    "runs": _ONLINE,
    "exploration": _ONLINE,
    "minimum_updates": _ONLINE,
    "C": _OTHERS,
    "gamma": _OTHERS,
    "tol": _OTHERS,
    "engine": _OTHERS,
}


def train(
    model: own.ParserFile,
    train: own.TrainFile,
    *,
    dev: own.DevFile = None,
    task: own.TaskOption = None,
    format: own.Format = None,
    degree: own.Degree = None,
    learner: own.Learner = None,
    templates: own.Templates = None,
    epochs: own.Epochs = None,
    runs: own.Runs = None,
    exploration: own.Exploration = None,
    minimum: own.Minimum = None,
    minimum_updates: own.MinimumUpdates = None,
    split: own.Parts = None,
    direction: own.Direction = None,
    scheme: own.Scheme = None,
    C: own.Cost = None,
    gamma: own.Gamma = None,
    tol: own.Tolerance = None,
    seed: own.Seed = None,
    engine: own.Engine = None,
    memory: own.Memory = None,
    rare: own.Rare = None,
    threshold: own.Threshold = None,
    trie: own.Trie = None,
    trie_nodes: options.TrieNodes = None,
    jobs: options.Jobs = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a dependency parser, a parser of Japanese bunsetsu, or a chunker.

    What the file holds says which. With --dev, the answers for other
    sentences are measured, and the best epoch of the online learner is kept.

    \b
    [dim]$[/dim] unkernel parse train en.uk train.conllu --dev dev.conllu
    [dim]$[/dim] unkernel parse train en.uk train.conllu --learner svm --templates chang
    [dim]$[/dim] unkernel parse train ja.uk train.knp --degree 3
    [dim]$[/dim] unkernel parse train ja.uk train.knp --engine split --trie web.knp --trie-nodes 1M
    [dim]$[/dim] unkernel parse train chunks.uk conll2000.txt.gz --direction backward --dev test.txt --json
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    began = time.perf_counter()
    given = plain_options(
        degree=degree,
        learner=learner,
        templates=templates,
        epochs=epochs,
        runs=runs,
        exploration=exploration,
        minimum=minimum,
        minimum_updates=minimum_updates,
        split=split,
        direction=direction,
        scheme=scheme,
        C=C,
        gamma=gamma,
        tol=tol,
        seed=seed,
        engine=engine,
        memory=memory,
        rare=rare,
        threshold=threshold,
        trie=trie,
        trie_nodes=options.node_count(trie_nodes),
    )
    _check_places(model, train, dev, trie)
    source = Input(train)
    chosen = source.task() if task is None else TASKS[task.value]
    if task is None and not (quiet or json):
        note(f"{train} holds {chosen.words}: --task {chosen.name}")
    parser = _new_parser(chosen, given, options.threads(jobs))
    read = reader(chosen, None if format is None else format.value)
    with Display(quiet=quiet or json, verbose=verbose) as display:
        corpus = source.read(read, display)
        measured = None if dev is None else Input(dev).read(read, display)
        if trie is not None:
            parser.set_params(trie=Input(trie).read(read, display))
        spent, said = _fit(parser, corpus, measured, display)
        parser.set_params(n_jobs=None).save(model)  # threads are this machine's, and no part of the parser
    result = {"model": str(model), "model_bytes": model.stat().st_size, "data": train, "task": chosen.name}
    result |= {"sentences": len(corpus), "words": chosen.count(corpus)}
    result |= describe_parser(parser) | _describe_training(parser, dev)
    result |= {"warnings": said, "peak_memory_bytes": peak_memory()}
    result["seconds"] = {"training": spent, "total": time.perf_counter() - began}
    _report(chosen, parser, result, json=json, quiet=quiet)


def _new_parser(task: Task, given: dict[str, Any], threads: int) -> Parser:
    """With options that all say something to it."""
    known = parameter_options(task.estimator)
    for option in given:
        if option not in known.values():
            others = [other.name for other in TASKS.values() if option in parameter_options(other.estimator)]
            raise ValueError(f"{flag(option)} is not for --task {task.name}, but for {' and '.join(others)}")
    _check_for_learner(given.get("learner", default_of(task.estimator, "learner")), given)
    chosen = {"jobs": threads} | given
    parser = task.estimator(**{name: chosen[option] for name, option in known.items() if option in chosen})
    check_parameters(parser)
    with in_words_of_options():
        parser._refuse_parameters()
    return parser


def _check_for_learner(learner: str, given: dict[str, Any]) -> None:
    """What one learner asks for says nothing to another."""
    for option in given:
        learners = _LEARNERS_OF.get(option, (learner,))
        if learner not in learners:
            raise ValueError(
                f"{flag(option)} is not for --learner {learner}, but for {' and '.join(learners)}"
            )


def _check_places(model: Path, train: str, dev: str | None, trie: str | None) -> None:
    if [train, dev, trie].count(STANDARD_STREAM) > 1:
        raise ValueError("stdin can be read only once: give TRAIN or --dev a file")
    inputs = [name for name in (train, dev, trie) if name is not None and name != STANDARD_STREAM]
    check_unwritable(model, *inputs)
    check_special_file(model)


def _fit(parser: Parser, corpus: Any, dev: Any, display: Display) -> tuple[float, list[str]]:
    """Train; how long that took, and what the learner warned of."""
    began = time.perf_counter()
    with display.steps(parser.tol) as watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parser.fit_watched(corpus, dev, watch)
    return time.perf_counter() - began, [str(warning.message) for warning in caught]


def _describe_training(parser: Parser, dev: str | None) -> dict[str, Any]:
    measured = parser.dev_result_
    return {
        "epochs": getattr(parser, "epochs_", None),
        "best_epochs": getattr(parser, "best_epochs_", None),
        "dev": None if measured is None else {"file": dev} | describe_result(measured),
    }


def _report(task: Task, parser: Parser, result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    for words in result["warnings"]:
        warn(words)
    if json:
        print_json(result)
    elif not quiet:
        _print(task, parser, result)


def _print(task: Task, parser: Parser, result: dict[str, Any]) -> None:
    units = many(result["words"], task.unit, "bunsetsu" if task.unit == "bunsetsu" else None)
    facts = {"data": f"{many(result['sentences'], 'sentence')}, {units}"} | parser_facts(result)
    if result["best_epochs"]:
        facts["epochs"] = _epoch_words(result)
    spent = result["seconds"]
    facts["time"] = f"{seconds(spent['training'])} training, {seconds(spent['total'])} in all"
    facts["memory"] = f"{size(result['peak_memory_bytes'])} at its peak"
    facts["file"] = size(result["model_bytes"])
    print_facts(result["model"], facts)
    if parser.dev_result_ is not None:
        print_facts(result["dev"]["file"], result_facts(parser.dev_result_))
        print_labels(parser.dev_result_)


def _epoch_words(result: dict[str, Any]) -> str:
    """Of the epochs that were kept, one a run."""
    best = result["best_epochs"]
    kept = [seen for seen in result["epochs"] if best[seen["run"] - 1] == seen["epoch"]]
    moves, labels = (
        " and ".join(percent(seen[key]) for seen in kept) for key in ("wrong_moves", "wrong_labels")
    )
    las = " and ".join(f"{seen['las']:.2f}" for seen in kept if "las" in seen)
    each = len(result["epochs"]) // len(best)
    words = f"{' and '.join(map(str, best))} of {each}: {moves} of moves wrong, {labels} of labels"
    return f"{words}, dev LAS {las}" if las else words
