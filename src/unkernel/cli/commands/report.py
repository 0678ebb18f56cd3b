"""``unkernel report``: an HTML page about one model, or about several side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.report_inputs import Question, report_on
from unkernel.cli.options import parse_options as own
from unkernel.cli.options import report_options, shared_options, train_options
from unkernel.cli.options.error_wording import name_options_in_errors
from unkernel.cli.output_files import check_output
from unkernel.cli.terminal.console import note, print_facts, print_json
from unkernel.cli.terminal.progress import Display
from unkernel.measures.intervals import Measure
from unkernel.measures.number_format import format_percent
from unkernel.report import Report
from unkernel.report.options import Choices, Costs
from unkernel.report.search_plot import check_matplotlib

_DEFAULT = Choices()


def report(
    models: report_options.ModelFiles,
    *,
    test: report_options.TestFile = None,
    output: report_options.Output = None,
    costs: report_options.CostsOption = None,
    top: report_options.TopOption = _DEFAULT.top,
    mistakes: report_options.MistakesOption = _DEFAULT.mistakes,
    no_records: report_options.NoRecords = False,
    train: report_options.TrainFile = None,
    title: report_options.Title = None,
    given: own.GivenOf = None,
    format: train_options.Format = None,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
    quiet: shared_options.Quiet = False,
    force: shared_options.Force = False,
) -> None:
    """Write an HTML report about a model, or about several models side by side.

    The report is one HTML file that needs no network. It begins with three sentences: how good the model is,
    how much better than always predicting the most frequent class (with --train, than a linear model), and
    where it fails most. It shows measures with confidence intervals, the importance of columns, the
    confusion matrix, ROC, precision-recall and calibration curves, a table of thresholds with their costs,
    the heaviest conjunctions, explained mistakes, how training ended, and the time and memory of the
    engines. For rankings: NDCG by depth and by query. For parsers: accuracy by relation, type or tag and by
    distance, confusions, and drawings of the worst sentences.

    \b
    [dim]$[/dim] unkernel report income.uk --test adult.test.csv -o report.html
    [dim]$[/dim] unkernel report model.uk --test test.svm -o report.html --costs 1,5 --mistakes 20
    [dim]$[/dim] unkernel report a.uk b.uk --test test.svm -o compare.html
    [dim]$[/dim] unkernel report en.uk --test test.conllu -o report.html
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    choices = Choices(
        None if costs is None else Costs(*report_options.parse_costs(costs)),
        top,
        mistakes,
        title,
        not no_records,
    )
    data, page = _check_places(models, test, train, output, force=force)
    check_matplotlib("a report")
    began = time.perf_counter()
    with Display(quiet=quiet or json) as display:
        asked = Question(data, display, zero_based, shared_options.count_threads(jobs), given, format)
        with name_options_in_errors():
            made = report_on(models, asked, choices, train)
        with display.show_work("writing"):
            made.save(page)
    result = _describe(made, models, data, page, time.perf_counter() - began)
    if json:
        print_json(result)
    elif not quiet:
        _print(made, result)


def _check_places(
    models: Sequence[Path], test: str | None, train: str | None, output: Path | None, *, force: bool
) -> tuple[str, Path]:
    """Return the data and the page, after a check of their places."""
    if test is None:
        raise ValueError(
            f"name the examples to test on: unkernel report {models[0]} --test FILE -o report.html"
        )
    if output is None:
        raise ValueError(f"name the page to write: unkernel report {models[0]} --test {test} -o report.html")
    check_output(output, *models, test, train, force=force)
    return test, output


def _describe(made: Report, models: Sequence[Path], data: str, page: Path, seconds: float) -> dict[str, Any]:
    measures = {name: {one.name: _to_json(one) for one in found} for name, found in made.measures.items()}
    return {
        "models": [str(model) for model in models],
        "data": data,
        "measures": measures,
        "output": str(page),
        "bytes": page.stat().st_size,
        "seconds": seconds,
    }


def _to_json(one: Measure) -> dict[str, Any]:
    return {"value": one.value, "low": one.low, "high": one.high, "by": one.method}


def _print(made: Report, result: dict[str, Any]) -> None:
    for words in made.notes:
        note(words)
    for name, measures in made.measures.items():
        print_facts(f"{name} on {result['data']}", {one.name: _format_measure(one) for one in measures})
    print_facts("the page", {"written": result["output"]})


def _format_measure(one: Measure) -> str:
    if math.isnan(one.value):
        return "–"
    value = format_percent(one.value) if one.is_share else f"{one.value:.6g}"
    return value if math.isnan(one.low) else f"{value} ({_format_interval(one)}, {one.method})"


def _format_interval(one: Measure) -> str:
    if one.is_share:
        return f"{100 * one.low:.2f} to {100 * one.high:.2f}"
    return f"{one.low:.6g} to {one.high:.6g}"
