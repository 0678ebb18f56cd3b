"""``unkernel train``: a file of rows becomes a model."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import re
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError

from unkernel._version import __version__
from unkernel.cli import _options as options
from unkernel.cli._console import many, percent, print_facts, print_json, seconds, size, warn
from unkernel.cli._files import (
    class_labels,
    label_words,
    labels_are_unknown,
    only_known_features,
    refuse_special_file,
    refuse_unwritable,
)
from unkernel.cli._progress import Display
from unkernel.data import SvmlightData, read_svmlight
from unkernel.poly import PolySVC

# The estimator's defaults are the command's.
_DEFAULT: dict[str, Any] = {
    name: parameter.default for name, parameter in inspect.signature(PolySVC).parameters.items()
}


@dataclasses.dataclass(frozen=True)
class _Rows:
    """A file that was read: its rows, its labels, and how long that took."""

    file: str
    data: SvmlightData
    labels: NDArray[Any]
    seconds: float


def train(
    data: options.DataFile,
    model: options.ModelFile,
    *,
    degree: options.Degree = _DEFAULT["degree"],
    C: options.Cost = _DEFAULT["C"],
    gamma: options.Gamma = _DEFAULT["gamma"],
    coef0: options.Coef0 = _DEFAULT["coef0"],
    loss: options.Loss = _DEFAULT["loss"],
    feature_map: options.FeatureMap = _DEFAULT["feature_map"],
    class_weight: options.ClassWeight = _DEFAULT["class_weight"],
    tol: options.Tolerance = _DEFAULT["tol"],
    max_iter: options.MaxIter = _DEFAULT["max_iter"],
    storage: options.Storage = _DEFAULT["storage"],
    seed: options.Seed = 0,
    n_features: options.FeatureCount = None,
    zero_based: options.ZeroBased = None,
    test: options.TestFile = None,
    jobs: options.Jobs = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a polynomial-kernel SVM on a file of rows.

    The file has a line a row: [italic]label index:value index:value …[/italic]
    More than two classes are trained one against the rest.

    \b
    [dim]$[/dim] unkernel train a9a.svm.xz model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel train a.svm.zst a.uk --degree 3 --test a.t.svm.zst
    [dim]$[/dim] unkernel train a.svm a.uk --class-weight 1=2.5,-1=1
    [dim]$[/dim] unkernel train a.svm a.uk --json | jq .training_accuracy
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    began = time.perf_counter()
    _refuse_place(model, data, test)
    estimator = PolySVC(
        degree=degree,
        C=C,
        gamma=_gamma(gamma),
        coef0=coef0,
        loss=loss.value,
        feature_map=feature_map.value,
        class_weight=_class_weight(class_weight),
        tol=tol,
        max_iter=max_iter,
        storage=storage.value,
        random_state=seed,
        n_jobs=options.threads(jobs),
    )
    _refuse_parameters(estimator)
    with Display(quiet=quiet or json, verbose=verbose) as display:
        rows = _read(data, display, estimator.n_jobs, n_features, options.first_index(zero_based))
        tests = _read_test(test, display, estimator.n_jobs, rows) if test is not None else None
        training_seconds, said = _fit(estimator, rows, display)
        _save(estimator, rows, model, seed)  # before anything else can go wrong
        with display.working("measuring"):
            result = _measure(estimator, rows, tests)
    spent = {"reading": rows.seconds, "training": training_seconds, "total": time.perf_counter() - began}
    result |= {"model": str(model), "model_bytes": model.stat().st_size, "warnings": said, "seconds": spent}
    _report(result | {"peak_memory_bytes": _peak_memory()}, json=json, quiet=quiet)


def _refuse_place(model: Path, *inputs: str | None) -> None:
    refuse_unwritable(model, *(name for name in inputs if name is not None))
    refuse_special_file(model)


def _gamma(text: str) -> float | str:
    if text in ("scale", "auto"):
        return text
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise ValueError(f"--gamma must be scale, auto or a positive number, got {text!r}")


def _class_weight(text: str | None) -> dict[float, float] | str | None:
    if text in (None, "balanced"):
        return text
    pairs = [pair.partition("=") for pair in text.split(",")]
    try:
        weights = {_number(label): float(weight) for label, _, weight in pairs}
    except ValueError:
        raise ValueError(
            f"--class-weight must be balanced or a list such as 1=2.5,-1=1, got {text!r}"
        ) from None
    if len(weights) < len(pairs):
        raise ValueError(f"--class-weight must name each class once, got {text!r}")
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise ValueError(f"--class-weight must have positive weights, got {text!r}")
    return weights


def _number(text: str) -> float:
    """An int where it is one, so that messages call the class what the file calls it."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _refuse_parameters(estimator: PolySVC) -> None:
    """The estimator's own checks, before anything is read, in the words of the command line."""
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise ValueError(_as_options(str(error))) from None


