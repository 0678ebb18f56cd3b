"""The slow twin of the steps of a plan: rows are dicts from features to values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats
from scipy.interpolate import BSpline
from scipy.special import boxcox
from sklearn.utils import murmurhash3_32

from reference import dates
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep
from unkernel.records.steps import DATE_PARTS
from unkernel.records.text_analysis import make_analyzer

Vector = dict[int, float]


def encode(plan: Plan, record: dict[str, Any]) -> Vector:
    """Return the row of a record."""
    vectors: list[Vector] = []
    for step in plan.steps:
        vectors.append(_STEPS[step.kind](plan, step, record, vectors))
    return {feature: value for feature, value in sorted(vectors[-1].items()) if value != 0.0}


def _numbers(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    values = [record.get(plan.columns[column]) for column in step.table["columns"]]
    return {k: math.nan if value is None else float(value) for k, value in enumerate(values)}


def _dates(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    values = [record.get(plan.columns[column]) for column in step.table["columns"]]
    parts = [DATE_PARTS[part] for part in step.table["parts"]]
    return {k: dates.part_of(value, parts[k]) for k, value in enumerate(values)}


def _strings(table: dict[str, Any], words: str = "words", ends: str = "word_ends") -> list[str]:
    text, begin, strings = bytes(table[words]), 0, []
    for end in table[ends]:
        strings.append(text[begin:end].decode())
        begin = end
    return strings


def _code(table: dict[str, Any], value: Any, *, absent: bool) -> int:
    if absent:
        return int(table["absent"])
    if value is None:
        return int(table["none"])
    if isinstance(value, str):
        codes = dict(zip(_strings(table, "strings", "string_ends"), table["string_codes"], strict=True))
    elif math.isnan(value):
        return int(table["nan"])
    else:
        codes = dict(zip(table["numbers"], table["number_codes"], strict=True))
    return int(codes.get(value, table["unknown"]))


def _one_hot(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    result: Vector = {}
    for column, table in zip(step.table["columns"], step.table["categories"], strict=True):
        name = plan.columns[column]
        code = _code(table, record.get(name), absent=name not in record)
        if code >= 0:
            result[code] = 1.0
    return result


def _ordinal(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    result: Vector = {}
    for k, (column, table) in enumerate(zip(step.table["columns"], step.table["categories"], strict=True)):
        name = plan.columns[column]
        code = _code(table, record.get(name), absent=name not in record)
        result[k] = float(table["values"][code]) if code >= 0 else 0.0
    return result


def _feature(table: dict[str, Any], word: str) -> tuple[int, float] | None:
    """Return the feature of a word and its sign, or None. Hashes equal scikit-learn's."""
    if table["hashed"]:
        hashed = int(murmurhash3_32(word.encode(), seed=0))
        return abs(hashed) % table["width"], -1.0 if table["alternate_sign"] and hashed < 0 else 1.0
    ids = dict(zip(_strings(table), table["ids"].tolist(), strict=True))
    return (ids[word], 1.0) if word in ids and ids[word] >= 0 else None


def _sum(table: dict[str, Any], entries: list[tuple[str, float]]) -> Vector:
    result: Vector = {}
    for word, value in entries:
        feature = _feature(table, word)
        if feature is not None:
            result[feature[0]] = result.get(feature[0], 0.0) + feature[1] * value
    return result


def _count(table: dict[str, Any], words: list[str]) -> Vector:
    result = _sum(table, [(word, 1.0) for word in words])
    return dict.fromkeys(result, 1.0) if table["binary"] else result


