"""``unkernel train KIND``: train a model on rows, records, trees or sentences."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import typer

from unkernel.cli.learners import LEARNERS, PARSERS, TABLE, TEXT_PARSERS
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.options.command_groups import add_commands, new_group
from unkernel.cli.options.command_signatures import (
    REQUIRED,
    Parts,
    derive_parts,
    given_options,
    make_command,
)
from unkernel.cli.options.help_text import reflow

_HELP = """Train a model, a parser or a chunker on a file.

    Without a KIND, the command looks at the table and chooses the model itself. Each kind has its own
    options: see unkernel train KIND --help.

    \b
    [dim]$[/dim] unkernel train adult.train.csv --target income -o income.uk --test adult.test.csv
    [dim]$[/dim] unkernel train poly a9a.svm.xz -o model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel train logistic a.svm -o a.uk --degree 3 --C 0.3
    [dim]$[/dim] unkernel train linear 'day-*.svm.gz' -o a.uk --out-of-core
    [dim]$[/dim] unkernel train rank letor.txt -o a.uk --test letor.t.txt
    [dim]$[/dim] unkernel train tree questions.dat -o model.uk --kernel sst
    [dim]$[/dim] unkernel train text train.conllu -o en.uk --dev dev.conllu
    [dim]$[/dim] unkernel train parser train.conllu -o trees.uk --dev dev.conllu
    [dim]$[/dim] unkernel train bunsetsu train.knp -o ja.uk --degree 3
    [dim]$[/dim] unkernel train chunker conll2000.txt.gz -o chunks.uk --direction backward
    """
# Parts are the parameters of a command that is assembled at run time: each name with a type and a default.
RUN_PARTS: Parts = {
    "verbose": (shared_options.Verbose, False),
    "json": (shared_options.Json, False),
    "quiet": (shared_options.Quiet, False),
    "force": (shared_options.Force, False),
}
_THRESHOLD_PARTS: Parts = {
    "threshold": (train_options.ProbabilityThreshold, None),
    "costs": (train_options.CostsOfErrors, None),
}
# Parameters of estimators that the help shows in another panel than the rest.
_PANELS = {"cache": train_options.LARGE_DATA_PANEL, "checkpoint": train_options.LARGE_DATA_PANEL}


def register(app: typer.Typer, arguments: Sequence[str]) -> None:
    """Add ``train`` to the application; load only the kind that `arguments` name."""
    group = new_group()
    kinds = {**LEARNERS, **PARSERS, **TEXT_PARSERS}
    summaries = TABLE | {kind: summary for kind, (_, summary) in kinds.items()}

    def load(kind: str) -> None:
        if kind in TABLE:
            group.command(kind)(_make_table_command())
            return
        target = kinds[kind][0]  # the class of a learner, or the task of a parser
        if kind in LEARNERS:
            command = _make_learner_command(import_learner(target))
        else:
            command = _make_parser_command(kind, target)
        group.command(kind)(command)

    add_commands(group, summaries, arguments, load)
    app.add_typer(group, name="train", help=reflow(_HELP))


def import_learner(path: str) -> Any:
    """Import and return a learner's class; `path` is MODULE:NAME."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _make_learner_command(learner: Any) -> Any:
    return make_command(partial(_train, learner), _make_learner_parts(learner), learner.help)


def _make_learner_parts(learner: Any) -> Parts:
    """Return the parameters of the command that trains models of a kind."""
    parts: dict[str, tuple[Any, Any]] = {
        "data": (choose_data_argument(learner, large_data=learner.large_data), REQUIRED),
        "output": (train_options.ModelOutput, None),
    }
    parts |= derive_parts(learner.options(), _PANELS, f"The model: {learner.estimator.__name__}")
    if learner.name == "rank":
        parts |= {"thresholds": (train_options.Thresholds, False)}
    if learner.large_data:
        parts |= {
            "out_of_core": (train_options.OutOfCore, False),
            "memory": (train_options.Memory, None),
            "dask": (train_options.Dask, None),
        }
    if learner.takes_records and not learner.predicts_values:
        parts |= _THRESHOLD_PARTS
    return (
        parts
        | make_record_parts(learner)
        | make_shared_parts(learner)
        | {
            "test": (shared_options.TestFile, None),
            "cv": (train_options.Folds, None),
            **RUN_PARTS,
        }
    )


def choose_data_argument(learner: Any, *, large_data: bool) -> Any:
    """Return the type of the argument DATA for Typer."""
    if learner.unit != "row":
        return train_options.TreeFile if learner.unit == "tree" else train_options.SentenceFile
    if learner.takes_records and not large_data:
        return train_options.RowOrRecordFile
    return train_options.RowFiles if large_data else train_options.RowFile


def make_record_parts(learner: Any) -> dict[str, tuple[Any, Any]]:
    """Return the options for records, if the learner also takes records."""
    if not learner.takes_records:
        return {}
    from unkernel.cli.learners.record_training import encoder_options

    calibration = {} if learner.predicts_values else {"calibrate": (train_options.Calibrate, None)}
    return {
        "target": (train_options.Target, None),
        "schema": (train_options.Schema, None),
        "drop": (train_options.Drop, None),
        **derive_parts(encoder_options(), {}, train_options.RECORDS_PANEL),
        **calibration,
    }


