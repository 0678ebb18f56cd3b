"""``unkernel report``: an HTML page about one model, or about several side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.report_inputs import TestFile, make_report
from unkernel.cli.options import parse_options, report_options, shared_options, train_options
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
    given: parse_options.From = None,
    format: train_options.Format = None,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
    quiet: shared_options.Quiet = False,
    force: shared_options.Force = False,
) -> None:
    """Write an HTML report about a model, or about several models side by side.

    The report is one HTML file that needs no network. Its first three sentences state how good the model is,
    compare it with a baseline (the most frequent class or, with --train, a linear model), and name its
    greatest weakness. It shows measures with confidence intervals, the importance of columns, the confusion
    matrix, ROC, precision-recall and calibration curves, a table of thresholds with their costs, the heaviest
    conjunctions, explained mistakes, how training ended, and the time and memory of the engines. For
    rankings, it shows NDCG by depth and by query. For parsers, it shows accuracy by relation, type or tag and
    by distance, confusions, and drawings of the worst sentences.

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
    data, page = _check_outputs(models, test, train, output, force=force)
    check_matplotlib("a report")
    start = time.perf_counter()
    with Display(quiet=quiet or json) as display:
        test_file = TestFile(data, display, zero_based, shared_options.count_threads(jobs), given, format)
        with name_options_in_errors():
            html_report = make_report(models, test_file, choices, train)
        with display.show_work("writing"):
            html_report.save(page)
    result = _describe(html_report, models, data, page, time.perf_counter() - start)
    if json:
        print_json(result)
    elif not quiet:
        _print(html_report, result)


def _check_outputs(
    models: Sequence[Path], test: str | None, train: str | None, output: Path | None, *, force: bool
) -> tuple[str, Path]:
    """Return the file to test on and the page to write; raise ValueError if an option is missing."""
    if test is None:
        raise ValueError(
            f"name the examples to test on: unkernel report {models[0]} --test FILE -o report.html"
        )
    if output is None:
        raise ValueError(f"name the page to write: unkernel report {models[0]} --test {test} -o report.html")
    check_output(output, *models, test, train, force=force)
    return test, output


def _describe(
    html_report: Report, models: Sequence[Path], data: str, page: Path, seconds: float
) -> dict[str, Any]:
    measures = {
        name: {measure.name: _to_json(measure) for measure in measures_of_model}
        for name, measures_of_model in html_report.measures.items()
    }
    return {
        "models": [str(model) for model in models],
        "data": data,
        "measures": measures,
        "output": str(page),
        "bytes": page.stat().st_size,
        "seconds": seconds,
    }


def _to_json(measure: Measure) -> dict[str, Any]:
    return {"value": measure.value, "low": measure.low, "high": measure.high, "by": measure.method}


def _print(html_report: Report, result: dict[str, Any]) -> None:
    for remark in html_report.notes:
        note(remark)
    for name, measures in html_report.measures.items():
        print_facts(
            f"{name} on {result['data']}", {measure.name: _format_measure(measure) for measure in measures}
        )
    print_facts("the page", {"written": result["output"]})


def _format_measure(measure: Measure) -> str:
    if math.isnan(measure.value):
        return "–"
    value = format_percent(measure.value) if measure.is_share else f"{measure.value:.6g}"
    return value if math.isnan(measure.low) else f"{value} ({_format_interval(measure)}, {measure.method})"


def _format_interval(measure: Measure) -> str:
    if measure.is_share:
        return f"{100 * measure.low:.2f} to {100 * measure.high:.2f}"
    return f"{measure.low:.6g} to {measure.high:.6g}"
