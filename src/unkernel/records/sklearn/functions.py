"""Translate transformers that apply functions to numbers: NumPy functions, powers, quantiles, splines."""

from __future__ import annotations

from dataclasses import dataclass
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
        if transformer.validate and isinstance(source, Vector):
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
    vector = builder.dense(builder.checked(source, where))
    lambdas = _read_numbers(transformer.lambdas_)
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
    vector = builder.dense(builder.checked(source, where))
    quantiles = np.asarray(transformer.quantiles_, dtype=np.float64)
    if not (np.isfinite(quantiles).all() and (np.diff(quantiles, axis=0) >= 0).all()):
        refuse(where, "has a column whose quantiles do not ascend, or that had no numbers in fit")
    steep = [_find_steep_quantiles(column, transformer.references_) for column in quantiles.T]
    vector = builder.snapped(vector, steep)
    table = {
        "input": vector.step,
        "quantiles": _read_numbers(quantiles.T),
        "ranks": _read_numbers(transformer.references_),
        "normal": transformer.output_distribution == "normal",
    }
    return builder.add(PlanStep("quantiles", table, vector.names))


def _find_steep_quantiles(ascending: _Numbers, ranks: _Numbers) -> _Numbers:
    """Return the quantiles at which ranks jump, or at which rounding errors of 1e-15 change them by 1e-11."""
    gaps = np.diff(ascending) * 1e4
    steep = np.flatnonzero(gaps <= np.diff(ranks) * np.abs(ascending).max(initial=0.0))
    return ascending[np.union1d(steep, steep + 1)]


def _read_numbers(values: Any) -> _Numbers:
    return np.ascontiguousarray(values, dtype=np.float64).ravel().copy()


# --- SplineTransformer ------------------------------------------------------------------------------------


def translate_spline_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Replace each number by the values of B-splines."""
    vector = builder.dense(builder.checked(source, where))
    splines = transformer.bsplines_
    count = splines[0].c.shape[1]
    if splines[0].k != transformer.degree or transformer.n_features_out_ != len(splines) * (
        count - (not transformer.include_bias)
    ):
        refuse(where, "has other splines than its parameters say: they were changed after the fit")
    if not all(np.isfinite(spline.t).all() and (np.diff(spline.t) >= 0).all() for spline in splines):
        refuse(where, "has knots that do not ascend, because two are too close")
    sides = {
        "continue": ("polynomials", "polynomials"),
        "periodic": ("polynomials", "polynomials"),
        "error": ("error", "error"),
        "constant": ("lines", "lines"),
        "linear": ("lines", "lines"),
    }
    below, above = sides[transformer.extrapolation]
    if transformer.extrapolation == "constant" and _has_no_constant_above(transformer, count):
        above = "error"
    bounds = [_find_bounds(transformer, number) for number in range(len(splines))]
    if not all(bound.is_finite() for bound in bounds):
        refuse(where, "has infinite splines: two knots are too close")
    if below == "lines" and any(bound.low > bound.high for bound in bounds):
        refuse(where, "has lines that cross: give it more knots, or another degree or extrapolation")
    vector = builder.snapped(vector, [_list_jumps(transformer, *pair) for pair in enumerate(bounds)])
    table = {
        "input": vector.step,
        "degree": int(splines[0].k),
        "knots": np.concatenate([_read_numbers(spline.t) for spline in splines]),
        "periodic": transformer.extrapolation == "periodic",
        "drops_last": not transformer.include_bias,
        "allows_missing": getattr(transformer, "handle_missing", "error") == "zeros",
        "below": below,
        "above": above,
        "low": _read_numbers([bound.low for bound in bounds]),
        "high": _read_numbers([bound.high for bound in bounds]),
        "low_values": _join([bound.low_values for bound in bounds], is_used=below == "lines"),
        "low_slopes": _join([bound.low_slopes for bound in bounds], is_used=below == "lines"),
        "high_values": _join([bound.high_values for bound in bounds], is_used=above == "lines"),
        "high_slopes": _join([bound.high_slopes for bound in bounds], is_used=above == "lines"),
        "names": list(vector.names),
    }
    kept = count - (not transformer.include_bias)
    names = [f"{name} spline {number}" for name in vector.names for number in range(kept)]
    return builder.add(PlanStep("splines", table, names))


@dataclass(frozen=True)
class _Bounds:
    """The range of a column's splines, and the lines by which they continue outside of it."""

    low: float
    high: float
    low_values: _Numbers
    low_slopes: _Numbers
    high_values: _Numbers
    high_slopes: _Numbers

    def is_finite(self) -> bool:
        parts = (self.low_values, self.low_slopes, self.high_values, self.high_slopes)
        return bool(np.isfinite([self.low, self.high, *np.concatenate(parts)]).all())


def _find_bounds(transformer: Any, number: int) -> _Bounds:
    """Return the bounds of a column. As in scikit-learn, only the splines next to a bound have lines."""
    spline = transformer.bsplines_[number]
    degree, n_lines = transformer.degree, transformer.degree
    is_linear = transformer.extrapolation == "linear"
    if is_linear:
        # scikit-learn counts up a degree below 2 for the lines of each column, and keeps the sum for the
        # bounds of the next column.
        degree = max(degree, min(degree + number, 2))
        n_lines = max(degree, min(degree + 1, 2))
    low, high = float(spline.t[degree]), float(spline.t[-degree - 1])
    count = spline.c.shape[1]
    has_steps = (
        degree == 0 and transformer.sparse_output
    )  # above the range, scikit-learn then sets all splines
    begins, ends = np.arange(count) < n_lines, (np.arange(count) >= count - n_lines) | has_steps

    def read(values: Any, are_used: Any) -> _Numbers:
        return np.where(are_used, values, 0.0).astype(np.float64)

    nothing = np.zeros(count)
    low_slopes, high_slopes = (spline(low, nu=1), spline(high, nu=1)) if is_linear else (nothing, nothing)
    return _Bounds(
        low,
        high,
        read(spline(low), begins),
        read(low_slopes, begins),
        read(spline(high), ends),
        read(high_slopes, ends),
    )


def _list_jumps(transformer: Any, number: int, bounds: _Bounds) -> list[float]:
    """Return the numbers at which splines of a column may jump: their bounds, and all knots of steps."""
    knots = transformer.bsplines_[number].t.tolist() if transformer.degree == 0 else []
    return [bounds.low, bounds.high, *knots]


def _has_no_constant_above(transformer: Any, count: int) -> bool:
    """Return whether scikit-learn raises an error for numbers above the range instead of extrapolating.

    It does so for steps (splines of degree 0) in a dense array, and gives zeros below the range.
    """
    return transformer.degree == 0 and count > 1 and not transformer.sparse_output


def _join(parts: list[_Numbers], *, is_used: bool) -> _Numbers:
    return np.concatenate(parts) if is_used else np.empty(0)
