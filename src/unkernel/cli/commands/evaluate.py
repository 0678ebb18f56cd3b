"""``unkernel evaluate``: how good the answers of a model, or of a parser, are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from unkernel.cli.commands.predict import Asking, answer
from unkernel.cli.inputs.model_kinds import is_parser, is_records
from unkernel.cli.options import parse_options as own
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.options.help_text import reflow
from unkernel.cli.terminal.console import print_facts, print_json
from unkernel.cli.terminal.progress import Display


def register(app: typer.Typer, _: Sequence[str]) -> None:
    """Add the command."""
    app.command(help=reflow(evaluate.__doc__))(evaluate)


def evaluate(
    model: shared_options.AnyModelFile,
    file: own.TestFile,
    *,
    given: own.GivenOf = None,
    beam: own.Beam = None,
    labels: own.Labels = False,
    format: train_options.Format = None,
    ndcg_at: train_options.NdcgDepth = None,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
) -> None:
    """Measure the quality of a model or a parser on a file with the right answers.

    Classifiers: accuracy; with two classes, also precision, recall and F1 of the larger label, and the area
    under the ROC curve; for models of records with probabilities, also the log loss. Rankings: the share of
    pairs in order, and NDCG@K (gain 2^label - 1; queries without a relevant row are left out). Regression:
    the mean squared error.

    Parsers: the share of words with the right head (UAS), and with the right head and relation (LAS).
    Parsers of raw text and tokenizers: the F1 scores of the CoNLL 2018 shared task, from the text of the
    treebank, or from its words or tags (--from). Taggers: the share of words with the right tags. Japanese
    parsers: right dependencies and sentences. Chunkers: F1 by the rules of CoNLL-2000. Speeds are measured
    in CPU time, without reading the file.

    \b
    [dim]$[/dim] unkernel evaluate model.uk a9a.t.svm.xz
    [dim]$[/dim] unkernel evaluate income.uk adult.test.csv
    [dim]$[/dim] unkernel evaluate ranking.uk letor.t.txt --ndcg-at 5
    [dim]$[/dim] unkernel evaluate en.uk test.conllu --from tokens --beam 4
    [dim]$[/dim] unkernel evaluate trees.uk test.conllu --labels
    [dim]$[/dim] unkernel evaluate ja.uk test.knp --jobs 1
    [dim]$[/dim] unkernel evaluate chunks.uk test.txt --json | jq .f1
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    of_rows = {"--ndcg-at": ndcg_at, "--zero-based": zero_based}
    of_parsers = {"--from": given, "--beam": beam, "--labels": labels or None, "--format": format}
    if is_parser(model):
        threads = shared_options.count_threads(jobs)
        result = _evaluate_parser(
            model, file, of_rows, given=given, beam=beam, format=format, threads=threads, quiet=json
        )
    elif is_records(model):
        _check_not_given(model, of_parsers)
        result = _evaluate_records(model, file, of_rows, shared_options.count_threads(jobs), quiet=json)
    else:
        _check_not_given(model, of_parsers)
        result = _evaluate_model(
            model, file, Asking("evaluate", zero_based, shared_options.count_threads(jobs), ndcg_at, json)
        )
    if json:
        print_json(result)
    else:
        _print(result, labels=labels)


def _evaluate_parser(
    model: Path,
    file: str,
    of_rows: dict[str, Any],
    *,
    given: Any,
    beam: int | None,
    format: Any,
    threads: int,
    quiet: bool,
) -> dict[str, Any]:
    from unkernel.cli.inputs.parsers import describe_result, open_parser
    from unkernel.cli.inputs.sentences import (
        Input,
        check_options_of_rows,
        choose_reader,
        find_task,
        parse_given,
    )

    check_options_of_rows(model, of_rows)
    with Display(quiet=quiet) as display:
        parser = open_parser(model, "evaluate", beam)
        read = choose_reader(find_task(parser), None if format is None else format.value)
        told = parse_given(parser, given)
        corpus = Input(file).read(read, display)
        with display.show_work("parsing"):
            result = parser.evaluate(corpus, n_jobs=threads, **told)
    return {"model": str(model), "data": file} | told | describe_result(result)


def _evaluate_records(
    model: Path, file: str, of_rows: dict[str, Any], threads: int, *, quiet: bool
) -> dict[str, Any]:
    from unkernel.cli.inputs.records import check_options_of_rows
    from unkernel.cli.records.prediction import RecordRequest, answer_records

    check_options_of_rows(model, of_rows, "a model of records")
    with Display(quiet=quiet) as display:
        result = answer_records(RecordRequest(model, file, None, threads), display)
    _check_measured(result)
    return {name: value for name, value in result.items() if name != "output"}


def _check_measured(result: dict[str, Any]) -> None:
    """Refuse a file whose labels say nothing about the answers."""
    if all(result[measure] is None for measure in ("accuracy", "pairs", "mean_squared_error")):
        reason = (result["accuracy_note"] or "there are no labels").removeprefix("not known: ")
        raise ValueError(
            f"{result['data']}: nothing can be measured: {reason}; unkernel predict answers without labels"
        )


def _check_not_given(model: Path, of_parsers: dict[str, Any]) -> None:
    for option, given in of_parsers.items():
        if given is not None:
            raise ValueError(
                f"{model}: {option} is for parsers, and this is a model of rows, records or trees"
            )


def _evaluate_model(model: Path, file: str, asking: Asking) -> dict[str, Any]:
    """What predict does, without an output."""
    with Display(quiet=asking.quiet) as display:
        answered = answer(model, file, display, asking)
    _check_measured(answered.result)
    return answered.result | {"seconds": answered.seconds}


def _print(result: dict[str, Any], *, labels: bool) -> None:
    if "engine" in result:
        from unkernel.cli.render.predictions import prediction_facts

        print_facts(result["data"], prediction_facts(result))
        return
    from unkernel.cli.render.parser_scores import print_labels, result_facts

    print_facts(result["data"], result_facts(result))
    if labels or "per_type" in result:
        print_labels(result)
