"""``unkernel predict``: a model answers for a file of rows or of trees."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.files import (
    STANDARD_STREAM,
    as_wide_as,
    check_unwritable,
    class_labels,
    labels_are_unknown,
)
from unkernel.cli.inputs.models import Model, Opened, OpenedTrees, is_ranking, open_model
from unkernel.cli.inputs.rows import expect_rows, read_asked
from unkernel.cli.inputs.trees import TreeExamples, check_rows_only, detection_facts, read_for
from unkernel.cli.inputs.trees import compare as compare_trees
from unkernel.cli.learners.measures import compare_ranks, rank_facts
from unkernel.cli.options import shared as options
from unkernel.cli.render.console import (
    many,
    messages,
    percent,
    print_facts,
    print_json,
    rate,
    results,
    seconds,
)
from unkernel.cli.render.progress import Display
from unkernel.data import SvmlightData
from unkernel.data.files import writing
from unkernel.data.rows.csr import canonical_rows
from unkernel.engines import CompiledClassifier, TreeClassifier
from unkernel.models import TreeModel

_ROWS_PER_WRITE = 1 << 16
_QUALITY = (
    "correct",
    "accuracy",
    "accuracy_note",
    "mean_squared_error",
    "pairs",
    "ordered_pairs",
    "groups",
    "mean_absolute_error",
    "precision",
    "recall",
    "f1",
)


def predict(
    model: options.AnyModelFile,
    data: options.DataFile,
    *,
    output: options.Output = None,
    scores: options.Scores = False,
    probability: options.Probability = False,
    zero_based: options.ZeroBasedLikeModel = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict the labels of the rows, or of the trees, in a file.

    Prints the accuracy, if the labels in the file are classes of the model;
    for two classes of trees, also precision, recall and F1 of the second; for
    regression models, the mean squared error; for models that rank, the
    share of pairs of rows (of the same qid:) that are in order. Features that a
    model from `unkernel train` has never seen are ignored, with a warning.

    With --scores, the decision values follow each label: one if there are
    two classes, else one for each class (or, for models of LIBSVM, each pair
    of classes). With --probability, the probability of each class follows.

    Text models of other programs are compiled for this once.

    \b
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz --output predictions.txt --scores
    [dim]$[/dim] unkernel predict libsvm.model rows.svm --output predictions.txt --probability
    [dim]$[/dim] unkernel predict trees.uk questions.dat --output predictions.txt --scores
    [dim]$[/dim] zcat rows.gz | unkernel predict model.uk - --output - | sort | uniq -c
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    _check_output(output, model, data, scores=scores, probability=probability, json=json)
    threads = options.threads(jobs)
    began = time.perf_counter()
    with Display(quiet=quiet or json) as display:
        opened = open_model(model)
        if probability:
            _check_without_probabilities(opened.model, model)
        if isinstance(opened, OpenedTrees):
            asked = _ask_trees(opened, data, display, zero_based, threads)
        else:
            asked = _ask_rows(opened, data, display, zero_based, threads, quiet=quiet)
        read = time.perf_counter()
        decision = opened.model.decision
        with display.working("predicting"):
            raw = asked.score()
            labels = decision.choose(raw)
            numbers = [decision.decide(raw)] if scores else []
            numbers += [decision.probabilities(raw)] if probability else []
            scored = time.perf_counter()
        with display.working("writing"):
            _write(output, labels, numbers)
    result = {
        "model": str(model),
        "data": data,
        "output": output,
        "engine": asked.classifier.engine,
        "exact": asked.classifier.exact,
        "compiled_now": opened.classifier is None,
    }
    result |= asked.compare(raw, labels)
    spent = {"loading": asked.loaded - began, "reading": read - asked.loaded, "scoring": scored - read}
    _report(result | {"seconds": spent}, asked.unit, json=json, quiet=quiet)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Examples of a file, the classifier that answers for them, and when it was ready."""

    classifier: CompiledClassifier | TreeClassifier
    loaded: float
    unit: str  # what an example is
    score: Callable[[], NDArray[np.float64]]
    compare: Callable[[NDArray[np.float64], NDArray[Any]], dict[str, Any]]


def _ask_rows(
    opened: Opened, data: str, display: Display, zero_based: bool | None, threads: int, *, quiet: bool
) -> _Asked:
    expect_rows(opened, data)
    classifier = opened.ready(display, threads=threads, quiet=quiet)
    loaded = time.perf_counter()
    rows = read_asked(opened, data, display, zero_based, threads)
    X = canonical_rows(as_wide_as(opened.model, rows.X, data))
    return _Asked(
        classifier,
        loaded,
        unit="row",
        score=lambda: classifier.score_csr(X, threads),
        compare=lambda raw, labels: _compare(rows, raw, labels, opened.model),
    )


def _ask_trees(
    opened: OpenedTrees, data: str, display: Display, zero_based: bool | None, threads: int
) -> _Asked:
    check_rows_only([data], zero_based)
    classifier = opened.classifier
    with display.working("loading"):
        _ = classifier.nbytes  # is known when all is ready to score
    loaded = time.perf_counter()
    examples = read_for(opened.model, opened.path, data, display)
    return _Asked(
        classifier,
        loaded,
        unit="tree",
        score=lambda: classifier.raw_scores(examples.data.X, threads),
        compare=lambda _, labels: _compare_trees(examples, labels, opened.model),
    )


