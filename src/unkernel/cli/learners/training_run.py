"""Train models of rows and trees: read, fit, save, measure and describe."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from unkernel._version import __version__
from unkernel.cli.cluster import check_address, move_to_cluster
from unkernel.cli.inputs import rows as _rows
from unkernel.cli.inputs import trees as _trees
from unkernel.cli.inputs.models import describe_threshold
from unkernel.cli.inputs.rows import AnyRows, MemoryRows, RemoteRows, Rows
from unkernel.cli.inputs.trees import TreeExamples
from unkernel.cli.learners.base import Learner
from unkernel.cli.learners.cross_validation import make_folds, validate
from unkernel.cli.learners.decision_thresholds import (
    check_labels,
    check_learner,
    decide_by_threshold,
    set_threshold,
)
from unkernel.cli.options import shared_options
from unkernel.cli.options.estimator_options import check_parameters, flag
from unkernel.cli.output_files import check_different, check_model_output, check_path, require_output
from unkernel.cli.terminal.console import note, peak_memory
from unkernel.cli.terminal.progress import Display
from unkernel.data.memory import parse_bytes
from unkernel.engines import compile
from unkernel.engines.compilation import choose_default_engine
from unkernel.models import KernelModel


@dataclasses.dataclass(frozen=True)
class Request:
    """The arguments of a command, without the options of the learner."""

    data: list[str]
    output: Path
    test: str | None
    folds: int | None
    zero_based: bool | None
    threads: int
    force: bool

    @staticmethod
    def from_arguments(command: str, arguments: dict[str, Any]) -> Request:
        """Return the arguments of a command, after checking that an output is named."""
        return Request(
            data=list(arguments["data"]),
            output=require_output(arguments["output"], command, arguments["data"]),
            test=arguments.get("test"),
            folds=arguments.get("cv"),
            zero_based=arguments.get("zero_based"),
            threads=shared_options.count_threads(arguments["jobs"]),
            force=arguments["force"],
        )


def train(learner: Learner, request: Request, display: Display) -> dict[str, Any]:
    """Train and save a model; return its description for JSON."""
    start = time.perf_counter()
    option_values, threads = learner.option_values, request.threads
    check_sources(learner, request.data, request.zero_based)
    inputs = [*request.data, request.test]
    packed = option_values.get("cache", f"{request.data[0]}.rows") if "out_of_core" in option_values else None
    check_different(request.output, packed, option_values.get("checkpoint"))
    check_model_output(request.output, *inputs, force=request.force)
    if "cache" in option_values:
        check_path(Path(option_values["cache"]), *inputs)
    _check_checkpoint(option_values.get("checkpoint"))
    local = learner.estimator(**learner.parameters(threads))
    check_parameters(local)
    check_learner(learner, records=False, folds=request.folds)
    with (
        _offer_to_resume(option_values.get("checkpoint")),
        move_to_cluster(local, option_values.get("dask"), threads) as estimator,
    ):
        rows = open_examples(learner, request.data, display, estimator, request.zero_based)
        if not (reads_test_later := isinstance(rows, RemoteRows)):
            tests = _read_test(request.test, display, threads, rows)
            check_labels(option_values, rows.labels, rows.file)
        cross_validation = validate(learner, rows, make_folds, request, display)
        training_seconds, messages = fit(learner, estimator, rows, display)
        # Save the model at once, because a later step may fail.
        save_model(estimator, rows, request.output, option_values)
        if reads_test_later:  # the number of columns is known only after training
            tests = _read_test(request.test, display, threads, rows)
        with display.show_work("measuring"):
            measure = partial(learner.measure, estimator)
            result = describe_training(
                learner, estimator, rows, tests, measure=measure, measures=learner.measures
            )
    if learner.large_data:
        result |= _describe_packed(rows)
    result["cross_validation"] = cross_validation
    if is_classifier(estimator):
        decision = decide_by_threshold(estimator.to_model().decision, option_values)
        result["threshold"] = describe_threshold(decision)
    seconds = {"reading": rows.seconds, "training": training_seconds, "total": time.perf_counter() - start}
    return result | describe_run(request.output, messages, seconds)


def describe_run(output: Path, messages: list[str], seconds: dict[str, float]) -> dict[str, Any]:
    """Return, for JSON, the size of the model file, and the warnings, time and memory of training."""
    model_file = {"model": str(output), "model_bytes": output.stat().st_size}
    return model_file | {"warnings": messages, "seconds": seconds, "peak_memory_bytes": peak_memory()}


def check_sources(learner: Learner, data: Sequence[str], zero_based: bool | None) -> None:
    """Raise ``ValueError`` for options that do not apply to the source of the rows."""
    option_values = learner.option_values
    if learner.unit == "tree":
        return _trees.check_rows_only(data, zero_based)
    large_data_option = next((option for option in ("out_of_core", "dask") if option in option_values), None)
    if "out_of_core" in option_values and "dask" in option_values:
        raise ValueError("--out-of-core and --dask are two ways to train on large data; choose one")
    for option in ("memory", "cache"):
        if option in option_values and large_data_option != "out_of_core":
            raise ValueError(f"{flag(option)} is for --out-of-core")
    if large_data_option is None:
        return _rows.check_several(data, large_data=learner.large_data)
    for option in ("n_features", "cv"):
        if option in option_values:
            raise ValueError(f"{flag(option)} does not go with {flag(large_data_option)}")
    if "dask" in option_values:
        check_address(option_values["dask"])
    if "memory" in option_values:
        _parse_memory(option_values["memory"])
    return _rows.check_stdin(data, large_data_option)


def _parse_memory(text: str) -> float:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ValueError(f"--{error}") from error


def _check_checkpoint(checkpoint: str | None) -> None:
    """Raise ``ValueError`` if --checkpoint names a file, or a folder that cannot be written."""
    if checkpoint is None:
        return
    folder = Path(checkpoint)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: --checkpoint must name a folder, and this is a file")
    check_path(folder / "cuts" if folder.is_dir() else folder)


@contextlib.contextmanager
def _offer_to_resume(checkpoint: str | None) -> Iterator[None]:
    """If training is interrupted, print how to resume it."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None and any(Path(checkpoint).glob("*/state.uk")):
            note(f"{checkpoint} has the progress so far: run the same command to resume")
        raise