def _as_options(words: str) -> str:
    words = re.sub(
        r"The '(\w+)' parameter of PolySVC", lambda match: "--" + match[1].replace("_", "-"), words
    )
    return re.sub(r"\. Got (.*) instead\.$", r", got \1", words)


def _read(file: str, display: Display, jobs: int | None, n_features: int | None, zero_based: Any) -> _Rows:
    began = time.perf_counter()
    with display.reading(file) as stream:
        data = read_svmlight(stream, n_features=n_features, zero_based=zero_based, n_jobs=jobs)
    return _Rows(file, data, class_labels(data.y), time.perf_counter() - began)


def _read_test(file: str, display: Display, jobs: int | None, rows: _Rows) -> _Rows:
    """Read before training, so that a bad file does not cost the time of training."""
    tests = _read(file, display, jobs, None, rows.data.zero_based)
    known = only_known_features(tests.data.X, rows.data.X.shape[1], file)
    return dataclasses.replace(tests, data=dataclasses.replace(tests.data, X=known))


def _fit(estimator: PolySVC, rows: _Rows, display: Display) -> tuple[float, list[str]]:
    """Seconds, and what the learner warned of."""
    began = time.perf_counter()
    with display.training(estimator.tol) as look, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit_watched(rows.data.X, rows.labels, None, look)
    return time.perf_counter() - began, [str(warning.message) for warning in caught]


def _measure(estimator: PolySVC, rows: _Rows, tests: _Rows | None) -> dict[str, Any]:
    chosen = {
        name: getattr(estimator, name) for name in ("degree", "C", "coef0", "loss", "feature_map", "tol")
    }
    return chosen | {
        "data": rows.file,
        "rows": rows.data.X.shape[0],
        "features": rows.data.X.shape[1],
        "classes": estimator.classes_.tolist(),
        "gamma": estimator.gamma_,
        "storage": estimator.storage_,
        "conjunctions": estimator.to_model().n_conjunctions,
        "objective": estimator.objective_,
        "gap": estimator.gap_,
        "epochs": estimator.n_iter_,
        "training_accuracy": _accuracy(estimator, rows),
        "test": None if tests is None else _test_result(estimator, tests),
    }


def _test_result(estimator: PolySVC, tests: _Rows) -> dict[str, Any]:
    unknown = labels_are_unknown(tests.data.y, estimator.classes_)
    return {
        "file": tests.file,
        "rows": tests.data.X.shape[0],
        "accuracy": None if unknown else _accuracy(estimator, tests),
        "accuracy_note": unknown,
    }


def _accuracy(estimator: PolySVC, rows: _Rows) -> float:
    return float(np.mean(estimator.predict(rows.data.X) == rows.labels))


def _save(estimator: PolySVC, rows: _Rows, path: Path, seed: int) -> None:
    """What training knew and predicting needs goes along: above all, how the file counts features."""
    model = estimator.to_model()
    origin = model.origin | {
        "zero_based": rows.data.zero_based,
        "rows": rows.data.X.shape[0],
        "tol": estimator.tol,
        "seed": seed,
        "unkernel": __version__,
    }
    dataclasses.replace(model, origin=origin).save(path)


def _peak_memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _report(result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    for words in result["warnings"]:
        warn(words)
    if json:
        print_json(result)
    elif not quiet:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    facts = {
        "data": f"{many(result['rows'], 'row')}, {many(result['features'], 'feature')}, "
        f"{many(len(result['classes']), 'class', 'classes')}: {label_words(result['classes'])}",
        "model": f"{many(result['conjunctions'], 'conjunction')} of at most "
        f"{many(result['degree'], 'feature')}, {size(result['model_bytes'])}",
        "objective": f"{result['objective']:.8g}",
        "gap": f"{result['gap']:.2e} (asked for {result['tol']:g}) after {many(result['epochs'], 'epoch')}",
        "training accuracy": percent(result["training_accuracy"]),
    }
    if test := result["test"]:
        facts["test accuracy"] = test["accuracy_note"] or (
            f"{percent(test['accuracy'])} of {many(test['rows'], 'row')}"
        )
    spent = result["seconds"]
    facts["time"] = f"{seconds(spent['training'])} training, {seconds(spent['total'])} in all"
    facts["memory"] = f"{size(result['peak_memory_bytes'])} at its peak"
    print_facts(result["model"], facts)