def _pairs(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    entries: list[tuple[str, float]] = []
    for key, value in record[plan.columns[step.table["columns"][0]]].items():
        texts = [value] if isinstance(value, str) else value
        if isinstance(texts, (list, tuple)):
            entries += [(f"{key}{step.table['separator']}{text}", 1.0) for text in texts]
        else:
            entries.append((key, float(value)))
    return _sum(step.table, entries)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _text(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    value = record.get(plan.columns[step.table["columns"][0]])
    if _is_missing(value):
        return {step.table["missing"]: 1.0} if step.table["missing"] >= 0 else {}
    return _count(step.table, make_analyzer(step.table)(value))


def _list(plan: Plan, step: PlanStep, record: dict[str, Any], _: list[Vector]) -> Vector:
    value = record.get(plan.columns[step.table["columns"][0]])
    if _is_missing(value):
        return {step.table["missing"]: 1.0} if step.table.get("missing", -1) >= 0 else {}
    return _count(step.table, list(value))


def _bins(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    table, result, first = step.table, {}, 0
    for k, value in vectors[table["input"]].items():
        edges = table["edges"][table["begins"][k] : table["begins"][k + 1]]
        missing = int(table["missing"][k])
        interval = missing if math.isnan(value) else sum(1 for edge in edges if edge <= value)
        if table["one_hot"]:
            if interval >= 0:
                result[first + interval] = 1.0
            first += max(len(edges) + 1, missing + 1)
        else:
            result[k] = float(interval)
    return result


def _scale(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    table, result = step.table, {}
    for k, unscaled in vectors[table["input"]].items():
        value = unscaled
        if len(table["subtract"]):
            value -= table["subtract"][k]
        if len(table["divide"]):
            value /= table["divide"][k]
        if len(table["multiply"]):
            value *= table["multiply"][k]
        if len(table["add"]):
            value += table["add"][k]
        if table["least"] is not None and value < table["least"]:
            value = table["least"]
        if table["most"] is not None and value > table["most"]:
            value = table["most"]
        result[k] = float(value)
    return result


def _impute(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    fill = step.table["fill"]
    return {
        k: float(fill[k]) if math.isnan(value) else value for k, value in vectors[step.table["input"]].items()
    }


def _indicate(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    values = vectors[step.table["input"]]
    return {k: 1.0 for k, column in enumerate(step.table["indicated"]) if math.isnan(values[column])}


def _binarize(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    return {k: float(value > step.table["threshold"]) for k, value in vectors[step.table["input"]].items()}


def _products(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    values, begins = vectors[step.table["input"]], step.table["begins"]
    factors = [step.table["factors"][begins[k] : begins[k + 1]] for k in range(len(begins) - 1)]
    return {k: math.prod(values[column] for column in columns) for k, columns in enumerate(factors)}


def _densify(plan: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    source = step.table["input"]
    return {k: vectors[source].get(k, 0.0) for k in range(len(plan.steps[source].names))}


def _concatenate(plan: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    result, first = {}, 0
    for source in step.table["inputs"]:
        result |= {first + k: value for k, value in vectors[source].items()}
        first += len(plan.steps[source].names)
    return result


def _select(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    places = step.table["places"]
    return {int(places[k]): value for k, value in vectors[step.table["input"]].items() if places[k] >= 0}


def _normalize(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    vector = vectors[step.table["input"]]
    sizes = [abs(value) for value in vector.values()]
    length = {
        "l1": sum(sizes),
        "l2": math.sqrt(sum(size * size for size in sizes)),
        "max": max(sizes, default=0.0),
    }[step.table["norm"]]
    return {k: value / length if length else value for k, value in vector.items()}


def _tfidf(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    idf = step.table["idf"]
    return {
        k: (math.log(value) + 1.0 if step.table["sublinear"] else value) * (idf[k] if len(idf) else 1.0)
        for k, value in vectors[step.table["input"]].items()
    }


def _function(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    function = getattr(np, step.table["function"])
    return {k: float(function(value)) for k, value in vectors[step.table["input"]].items()}


def _finite(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    values = vectors[step.table["input"]]
    assert not any(math.isinf(value) for value in values.values())
    assert step.table["allows_missing"] or not any(math.isnan(value) for value in values.values())
    return values


def _snap(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    table, result = step.table, {}
    for k, value in vectors[table["input"]].items():
        own = slice(table["begins"][k], table["begins"][k + 1])
        pairs = zip(table["points"][own].tolist(), table["tolerances"][own].tolist(), strict=True)
        close = [point for point, tolerance in pairs if abs(value - point) <= tolerance]
        result[k] = min(close, key=lambda point: abs(value - point), default=value)
    return result


def _power(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    transform = boxcox if step.table["method"] == "box-cox" else stats.yeojohnson
    lambdas = step.table["lambdas"]
    return {
        k: float(transform(np.array([value]), lambdas[k])[0])
        for k, value in vectors[step.table["input"]].items()
    }


def _quantiles(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    table, result = step.table, {}
    ranks = table["ranks"]
    for k, value in vectors[table["input"]].items():
        quantiles = table["quantiles"].reshape(-1, len(ranks))[k]
        upwards = np.interp(value, quantiles, ranks)
        downwards = -np.interp(-value, -quantiles[::-1], -ranks[::-1])
        rank = 0.5 * (upwards + downwards)
        is_last, is_first = value == quantiles[-1], value == quantiles[0]
        if table["normal"]:
            is_last, is_first = value + 1e-7 > quantiles[-1], value - 1e-7 < quantiles[0]
        if is_last or is_first:
            rank = 0.0 if is_first else 1.0
        if table["normal"]:
            rank = np.clip(stats.norm.ppf(rank), *stats.norm.ppf([1e-7 - 2**-52, 1 - (1e-7 - 2**-52)]))
        result[k] = float(rank)
    return result


def _splines(_: Plan, step: PlanStep, __: dict[str, Any], vectors: list[Vector]) -> Vector:
    table, result = step.table, {}
    degree, n_columns = table["degree"], len(table["names"])
    n_features = len(step.names) // n_columns
    for k, value in vectors[table["input"]].items():
        knots = table["knots"].reshape(n_columns, -1)[k]
        count = len(knots) - degree - 1
        first, last = knots[degree], knots[count]
        if table["periodic"]:
            value = first + (value - first) % (last - first)  # noqa: PLW2901
        all_values = BSpline(knots, np.eye(count), degree)(value)
        if table["periodic"]:
            all_values[:degree] += all_values[count - degree :]
            all_values = all_values[: count - degree]
        for side, is_beyond in (("low", value < table["low"][k]), ("high", value > table["high"][k])):
            if is_beyond and table["below" if side == "low" else "above"] == "lines":
                values, slopes = (
                    table[f"{side}_{part}"].reshape(n_columns, -1)[k] for part in ("values", "slopes")
                )
                all_values = values + (value - table[side][k]) * slopes
        result |= {k * n_features + spline: float(all_values[spline]) for spline in range(n_features)}
    return result


_STEPS = {
    "numbers": _numbers,
    "dates": _dates,
    "one_hot": _one_hot,
    "ordinal": _ordinal,
    "text": _text,
    "strings": _list,
    "pairs": _pairs,
    "bins": _bins,
    "scale": _scale,
    "impute": _impute,
    "indicate": _indicate,
    "binarize": _binarize,
    "products": _products,
    "densify": _densify,
    "concatenate": _concatenate,
    "select": _select,
    "normalize": _normalize,
    "tfidf": _tfidf,
    "function": _function,
    "finite": _finite,
    "snap": _snap,
    "power": _power,
    "quantiles": _quantiles,
    "splines": _splines,
}
