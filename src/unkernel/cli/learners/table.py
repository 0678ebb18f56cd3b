"""``unkernel train table``; ``unkernel train FILE --target COLUMN`` is short for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn.multiclass import OneVsRestClassifier

from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.cli.inputs.models import describe_threshold
from unkernel.cli.inputs.record_examples import RecordExamples
from unkernel.cli.inputs.records import OpenedRecords, open_record_file
from unkernel.cli.inputs.rows import describe_files
from unkernel.cli.inputs.schemas import read_schema
from unkernel.cli.learners.base import Learner, parse_class_weight
from unkernel.cli.learners.decision_thresholds import (
    check_labels,
    name_option,
    read_threshold,
    set_threshold,
)
from unkernel.cli.learners.poly import LogisticLearner
from unkernel.cli.learners.record_training import (
    RecordOptions,
    adapt_to_records,
    check_target,
    compile_records,
    expand_files,
    open_files,
    parse_label,
    read_test,
)
from unkernel.cli.learners.regression import RegressionLearner
from unkernel.cli.learners.training_run import Request, describe_run
from unkernel.cli.output_files import check_different, check_model_output
from unkernel.cli.quality import compare_labels
from unkernel.cli.terminal.progress import Display
from unkernel.data.rows.csr import canonical_rows
from unkernel.records.files import TrainingTable, read_training
from unkernel.records.files.training_table import check_columns
from unkernel.selection import TableEstimator
from unkernel.selection.targets import check_targets, find_task

HELP = """Train the right model of a table: look at its columns, compare models, and keep the best.

    DATA has records (CSV, TSV, JSON lines, Parquet), and --target names the column to predict. A target of
    numbers with fractions, or of more than 20 different integers, is predicted as a number, lists of strings
    (JSON lines, Parquet) as several labels per record, and any other target as a class. A linear model, sums
    over columns, polynomials and models of pairs of columns are compared on records that are held out. The
    word table may be left out.

    \b
    [dim]$[/dim] unkernel train adult.train.csv --target income -o income.uk --test adult.test.csv
    [dim]$[/dim] unkernel train flats.csv --target rent -o rent.uk --minutes 2
    [dim]$[/dim] unkernel train loans.csv --target default -o loans.uk --costs 1,5
    [dim]$[/dim] unkernel train loans.csv --target default -o loans.uk --class-weight yes=5,no=1
    [dim]$[/dim] unkernel train scores.csv --target stars -o stars.uk --as numbers
    [dim]$[/dim] unkernel train table flats.csv --target rent -o rent.uk --json
    """
_SECONDS_PER_MINUTE = 60


def train_table(arguments: dict[str, Any], display: Display) -> dict[str, Any]:
    """Compare models, and train and save the best; return its description for JSON."""
    start = time.perf_counter()
    request = Request.from_arguments("train", arguments)
    data = expand_files(request.data)
    check_different(request.output)
    check_model_output(request.output, *data, request.test, arguments["schema"], force=request.force)
    given = {name: value for name, value in arguments.items() if value not in (None, [])}
    check_target(data[0], given, display)
    kinds, drop = read_schema(given.get("schema")), list(given.get("drop", ()))
    options = RecordOptions(given["target"], kinds, drop, calibrate=0, encoder={})
    table = read_training(
        open_files(data, display),
        options.target,
        kinds=options.kinds,
        drop=options.drop,
        lists=True,
        threads=request.threads,
    )
    if request.test is not None:
        _check_columns_of_test(request.test, table, options, display)
    estimator = _make_estimator(given, options, table, request.threads)
    labels = table.labels if estimator.task == "numbers" else class_labels(table.labels)
    _check_threshold(given, estimator.task, labels, data)
    reading_seconds = time.perf_counter() - start
    with display.show_attempts("comparing models") as on_progress:
        try:
            estimator.fit_reporting(table.columns, labels, lambda trial: on_progress(str(trial)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{describe_files(data)}: column {options.target!r}: {error}") from error
    examples = _encode(describe_files(data), table, estimator, reading_seconds)
    tests = None
    if request.test is not None:
        tests = read_test(request.test, examples, options, request.threads, display)
    learner, fitted = _make_learner(estimator), estimator.pipeline_[-1]
    model = estimator.classifier_.to_model()
    if isinstance(fitted, OneVsRestClassifier):
        fitted = fitted.estimator
    with display.show_attempts("compiling") as on_progress:
        classifier = compile_records(
            set_threshold(model, given),
            examples,
            options,
            fitted,
            threads=request.threads,
            on_progress=on_progress,
        )
    classifier.save(request.output)
    learner.decision = classifier.decision
    result = {"data": examples.file, "rows": examples.count, "features": examples.n_features}
    result |= learner.describe(fitted) | {"task": estimator.task_, "model_family": estimator.best_.name}
    result["trials"] = [
        {"model": trial.name, "C": trial.C, "loss": trial.loss, "seconds": trial.seconds}
        for trial in estimator.trials_
    ]
    with display.show_work("measuring"):
        test_measures = tests and {"file": tests.file, "rows": tests.count} | learner.measure(fitted, tests)
    result |= {"test": test_measures, "target": options.target, "engine": classifier.engine}
    result["threshold"] = describe_threshold(classifier.decision)
    result["columns"] = OpenedRecords(request.output, classifier).columns()
    spent = {
        "reading": reading_seconds,
        "training": estimator.seconds_,
        "total": time.perf_counter() - start,
    }
    return result | describe_run(request.output, [], spent)


def _check_threshold(given: dict[str, Any], task: str, labels: NDArray[Any], data: Sequence[str]) -> None:
    """Refuse a threshold for numbers, or for more than two classes, before any time is spent on training."""
    if read_threshold(given) is None:
        return
    if labels.dtype.kind == "O":
        raise ValueError(f"{describe_files(data)}: {name_option(given)} is for two classes, not for labels")
    if (find_task(check_targets(labels, task)) if task == "auto" else task) == "numbers":
        raise ValueError(
            f"{describe_files(data)}: {name_option(given)} is for two classes, and the target is predicted "
            "as numbers (--as classes changes that)"
        )
    check_labels(given, labels, describe_files(data))


def _check_columns_of_test(file: str, table: TrainingTable, options: RecordOptions, display: Display) -> None:
    """Raise an error, before training, if the test file lacks columns of the training data."""
    with open_record_file(file, display) as opened:
        if opened.columns is not None:
            check_columns(file, opened.columns, [options.target, *table.columns], options.target)


def _make_estimator(
    given: dict[str, Any], options: RecordOptions, table: TrainingTable, threads: int
) -> TableEstimator:
    minutes, weights = given.get("minutes"), given.get("class_weight")
    return TableEstimator(
        task=given["task"].value if "task" in given else "auto",
        kinds={name: kind for name, kind in options.kinds.items() if name in table.columns} or None,
        min_count=given.get("min_count"),
        class_weight=None if weights is None else parse_class_weight(weights, parse_label),
        max_seconds=None if minutes is None else _SECONDS_PER_MINUTE * minutes,
        random_state=given.get("seed", 0),
        n_jobs=threads,
    )


def _encode(
    file: str, table: TrainingTable, estimator: TableEstimator, reading_seconds: float
) -> RecordExamples:
    encoder = estimator.pipeline_[0]
    return RecordExamples(file, table, encoder, encoder.transform(table.columns), reading_seconds)


def _make_learner(estimator: TableEstimator) -> Learner:
    kind = LogisticLearner if estimator.task_ == "classes" else RegressionLearner
    if estimator.task_ == "labels":
        kind = _make_label_learner(estimator)
    learner: Learner = adapt_to_records(kind)({})
    return learner


def _make_label_learner(estimator: TableEstimator) -> type[LogisticLearner]:
    """Return the learner that describes and measures a model of several labels."""

    class LabelLearner(LogisticLearner):
        def describe(self, fitted: Any) -> dict[str, Any]:
            parameters = {name: getattr(fitted, name) for name in ("C", "tol", "degree", "penalty")}
            labels = {"labels": estimator.classes_.tolist()}
            return {"learner": type(fitted).__name__} | parameters | labels

        def measure(self, fitted: Any, rows: Any) -> dict[str, Any]:
            scores = estimator.classifier_.classifier.score_csr(canonical_rows(rows.X), 1)
            return compare_labels(estimator.classifier_.decision, scores, rows.labels.tolist())

    return LabelLearner
