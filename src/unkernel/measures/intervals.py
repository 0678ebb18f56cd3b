"""Compute confidence intervals of measures, with a confidence of 95 %."""

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
REPETITIONS = 400  # number of bootstrap samples
_NORMAL_QUANTILE = 1.959963984540054  # the 0.975 quantile of the standard normal distribution
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
        Value of the measure.
    low : float
        Lower end of the interval; NaN if there is none.
    high : float
        Upper end of the interval; NaN if there is none.
    method : {"Wilson", "bootstrap"}
        Method that was used for the interval.
    is_share : bool, default=True
        Whether the value is shown as a percentage.

    See Also
    --------
    Report : A report that contains measures.

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
    """Return Wilson's score interval of the share `part` / `whole`.

    >>> low, high = compute_wilson_interval(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not whole:
        return math.nan, math.nan
    share, spread = part / whole, _NORMAL_QUANTILE**2 / whole
    centre = (share + spread / 2) / (1 + spread)
    half = _NORMAL_QUANTILE * math.sqrt(share * (1 - share) / whole + spread / (4 * whole)) / (1 + spread)
    # Despite rounding errors, let the interval of the share 0 begin at 0, and that of the share 1 end at 1.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def draw_resamples(count: int, repetitions: int = REPETITIONS) -> Iterator[Counts]:
    """Yield bootstrap samples, each as the number of times that each example is drawn.

    All calls yield the same samples; models can therefore be compared sample by sample.
    """
    generator = np.random.default_rng(_SEED)
    for _ in range(repetitions):
        yield np.bincount(generator.integers(0, count, count), minlength=count)


def bootstrap(measure: Callable[[Counts], MeasureValues], count: int) -> dict[str, Numbers]:
    """Return each measure's values in all bootstrap samples, by name."""
    values_of_samples = [measure(counts) for counts in draw_resamples(count)]
    return {name: np.array([values[name] for values in values_of_samples]) for name in values_of_samples[0]}


def compute_central_interval(values: Numbers) -> tuple[float, float]:
    """Return the interval that contains 95 % of the values; NaN if fewer than 95 % are finite."""
    finite_values = values[np.isfinite(values)]
    if len(finite_values) < 0.95 * len(values):
        return math.nan, math.nan
    low, high = np.percentile(finite_values, _PERCENTILES)
    return float(low), float(high)


def add_intervals(
    values: MeasureValues,
    samples: Mapping[str, Numbers],
    *,
    share_counts: Mapping[str, tuple[float, float]] | None = None,
    numbers: Sequence[str] = (),
) -> list[Measure]:
    """Return measures with their intervals.

    `share_counts` has (part, whole) for measures that are shares of examples; these get Wilson's interval.
    All other measures get bootstrap intervals. `numbers` names the measures that are not shares.
    """
    measures = []
    for name, value in values.items():
        share = (share_counts or {}).get(name)
        low, high = (
            compute_central_interval(samples[name]) if share is None else compute_wilson_interval(*share)
        )
        method = BOOTSTRAP if share is None else WILSON
        measures.append(Measure(name, value, low, high, method, name not in numbers))
    return measures
