"""Train models of records. One file contains the encoder, the model and its probabilities."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.labelled_files import check_classes
from unkernel.cli.inputs.models import describe_threshold
from unkernel.cli.inputs.record_examples import RecordExamples
from unkernel.cli.inputs.records import ORIGIN, OpenedRecords, is_record_file, open_record_file
from unkernel.cli.inputs.rows import describe_files
from unkernel.cli.inputs.schemas import read_schema
from unkernel.cli.learners.base import Learner
from unkernel.cli.learners.calibration import fit_curves
from unkernel.cli.learners.cross_validation import Fold, split_folds, validate
from unkernel.cli.learners.decision_thresholds import check_labels, check_learner, set_threshold
from unkernel.cli.learners.training_run import describe_origin, describe_run, describe_training, fit
from unkernel.cli.options.estimator_options import DerivedOption, check_parameters, derive_options, flag
from unkernel.cli.output_files import check_different, check_model_output
from unkernel.cli.quality import log_loss
from unkernel.cli.terminal.console import warn
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.data.rows.row_files import source_paths
from unkernel.engines import CompiledClassifier, RecordClassifier, compile
from unkernel.measures.number_format import format_count, format_labels
from unkernel.models import ConjunctionModel
from unkernel.records import RecordEncoder
from unkernel.records.files import RecordFile, TrainingTable, read_training
from unkernel.records.files.training_table import check_columns, list_names
from unkernel.selection.targets import MAX_CLASSES, MAX_NUMBER_CLASSES

OPTIONS = ("target", "schema", "drop", "calibrate")  # options for records that are not the encoder's
CALIBRATION_FOLDS = 3


def encoder_options() -> list[DerivedOption]:
    """Return the encoder's parameters as options."""
    return [option for option in derive_options(RecordEncoder) if option.parameter != "kinds"]


@dataclasses.dataclass(frozen=True)
class RecordOptions:
    """Options for records and their encoding."""

    target: str
    kinds: dict[str, str]
    drop: list[str]
    calibrate: int
    encoder: dict[str, Any]  # parameters of the encoder

    @staticmethod
    def from_values(option_values: dict[str, Any]) -> RecordOptions:
        """Return the options for records, taken from the values of all options."""
        encoder_options_by_parameter = {option.parameter: option for option in encoder_options()}
        folds = option_values.get("calibrate", CALIBRATION_FOLDS)
        if folds == 1:
            raise ValueError("--calibrate needs at least 2 folds, or 0 for no probabilities, got 1")
        return RecordOptions(
            option_values["target"],
            read_schema(option_values.get("schema")),
            list(option_values.get("drop", ())),
            folds,
            {
                name: option.convert(option_values[option.name])
                for name, option in encoder_options_by_parameter.items()
                if option.name in option_values
            },
        )


def adapt_to_records(learner_type: Any) -> Any:
    """Return a learner adapted to records, whose labels may be strings."""
    return type(
        learner_type.__name__, (learner_type,), {"unit": "record", "label": staticmethod(parse_label)}
    )


def parse_label(text: str) -> Any:
    """Parse a class label of records: a number if possible, else the text."""
    try:
        return Learner.label(text)
    except ValueError:
        return text


def are_records(data: Sequence[str], option_values: dict[str, Any]) -> bool:
    """Return whether the data are records, judging by --target or the name of the first file."""
    return "target" in option_values or is_record_file(data[0])


def check_options(option_values: dict[str, Any], data: Sequence[str], *, records: bool) -> None:
    """Raise ``ValueError`` if options for records are given with rows, or options for rows with records."""
    if not records:
        for option in (*OPTIONS, *(option.name for option in encoder_options())):
            if option in option_values:
                raise ValueError(f"{flag(option)} is for records, with a --target: CSV, JSON lines, Parquet")
        return
    for option in ("zero_based", "n_features", "out_of_core", "dask", "cache", "checkpoint", "memory"):
        if option in option_values:
            raise ValueError(
                f"{flag(option)} is for rows in the svmlight format, and {data[0]} holds records"
            )


def expand_files(data: Sequence[str]) -> list[str]:
    """Return the files that arguments name, directly or by patterns such as ``day-*.csv``."""
    if len(data) > 1 and STANDARD_STREAM in data:
        raise ValueError("-: stdin cannot be combined with files; write it to a file first")
    files = [str(path) for argument in data for path in source_paths(argument)]
    for index, file in enumerate(files):
        if file in files[:index]:
            raise ValueError(f"{file} is given twice; name each file only once")
    return files


def check_target(data: str, option_values: dict[str, Any], display: Display) -> None:
    """Raise a ``ValueError`` that lists the columns if ``--target`` is missing."""
    if "target" in option_values:
        return
    with open_record_file(data, display) as file:
        columns = file.columns or list(next(file.blocks({})).table[0])
    raise ValueError(f"{data}: name the column to predict with --target; there are {list_names(columns)}")


