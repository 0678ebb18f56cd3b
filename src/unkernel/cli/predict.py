"""``unkernel predict``: a model answers for a file of rows."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unkernel.cli import _options as options
from unkernel.cli._console import many, messages, percent, print_facts, print_json, rate, results, seconds
from unkernel.cli._files import (
    STANDARD_STREAM,
    class_labels,
    labels_are_unknown,
    only_known_features,
    refuse_unwritable,
)
from unkernel.cli._progress import Display
from unkernel.data import SvmlightData, read_svmlight
from unkernel.data.files import writing
from unkernel.engines import CompiledClassifier, load

_ROWS_PER_WRITE = 1 << 16


def predict(
    model: options.ModelFile,
    data: options.DataFile,
    *,
    output: options.Output = None,
    scores: options.Scores = False,
    zero_based: options.ZeroBasedLikeModel = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict the labels of the rows in a file.

    Prints the accuracy, if the labels in the file are classes of the model.
    Features that the model has never seen are ignored, with a warning.

    With --scores, the decision values follow each label: one if there are
    two classes (positive speaks for the second), else one for each class.

    \b
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz --output predictions.txt --scores
    [dim]$[/dim] zcat rows.gz | unkernel predict model.uk - --output - | sort | uniq -c
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    _refuse_output(output, scores, json, model, data)
    began = time.perf_counter()
    classifier = load(model)
    loaded = time.perf_counter()
    with Display(quiet=quiet or json) as display:
        with display.reading(data) as stream:
            rows = read_svmlight(
                stream,
                zero_based=_first_index(zero_based, classifier),
                n_jobs=options.threads(jobs),
            )
        X = only_known_features(rows.X, classifier.n_features_in_, data)
        read = time.perf_counter()
        with display.working("predicting"):
            decisions = classifier.decision_function(X, n_jobs=options.threads(jobs))
            labels = classifier.choose(decisions)
            scored = time.perf_counter()
        with display.working("writing"):
            _write(output, labels, decisions if scores else None)
    result = {"model": str(model), "data": data, "output": output} | _compare(rows, labels, classifier)
    spent = {"loading": loaded - began, "reading": read - loaded, "scoring": scored - read}
    _report(result | {"seconds": spent}, json=json, quiet=quiet)


def _refuse_output(output: str | None, scores: bool, json: bool, model: Path, data: str) -> None:
    if scores and output is None:
        raise ValueError("--scores says what to write: say where, too, with --output")
    if output == STANDARD_STREAM:
        if json:
            raise ValueError("--json and --output - both want stdout; write the labels to a file")
    elif output is not None:
        refuse_unwritable(Path(output), model, data)


def _first_index(zero_based: bool | None, classifier: CompiledClassifier) -> bool | Literal["auto"]:
    """As the user says, else as the training file had it, as far as the model knows."""
    noted = classifier.model.origin.get("zero_based")
    known = zero_based if zero_based is not None or not isinstance(noted, bool) else noted
    return options.first_index(known)


def _write(output: str | None, labels: NDArray[Any], decisions: NDArray[np.float64] | None) -> None:
    if output is None:
        return
    values, codes = np.unique(class_labels(labels), return_inverse=True)
    names = np.array([f"{value}" for value in values.tolist()], dtype=object)
    with _opened(output) as write:
        for begin in range(0, len(labels), _ROWS_PER_WRITE):
            part = slice(begin, begin + _ROWS_PER_WRITE)
            columns = [names[codes[part]]]
            if decisions is not None:
                columns += _shortest_texts(decisions[part])
            lines = columns[0]
            for column in columns[1:]:
                lines = lines + " " + column
            write(("\n".join(lines.tolist()) + "\n").encode())


def _opened(output: str) -> contextlib.AbstractContextManager[Any]:
    return writing(sys.stdout.buffer if output == STANDARD_STREAM else output)


def _shortest_texts(decisions: NDArray[np.float64]) -> list[NDArray[np.object_]]:
    """Each column of numbers as texts, as short as reads back to the same number."""
    texts = decisions.reshape(len(decisions), -1).astype("U32").astype(object)
    return list(texts.T)


def _compare(rows: SvmlightData, labels: NDArray[Any], classifier: CompiledClassifier) -> dict[str, Any]:
    unknown = labels_are_unknown(rows.y, classifier.classes_)
    right = None if unknown else int(np.count_nonzero(labels == rows.y))
    return {
        "rows": len(labels),
        "correct": right,
        "accuracy": None if right is None else right / len(labels),
        "accuracy_note": unknown,
    }


def _report(result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    spent = result["seconds"]
    result["rows_per_second"] = {
        "scoring": rate(result["rows"], spent["scoring"]),
        "reading_and_scoring": rate(result["rows"], spent["reading"] + spent["scoring"]),
    }
    if json:
        print_json(result)
    elif not quiet:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    speed, spent = result["rows_per_second"], result["seconds"]
    facts = {"rows": f"{result['rows']:,}", "accuracy": result["accuracy_note"] or _accuracy_words(result)}
    facts["scoring"] = f"{speed['scoring']:,.0f} rows/s ({seconds(spent['scoring'])})"
    facts["with reading"] = (
        f"{speed['reading_and_scoring']:,.0f} rows/s ({seconds(spent['reading'])} to read)"
    )
    if result["output"] not in (None, STANDARD_STREAM):
        facts["written"] = str(result["output"])
    console = messages() if result["output"] == STANDARD_STREAM else results()
    print_facts(result["data"], facts, console)


def _accuracy_words(result: dict[str, Any]) -> str:
    return f"{percent(result['accuracy'])} ({result['correct']:,} of {many(result['rows'], 'row')})"
