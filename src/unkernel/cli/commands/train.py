"""``unkernel train``: a file of rows or of trees becomes a model."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unkernel._version import __version__
from unkernel.cli.inputs import rows as _rows
from unkernel.cli.inputs import trees as _trees
from unkernel.cli.inputs.files import check_special_file, check_unwritable
from unkernel.cli.inputs.rows import AnyRows, DistantRows, MemoryRows
from unkernel.cli.inputs.trees import TreeExamples
from unkernel.cli.learners.base import Learner, check_parameters, flag, plain_options
from unkernel.cli.learners.cluster import check_address, moved
from unkernel.cli.learners.linear import LinearLearner
from unkernel.cli.learners.poly import LogisticLearner, PolyLearner
from unkernel.cli.learners.rank import RankLearner
from unkernel.cli.learners.tree import TreeLearner
from unkernel.cli.options import shared as options
from unkernel.cli.options import training as train_options
from unkernel.cli.render.console import note, peak_memory, print_facts, print_json, seconds, size, warn
from unkernel.cli.render.progress import Display
from unkernel.engines import compile
from unkernel.engines.compile_options import parse_bytes
from unkernel.models import KernelModel

_LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (PolyLearner, LogisticLearner, LinearLearner, RankLearner, TreeLearner)
}


def train(
    data: train_options.DataFiles,
    model: options.ModelFile,
    *,
    kind: train_options.Kind = None,
    C: train_options.Cost = None,
    loss: train_options.Loss = None,
    penalty: train_options.Penalty = None,
    l1_ratio: train_options.L1Ratio = None,
    class_weight: train_options.ClassWeight = None,
    degree: train_options.Degree = None,
    gamma: train_options.Gamma = None,
    coef0: train_options.Coef0 = None,
    feature_map: train_options.FeatureMap = None,
    storage: train_options.Storage = None,
    objective: train_options.Objective = None,
    k: train_options.TopRows = None,
    solver: train_options.Solver = None,
    intercept: train_options.Intercept = None,
    intercept_scaling: train_options.InterceptScaling = None,
    thresholds: train_options.Thresholds = None,
    kernel: train_options.TreeKernel = None,
    decay: train_options.Decay = None,
    width_decay: train_options.WidthDecay = None,
    normalize: train_options.Normalize = None,
    sample_size: train_options.SampleSize = None,
    imbalance: train_options.Imbalance = None,
    tree_pairing: train_options.TreePairing = None,
    combine: train_options.Combine = None,
    tree_weight: train_options.TreeWeight = None,
    vector_kernel: train_options.VectorKernel = None,
    normalize_vectors: train_options.NormalizeVectors = None,
    tol: train_options.Tolerance = None,
    max_iter: train_options.MaxIter = None,
    max_cuts: train_options.MaxCuts = None,
    seed: train_options.Seed = None,
    out_of_core: train_options.OutOfCore = None,
    memory: train_options.Memory = None,
    cache: train_options.Cache = None,
    checkpoint: train_options.CheckpointFolder = None,
    dask: train_options.Dask = None,
    n_features: options.FeatureCount = None,
    zero_based: options.ZeroBased = None,
    test: options.TestFile = None,
    jobs: options.Jobs = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train an SVM on a file: of conjunctions, linear, one that ranks, or one of trees.

    The file has a line a row: [italic]label index:value index:value …[/italic]
    More than two classes are trained one against the rest. For --model rank,
    larger labels should get larger scores; [italic]label qid:3 index:value …[/italic]
    is compared with rows of query 3 only. --model logistic is no SVM, but has
    conjunctions, too: it answers with probabilities, of all classes at once.

    Trees are in lines of SVM-light-TK, [italic]label |BT| (S (NP dogs) (VP bark)) |ET|[/italic]
    with any number of trees and vectors, or in those of KeLP (.klp).

    \b
    [dim]$[/dim] unkernel train a9a.svm.xz model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel train a.svm.zst a.uk --degree 3 --test a.t.svm.zst
    [dim]$[/dim] unkernel train a.svm a.uk --class-weight 1=2.5,-1=1
    [dim]$[/dim] unkernel train a.svm a.uk --json | jq .training_accuracy
    [dim]$[/dim] unkernel train a.svm a.uk --penalty l1 --loss squared_hinge
    [dim]$[/dim] unkernel train a.svm a.uk --model logistic --degree 3 --penalty l1 --C 0.3
    [dim]$[/dim] unkernel train a.svm a.uk --model linear --C 0.1 --objective roc_area
    [dim]$[/dim] unkernel train letor.txt a.uk --model rank --test letor.t.txt
    [dim]$[/dim] unkernel train questions.dat model.uk --kernel sst --decay 0.4 --C 1
    [dim]$[/dim] unkernel train questions.dat model.uk --model tree --test questions.t.dat
    [dim]$[/dim] unkernel train 'day-*.svm.gz' a.uk --model linear --out-of-core --checkpoint kept
    [dim]$[/dim] unkernel train 'day-*.svm.gz' a.uk --model linear --dask tcp://scheduler:8786
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    began = time.perf_counter()
    given = plain_options(
        C=C,
        loss=loss,
        penalty=penalty,
        l1_ratio=l1_ratio,
        class_weight=class_weight,
        degree=degree,
        gamma=gamma,
        coef0=coef0,
        feature_map=feature_map,
        storage=storage,
        objective=objective,
        k=k,
        solver=solver,
        intercept=intercept,
        intercept_scaling=intercept_scaling,
        thresholds=thresholds,
        kernel=kernel,
        decay=decay,
        width_decay=width_decay,
        normalize=normalize,
        sample_size=sample_size,
        imbalance=imbalance,
        tree_pairing=tree_pairing,
        combine=combine,
        tree_weight=tree_weight,
        vector_kernel=vector_kernel,
        normalize_vectors=normalize_vectors,
        tol=tol,
        max_iter=max_iter,
        max_cuts=max_cuts,
        seed=seed,
        out_of_core=out_of_core,
        memory=memory,
        cache=cache,
        checkpoint=checkpoint,
        dask=dask,
        n_features=n_features,
    )
    learner = _learner(_kind(kind, data, given), given)
    if learner.reads_trees:
        _trees.check_rows_only(data, zero_based)
    _check_together(data, given)
    _check_places(model, checkpoint, *data, test)
    threads = options.threads(jobs)
    local = learner.estimator(**learner.parameters(threads))
    check_parameters(local)
    with (
        Display(quiet=quiet or json, verbose=verbose) as display,
        _resumable(checkpoint),
        moved(local, dask, threads) as estimator,
    ):
        if learner.reads_trees:
            rows: AnyRows = _trees.read_labelled(data[0], display)
        else:
            rows = _open(data, display, estimator, given, options.first_index(zero_based))
        if not (late := isinstance(rows, DistantRows)):
            tests = _read_test(test, display, threads, rows)
        training_seconds, said = _fit(learner, estimator, rows, display)
        _save(estimator, rows, model)  # before anything else can go wrong
        if late:  # only now is it known how the files count features
            tests = _read_test(test, display, threads, rows)
        with display.working("measuring"):
            result = _measure(learner, estimator, rows, tests)
    spent = {"reading": rows.seconds, "training": training_seconds, "total": time.perf_counter() - began}
    result |= {"model": str(model), "model_bytes": model.stat().st_size, "warnings": said, "seconds": spent}
    _report(learner, result | {"peak_memory_bytes": peak_memory()}, json=json, quiet=quiet)


def _kind(kind: train_options.ModelKind | None, data: Sequence[str], given: dict[str, Any]) -> str:
    """Which model, where the user does not say: trees where an option or the data are of trees."""
    if kind is not None:
        return kind.value
    return "tree" if "kernel" in given or _trees.holds_trees(data[0]) else "poly"


def _learner(name: str, given: dict[str, Any]) -> Learner:
    """Of options that all say something to it, and that go together."""
    for option in given:
        if option not in _LEARNERS[name].options():
            others = [other.name for other in _LEARNERS.values() if option in other.options()]
            raise ValueError(f"{flag(option)} is not for --model {name}, but for {' and '.join(others)}")
    return _LEARNERS[name](given)


def _check_together(data: Sequence[str], given: dict[str, Any]) -> None:
    """Options that only some sources of rows have."""
    elsewhere = next((option for option in ("out_of_core", "dask") if option in given), None)
    if "out_of_core" in given and "dask" in given:
        raise ValueError("--out-of-core and --dask are two ways to train on large data; choose one")
    for option in ("memory", "cache"):
        if option in given and elsewhere != "out_of_core":
            raise ValueError(f"{flag(option)} is for --out-of-core")
    if elsewhere is None:
        return _rows.check_several(data)
    if "dask" in given:
        check_address(given["dask"])
    if "n_features" in given:
        raise ValueError(f"--n-features does not go with {flag(elsewhere)}")
    if "memory" in given:
        _parse_memory(given["memory"])
    return _rows.check_stdin(data, elsewhere)


def _parse_memory(words: str) -> float:
    try:
        return parse_bytes(words)
    except ValueError as error:
        raise ValueError(f"--{error}") from error


def _check_places(model: Path, checkpoint: Path | None, *inputs: str | None) -> None:
    check_unwritable(model, *(name for name in inputs if name is not None))
    check_special_file(model)
    if checkpoint is not None:
        check_unwritable(checkpoint / "cuts" if checkpoint.is_dir() else checkpoint)
        if checkpoint.exists() and not checkpoint.is_dir():
            raise ValueError(f"{checkpoint}: --checkpoint is a folder, and this is a file")


@contextlib.contextmanager
def _resumable(checkpoint: Path | None) -> Iterator[None]:
    """Who interrupts a training is told that it can go on."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None and any(checkpoint.glob("*/state.uk")):
            note(f"{checkpoint} has what was found so far: the same command goes on from there")
        raise


