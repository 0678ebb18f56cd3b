"""Confidence intervals of 95 % for measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]
MeasureValues = Mapping[str, float]

WILSON = "Wilson"
BOOTSTRAP = "bootstrap"
REPETITIONS = 400
_NORMAL = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations
_PERCENTILES = (2.5, 97.5)
_SEED = 0


@dataclass(frozen=True)
class Measure:
    """A measure of a model with its 95 % confidence interval.

    Attributes
    ----------
    name : str
        Name of the measure.
    value : float
        Its value.
    low : float
        Lower end of the interval; NaN if there is none.
    high : float
        Upper end of the interval; NaN if there is none.
    method : {"Wilson", "bootstrap"}
        How the interval was computed.
    is_share : bool, default=True
        Whether the value is shown as a percentage.

    See Also
    --------
    Report : A report, which contains measures.

    Examples
    --------
    >>> from unkernel.report import Measure
    >>> Measure("accuracy", 0.8, 0.49, 0.94, "Wilson").value
    0.8
    """

    name: str
    value: float
    low: float
    high: float
    method: str
    is_share: bool = True


def compute_wilson_interval(part: float, whole: float) -> tuple[float, float]:
    """Wilson's score interval of a share.

    >>> low, high = compute_wilson_interval(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not whole:
        return math.nan, math.nan
    share, spread = part / whole, _NORMAL**2 / whole
    centre = (share + spread / 2) / (1 + spread)
    half = _NORMAL * math.sqrt(share * (1 - share) / whole + spread / (4 * whole)) / (1 + spread)
    # For none and for all, the interval must end exactly at 0 and at 1, despite rounding.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def draw_resamples(count: int, repetitions: int = REPETITIONS) -> Iterator[Counts]:
    """Return how often each example is drawn, in bootstrap samples with replacement.

    All calls return the same samples, so that models can be compared sample by sample.
    """
    generator = np.random.default_rng(_SEED)
    for _ in range(repetitions):
        yield np.bincount(generator.integers(0, count, count), minlength=count)


def bootstrap(measure: Callable[[Counts], MeasureValues], count: int) -> dict[str, Numbers]:
    """Return the values of each measure over all bootstrap samples, by name."""
    measured = [measure(counts) for counts in draw_resamples(count)]
    return {name: np.array([values[name] for values in measured]) for name in measured[0]}


def compute_central_interval(values: Numbers) -> tuple[float, float]:
    """Return the interval that contains 95 % of the values; NaN if fewer than 95 % are defined."""
    defined = values[np.isfinite(values)]
    if len(defined) < 0.95 * len(values):
        return math.nan, math.nan
    low, high = np.percentile(defined, _PERCENTILES)
    return float(low), float(high)


def add_intervals(
    values: MeasureValues,
    samples: Mapping[str, Numbers],
    *,
    counted: Mapping[str, tuple[float, float]] | None = None,
    numbers: Sequence[str] = (),
) -> list[Measure]:
    """Return measures with their intervals.

    Measures in `counted`, which gives (part, whole) of shares of examples, have Wilson's interval; all other
    measures have the bootstrap's. `numbers` are the names of measures that are not shares.
    """
    measures = []
    for name, value in values.items():
        share = (counted or {}).get(name)
        low, high = (
            compute_central_interval(samples[name]) if share is None else compute_wilson_interval(*share)
        )
        method = BOOTSTRAP if share is None else WILSON
        measures.append(Measure(name, value, low, high, method, name not in numbers))
    return measures
