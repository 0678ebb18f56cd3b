"""Translate scalers, imputers, intervals, norms, products and selections."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

from unkernel.records import steps
from unkernel.records.feature_labels import make_interval_labels
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.plan_builder import Builder, Raw, Source, Vector, is_nan, is_number, refuse
from unkernel.records.steps import FORBIDDEN


def translate_standard_scaler(builder: Builder, scaler: Any, source: Source, where: str) -> Vector:
    """Subtract the mean and divide by the standard deviation."""
    mean = scaler.mean_ if scaler.with_mean else None
    return standardize(
        builder, builder.check_numbers(source, where), mean, scaler.scale_ if scaler.with_std else None
    )


def standardize(builder: Builder, vector: Vector, center: Any, scale: Any) -> Vector:
    """Subtract the center and divide by the scale; either may be None, which skips its operation."""
    if center is not None:
        vector = builder.dense(vector)
    return builder.add(steps.scale(vector.step, vector.names, subtract=center, divide=scale))


def translate_min_max_scaler(builder: Builder, scaler: Any, source: Source, where: str) -> Vector:
    """Map numbers linearly to a range."""
    vector = builder.dense(builder.check_numbers(source, where))
    low, high = scaler.feature_range if scaler.clip else (None, None)
    return builder.add(
        steps.scale(vector.step, vector.names, multiply=scaler.scale_, add=scaler.min_, least=low, most=high)
    )


def translate_max_abs_scaler(builder: Builder, scaler: Any, source: Source, where: str) -> Vector:
    """Divide by the largest absolute value."""
    vector = builder.check_numbers(source, where)
    low, high = (-1.0, 1.0) if getattr(scaler, "clip", False) else (None, None)
    return builder.add(steps.scale(vector.step, vector.names, divide=scaler.scale_, least=low, most=high))


def translate_robust_scaler(builder: Builder, scaler: Any, source: Source, where: str) -> Vector:
    """Subtract the median and divide by the range between two quantiles."""
    center = scaler.center_ if scaler.with_centering else None
    scale = scaler.scale_ if scaler.with_scaling else None
    return standardize(builder, builder.check_numbers(source, where), center, scale)


def translate_normalizer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Divide each row by its norm."""
    vector = builder.check_numbers(source, where)
    return builder.add(PlanStep("normalize", {"input": vector.step, "norm": transformer.norm}, vector.names))


def translate_binarizer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Return 1 above the threshold, else 0."""
    return binarize(builder, builder.check_numbers(source, where), float(transformer.threshold))


def binarize(builder: Builder, vector: Vector, threshold: float) -> Vector:
    """Return 1 for numbers above the threshold, else 0."""
    if threshold < 0:
        vector = builder.dense(vector)
    vector = builder.snap_to(vector, [[threshold]] * len(vector.names))
    names = [f"{name} > {threshold:g}" for name in vector.names]
    return builder.add(PlanStep("binarize", {"input": vector.step, "threshold": threshold}, names))


def translate_k_bins(builder: Builder, discretizer: Any, source: Source, where: str) -> Vector:
    """Replace each number by its interval."""
    vector = builder.dense(builder.check_numbers(source, where))
    edges = [np.asarray(column_edges, dtype=np.float64)[1:-1] for column_edges in discretizer.bin_edges_]
    vector = builder.snap_to(vector, edges)
    one_hot = discretizer.encode != "ordinal"
    names = list(vector.names)
    if one_hot:
        names = [
            label
            for name, column_edges in zip(vector.names, edges, strict=True)
            for label in make_interval_labels(name, column_edges)
        ]
    return builder.add(
        steps.bins(
            vector.step, edges, [FORBIDDEN] * len(edges), names, columns=list(vector.names), one_hot=one_hot
        )
    )


def translate_simple_imputer(builder: Builder, imputer: Any, source: Source, where: str) -> Source:
    """Fill in missing values; with ``add_indicator``, add features that are 1 for missing values."""
    fills = np.asarray(imputer.statistics_)
    missing = imputer.missing_values
    holds_strings = fills.dtype.kind in "OUS" and any(isinstance(fill, str) for fill in fills)
    if holds_strings and (imputer.add_indicator or isinstance(source, Vector)):
        refuse(where, "adds flags of missing strings, which is not supported")
    if not holds_strings and not is_number(missing):
        refuse(where, f"takes {missing!r} for missing numbers, which is not supported")
    if isinstance(source, Raw) and not imputer.add_indicator and not any(is_nan(fill) for fill in fills):
        if source.fills:
            refuse(where, "is an imputer behind another one, which is not supported")
        pairs = ((missing, fill) for fill in fills.tolist())
        return Raw(source.columns, dict(zip(source.columns, pairs, strict=True)))
    vector = builder.dense(builder.check_numbers(source, where))
    numbers = fills.astype(np.float64)
    imputed = builder.add(steps.impute(vector.step, np.nan_to_num(numbers), vector.names, float(missing)))
    if np.isnan(numbers).any():
        imputed = select_features(builder, imputed, ~np.isnan(numbers))
    if not imputer.add_indicator:
        return imputed
    columns = [int(column) for column in imputer.indicator_.features_]
    flags = [f"{vector.names[column]} is missing" for column in columns]
    return builder.concatenate(
        [imputed, builder.add(steps.indicate(vector.step, columns, flags, float(missing)))]
    )


def translate_polynomial_features(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Return the products of features."""
    vector = builder.dense(builder.check_numbers(source, where))
    factors = list(_list_factors(transformer, len(vector.names)))
    if len(factors) != transformer.n_output_features_:
        refuse(where, "has other products than its parameters say: they were changed after the fit")
    names = [" * ".join(vector.names[column] for column in columns) or "1" for columns in factors]
    return builder.add(steps.products(vector.step, factors, names))


def _list_factors(transformer: Any, count: int) -> Iterator[tuple[int, ...]]:
    """Yield the columns of each product's factors, in scikit-learn's order."""
    degree = transformer.degree
    low, high = (1, degree) if is_number(degree) else (max(1, degree[0]), degree[1])
    choose = combinations if transformer.interaction_only else combinations_with_replacement
    if transformer.include_bias:
        yield ()
    for size in range(low, high + 1):
        yield from choose(range(count), size)


def translate_selector(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Return the selected features."""
    return select_features(
        builder, builder.check_numbers(source, where), np.asarray(transformer.get_support())
    )


def select_features(builder: Builder, vector: Vector, mask: Any) -> Vector:
    """Return the features where the mask is true."""
    places = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
    names = [name for name, is_selected in zip(vector.names, mask, strict=True) if is_selected]
    table = {"input": vector.step, "places": places, "width": len(names)}
    return builder.add(PlanStep("select", table, names))