def _open(
    data: Sequence[str], display: Display, estimator: Any, given: dict[str, Any], zero_based: Any
) -> AnyRows:
    if "dask" in given:
        return DistantRows(_rows.shown(data), _rows.source_of(data), estimator, zero_based)
    if "out_of_core" not in given:
        return _rows.read(data[0], display, estimator.n_jobs, zero_based, given.get("n_features"))
    rows = _rows.pack(data, display, estimator, zero_based)
    if "memory" in given:
        _rows.check_too_large(rows, _parse_memory(given["memory"]), estimator.max_cuts)
    return rows


def _read_test(
    test: str | None, display: Display, threads: int, rows: AnyRows
) -> MemoryRows | TreeExamples | None:
    if test is None:
        return None
    if isinstance(rows, TreeExamples):
        return _trees.read_test(test, display, rows)
    return _rows.read_test(test, display, threads, rows)


def _fit(learner: Learner, estimator: Any, rows: AnyRows, display: Display) -> tuple[float, list[str]]:
    """Seconds, and what the learner warned of."""
    began = time.perf_counter()
    training = display.training(estimator.tol, learner.step)
    with training as on_progress, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(estimator, rows, on_progress)
    return time.perf_counter() - began, [str(warning.message) for warning in caught]


def _save(estimator: Any, rows: AnyRows, path: Path) -> None:
    """What training knew and predicting needs goes along: above all, how the file counts features."""
    model = estimator.to_model()
    seed = {"seed": estimator.random_state} if hasattr(estimator, "random_state") else {}
    known = {"zero_based": rows.zero_based, "rows": rows.count}
    known = {name: value for name, value in known.items() if value not in (None, "auto")}
    origin = model.origin | known | {"tol": estimator.tol}
    described = dataclasses.replace(model, origin=origin | seed | {"unkernel": __version__})
    # Support vectors alone would have to be compiled by everyone who loads them.
    (compile(described, engine="split") if isinstance(described, KernelModel) else described).save(path)