def _check_output(
    output: str | None, model: Path, data: str, *, scores: bool, probability: bool, json: bool
) -> None:
    if output is None and (scores or probability):
        option = "--scores" if scores else "--probability"
        raise ValueError(f"{option} says what to write: say where, too, with --output")
    if output == STANDARD_STREAM:
        if json:
            raise ValueError("--json and --output - both want stdout; write the labels to a file")
    elif output is not None:
        check_unwritable(Path(output), model, data)


def _check_without_probabilities(model: Model | TreeModel, path: Path) -> None:
    if isinstance(model, TreeModel):
        raise ValueError(f"{path}: models of trees have no probabilities; write the --scores in their place")
    if model.decision.scheme == "regression":
        raise ValueError(f"{path}: --probability is for classes, and this model answers with numbers")
    if model.decision.probability is None:
        raise ValueError(
            f"{path}: the model has no probabilities; train one that has (--model logistic, svm-train -b 1), "
            "or leave out --probability"
        )


def _write(output: str | None, labels: NDArray[Any], numbers: list[NDArray[np.float64]]) -> None:
    if output is None:
        return
    values, codes = np.unique(class_labels(labels), return_inverse=True)
    names = np.array([f"{value}" for value in values.tolist()], dtype=object)
    with _opened(output) as write:
        for begin in range(0, len(labels), _ROWS_PER_WRITE):
            part = slice(begin, begin + _ROWS_PER_WRITE)
            lines = names[codes[part]]
            for block in numbers:
                for column in _shortest_texts(block[part]):
                    lines = lines + " " + column
            write(("\n".join(lines.tolist()) + "\n").encode())


def _opened(output: str) -> contextlib.AbstractContextManager[Any]:
    return writing(sys.stdout.buffer if output == STANDARD_STREAM else output)


def _shortest_texts(decisions: NDArray[np.float64]) -> list[NDArray[np.object_]]:
    """Each column of numbers as texts, as short as reads back to the same number."""
    texts = decisions.reshape(len(decisions), -1).astype("U32").astype(object)
    return list(texts.T)


def _compare(
    rows: SvmlightData, raw: NDArray[np.float64], answers: NDArray[Any], model: Model
) -> dict[str, Any]:
    """How good the answers are, as far as the file's labels tell; what they do not tell is null."""
    found: dict[str, Any] = dict.fromkeys(_QUALITY) | {"rows": len(answers)}
    decision = model.decision
    if is_ranking(model):
        found |= compare_ranks(decision, raw, rows.y, rows.qid)
    elif decision.scheme == "regression":
        found["accuracy_note"] = "not known: the model answers with numbers, not with classes"
        found["mean_squared_error"] = float(np.mean((answers - rows.y) ** 2))
    else:
        found["accuracy_note"] = labels_are_unknown(rows.y, decision.classes)
    if decision.scheme == "regression" or found["accuracy_note"]:
        return found
    right = int(np.count_nonzero(answers == rows.y))
    return found | {"correct": right, "accuracy": right / len(answers)}


def _compare_trees(examples: TreeExamples, answers: NDArray[Any], model: TreeModel) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(_QUALITY) | {"rows": len(answers)}
    return found | compare_trees(answers, examples.data.y, model.classes)


def _report(result: dict[str, Any], unit: str, *, json: bool, quiet: bool) -> None:
    spent = result["seconds"]
    result["rows_per_second"] = {
        "scoring": rate(result["rows"], spent["scoring"]),
        "reading_and_scoring": rate(result["rows"], spent["reading"] + spent["scoring"]),
    }
    if json:
        print_json(result)
    elif not quiet:
        _print(result, unit)


def _print(result: dict[str, Any], unit: str) -> None:
    speed, spent = result["rows_per_second"], result["seconds"]
    facts = {f"{unit}s": f"{result['rows']:,}"} | _quality(result, unit)
    facts["scoring"] = f"{speed['scoring']:,.0f} {unit}s/s ({seconds(spent['scoring'])})"
    facts["with reading"] = (
        f"{speed['reading_and_scoring']:,.0f} {unit}s/s ({seconds(spent['reading'])} to read)"
    )
    if result["output"] not in (None, STANDARD_STREAM):
        facts["written"] = str(result["output"])
    console = messages() if result["output"] == STANDARD_STREAM else results()
    print_facts(result["data"], facts, console)


def _quality(result: dict[str, Any], unit: str) -> dict[str, str]:
    if result["pairs"] is not None:
        facts = rank_facts(result)
    elif result["mean_squared_error"] is not None:
        facts = {"mean squared error": f"{result['mean_squared_error']:.6g}"}
    else:
        facts = {"accuracy": result["accuracy_note"] or _accuracy_words(result, unit)}
        facts |= detection_facts(result)
    return facts if result["exact"] else facts | {"scores": "APPROXIMATE: the model is pruned"}


def _accuracy_words(result: dict[str, Any], unit: str) -> str:
    return f"{percent(result['accuracy'])} ({result['correct']:,} of {many(result['rows'], unit)})"
