"""Translate OneHotEncoder, OrdinalEncoder and TargetEncoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from unkernel.records import steps
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.plan_builder import Builder, Raw, Source, Vector, is_nan, refuse
from unkernel.records.steps import FORBIDDEN, IGNORED


def translate_one_hot_encoder(builder: Builder, encoder: Any, source: Source, where: str) -> Vector:
    """Add one feature per category, except for the categories that `drop` removes."""
    raw = _require_columns(source, where)
    tables, names, offset = [], [], 0
    for index, column in enumerate(raw.columns):
        groups = _group_categories(encoder, index)
        features, width = _assign_features(encoder, index, groups)
        unknown = _choose_unknown_code(encoder, index, groups, features)
        codes = {
            _make_category_key(category): IGNORED if features[group] < 0 else offset + features[group]
            for category, group in zip(encoder.categories_[index], groups, strict=True)
        }
        unknown_code = unknown if unknown < 0 else offset + unknown
        tables.append(_make_category_table(_add_code_of_fill(codes, raw, column, unknown_code), unknown_code))
        names += _make_labels(builder.columns[column], encoder.categories_[index], groups, features)
        offset += width
    return builder.add(steps.one_hot(raw.columns, tables, names))


def _require_columns(source: Source, where: str) -> Raw:
    if isinstance(source, Vector):
        refuse(where, "takes categories, and gets the result of another step")
    return source


def _make_category_key(category: Any) -> Any:
    key = category.item() if isinstance(category, np.generic) else category
    if isinstance(key, int) and int(float(key)) != key:
        raise ValueError(
            f"the category {key} is a whole number beyond 2**53; give such categories as strings"
        )
    return key


def _group_categories(encoder: Any, index: int) -> list[int]:
    """Return the group of each category. Infrequent categories share one group."""
    count = len(encoder.categories_[index])
    if not getattr(encoder, "_infrequent_enabled", False):
        return list(range(count))
    mapping = encoder._default_to_infrequent_mappings[index]
    return list(range(count)) if mapping is None else [int(group) for group in mapping]


def _has_infrequent(encoder: Any, index: int) -> bool:
    is_grouped = getattr(encoder, "_infrequent_enabled", False)
    return is_grouped and encoder._default_to_infrequent_mappings[index] is not None


def _assign_features(encoder: Any, index: int, groups: list[int]) -> tuple[list[int], int]:
    """Return the feature of each group (-1 if the group is dropped), and the number of features."""
    count = max(groups, default=-1) + 1
    dropped = None
    if getattr(encoder, "_drop_idx_after_grouping", None) is not None:
        dropped = encoder._drop_idx_after_grouping[index]
    if dropped is None:
        return list(range(count)), count
    dropped = int(dropped)
    features = [group - (group > dropped) for group in range(count)]
    features[dropped] = -1
    return features, count - 1


def _choose_unknown_code(encoder: Any, index: int, groups: list[int], features: list[int]) -> int:
    if encoder.handle_unknown == "error":
        return FORBIDDEN
    if encoder.handle_unknown in ("infrequent_if_exist", "warn") and _has_infrequent(encoder, index):
        return features[max(groups)]  # scikit-learn numbers the group of infrequent categories last
    return IGNORED


def _add_code_of_fill(codes: dict[Any, int], raw: Raw, column: int, unknown: int) -> dict[Any, int]:
    """Return `codes` in which the missing value has the code of the value that the imputer fills in."""
    if column not in raw.fills:
        return codes
    missing, fill = raw.fills[column]
    other_codes = {key: code for key, code in codes.items() if key is not missing and not is_nan(key)}
    return other_codes | {missing: codes.get(fill, unknown)}


def _make_category_table(codes: dict[Any, int], unknown: int) -> dict[str, Any]:
    return steps.categories(codes, unknown=unknown, absent=FORBIDDEN)


def _make_labels(column: str, categories: Any, groups: list[int], features: list[int]) -> list[str]:
    labels = [""] * sum(feature >= 0 for feature in features)
    for category, group in zip(categories, groups, strict=True):
        feature = features[group]
        if feature >= 0:
            labels[feature] = (
                f"{column} = {category}" if groups.count(group) == 1 else f"{column} = (infrequent)"
            )
    return labels


def translate_ordinal_encoder(builder: Builder, encoder: Any, source: Source, where: str) -> Vector:
    """Add the number that the encoder assigns to each category."""
    raw = _require_columns(source, where)
    tables = []
    for index, column in enumerate(raw.columns):
        categories = [_make_category_key(category) for category in encoder.categories_[index]]
        values = [float(group) for group in _group_categories(encoder, index)]
        missing = encoder._missing_indices.get(index)  # the code of NaN; None is a category
        for code in range(len(categories)):
            if missing is not None and (code == missing or values[code] == missing):
                values[code] = float(encoder.encoded_missing_value)
        codes = {category: code for code, category in enumerate(categories)}
        unknown = FORBIDDEN
        if encoder.handle_unknown == "use_encoded_value":
            unknown = len(values)
            values.append(float(encoder.unknown_value))
        codes = _add_code_of_fill(codes, raw, column, unknown)
        tables.append(
            steps.categories(codes, unknown=unknown, absent=FORBIDDEN, values=np.array(values, np.float64))
        )
    names = [builder.columns[column] for column in raw.columns]
    table = {"columns": steps.int32(raw.columns), "categories": tables}
    return builder.add(PlanStep("ordinal", table, names))


def translate_target_encoder(builder: Builder, encoder: Any, source: Source, where: str) -> Vector:
    """Add the mean target of the category, or the mean over all rows if the category is unknown.

    With several classes, each column has one number per class.
    """
    raw = _require_columns(source, where)
    means = np.atleast_1d(np.asarray(encoder.target_mean_, dtype=np.float64))
    columns, tables, names = [], [], []
    for number, encodings in enumerate(encoder.encodings_):
        index, target = divmod(number, len(means))
        column = raw.columns[index]
        categories = [_make_category_key(category) for category in encoder.categories_[index]]
        values = np.array([*encodings, means[target]], np.float64)
        unknown = len(categories)
        codes = _add_code_of_fill(
            {category: code for code, category in enumerate(categories)}, raw, column, unknown
        )
        columns.append(column)
        tables.append(steps.categories(codes, unknown=unknown, absent=FORBIDDEN, values=values))
        name = builder.columns[column]
        names.append(name if len(means) == 1 else f"{name} for class {encoder.classes_[target]}")
    table = {"columns": steps.int32(columns), "categories": tables}
    return builder.add(PlanStep("ordinal", table, names))
