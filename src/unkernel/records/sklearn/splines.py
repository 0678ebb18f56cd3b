"""Translate SplineTransformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.functions import read_numbers
from unkernel.records.sklearn.plan_builder import Builder, Source, Vector, refuse

_Numbers = NDArray[np.float64]

# How the splines continue beyond a bound of their range, as steps name it.
_OUTSIDE = {
    "continue": "polynomials",
    "periodic": "polynomials",
    "error": "error",
    "constant": "lines",
    "linear": "lines",
}


def translate_spline_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Replace each number by the values of B-splines."""
    vector = builder.dense(builder.check_numbers(source, where))
    splines = transformer.bsplines_
    kept = splines[0].c.shape[1] - (not transformer.include_bias)
    _check_splines(transformer, kept, where)
    bounds = [_find_bounds(transformer, number) for number in range(len(splines))]
    _check_bounds(transformer, bounds, where)
    vector = builder.snap_to(vector, [_list_jumps(transformer, *pair) for pair in enumerate(bounds)])
    table = {
        "input": vector.step,
        "degree": int(splines[0].k),
        "knots": np.concatenate([read_numbers(spline.t) for spline in splines]),
        "periodic": transformer.extrapolation == "periodic",
        "drops_last": not transformer.include_bias,
        "allows_missing": getattr(transformer, "handle_missing", "error") == "zeros",
        "names": list(vector.names),
    }
    names = [f"{name} spline {number}" for name in vector.names for number in range(kept)]
    return builder.add(PlanStep("splines", table | _describe_outside(transformer, bounds), names))


def _check_splines(transformer: Any, kept: int, where: str) -> None:
    """Refuse splines that do not fit the parameters, or whose knots do not ascend."""
    splines = transformer.bsplines_
    if splines[0].k != transformer.degree or transformer.n_features_out_ != len(splines) * kept:
        refuse(where, "has other splines than its parameters say: they were changed after the fit")
    if not all(np.isfinite(spline.t).all() and (np.diff(spline.t) >= 0).all() for spline in splines):
        refuse(where, "has knots that do not ascend, because two are too close")


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


def _check_bounds(transformer: Any, bounds: list[_Bounds], where: str) -> None:
    if not all(bound.is_finite() for bound in bounds):
        refuse(where, "has infinite splines: two knots are too close")
    if _OUTSIDE[transformer.extrapolation] == "lines" and any(bound.low > bound.high for bound in bounds):
        refuse(where, "has lines that cross: give it more knots, or another degree or extrapolation")


def _describe_outside(transformer: Any, bounds: list[_Bounds]) -> dict[str, Any]:
    """Return the part of a table that describes splines beyond their bounds."""
    below = above = _OUTSIDE[transformer.extrapolation]
    if transformer.extrapolation == "constant" and _has_no_constant_above(transformer):
        above = "error"
    return {
        "below": below,
        "above": above,
        "low": read_numbers([bound.low for bound in bounds]),
        "high": read_numbers([bound.high for bound in bounds]),
        "low_values": _join([bound.low_values for bound in bounds], is_used=below == "lines"),
        "low_slopes": _join([bound.low_slopes for bound in bounds], is_used=below == "lines"),
        "high_values": _join([bound.high_values for bound in bounds], is_used=above == "lines"),
        "high_slopes": _join([bound.high_slopes for bound in bounds], is_used=above == "lines"),
    }


def _has_no_constant_above(transformer: Any) -> bool:
    """Return whether scikit-learn raises an error for numbers above the range instead of extrapolating.

    It does so for steps (splines of degree 0) in a dense array, and gives zeros below the range.
    """
    count = transformer.bsplines_[0].c.shape[1]
    return transformer.degree == 0 and count > 1 and not transformer.sparse_output


def _join(parts: list[_Numbers], *, is_used: bool) -> _Numbers:
    return np.concatenate(parts) if is_used else np.empty(0)
