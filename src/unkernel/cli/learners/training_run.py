"""Training a model of rows or of trees: reading, fitting, saving, measuring, describing."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unkernel._version import __version__
from unkernel.cli.cluster import check_address, move_to_cluster
from unkernel.cli.inputs import rows as _rows
from unkernel.cli.inputs import trees as _trees
from unkernel.cli.inputs.rows import AnyRows, DistantRows, MemoryRows
from unkernel.cli.inputs.trees import TreeExamples
from unkernel.cli.learners.base import Learner
from unkernel.cli.learners.cross_validation import make_folds, validate
from unkernel.cli.options import shared_options
from unkernel.cli.options.estimator_options import check_parameters, flag
from unkernel.cli.output_files import check_different, check_model_output, check_place, require_output
from unkernel.cli.terminal.console import note, peak_memory
from unkernel.cli.terminal.progress import Display
from unkernel.data.memory import parse_bytes
from unkernel.engines import compile
from unkernel.engines.compilation import choose_default_engine
from unkernel.models import KernelModel


@dataclasses.dataclass(frozen=True)
class Request:
    """What a command line asks for, beside the options of the learner."""

    data: list[str]
    output: Path
    test: str | None
    folds: int | None
    zero_based: bool | None
    threads: int
    force: bool

    @staticmethod
    def of(command: str, given: dict[str, Any]) -> Request:
        """What was given to a command, checked as far as that needs no file."""
        return Request(
            data=list(given["data"]),
            output=require_output(given["output"], command, given["data"]),
            test=given.get("test"),
            folds=given.get("cv"),
            zero_based=given.get("zero_based"),
            threads=shared_options.count_threads(given["jobs"]),
            force=given["force"],
        )


def train(learner: Learner, request: Request, display: Display) -> dict[str, Any]:
    """Train and save a model; what was done and found, for JSON."""
    began = time.perf_counter()
    given, threads = learner.given, request.threads
    check_sources(learner, request.data, request.zero_based)
    inputs = [*request.data, request.test]
    packed = given.get("cache", f"{request.data[0]}.rows") if "out_of_core" in given else None
    check_different(request.output, packed, given.get("checkpoint"))
    check_model_output(request.output, *inputs, force=request.force)
    if "cache" in given:
        check_place(Path(given["cache"]), *inputs)
    _check_checkpoint(given.get("checkpoint"))
    local = learner.estimator(**learner.parameters(threads))
    check_parameters(local)
    with (
        _offer_to_resume(given.get("checkpoint")),
        move_to_cluster(local, given.get("dask"), threads) as estimator,
    ):
        rows = open_examples(learner, request.data, display, estimator, request.zero_based)
        if not (late := isinstance(rows, DistantRows)):
            tests = _read_test(request.test, display, threads, rows)
        validated = _validate(learner, rows, request, display)
        training_seconds, said = fit(learner, estimator, rows, display)
        save_model(estimator, rows, request.output)  # before anything else can go wrong
        if late:  # only now is it known how the files count features
            tests = _read_test(request.test, display, threads, rows)
        with display.show_work("measuring"):
            result = _measure(learner, estimator, rows, tests)
    result["cross_validation"] = validated
    spent = {"reading": rows.seconds, "training": training_seconds, "total": time.perf_counter() - began}
    written = {"model": str(request.output), "model_bytes": request.output.stat().st_size}
    return result | written | {"warnings": said, "seconds": spent, "peak_memory_bytes": peak_memory()}


def check_sources(learner: Learner, data: Sequence[str], zero_based: bool | None) -> None:
    """Options that only some sources of rows have."""
    given = learner.given
    if learner.unit == "tree":
        return _trees.check_rows_only(data, zero_based)
    elsewhere = next((option for option in ("out_of_core", "dask") if option in given), None)
    if "out_of_core" in given and "dask" in given:
        raise ValueError("--out-of-core and --dask are two ways to train on large data; choose one")
    for option in ("memory", "cache"):
        if option in given and elsewhere != "out_of_core":
            raise ValueError(f"{flag(option)} is for --out-of-core")
    if elsewhere is None:
        return _rows.check_several(data, large_data=learner.large_data)
    for option in ("n_features", "cv"):
        if option in given:
            raise ValueError(f"{flag(option)} does not go with {flag(elsewhere)}")
    if "dask" in given:
        check_address(given["dask"])
    if "memory" in given:
        _parse_memory(given["memory"])
    return _rows.check_stdin(data, elsewhere)


def _parse_memory(words: str) -> float:
    try:
        return parse_bytes(words)
    except ValueError as error:
        raise ValueError(f"--{error}") from error


def _check_checkpoint(checkpoint: str | None) -> None:
    if checkpoint is None:
        return
    folder = Path(checkpoint)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: --checkpoint is a folder, and this is a file")
    check_place(folder / "cuts" if folder.is_dir() else folder)


@contextlib.contextmanager
def _offer_to_resume(checkpoint: str | None) -> Iterator[None]:
    """Who interrupts a training is told that it can go on."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None and any(Path(checkpoint).glob("*/state.uk")):
            note(f"{checkpoint} has what was found so far: the same command goes on from there")
        raise


