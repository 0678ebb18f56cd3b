"""``unkernel predict``: a model answers for a file of rows, records or trees."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

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
from unkernel.cli.inputs.labelled_files import class_labels, match_width
from unkernel.cli.inputs.model_kinds import is_records
from unkernel.cli.inputs.models import Model, Opened, OpenedTrees, open_model
from unkernel.cli.inputs.question_rows import expect_rows, read_question_rows
from unkernel.cli.inputs.records import check_no_records, check_options_of_rows
from unkernel.cli.inputs.trees import check_rows_only, read_for_model
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.options.help_text import reflow
from unkernel.cli.output_files import check_output
from unkernel.cli.quality import NDCG_DEPTH, QUALITY, compare, compare_classes
from unkernel.cli.render.predictions import prediction_facts
from unkernel.cli.terminal.console import messages, print_facts, print_json, rate, results
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.data.files import open_writer
from unkernel.data.rows.csr import canonical_rows
from unkernel.engines import CompiledClassifier, TreeClassifier
from unkernel.models import TreeModel
from unkernel.records.files.formats import format_of

_ROWS_PER_WRITE = 1 << 16
_CONTROL_CHARACTERS = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]"
)  # and what UTF-8 does not have
Numbers = NDArray[np.float64]


def register(app: typer.Typer, _: Sequence[str]) -> None:
    """Add the command."""
    # What a shell makes of a pattern without quotes is taken, to say what to do.
    further = {"allow_extra_args": True}
    app.command(help=reflow(predict.__doc__), context_settings=further)(predict)


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

    If the file contains the right labels, the command also prints the accuracy; with two classes, precision,
    recall and F1 of the larger label, and the area under the ROC curve; for regression, the mean squared
    error; for rankings, the share of pairs of rows (of the same qid:) that are in order, and NDCG@K
    (gain 2^label - 1; queries without a relevant row are left out). Features that did not occur in training
    are ignored, with a warning.

    With --scores, the decision values follow each label: one for two classes, otherwise one for each
    class (or, for models of LIBSVM, each pair of classes). With --probability, the probability of each class
    follows. Text models of other programs are compiled first. With --cache-rows, repeated rows are scored
    only once; the results are the same.

    A model of records reads CSV, TSV, JSON lines and Parquet in blocks; memory does not grow with the file.
    It writes CSV, TSV or JSON lines, according to the name of the output; on stdout, it writes the format of
    the input, and answers each line of JSON as it arrives.

    Without --output, the predictions go to stdout and the summary to stderr. With --json, stdout has the
    summary, and predictions are written only to an --output.

    DATA may be a pattern, in quotes, such as 'part-*.parquet': then --output is a folder, and each file has a
    file of answers there. A run that was stopped continues where it was when it is started again. With
    --dask, several workers answer at the same time; they need to see the files under the same names.

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
            f"{context.args[0]}: a second file; for several, give one pattern in quotes, such as "
            "'part-*.csv', and name a folder with --output"
        )
    chosen = Chosen(model, scores, probability, ndcg_at, zero_based, cache_rows, quiet)
    _check_no_record(data, model)
    if check_pattern([data], dask):
        _predict_parts(
            chosen, data, output, Cluster(dask, shared_options.count_threads(jobs)), json=json, force=force
        )
        return
    if output is None and not json:
        output = STANDARD_STREAM
    _check_output(output, model, data, scores=scores, probability=probability, json=json, force=force)
    with Display(quiet=quiet or json) as display:
        result = _answer_file(chosen, data, output, shared_options.count_threads(jobs), display)
    _show(result, json=json, quiet=quiet)


def _check_no_record(data: str, model: Path) -> None:
    """Records are asked about in files; ``explain`` also takes one that is written on the command line."""
    if data.lstrip().startswith("{") and data.rstrip().endswith("}"):
        raise ValueError(
            f"DATA must be a file, got the record {data}; pipe it, as in "
            f"echo '{data}' | unkernel predict {model} -, or use unkernel explain"
        )


@dataclass(frozen=True)
class Chosen:
    """A model and what is asked of it, whichever file it is about."""

    model: Path
    scores: bool
    probability: bool
    ndcg_at: int | None
    zero_based: bool | None
    cache_rows: int | None
    quiet: bool


def _answer_file(
    chosen: Chosen, data: str, output: str | None, threads: int, display: Display
) -> dict[str, Any]:
    """Write the answers to a file; what they are, for JSON."""
    model, scores, probability = chosen.model, chosen.scores, chosen.probability
    if is_records(model):
        from unkernel.cli.records.prediction import RecordRequest, answer_records

        of_rows = {"--ndcg-at": chosen.ndcg_at, "--zero-based": chosen.zero_based}
        check_options_of_rows(model, of_rows, "a model of records")
        request = RecordRequest(model, data, output, threads, scores, probability, chosen.cache_rows)
        return answer_records(request, display)
    asking = Asking(
        "predict", chosen.zero_based, threads, chosen.ndcg_at, chosen.quiet, probability, chosen.cache_rows
    )
    answered = answer(model, data, display, asking)
    decision, raw = answered.decision, answered.raw
    numbers = [decision.decide(raw)] if scores else []
    numbers += [decision.probabilities(raw)] if probability else []
    with display.show_work("writing"):
        _write(output, decision.choose(raw), numbers)
    return answered.result | {"output": output, "seconds": answered.seconds}


# --- Several files ---------------------------------------------------------------------------------------


def _predict_parts(
    chosen: Chosen, pattern: str, output: str | None, cluster: Cluster, *, json: bool, force: bool
) -> None:
    folder, began = check_folder(pattern, output), time.perf_counter()
    chosen = dataclasses.replace(chosen, model=Path(cluster.path_on_worker(chosen.model)))
    records = is_records(chosen.model)
    if not records:
        open_model(chosen.model, "predict")  # says what is wrong with it before anything is written
    suffix_of = _choose_suffix if records else lambda _: ".txt"
    parts = list_parts(cluster.path_on_worker(pattern), Path(cluster.path_on_worker(folder)), suffix_of)
    options = dataclasses.asdict(chosen) | {"model": None, "quiet": None, "cache_rows": None}
    journal = Journal(folder, "predict", chosen.model, options, force=force)
    work = Work(functools.partial(_answer_part, chosen, cluster.threads_per_part), "predicting")
    with Display(quiet=chosen.quiet or json) as display:
        counts = answer_parts(parts, work, journal, cluster, display)
    spent = time.perf_counter() - began
    if json:
        facts = {name: counts[name] for name in ("parts", "done_before", "rows")}
        print_json(
            {"model": str(chosen.model), "data": pattern, "output": output} | facts | {"seconds": spent}
        )
    elif not chosen.quiet:
        print_facts(pattern, _describe_parts(counts, spent) | {"written": str(folder)})


def _answer_part(chosen: Chosen, threads: int, part: Part) -> PartResult:
    """What a worker does."""
    with Display(quiet=True) as display:
        result = _answer_file(
            dataclasses.replace(chosen, quiet=True), part.data, part.output, threads, display
        )
    return PartResult({"rows": result["rows"]})


def _choose_suffix(name: str) -> str:
    """The format that records of a file are answered in."""
    return Path(name).suffix if format_of(name) in ("tsv", "jsonl") else ".csv"


def _describe_parts(counts: Counter[str], spent: float) -> dict[str, str]:
    facts = {"files": f"{counts['parts']:,}"}
    if counts["done_before"]:
        facts["answered before"] = f"{counts['done_before']:,}"
    return facts | {"rows": f"{counts['rows']:,} ({rate(counts['rows'], spent):,.0f} rows/s)"}


def _show(result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    if json:
        print_json(result)
    elif not quiet:
        console = messages() if result["output"] == STANDARD_STREAM else results()
        print_facts(result["data"], prediction_facts(result), console)


@dataclass(frozen=True)
class Asking:
    """How a file is read and answered."""

    command: str  # predict or evaluate
    zero_based: bool | None
    threads: int
    ndcg_at: int | None
    quiet: bool
    probability: bool = False
    cache: int | None = None  # rows whose answers are remembered


@dataclass(frozen=True, eq=False)
class Answered:
    """The scores of a model for a file, and how good its answers are, for JSON."""

    decision: Any
    raw: Numbers
    result: dict[str, Any]
    seconds: dict[str, float]


def answer(path: Path, data: str, display: Display, asking: Asking) -> Answered:
    """Ask a model about a file, and compare its answers with the labels there."""
    began = time.perf_counter()
    opened = open_model(path, asking.command)
    check_no_records(data, path)
    if asking.probability:
        _check_probabilities(opened.model, path)
    if isinstance(opened, OpenedTrees):
        asked = _ask_trees(opened, data, display, asking)
    else:
        asked = _ask_rows(opened, data, display, asking)
    read = time.perf_counter()
    with display.show_work("predicting"):
        raw = asked.score()
    scored = time.perf_counter()
    result: dict[str, Any] = {
        "model": str(path),
        "data": data,
        "unit": asked.unit,
        "engine": asked.classifier.engine,
        "exact": asked.classifier.exact,
        "compiled_now": opened.classifier is None,
        "rows": len(raw),
    }
    if asking.cache is not None and isinstance(asked.classifier, CompiledClassifier):
        result["cache"] = asked.classifier.cache_info()._asdict()
    result |= QUALITY | asked.compare(raw)
    spent = {"loading": asked.loaded - began, "reading": read - asked.loaded, "scoring": scored - read}
    result["rows_per_second"] = {
        "scoring": rate(len(raw), spent["scoring"]),
        "reading_and_scoring": rate(len(raw), spent["reading"] + spent["scoring"]),
    }
    return Answered(opened.model.decision, raw, result, spent)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Examples of a file, the classifier that answers for them, and when it was ready."""

    classifier: CompiledClassifier | TreeClassifier
    loaded: float
    unit: str  # what an example is
    score: Callable[[], Numbers]
    compare: Callable[[Numbers], dict[str, Any]]