# --- Records to train and to test on ------------------------------------------------------------------


def read_examples(
    files: Sequence[str], options: RecordOptions, threads: int, display: Display, *, values: bool = False
) -> RecordExamples:
    """Read training files, fit an encoder to the records, and encode them.

    `values` states whether the target is a number to predict, and not a class.
    """
    data = describe_files(files)
    encoder = RecordEncoder(**options.encoder, n_jobs=threads)
    check_parameters(encoder)
    start = time.perf_counter()
    opened = open_files(files, display)
    table = read_training(
        opened, options.target, kinds=options.kinds, drop=options.drop, values=values, threads=threads
    )
    if values:
        _check_values(data, options.target, table.labels)
    else:
        _check_labels(data, options.target, table.labels)
    used_kinds = {name: kind for name, kind in options.kinds.items() if name in table.columns}
    encoder.set_params(kinds=used_kinds or None)
    with display.show_work("encoding"):
        return RecordExamples.fit(data, table, encoder, time.perf_counter() - start)


def read_test(
    data: str, training: RecordExamples, options: RecordOptions, threads: int, display: Display
) -> RecordExamples:
    """Read test records. This happens before training: a bad file must not be found after long training."""
    from unkernel.cli.inputs.records import read_labels

    start = time.perf_counter()
    columns: dict[str, list[Any]] = {name: [] for name in training.table.columns}
    labels: list[NDArray[Any]] = []
    rows = []
    with open_record_file(data, display) as file:
        if file.columns is not None:
            check_columns(data, file.columns, [options.target, *columns], options.target)
        for block in file.blocks(training.table.types, threads):
            rows.append(block.encode(training.encoder.plan_, threads).to_scipy())
            block_labels = read_labels(block, options.target)
            if block_labels is None:
                raise ValueError(f"{data}: not all records have a value in column {options.target!r}")
            labels.append(block_labels)
    if not rows:
        raise ValueError(f"{data}: there is no record")
    from scipy import sparse

    table = TrainingTable({}, np.concatenate(labels), training.table.types)
    return RecordExamples(
        data, table, training.encoder, sparse.vstack(rows, format="csr"), time.perf_counter() - start
    )


def open_files(files: Sequence[str], display: Display) -> Iterator[RecordFile]:
    for name in files:
        with open_record_file(name, display) as file:
            yield file


def _check_values(data: str, target: str, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"{data}: column {target!r} is not a column of numbers, which a regression learns to predict; "
            "unkernel train poly and logistic predict classes"
        )


def _check_labels(data: str, target: str, labels: NDArray[Any]) -> None:
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"{data}: column {target!r} has a single value, {classes[0]!s}: training needs two classes"
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"{data}: column {target!r} has {format_count(len(classes), 'different value')} "
            f"({format_labels(classes.tolist())}); at most {MAX_CLASSES:,} classes are supported"
        )
    check_classes(labels, f"{data}: column {target!r}")
    if labels.dtype.kind in "iuf" and len(classes) > MAX_NUMBER_CLASSES:
        warn(
            f"{data}: column {target!r} has {len(classes)} different numbers, which are learned as classes; "
            "unkernel train regression predicts numbers"
        )


# --- Cross-validation ---------------------------------------------------------------------------------


def make_record_folds(examples: RecordExamples, count: int, seed: int) -> list[Fold]:
    """Return folds; the training part of each has an encoder of its own."""
    return [partial(_split, examples, *split) for split in split_folds(examples, count, seed)]


def _split(
    examples: RecordExamples, training: NDArray[np.intp], held_out: NDArray[np.intp]
) -> tuple[RecordExamples, RecordExamples]:
    """Return both parts of a fold, encoded by an encoder that is fitted to the training part."""
    from sklearn.base import clone

    table = examples.table
    # Use the same kinds of columns in all folds.
    encoder = clone(examples.encoder).set_params(kinds=examples.encoder.kinds_)
    fitted = RecordExamples.fit(examples.file, table.select(training), encoder)
    return fitted, fitted.transform(examples.file, table.select(held_out))


