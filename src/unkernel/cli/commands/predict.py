"""``unkernel predict``: predictions for a file of rows, records or trees."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import Counter
from pathlib import Path
from typing import Any

import typer

from unkernel.cli.batch_files import (
    Cluster,
    Journal,
    Part,
    PartResult,
    Work,
    answer_parts,
    check_folder,
    check_pattern,
    list_parts,
)
from unkernel.cli.inputs.model_kinds import is_records
from unkernel.cli.inputs.models import open_model
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.output_files import check_output
from unkernel.cli.records.answer_writers import Answers, open_answers
from unkernel.cli.render.predictions import prediction_facts
from unkernel.cli.scoring import Request, score_file
from unkernel.cli.terminal.console import messages, print_facts, print_json, rate, results
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.records.files.formats import format_of

# Accept further arguments: if the shell has expanded an unquoted pattern, `predict` can then explain the
# error.
CONTEXT_SETTINGS = {"allow_extra_args": True}

_ROWS_PER_WRITE = 1 << 16


def predict(
    context: typer.Context,
    model: shared_options.AnyModelFile,
    data: shared_options.DataFile,
    *,
    output: shared_options.Output = None,
    scores: shared_options.Scores = False,
    probability: shared_options.Probability = False,
    ndcg_at: train_options.NdcgDepth = None,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    cache_rows: shared_options.CacheRows = None,
    dask: shared_options.PartsDask = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
    quiet: shared_options.Quiet = False,
    force: shared_options.Force = False,
) -> None:
    """Predict the labels of the rows, records or trees in a file.

    If the file contains labels, the command also prints the accuracy; with two classes, precision, recall
    and F1 of the larger label, and the area under the ROC curve; for regression, the mean squared error;
    for rankings, the share of pairs of rows (of the same qid:) that are in order, and NDCG@K (gain
    2^label - 1; queries without a relevant row are left out). Features that did not occur in training are
    ignored, with a warning.

    With --scores, the decision values follow each label: one value for two classes, otherwise one value for
    each class (or, for models of LIBSVM, for each pair of classes). With --probability, the probability of
    each class follows. Text models of other programs are compiled first. With --cache-rows, repeated rows
    are scored only once; the results are the same.

    For models of records, CSV, TSV, JSON lines and Parquet are read in blocks; memory does not grow with the
    file. The name of the output determines whether CSV, TSV or JSON lines are written. On stdout, the format
    follows the input, and each line of JSON is answered when it arrives.

    Without --output, the predictions go to stdout and the summary to stderr. With --json, the summary goes
    to stdout, and predictions are written only to an --output.

    DATA may be a pattern in quotes, such as 'part-*.parquet'. Then --output is a folder with one file of
    predictions for each file. To resume an interrupted run, start it again. With --dask, several workers
    predict at the same time; all of them must see the files under the same names.

    \b
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz > predictions.txt
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz -o predictions.txt --scores
    [dim]$[/dim] unkernel predict libsvm.model rows.svm -o predictions.txt --probability
    [dim]$[/dim] unkernel predict trees.uk questions.dat -o predictions.txt --force
    [dim]$[/dim] zcat rows.gz | unkernel predict model.uk - | sort | uniq -c
    [dim]$[/dim] unkernel predict income.uk new.csv -o answers.csv --probability
    [dim]$[/dim] tail -f events.jsonl | unkernel predict income.uk -
    [dim]$[/dim] unkernel predict income.uk 'day-*.parquet' -o answers --dask local --jobs 4
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if context.args:
        raise ValueError(
            f"{context.args[0]}: a second file; for several files, give one pattern in quotes, such as "
            "'part-*.csv', and name a folder with --output"
        )
    request = Request(model, scores, probability, ndcg_at, zero_based, cache_rows, quiet)
    _check_no_record(data, model)
    if check_pattern([data], dask):
        cluster = Cluster(dask, shared_options.count_threads(jobs))
        _predict_parts(request, data, output, cluster, json=json, force=force)
        return
    if output is None and not json:
        output = STANDARD_STREAM
    _check_output(output, model, data, scores=scores, probability=probability, json=json, force=force)
    with Display(quiet=quiet or json) as display:
        result = _predict_file(request, data, output, shared_options.count_threads(jobs), display)
    _print_result(result, json=json, quiet=quiet)