def _ask_rows(opened: Opened, data: str, display: Display, asking: Asking) -> _Asked:
    expect_rows(opened, data)
    classifier = opened.ready(display, threads=asking.threads, quiet=asking.quiet)
    if asking.cache is not None:
        classifier = classifier.with_cache(asking.cache).validate()
    loaded = time.perf_counter()
    rows = read_question_rows(opened, data, display, asking.zero_based, asking.threads)
    X = canonical_rows(match_width(opened.model, rows.X, data))
    return _Asked(
        classifier,
        loaded,
        unit="row",
        score=lambda: classifier.score_csr(X, asking.threads),
        compare=lambda raw: compare(
            opened.model.decision, raw, rows.y, rows.qid, asking.ndcg_at or NDCG_DEPTH
        ),
    )


def _ask_trees(opened: OpenedTrees, data: str, display: Display, asking: Asking) -> _Asked:
    check_rows_only([data], asking.zero_based, asking.cache)
    classifier = opened.classifier
    with display.show_work("loading"):
        _ = classifier.nbytes  # is known when all is ready to score
    loaded = time.perf_counter()
    examples = read_for_model(opened.model, opened.path, data, display)
    return _Asked(
        classifier,
        loaded,
        unit="tree",
        score=lambda: classifier.raw_scores(examples.data.X, asking.threads),
        compare=lambda raw: compare_classes(opened.model.decision, raw, examples.data.y, "tree"),
    )