def make_shared_parts(learner: Any) -> dict[str, tuple[Any, Any]]:
    """Return the options that ``train`` and ``tune`` share."""
    parts: dict[str, tuple[Any, Any]] = {"jobs": (shared_options.Jobs, None)}
    if "ndcg" in learner.criteria:
        parts["ndcg_at"] = (train_options.NdcgDepth, None)
    if learner.unit == "row":
        parts |= {
            "n_features": (shared_options.FeatureCount, None),
            "zero_based": (shared_options.ZeroBased, None),
        }
    return parts


def _train(learner_type: Any, arguments: dict[str, Any]) -> None:
    """Train a model on rows, trees or records, given the values of all arguments and options."""
    from unkernel.cli.inputs.file_contents import check_no_bare_trees, check_no_model
    from unkernel.cli.inputs.records import is_record_file
    from unkernel.cli.learners.record_training import (
        adapt_to_records,
        are_records,
        check_options,
        train_records,
    )
    from unkernel.cli.learners.training_run import Request, train
    from unkernel.cli.render.training_summary import print_training
    from unkernel.cli.terminal.progress import Display

    check_no_model(arguments["data"][0], f"{learner_type.unit}s")
    check_no_bare_trees(arguments["data"][0])
    if not learner_type.takes_records and is_record_file(arguments["data"][0]):
        raise ValueError(
            f"{arguments['data'][0]}: holds records, and train {learner_type.name} takes "
            f"{learner_type.unit}s; train poly, train logistic and train linear take records"
        )
    options = given_options(  # [] means that an option that may be repeated is not set
        {name: value for name, value in arguments.items() if value != []}, learner_type.options()
    )
    records = learner_type.takes_records and are_records(arguments["data"], options)
    if records:
        learner_type = adapt_to_records(learner_type)
    if learner_type.takes_records:
        check_options(options, arguments["data"], records=records)
    learner = learner_type(options)
    request = Request.from_arguments(f"train {learner.name}", arguments)
    with Display(quiet=arguments["quiet"] or arguments["json"], verbose=arguments["verbose"]) as display:
        result = (train_records if records else train)(learner, request, display)
    report(result, arguments, partial(print_training, learner))


def report(result: dict[str, Any], arguments: dict[str, Any], show: Callable[[dict[str, Any]], None]) -> None:
    """Print the warnings and the result of training or tuning."""
    from unkernel.cli.terminal.console import print_json, warn

    for message in result["warnings"]:
        warn(message)
    if arguments["json"]:
        print_json(result)
    elif not arguments["quiet"]:
        show(result)


def _train_parser(kind: str, task: Any, arguments: dict[str, Any]) -> None:
    from unkernel.cli.learners.parser_training import train_parser
    from unkernel.cli.render.parsers import print_parser_training
    from unkernel.cli.terminal.progress import Display

    with Display(quiet=arguments["quiet"] or arguments["json"], verbose=arguments["verbose"]) as display:
        result = train_parser(kind, task, arguments, display)
    report(result, arguments, print_parser_training)


def _make_parser_command(kind: str, task: str) -> Any:
    from unkernel.cli.inputs.sentences import TASKS
    from unkernel.cli.learners import parser_training

    estimator = TASKS[task].estimator
    parts: dict[str, tuple[Any, Any]] = {
        "data": (train_options.SentenceFile, REQUIRED),
        "output": (train_options.ModelOutput, None),
        "dev": (train_options.DevFile, None),
    }
    if task == "trees":
        parts["format"] = (train_options.Format, None)
    parts |= derive_parts(parser_training.parser_options(estimator), {}, f"The parser: {estimator.__name__}")
    parts |= {
        "jobs": (shared_options.Jobs, None),
        **RUN_PARTS,
    }
    return make_command(partial(_train_parser, kind, TASKS[task]), parts, parser_training.HELP[kind])


def _make_table_command() -> Any:
    from unkernel.cli.learners.table import HELP

    parts: Parts = {
        "data": (train_options.RecordFiles, REQUIRED),
        "output": (train_options.ModelOutput, None),
        "target": (train_options.Target, None),
        "schema": (train_options.Schema, None),
        "drop": (train_options.Drop, None),
        "task": (train_options.PredictedAs, None),
        "minutes": (train_options.Minutes, None),
        "seed": (train_options.HeldOutSeed, None),
        "min_count": (train_options.MinCount, None),
        "class_weight": (train_options.ClassWeight, None),
        **_THRESHOLD_PARTS,
        "jobs": (shared_options.Jobs, None),
        "test": (shared_options.TestFile, None),
        **RUN_PARTS,
    }
    return make_command(_train_table, parts, HELP)


def _train_table(arguments: dict[str, Any]) -> None:
    from unkernel.cli.inputs.file_contents import check_no_bare_trees, check_no_model
    from unkernel.cli.learners.table import train_table
    from unkernel.cli.render.training_summary import print_table_training
    from unkernel.cli.terminal.progress import Display

    check_no_model(arguments["data"][0], "records")
    check_no_bare_trees(arguments["data"][0])
    with Display(quiet=arguments["quiet"] or arguments["json"], verbose=arguments["verbose"]) as display:
        result = train_table(arguments, display)
    report(result, arguments, print_table_training)
