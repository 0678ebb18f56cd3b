"""OneHotEncoder and OrdinalEncoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from unkernel.records import steps
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.plan_builder import Builder, Raw, Source, Vector, is_nan, refuse
from unkernel.records.steps import FORBIDDEN, IGNORED


def one_hot_encoder(builder: Builder, encoder: Any, source: Source, where: str) -> Vector:
    """Return one feature per category, except those that `drop` removes."""
    raw = _require_columns(source, where)
    tables, names, first = [], [], 0
    for place, column in enumerate(raw.columns):
        groups = _group_categories(encoder, place)
        features, width = _features_of_groups(encoder, place, groups)
        unknown = _choose_unknown_code(encoder, place, groups, features)
        codes = {
            _category_key(category): IGNORED if features[group] < 0 else first + features[group]
            for category, group in zip(encoder.categories_[place], groups, strict=True)
        }
        code = unknown if unknown < 0 else first + unknown
        tables.append(_category_table(_add_code_of_fill(codes, raw, column, code), code))
        names += _make_labels(builder.columns[column], encoder.categories_[place], groups, features)
        first += width
    return builder.add(steps.one_hot(raw.columns, tables, names))


def _require_columns(source: Source, where: str) -> Raw:
    if isinstance(source, Vector):
        refuse(where, "takes categories, and gets the result of another step")
    return source


def _category_key(category: Any) -> Any:
    key = category.item() if isinstance(category, np.generic) else category
    if isinstance(key, int) and int(float(key)) != key:
        raise ValueError(
            f"the category {key} is a whole number beyond 2**53; give such categories as strings"
        )
    return key


def _group_categories(encoder: Any, place: int) -> list[int]:
    """Return the group of each category: all infrequent categories share one; every other has its own."""
    count = len(encoder.categories_[place])
    if not getattr(encoder, "_infrequent_enabled", False):
        return list(range(count))
    mapping = encoder._default_to_infrequent_mappings[place]
    return list(range(count)) if mapping is None else [int(group) for group in mapping]


def _has_infrequent(encoder: Any, place: int) -> bool:
    is_grouped = getattr(encoder, "_infrequent_enabled", False)
    return is_grouped and encoder._default_to_infrequent_mappings[place] is not None


def _features_of_groups(encoder: Any, place: int, groups: list[int]) -> tuple[list[int], int]:
    """Return the feature of each group (-1 for a dropped group) and the number of features."""
    count = max(groups, default=-1) + 1
    dropped = None
    if getattr(encoder, "_drop_idx_after_grouping", None) is not None:
        dropped = encoder._drop_idx_after_grouping[place]
    if dropped is None:
        return list(range(count)), count
    dropped = int(dropped)
    features = [group - (group > dropped) for group in range(count)]
    features[dropped] = -1
    return features, count - 1


def _choose_unknown_code(encoder: Any, place: int, groups: list[int], features: list[int]) -> int:
    if encoder.handle_unknown == "error":
        return FORBIDDEN
    if encoder.handle_unknown in ("infrequent_if_exist", "warn") and _has_infrequent(encoder, place):
        return features[max(groups)]  # scikit-learn puts infrequent categories last
    return IGNORED


def _add_code_of_fill(codes: dict[Any, int], raw: Raw, column: int, unknown: int) -> dict[Any, int]:
    """Return `codes` with the missing value mapped to the code of the value that the imputer fills in."""
    if column not in raw.fills:
        return codes
    missing, fill = raw.fills[column]
    others = {key: code for key, code in codes.items() if key is not missing and not is_nan(key)}
    return others | {missing: codes.get(fill, unknown)}


def _category_table(codes: dict[Any, int], unknown: int) -> dict[str, Any]:
    return steps.categories(codes, unknown=unknown, absent=FORBIDDEN)


def _make_labels(column: str, known: Any, groups: list[int], features: list[int]) -> list[str]:
    labels = [""] * sum(feature >= 0 for feature in features)
    for category, group in zip(known, groups, strict=True):
        feature = features[group]
        if feature >= 0:
            labels[feature] = (
                f"{column} = {category}" if groups.count(group) == 1 else f"{column} = (infrequent)"
            )
    return labels


def ordinal_encoder(builder: Builder, encoder: Any, source: Source, where: str) -> Vector:
    """Return the encoded value of the category."""
    raw = _require_columns(source, where)
    tables = []
    for place, column in enumerate(raw.columns):
        known = [_category_key(category) for category in encoder.categories_[place]]
        values = [float(group) for group in _group_categories(encoder, place)]
        missing = encoder._missing_indices.get(place)  # the code of NaN; None is an ordinary category
        for code in range(len(known)):
            if missing is not None and (code == missing or values[code] == missing):
                values[code] = float(encoder.encoded_missing_value)
        codes = {category: code for code, category in enumerate(known)}
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