def _measure(
    learner: Learner, estimator: Any, rows: AnyRows, tests: MemoryRows | TreeExamples | None
) -> dict[str, Any]:
    here = None if isinstance(rows, DistantRows) else learner.measure(estimator, rows)
    measured = {name: None if here is None else here[name] for name in learner.measures}
    result = {"data": rows.file, "rows": rows.count, "features": rows.n_features}
    result |= learner.describe(estimator)
    if "out_of_core" in learner.options():
        result["packed_rows"] = None if rows.packed is None else str(rows.packed)
    result |= {f"training_{name}": value for name, value in measured.items()}
    if tests is None:
        return result | {"test": None}
    tested = {"file": tests.file, "rows": tests.count} | learner.measure(estimator, tests)
    return result | {"test": tested}


def _report(learner: Learner, result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    for words in result["warnings"]:
        warn(words)
    if json:
        print_json(result)
    elif not quiet:
        _print(learner, result)


def _print(learner: Learner, result: dict[str, Any]) -> None:
    found = [name for name in result if name.startswith("training_")]
    trained = {name.removeprefix("training_"): result[name] for name in found}
    facts = learner.facts(result)
    if any(value is not None for value in trained.values()):
        facts |= learner.quality(trained, "training")
    if test := result["test"]:
        facts |= learner.quality(test, "test")
    if packed := result.get("packed_rows"):
        facts["packed rows"] = f"{packed}, {size(Path(packed).stat().st_size)}, kept for the next time"
    spent = result["seconds"]
    facts["time"] = f"{seconds(spent['training'])} training, {seconds(spent['total'])} in all"
    facts["memory"] = f"{size(result['peak_memory_bytes'])} at its peak"
    print_facts(result["model"], facts)
