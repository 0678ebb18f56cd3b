"""Write a small model file of every kind, with its predictions: once per file format.

python tests/reference/golden_models.py NAME writes NAME-*.uk and NAME-*.scores into tests/models/golden.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
)
from sklearn.svm import SVC, LinearSVC

import unkernel

TESTS = Path(__file__).parents[1]
FILES = TESTS / "models" / "golden"
ENGINES: dict[str, dict[str, Any]] = {
    "inverted": {},
    "bitsliced": {},
    "expanded": {},
    "split": {"rare": 0.2},
    "pruned": {"threshold": 1e-3},
}
TREES = ["(A b)", "(A (B c))", "(B b)", "(B (A c) (A b))", "(A (B c) c)", "(B (B b))"]
TREE_CLASSES = [1, 1, 0, 0, 1, 0]
RECORDS = [
    {"port": 80, "word": "get é"},
    {"port": 22, "word": "put"},
    {"port": 80, "word": "put it"},
    {"word": "get"},
]


# Sizes and weights: counts with repetitions, and numbers.
NUMBERS = np.array([[1.0, 0.5], [3.0, 2.25], [3.0, 4.0], [8.0, 1.0], [1.0, 7.5], [5.0, 3.0]])


def make_function_model() -> Any:
    """Return a pipeline with all kinds of steps that apply functions to numbers."""
    columns = make_column_transformer(
        (make_pipeline(FunctionTransformer(np.log1p), QuantileTransformer(n_quantiles=6)), [0]),
        (QuantileTransformer(n_quantiles=4, output_distribution="normal"), [1]),
        (PowerTransformer(), [0, 1]),
        (make_pipeline(FunctionTransformer(np.sqrt), PowerTransformer(method="box-cox")), [1]),
        (SplineTransformer(n_knots=3, extrapolation="linear"), [1]),
        (SplineTransformer(n_knots=4, degree=2, extrapolation="periodic"), [0]),
    )
    pipeline = make_pipeline(columns, LogisticRegression()).fit(NUMBERS, [0, 1, 0, 1, 1, 0])
    return unkernel.compile(pipeline, measure=False)


def rows(name: str) -> Any:
    return unkernel.read_svmlight(TESTS / "golden" / f"{name}.test.svm", n_features=64)


def compile_machine(name: str, engine: str, **options: Any) -> tuple[Any, Any]:
    """Return a compiled machine, and rows that were not used in training."""
    data = rows(name)
    machine = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=0.01, decision_function_shape="ovo")
    machine.fit(data.X[:20], data.y[:20])
    return unkernel.compile(machine, engine, measure=False, **options), data.X[20:40]


def make_models() -> Iterator[tuple[str, Any, Any]]:
    """Yield names, models that can be saved, and rows to predict."""
    binary, multiclass = rows("binary"), rows("multi")
    for engine, options in ENGINES.items():
        yield f"compiled-{engine}", *compile_machine("binary", engine, **options)
    yield "compiled-pairs", *compile_machine("multi", "auto")
    yield (
        "kernel",
        unkernel.models.from_estimator(SVC(kernel="rbf").fit(binary.X[:20], binary.y[:20])),
        binary.X[20:40],
    )
    yield (
        "linear",
        unkernel.models.from_estimator(LinearSVC().fit(multiclass.X[:20], multiclass.y[:20])),
        multiclass.X[20:40],
    )
    yield (
        "conjunctions",
        unkernel.PolySVC(degree=2).fit(multiclass.X[:20], multiclass.y[:20]),
        multiclass.X[20:40],
    )
    logistic = LogisticRegression().fit(binary.X[:20], binary.y[:20])
    yield "threshold", unkernel.models.from_estimator(logistic).with_threshold(0.2), binary.X[20:40]
    counts = unkernel.PolyRegressor(degree=2, loss="poisson", C=0.1)
    yield "counts", counts.fit(binary.X[:20], np.arange(20) % 5), binary.X[20:40]
    yield "functions", make_function_model(), NUMBERS
    yield "tree", unkernel.TreeSVC().fit(TREES, TREE_CLASSES), TREES
    if hasattr(unkernel, "RecordEncoder"):
        pipeline = make_pipeline(
            unkernel.RecordEncoder(min_count=1, kinds={"word": "text"}), unkernel.PolySVC()
        )
        yield "records", unkernel.compile(pipeline.fit(RECORDS, [1, 0, 1, 0]), measure=False), RECORDS


def open_model(path: Path) -> Any:
    """Open a file; support vectors must be compiled before they can predict."""
    return unkernel.compile(path, measure=False) if path.stem.endswith("-kernel") else unkernel.load(path)


def main(version: str) -> None:
    for name, model, questions in make_models():
        path = FILES / f"{version}-{name}.uk"
        model.save(path)
        np.savetxt(path.with_suffix(".scores"), open_model(path).decision_function(questions), fmt="%.17g")


if __name__ == "__main__":
    main(sys.argv[1])
