"""``unkernel train KIND``: a file of rows, records, trees or sentences becomes a model."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer

from unkernel.cli.learners import LEARNERS, PARSERS, TEXT_PARSERS
from unkernel.cli.options import shared, training
from unkernel.cli.options.help import flowing
from unkernel.cli.options.signatures import REQUIRED, Parts, derived_parts, given_options, make_command

_HELP = """Train a model, a parser or a chunker on a file.

    Each kind has its own options: see unkernel train KIND --help.

    \b
    [dim]$[/dim] unkernel train poly a9a.svm.xz -o model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel train poly adult.train.csv --target income -o income.uk --test adult.test.csv
    [dim]$[/dim] unkernel train logistic a.svm -o a.uk --degree 3 --C 0.3
    [dim]$[/dim] unkernel train linear 'day-*.svm.gz' -o a.uk --out-of-core
    [dim]$[/dim] unkernel train rank letor.txt -o a.uk --test letor.t.txt
    [dim]$[/dim] unkernel train tree questions.dat -o model.uk --kernel sst
    [dim]$[/dim] unkernel train text train.conllu -o en.uk --dev dev.conllu
    [dim]$[/dim] unkernel train parser train.conllu -o trees.uk --dev dev.conllu
    [dim]$[/dim] unkernel train bunsetsu train.knp -o ja.uk --degree 3
    [dim]$[/dim] unkernel train chunker conll2000.txt.gz -o chunks.uk --direction backward
    """
_PANELS = {"cache": training.LARGE_DATA_PANEL, "checkpoint": training.LARGE_DATA_PANEL}


def register(app: typer.Typer, arguments: Sequence[str]) -> None:
    """Add ``train`` with the kind that is asked for, and a line of help for the others."""
    from unkernel.cli.app import first_word, new_group

    group = new_group()
    asked = first_word(arguments)
    for kind, (where, summary) in {**LEARNERS, **PARSERS, **TEXT_PARSERS}.items():
        if kind != asked:
            group.command(kind, help=summary)(_not_loaded)
        elif kind not in LEARNERS:
            group.command(kind)(_parser_command(kind, where))
        else:
            group.command(kind)(_learner_command(learner_at(where)))
    app.add_typer(group, name="train", help=flowing(_HELP))


def _not_loaded() -> None:
    raise AssertionError("a kind that was not asked for was run")


def learner_at(where: str) -> Any:
    """The learner's class; only now is its estimator imported."""
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


def _learner_command(learner: Any) -> Any:
    return make_command(partial(_train, learner), _learner_parts(learner), learner.help)


def _learner_parts(learner: Any) -> Parts:
    parts: dict[str, tuple[Any, Any]] = {
        "data": (data_argument(learner, large_data=learner.large_data), REQUIRED),
        "output": (training.ModelOutput, None),
    }
    parts |= derived_parts(learner.options(), _PANELS, f"The model: {learner.estimator.__name__}")
    if learner.name == "rank":
        parts |= {"thresholds": (training.Thresholds, False)}
    if learner.large_data:
        parts |= {
            "out_of_core": (training.OutOfCore, False),
            "memory": (training.Memory, None),
            "dask": (training.Dask, None),
        }
    return (
        parts
        | record_parts(learner)
        | measuring_parts(learner)
        | {
            "test": (shared.TestFile, None),
            "cv": (training.Folds, None),
            "verbose": (shared.Verbose, False),
            "json": (shared.Json, False),
            "quiet": (shared.Quiet, False),
            "force": (shared.Force, False),
        }
    )


def data_argument(learner: Any, *, large_data: bool) -> Any:
    """DATA of a learner; whether it may be several files."""
    if learner.unit != "row":
        return training.TreeFile if learner.unit == "tree" else training.SentenceFile
    if learner.takes_records and not large_data:
        return training.RowOrRecordFile
    return training.RowFiles if large_data else training.RowFile


def record_parts(learner: Any) -> dict[str, tuple[Any, Any]]:
    """Options of learners that also learn from records."""
    if not learner.takes_records:
        return {}
    from unkernel.cli.learners.records import encoder_options

    return {
        "target": (training.Target, None),
        "schema": (training.Schema, None),
        "drop": (training.Drop, None),
        **derived_parts(encoder_options(), {}, training.RECORDS_PANEL),
        "calibrate": (training.Calibrate, None),
    }


def measuring_parts(learner: Any) -> dict[str, tuple[Any, Any]]:
    """Options of ``train`` and ``tune`` alike."""
    parts: dict[str, tuple[Any, Any]] = {"jobs": (shared.Jobs, None)}
    if "ndcg" in learner.criteria:
        parts["ndcg_at"] = (training.NdcgDepth, None)
    if learner.unit == "row":
        parts |= {"n_features": (shared.FeatureCount, None), "zero_based": (shared.ZeroBased, None)}
    return parts


def _train(learner_type: Any, given: dict[str, Any]) -> None:
    from unkernel.cli.inputs.contents import check_no_bare_trees, check_no_model
    from unkernel.cli.inputs.records import looks_like_records
    from unkernel.cli.learners.records import are_records, check_options, of_records, train_records
    from unkernel.cli.learners.training import Request, train
    from unkernel.cli.render.console import print_json, warn
    from unkernel.cli.render.progress import Display
    from unkernel.cli.render.training import print_training

    check_no_model(given["data"][0], f"{learner_type.unit}s")
    check_no_bare_trees(given["data"][0])
    if not learner_type.takes_records and looks_like_records(given["data"][0]):
        raise ValueError(
            f"{given['data'][0]}: holds records, and train {learner_type.name} learns from "
            f"{learner_type.unit}s; train poly, train logistic and train linear learn from records"
        )
    options = given_options(
        {name: value for name, value in given.items() if value != []}, learner_type.options()
    )
    if records := learner_type.takes_records and are_records(given["data"], options):
        learner_type = of_records(learner_type)
    if learner_type.takes_records:
        check_options(options, given["data"], records=records)
    learner = learner_type(options)
    request = Request.of(f"train {learner.name}", given)
    with Display(quiet=given["quiet"] or given["json"], verbose=given["verbose"]) as display:
        result = (train_records if records else train)(learner, request, display)
    for words in result["warnings"]:
        warn(words)
    if given["json"]:
        print_json(result)
    elif not given["quiet"]:
        print_training(learner, result)


def _parser_command(kind: str, task: str) -> Any:
    from unkernel.cli.inputs.sentences import TASKS
    from unkernel.cli.learners import parsers

    estimator = TASKS[task].estimator
    parts: dict[str, tuple[Any, Any]] = {
        "data": (training.SentenceFile, REQUIRED),
        "output": (training.ModelOutput, None),
        "dev": (training.DevFile, None),
    }
    if task == "trees":
        parts["format"] = (training.Format, None)
    parts |= derived_parts(parsers.options_of(estimator), {}, f"The parser: {estimator.__name__}")
    parts |= {
        "jobs": (shared.Jobs, None),
        "verbose": (shared.Verbose, False),
        "json": (shared.Json, False),
        "quiet": (shared.Quiet, False),
        "force": (shared.Force, False),
    }
    return make_command(partial(parsers.train, kind, TASKS[task]), parts, parsers.HELP[kind])