def _check_no_record(data: str, model: Path) -> None:
    """Raise ``ValueError`` if `data` is a record, which only ``explain`` accepts on the command line."""
    if data.lstrip().startswith("{") and data.rstrip().endswith("}"):
        raise ValueError(
            f"DATA must be a file, got the record {data}; pipe it, as in "
            f"echo '{data}' | unkernel predict {model} -, or use unkernel explain"
        )


def _predict_file(
    request: Request, data: str, output: str | None, threads: int, display: Display
) -> dict[str, Any]:
    """Write the predictions for a file; return their description for JSON."""
    if is_records(request.model):
        from unkernel.cli.records.prediction import answer_records

        return answer_records(request, data, output, threads, display)
    predictions = score_file(request, data, threads, display)
    answers = Answers(predictions.decision, "lines", request.scores, request.probability)
    with display.show_work("writing"), open_answers(output, answers) as write:
        for begin in range(0, len(predictions.raw), _ROWS_PER_WRITE):
            write(predictions.raw[begin : begin + _ROWS_PER_WRITE])
    return predictions.result | {"output": output}


# --- Several files ---------------------------------------------------------------------------------------


def _predict_parts(
    request: Request, pattern: str, output: str | None, cluster: Cluster, *, json: bool, force: bool
) -> None:
    """Predict each file that a pattern names, and write the predictions to a file of its own."""
    folder, start = check_folder(pattern, output), time.perf_counter()
    request = dataclasses.replace(request, model=Path(cluster.path_on_worker(request.model)))
    records = is_records(request.model)
    if not records:
        open_model(request.model, "predict")  # raises an error for a bad model before anything is written
    choose_suffix = _choose_suffix if records else lambda _: ".txt"
    parts = list_parts(cluster.path_on_worker(pattern), Path(cluster.path_on_worker(folder)), choose_suffix)
    # The journal identifies the model by its content. The other options left out do not change predictions.
    options = dataclasses.asdict(request) | {"model": None, "quiet": None, "cache_rows": None}
    del options["command"]
    journal = Journal(folder, "predict", request.model, options, force=force)
    work = Work(functools.partial(_predict_part, request, cluster.threads_per_part), "predicting")
    with Display(quiet=request.quiet or json) as display:
        counts = answer_parts(parts, work, journal, cluster, display)
    seconds = time.perf_counter() - start
    if json:
        facts = {name: counts[name] for name in ("parts", "done_before", "rows")}
        print_json(
            {"model": str(request.model), "data": pattern, "output": output} | facts | {"seconds": seconds}
        )
    elif not request.quiet:
        print_facts(pattern, _describe_parts(counts, seconds) | {"written": str(folder)})


def _predict_part(request: Request, threads: int, part: Part) -> PartResult:
    """Predict one part on a worker."""
    with Display(quiet=True) as display:
        request = dataclasses.replace(request, quiet=True)
        result = _predict_file(request, part.data, part.output, threads, display)
    return PartResult({"rows": result["rows"]})


def _choose_suffix(name: str) -> str:
    """Return the suffix of the predictions for a file of records; the suffix determines their format."""
    return Path(name).suffix if format_of(name) in ("tsv", "jsonl") else ".csv"


def _describe_parts(counts: Counter[str], seconds: float) -> dict[str, str]:
    facts = {"files": f"{counts['parts']:,}"}
    if counts["done_before"]:
        facts["answered before"] = f"{counts['done_before']:,}"
    return facts | {"rows": f"{counts['rows']:,} ({rate(counts['rows'], seconds):,.0f} rows/s)"}


def _print_result(result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    if json:
        print_json(result)
    elif not quiet:
        console = messages() if result["output"] == STANDARD_STREAM else results()
        print_facts(result["data"], prediction_facts(result), console)


def _check_output(
    output: str | None, model: Path, data: str, *, scores: bool, probability: bool, json: bool, force: bool
) -> None:
    """Raise ``ValueError`` if the predictions cannot be written to `output`, or if --json needs stdout."""
    if output is None and (scores or probability):
        option = "--scores" if scores else "--probability"
        raise ValueError(f"{option}: --json writes to stdout; name a file with --output")
    if output == STANDARD_STREAM:
        if json:
            raise ValueError("--json and --output - both write to stdout; name a file with --output")
    elif output is not None:
        check_output(Path(output), model, data, force=force)