def _check_output(
    output: str | None, model: Path, data: str, *, scores: bool, probability: bool, json: bool, force: bool
) -> None:
    if output is None and (scores or probability):
        option = "--scores" if scores else "--probability"
        raise ValueError(f"{option} says what to write, and --json takes stdout: name a file with --output")
    if output == STANDARD_STREAM:
        if json:
            raise ValueError("--json and --output - both want stdout; write the labels to a file")
    elif output is not None:
        check_output(Path(output), model, data, force=force)


def _check_probabilities(model: Model | TreeModel, path: Path) -> None:
    if isinstance(model, TreeModel):
        raise ValueError(f"{path}: models of trees have no probabilities; write the --scores in their place")
    if model.decision.scheme == "regression":
        raise ValueError(f"{path}: --probability is for classes, and this model answers with numbers")
    if model.decision.probability is None:
        raise ValueError(
            f"{path}: the model has no probabilities; train one that has (unkernel train logistic, "
            "svm-train -b 1), or leave out --probability"
        )


def _write(output: str | None, labels: NDArray[Any], numbers: list[NDArray[np.float64]]) -> None:
    if output is None:
        return
    values, codes = np.unique(class_labels(labels), return_inverse=True)
    names = np.array([_escape_controls(f"{value}") for value in values.tolist()], dtype=object)
    with _opened(output) as write:
        for begin in range(0, len(labels), _ROWS_PER_WRITE):
            part = slice(begin, begin + _ROWS_PER_WRITE)
            lines = names[codes[part]]
            for block in numbers:
                for column in _format_columns(block[part]):
                    lines = lines + " " + column
            write(("\n".join(lines.tolist()) + "\n").encode())


def _escape_controls(label: str) -> str:
    """A label with its control characters spelled out: they could break lines or move the cursor."""
    return _CONTROL_CHARACTERS.sub(lambda found: found[0].encode("unicode_escape").decode(), label)


def _opened(output: str) -> contextlib.AbstractContextManager[Any]:
    return open_writer(sys.stdout.buffer if output == STANDARD_STREAM else output)


def _format_columns(decisions: NDArray[np.float64]) -> list[NDArray[np.object_]]:
    """Each column of numbers as texts, as short as reads back to the same number."""
    texts = decisions.reshape(len(decisions), -1).astype("U32").astype(object)
    return list(texts.T)