def open_examples(
    learner: Learner, data: Sequence[str], display: Display, estimator: Any, zero_based: bool | None
) -> AnyRows:
    """Return the training examples, read or packed; on a cluster, only the names of their files."""
    option_values, index_base = learner.option_values, shared_options.index_base(zero_based)
    if learner.unit == "tree":
        return _trees.read_labelled(data[0], display)
    if "dask" in option_values:
        _rows.check_files(data)
        return RemoteRows(_rows.describe_files(data), _rows.unwrap_single(data), estimator, index_base)
    if "out_of_core" not in option_values:
        return _rows.read(data[0], display, estimator.n_jobs, index_base, option_values.get("n_features"))
    rows = _rows.pack(data, display, estimator, index_base)
    if "memory" in option_values:
        _rows.check_memory(rows, _parse_memory(option_values["memory"]), estimator.max_cuts)
    return rows


def _read_test(
    test: str | None, display: Display, threads: int, rows: AnyRows
) -> MemoryRows | TreeExamples | None:
    if test is None:
        return None
    if isinstance(rows, TreeExamples):
        return _trees.read_test(test, display, rows)
    return _rows.read_test(test, display, threads, rows)


def fit(learner: Learner, estimator: Any, rows: AnyRows, display: Display) -> tuple[float, list[str]]:
    """Fit an estimator; return the seconds that this took, and the warnings."""
    start = time.perf_counter()
    training = display.show_training(estimator.tol, learner.step)
    with training as on_progress, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(estimator, rows, on_progress)
    return time.perf_counter() - start, [str(warning.message) for warning in caught]


def save_model(estimator: Any, rows: AnyRows, path: Path, option_values: Mapping[str, Any]) -> None:
    """Save a model with facts about its training, such as the number of the first feature in files."""
    model = set_threshold(estimator.to_model(), option_values)
    base = {} if rows.zero_based in (None, "auto") else {"zero_based": rows.zero_based}
    model_with_origin = dataclasses.replace(
        model, origin=model.origin | base | describe_origin(estimator, rows.count)
    )
    # Compile support vectors now; otherwise they would be compiled each time the file is loaded.
    if isinstance(model_with_origin, KernelModel):
        compile(model_with_origin, engine=choose_default_engine(model_with_origin)).save(path)
    else:
        model_with_origin.save(path)


def describe_origin(estimator: Any, count: int | None) -> dict[str, Any]:
    """Return the facts about training that a model stores."""
    seed = {"seed": estimator.random_state} if hasattr(estimator, "random_state") else {}
    rows = {} if count is None else {"rows": count}
    return seed | rows | {"tol": estimator.tol, "unkernel": __version__}


def describe_training(
    learner: Learner,
    estimator: Any,
    rows: AnyRows,
    tests: Rows | None,
    *,
    measure: Callable[[Any], dict[str, Any]],
    measures: Iterable[str],
) -> dict[str, Any]:
    """Return, for JSON, a description of the data and the estimator, and its training and test measures."""
    training_measures = {} if isinstance(rows, RemoteRows) else measure(rows)
    result = {"data": rows.file, "rows": rows.count, "features": rows.n_features}
    result |= learner.describe(estimator) | {
        f"training_{name}": training_measures.get(name) for name in measures
    }
    test_measures = None if tests is None else {"file": tests.file, "rows": tests.count} | measure(tests)
    return result | {"test": test_measures}


def _describe_packed(rows: AnyRows) -> dict[str, Any]:
    if rows.packed is None:
        return {"packed_rows": None, "packed_bytes": None}
    return {"packed_rows": str(rows.packed), "packed_bytes": rows.packed.stat().st_size}