def calibrate(
    learner: Learner, estimator: Any, examples: RecordExamples, options: RecordOptions, display: Display
) -> Any:
    """Return the estimator's model; if it has no probabilities, fit them to scores of held-out folds."""
    from sklearn.base import clone

    model = estimator.to_model()
    if learner.predicts_values or model.decision.probability is not None or not options.calibrate:
        return model
    classes, counts = np.unique(examples.labels, return_counts=True)
    if counts.min() < options.calibrate:
        warn(
            f"{examples.file}: the model gets no probabilities: --calibrate {options.calibrate} needs "
            f"{options.calibrate} records of each class, and {classes[counts.argmin()]} has {counts.min()}"
        )
        return model
    folds = list(split_folds(examples, options.calibrate, 0))
    scores = np.empty((examples.count, model.decision.n_scores))
    with display.show_count("calibrating", len(folds)) as on_fit, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for training, held_out in folds:
            fitted, held_out_examples = _split(examples, training, held_out)
            fold_estimator = clone(estimator)
            learner.fit(fold_estimator, fitted, lambda _: None)
            scores[held_out] = held_out_examples.scores(fold_estimator)
            on_fit()
    class_indices = np.searchsorted(model.classes, examples.labels)
    curves = fit_curves(model.decision, scores, class_indices)
    if isinstance(model, ConjunctionModel):
        return dataclasses.replace(model, probability=curves)
    return dataclasses.replace(model, decision=dataclasses.replace(model.decision, probability=curves))


# --- Training -----------------------------------------------------------------------------------------


def train_records(learner: Learner, request: Any, display: Display) -> dict[str, Any]:
    """Train and save a model of records; return its description for JSON."""
    start = time.perf_counter()
    data = expand_files(request.data)
    check_different(request.output)
    check_model_output(
        request.output, *data, request.test, learner.option_values.get("schema"), force=request.force
    )
    estimator = learner.estimator(**learner.parameters(request.threads))
    check_parameters(estimator)
    check_learner(learner, records=True, folds=request.folds)
    check_target(data[0], dict(learner.option_values), display)
    options = RecordOptions.from_values(dict(learner.option_values))
    values = learner.predicts_values
    examples = read_examples(data, options, request.threads, display, values=values)
    check_labels(learner.option_values, None if values else examples.labels, examples.file)
    tests = None
    if request.test is not None:
        tests = read_test(request.test, examples, options, request.threads, display)
    cross_validation = validate(learner, examples, make_record_folds, request, display)
    training_seconds, messages = fit(learner, estimator, examples, display)
    classifier = build_classifier(learner, estimator, examples, request.threads, display)
    classifier.save(request.output)
    learner.decision = classifier.decision
    with display.show_work("measuring"):
        measures = learner.measures if values else dict.fromkeys((*learner.measures, "log_loss"))
        quality = partial(measure, learner, estimator, classifier)
        result = describe_training(learner, estimator, examples, tests, measure=quality, measures=measures)
    result["cross_validation"] = cross_validation
    result |= {
        "target": options.target,
        "columns": OpenedRecords(request.output, classifier).columns(),
        "engine": classifier.engine,
        "threshold": describe_threshold(classifier.decision),
        "calibrated": estimator.to_model().decision.probability is None
        and classifier.decision.probability is not None,
    }
    seconds = {
        "reading": examples.seconds,
        "training": training_seconds,
        "total": time.perf_counter() - start,
    }
    return result | describe_run(request.output, messages, seconds)


def build_classifier(
    learner: Learner, estimator: Any, examples: RecordExamples, threads: int, display: Display
) -> RecordClassifier:
    """Return the classifier of records for a trained estimator, with probabilities."""
    options = RecordOptions.from_values(dict(learner.option_values))
    model = set_threshold(calibrate(learner, estimator, examples, options, display), learner.option_values)
    with display.show_attempts("compiling") as on_progress:
        return compile_records(model, examples, options, estimator, threads=threads, on_progress=on_progress)


def compile_records(
    model: Any,
    examples: RecordExamples,
    options: RecordOptions,
    estimator: Any,
    *,
    threads: int,
    on_progress: Any,
) -> RecordClassifier:
    """Return a compiled model with its plan and a description of its training."""
    plan = examples.encoder.plan_
    description = {"target": options.target, "types": examples.table.types, "kinds": examples.encoder.kinds_}
    origin = model.origin | describe_origin(estimator, examples.count)
    origin |= {"feature_names": plan.feature_names, ORIGIN: description}
    classifier = compile(dataclasses.replace(model, origin=origin), n_jobs=threads, on_progress=on_progress)
    assert isinstance(classifier, CompiledClassifier)  # the model is a model of rows
    return RecordClassifier(plan, classifier)


def measure(
    learner: Learner, estimator: Any, classifier: RecordClassifier, examples: RecordExamples
) -> dict[str, Any]:
    """Return the measures of the learner and, if there are probabilities, the log loss."""
    measures = learner.measure(estimator, examples)
    if learner.predicts_values:
        return measures
    loss = None
    if measures["accuracy"] is not None:
        loss = log_loss(classifier.decision, examples.scores(estimator), examples.labels)
    return measures | {"log_loss": loss}