def open_examples(
    learner: Learner, data: Sequence[str], display: Display, estimator: Any, zero_based: bool | None
) -> AnyRows:
    """Read, pack or only name what a model is trained on."""
    given, counting = learner.given, shared_options.index_base(zero_based)
    if learner.unit == "tree":
        return _trees.read_labelled(data[0], display)
    if "dask" in given:
        _rows.check_files(data)
        return DistantRows(_rows.describe_files(data), _rows.unwrap_single(data), estimator, counting)
    if "out_of_core" not in given:
        return _rows.read(data[0], display, estimator.n_jobs, counting, given.get("n_features"))
    rows = _rows.pack(data, display, estimator, counting)
    if "memory" in given:
        _rows.check_memory(rows, _parse_memory(given["memory"]), estimator.max_cuts)
    return rows


def _read_test(
    test: str | None, display: Display, threads: int, rows: AnyRows
) -> MemoryRows | TreeExamples | None:
    if test is None:
        return None
    if isinstance(rows, TreeExamples):
        return _trees.read_test(test, display, rows)
    return _rows.read_test(test, display, threads, rows)


def _validate(learner: Learner, rows: AnyRows, request: Request, display: Display) -> dict[str, Any] | None:
    """What ``--cv`` measures, before the model is trained on all rows."""
    if request.folds is None:
        return None
    assert isinstance(rows, MemoryRows | TreeExamples)
    return validate(learner, rows, make_folds, request, display)


def fit(learner: Learner, estimator: Any, rows: AnyRows, display: Display) -> tuple[float, list[str]]:
    """Seconds, and what the learner warned of."""
    began = time.perf_counter()
    training = display.show_training(estimator.tol, learner.step)
    with training as on_progress, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(estimator, rows, on_progress)
    return time.perf_counter() - began, [str(warning.message) for warning in caught]


def save_model(estimator: Any, rows: AnyRows, path: Path) -> None:
    """What training knew and predicting needs goes along: above all, how the file counts features."""
    model = estimator.to_model()
    seed = {"seed": estimator.random_state} if hasattr(estimator, "random_state") else {}
    known = {"zero_based": rows.zero_based, "rows": rows.count}
    known = {name: value for name, value in known.items() if value not in (None, "auto")}
    origin = model.origin | known | {"tol": estimator.tol}
    described = dataclasses.replace(model, origin=origin | seed | {"unkernel": __version__})
    # Support vectors alone would have to be compiled by everyone who loads them.
    if isinstance(described, KernelModel):
        compile(described, engine=choose_default_engine(described)).save(path)
    else:
        described.save(path)


def _measure(
    learner: Learner, estimator: Any, rows: AnyRows, tests: MemoryRows | TreeExamples | None
) -> dict[str, Any]:
    here = None if isinstance(rows, DistantRows) else learner.measure(estimator, rows)
    measured = {name: None if here is None else here[name] for name in learner.measures}
    result = {"data": rows.file, "rows": rows.count, "features": rows.n_features}
    result |= learner.describe(estimator)
    if learner.large_data:
        result |= _describe_packed(rows)
    result |= {f"training_{name}": value for name, value in measured.items()}
    if tests is None:
        return result | {"test": None}
    tested = {"file": tests.file, "rows": tests.count} | learner.measure(estimator, tests)
    return result | {"test": tested}


def _describe_packed(rows: AnyRows) -> dict[str, Any]:
    if rows.packed is None:
        return {"packed_rows": None, "packed_bytes": None}
    return {"packed_rows": str(rows.packed), "packed_bytes": rows.packed.stat().st_size}
