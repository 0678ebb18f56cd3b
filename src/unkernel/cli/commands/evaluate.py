"""``unkernel evaluate``: the quality of a model or a parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from unkernel.cli.inputs.model_kinds import (
    PARSERS_ONLY,
    ROWS_NOT_PARSERS,
    is_parser,
    is_records,
    refuse_options,
)
from unkernel.cli.options import parse_options, shared_options, train_options
from unkernel.cli.scoring import Request, score_file
from unkernel.cli.terminal.console import print_facts, print_json
from unkernel.cli.terminal.progress import Display


def evaluate(
    model: shared_options.AnyModelFile,
    file: parse_options.TestFile,
    *,
    given: parse_options.From = None,
    beam: parse_options.Beam = None,
    labels: parse_options.Labels = False,
    format: train_options.Format = None,
    ndcg_at: train_options.NdcgDepth = None,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
) -> None:
    """Measure the quality of a model or a parser on a file with labels.
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
    parser_options = {"--from": given, "--beam": beam, "--labels": labels or None, "--format": format}
    threads = shared_options.count_threads(jobs)
    with Display(quiet=json) as display:
        if is_parser(model):
            refuse_options(model, {"--ndcg-at": ndcg_at, "--zero-based": zero_based}, ROWS_NOT_PARSERS)
            source = _Source(file, given, format)
            result = _evaluate_parser(model, source, beam, threads, display)
        else:
            refuse_options(model, parser_options, PARSERS_ONLY)
            request = Request(model, ndcg_at=ndcg_at, zero_based=zero_based, quiet=json, command="evaluate")
            result = _evaluate_model(request, file, threads, display)
    if json:
        print_json(result)
    else:
        _print(result, labels=labels)


class _Source(NamedTuple):
    """A file to evaluate a parser on, and the options for reading it."""

    file: str
    given: Any  # --from: the input of parsers of raw text
    format: Any  # --format: the format of a treebank


def _evaluate_parser(
    model: Path, source: _Source, beam: int | None, threads: int, display: Display
) -> dict[str, Any]:
    from unkernel.cli.inputs.parsers import describe_result, open_parser
    from unkernel.cli.inputs.sentences import Input, choose_reader, find_task, parse_given

    parser = open_parser(model, "evaluate", beam)
    file, given, format = source
    reader = choose_reader(find_task(parser), format)
    options = parse_given(parser, given)
    corpus = Input(file).read(reader, display)
    with display.show_work("parsing"):
        result = parser.evaluate(corpus, n_jobs=threads, **options)
    return {"model": str(model), "data": file} | options | describe_result(result)


def _evaluate_model(request: Request, file: str, threads: int, display: Display) -> dict[str, Any]:
    if not is_records(request.model):
        result = score_file(request, file, threads, display).result
    else:
        from unkernel.cli.records.prediction import answer_records

        result = answer_records(request, file, None, threads, display)
        del result["output"]
    _check_measured(result)
    return result


def _check_measured(result: dict[str, Any]) -> None:
    """Raise ``ValueError`` if no measure could be computed, for example because there are no labels."""
    if all(result[measure] is None for measure in ("accuracy", "pairs", "mean_squared_error")):
        reason = (result["accuracy_note"] or "there are no labels").removeprefix("not known: ")
        raise ValueError(
            f"{result['data']}: nothing can be measured: {reason}; unkernel predict needs no labels"
        )


def _print(result: dict[str, Any], *, labels: bool) -> None:
    if "engine" in result:
        from unkernel.cli.render.predictions import prediction_facts

        print_facts(result["data"], prediction_facts(result))
        return
    from unkernel.cli.render.parser_scores import print_labels, result_facts

    print_facts(result["data"], result_facts(result))
    if labels or "per_type" in result:
        print_labels(result)
