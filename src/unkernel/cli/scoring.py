"""Predict the rows or trees of a file, and measure the quality of the predictions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import match_width
from unkernel.cli.inputs.models import Model, Opened, OpenedTrees, open_model
from unkernel.cli.inputs.prediction_rows import expect_rows, read_rows_to_predict
from unkernel.cli.inputs.records import check_no_records
from unkernel.cli.inputs.trees import check_rows_only, read_for_model
from unkernel.cli.quality import NDCG_DEPTH, QUALITY, compare, compare_classes
from unkernel.cli.terminal.console import rate
from unkernel.cli.terminal.progress import Display
from unkernel.data.rows.csr import canonical_rows
from unkernel.engines import CompiledClassifier, TreeClassifier
from unkernel.models import Decision, TreeModel

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Request:
    """A model and the predictions to make with it; they apply to every file."""

    model: Path
    scores: bool = False
    probability: bool = False
    ndcg_at: int | None = None
    zero_based: bool | None = None
    cache_rows: int | None = None  # number of rows whose scores may be cached
    quiet: bool = False
    command: str = "predict"


@dataclass(frozen=True, eq=False)
class Predictions:
    """The scores of a model for the examples of a file, and their description for JSON."""

    decision: Decision
    raw: Numbers
    result: dict[str, Any]


def score_file(request: Request, data: str, threads: int, display: Display) -> Predictions:
    """Score the rows or trees of a file, and compare the predictions with its labels."""
    start = time.perf_counter()
    opened = open_model(request.model, request.command)
    check_no_records(data, request.model)
    if request.probability:
        _check_probabilities(opened.model, request.model)
    if isinstance(opened, OpenedTrees):
        examples = _read_trees(opened, request, data, threads, display)
    else:
        examples = _read_rows(opened, request, data, threads, display)
    read_end = time.perf_counter()
    with display.show_work("predicting"):
        raw = examples.score()
    score_end = time.perf_counter()
    result: dict[str, Any] = {
        "model": str(request.model),
        "data": data,
        "unit": examples.unit,
        "engine": examples.classifier.engine,
        "exact": examples.classifier.exact,
        "compiled_now": opened.classifier is None,
        "rows": len(raw),
    }
    if request.cache_rows is not None and isinstance(examples.classifier, CompiledClassifier):
        result["cache"] = examples.classifier.cache_info()._asdict()
    result |= QUALITY | examples.compare(raw)
    seconds = {
        "loading": examples.load_end - start,
        "reading": read_end - examples.load_end,
        "scoring": score_end - read_end,
    }
    return Predictions(opened.model.decision, raw, result | describe_speed(len(raw), seconds))


def describe_speed(rows: int, seconds: dict[str, float]) -> dict[str, Any]:
    """Describe the speed of predictions, for JSON."""
    rates = {
        "scoring": rate(rows, seconds["scoring"]),
        "reading_and_scoring": rate(rows, seconds["reading"] + seconds["scoring"]),
    }
    return {"rows_per_second": rates, "seconds": seconds}


@dataclass(frozen=True, eq=False)
class _Examples:
    """The examples of a file, and the classifier for them."""

    classifier: CompiledClassifier | TreeClassifier
    load_end: float  # time at which the classifier was ready
    unit: str
    score: Callable[[], Numbers]
    compare: Callable[[Numbers], dict[str, Any]]


def _read_rows(opened: Opened, request: Request, data: str, threads: int, display: Display) -> _Examples:
    """Compile the model if necessary, and read the rows of a file."""
    expect_rows(opened, data)
    classifier = opened.get_classifier(display, threads=threads, quiet=request.quiet)
    if request.cache_rows is not None:
        classifier = classifier.with_cache(request.cache_rows).validate()
    load_end = time.perf_counter()
    rows = read_rows_to_predict(opened, data, display, request.zero_based, threads)
    X, decision = canonical_rows(match_width(opened.model, rows.X, data)), opened.model.decision
    return _Examples(
        classifier,
        load_end,
        unit="row",
        score=lambda: classifier.score_csr(X, threads),
        compare=lambda raw: compare(decision, raw, rows.y, rows.qid, request.ndcg_at or NDCG_DEPTH),
    )


def _read_trees(
    opened: OpenedTrees, request: Request, data: str, threads: int, display: Display
) -> _Examples:
    """Load the model completely, and read the trees of a file."""
    check_rows_only([data], request.zero_based, request.cache_rows)
    classifier = opened.classifier
    with display.show_work("loading"):
        _ = classifier.nbytes  # builds the classifier, which is a part of loading
    load_end = time.perf_counter()
    examples = read_for_model(opened.model, opened.path, data, display)
    return _Examples(
        classifier,
        load_end,
        unit="tree",
        score=lambda: classifier.raw_scores(examples.data.X, threads),
        compare=lambda raw: compare_classes(opened.model.decision, raw, examples.data.y, "tree"),
    )


def _check_probabilities(model: Model | TreeModel, path: Path) -> None:
    if isinstance(model, TreeModel):
        raise ValueError(f"{path}: models of trees have no probabilities; write the --scores instead")
    if model.decision.predicts_numbers:
        raise ValueError(f"{path}: --probability is for classes, and this model predicts numbers")
    if not model.decision.has_probabilities:
        raise ValueError(
            f"{path}: the model has no probabilities; train one that has (unkernel train logistic, "
            "svm-train -b 1), or leave out --probability"
        )
