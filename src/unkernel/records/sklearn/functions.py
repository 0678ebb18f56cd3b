"""Translate transformers that apply functions to numbers: NumPy functions, powers and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.numbers import standardize
from unkernel.records.sklearn.plan_builder import Builder, Source, Vector, refuse
from unkernel.records.sklearn.supported_steps import find_numpy_function
from unkernel.records.steps import KEEPS_ZERO

_Numbers = NDArray[np.float64]


# --- FunctionTransformer --------------------------------------------------------------------------------


def translate_function_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Source:
    """Apply a NumPy function to each number, or return the input unchanged."""
    if transformer.func is None:
        if isinstance(source, Vector) and transformer.validate:
            return builder.finite(source, allows_missing=False)
        return source
    vector = builder.numbers(source, where)
    if transformer.validate:
        vector = builder.finite(vector, allows_missing=False)
    function = find_numpy_function(transformer.func)
    if function == "reciprocal" and not _holds_floats(builder, vector.step):
        refuse(
            where,
            "has func=np.reciprocal, which divides whole numbers without a fraction: put a scaler before it, "
            "such as StandardScaler(with_mean=False, with_std=False), which makes them floats",
        )
    if not KEEPS_ZERO[function]:
        vector = builder.dense(vector)
    return builder.add(PlanStep("function", {"input": vector.step, "function": function}, vector.names))


def _holds_floats(builder: Builder, number: int) -> bool:
    """Return whether scikit-learn has floats where the plan has the output of a step, whatever its input."""
    step = builder.steps[number]
    if step.kind in ("finite", "densify"):
        return _holds_floats(builder, step.table["input"])
    is_weight = step.kind == "scale" and len(step.table["multiply"]) and not len(step.table["add"])
    return step.kind in ("scale", "normalize", "power", "quantiles") and not is_weight


# --- PowerTransformer and QuantileTransformer -------------------------------------------------------------


def translate_power_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Make numbers more like those of a normal distribution, by a power per column; then scale them."""
    vector = builder.dense(builder.check_numbers(source, where))
    lambdas = read_numbers(transformer.lambdas_)
    if not np.isfinite(lambdas).all():
        refuse(where, "has a column without an exponent: it had no numbers in fit")
    table = {
        "input": vector.step,
        "method": transformer.method,
        "lambdas": lambdas,
        "names": list(vector.names),
    }
    powers = builder.add(PlanStep("power", table, vector.names))
    if not transformer.standardize:
        return powers
    scaler = transformer._scaler
    return standardize(builder, powers, scaler.mean_, scaler.scale_)


def translate_quantile_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Replace each number by its rank among the quantiles of its column, or by a normal quantile."""
    if isinstance(source, Vector) and builder.is_sparse.get(source.step, False):
        refuse(
            where,
            "gets a sparse matrix, whose zeros have no ranks: give the step before it sparse_output=False, "
            "or a ColumnTransformer sparse_threshold=0",
        )
    vector = builder.dense(builder.check_numbers(source, where))
    quantiles = np.asarray(transformer.quantiles_, dtype=np.float64)
    if not (np.isfinite(quantiles).all() and (np.diff(quantiles, axis=0) >= 0).all()):
        refuse(where, "has a column whose quantiles do not ascend, or that had no numbers in fit")
    steep = [_find_steep_quantiles(column, transformer.references_) for column in quantiles.T]
    vector = builder.snap_to(vector, steep)
    table = {
        "input": vector.step,
        "quantiles": read_numbers(quantiles.T),
        "ranks": read_numbers(transformer.references_),
        "normal": transformer.output_distribution == "normal",
    }
    return builder.add(PlanStep("quantiles", table, vector.names))


def _find_steep_quantiles(ascending: _Numbers, ranks: _Numbers) -> _Numbers:
    """Return the quantiles at which ranks jump, or at which rounding errors of 1e-15 change them by 1e-11."""
    gaps = np.diff(ascending) * 1e4
    steep = np.flatnonzero(gaps <= np.diff(ranks) * np.abs(ascending).max(initial=0.0))
    return ascending[np.union1d(steep, steep + 1)]


def read_numbers(values: Any) -> _Numbers:
    """Return numbers as a flat array of a table."""
    return np.ascontiguousarray(values, dtype=np.float64).ravel().copy()
