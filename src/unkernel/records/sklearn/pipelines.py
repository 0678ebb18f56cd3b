"""Translate pipelines, feature unions and column transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unkernel.records import steps
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn import categories, functions, numbers, splines, texts
from unkernel.records.sklearn.boosting_machines import Features, add_bins, make_example
from unkernel.records.sklearn.linear_maps import LINEAR_MAPS
from unkernel.records.sklearn.plan_builder import Builder, Raw, Source, Vector, class_names, refuse
from unkernel.records.sklearn.prepared_rows import prepare_rows
from unkernel.records.sklearn.supported_steps import TRANSFORMERS, check_parameters

_Translator = Callable[[Builder, Any, Source, str], Source]

_VECTORIZERS = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer", "DictVectorizer", "FeatureHasher")
# Transformers that are not in this table select features; `numbers.translate_selector` translates them.
TRANSLATORS: dict[str, _Translator] = {
    "OneHotEncoder": categories.translate_one_hot_encoder,
    "OrdinalEncoder": categories.translate_ordinal_encoder,
    "TargetEncoder": categories.translate_target_encoder,
    "KBinsDiscretizer": numbers.translate_k_bins,
    "StandardScaler": numbers.translate_standard_scaler,
    "MinMaxScaler": numbers.translate_min_max_scaler,
    "MaxAbsScaler": numbers.translate_max_abs_scaler,
    "RobustScaler": numbers.translate_robust_scaler,
    "Normalizer": numbers.translate_normalizer,
    "Binarizer": numbers.translate_binarizer,
    "FunctionTransformer": functions.translate_function_transformer,
    "PowerTransformer": functions.translate_power_transformer,
    "QuantileTransformer": functions.translate_quantile_transformer,
    "SplineTransformer": splines.translate_spline_transformer,
    "SimpleImputer": numbers.translate_simple_imputer,
    "PolynomialFeatures": numbers.translate_polynomial_features,
    "TfidfVectorizer": texts.translate_tfidf_vectorizer,
    "CountVectorizer": texts.translate_count_vectorizer,
    "HashingVectorizer": texts.translate_hashing_vectorizer,
    "TfidfTransformer": texts.translate_tfidf_transformer,
    "DictVectorizer": texts.translate_dict_vectorizer,
    "FeatureHasher": texts.translate_feature_hasher,
}


def make_plan_of_steps(transformers: Sequence[tuple[str, Any]], last: Any = None) -> Plan:
    """Return the plan of a pipeline's fitted transformers.

    Parameters
    ----------
    transformers : sequence of (str, transformer)
        The steps of a ``Pipeline``, except for the last.
    last : estimator, default=None
        The last step. If there are no transformers, the plan has the columns that this step was fitted on. If
        it is a naive Bayes classifier or a PCA, the rows are prepared as its model expects.

    Raises
    ------
    ValueError
        If a step cannot be expressed as a plan; the message names it.
    """
    builder, source, settings = _translate_steps(transformers, last)
    vector = prepare_rows(builder, last, builder.numbers(source, "before the classifier"))
    return _finish(builder, vector, settings)


def make_plan_of_machine(transformers: Sequence[tuple[str, Any]], machine: Any) -> tuple[Plan, Features]:
    """Return the plan of a pipeline's transformers, followed by the bins of its last step.

    Parameters
    ----------
    transformers : sequence of (str, transformer)
        The steps of a ``Pipeline``, except for the last.
    machine : ExplainableBoostingClassifier or ExplainableBoostingRegressor
        The last step.

    Returns
    -------
    plan : Plan
    features : dict
        The features of the bins, as returned by :func:`boosting_machines.add_bins`.

    Raises
    ------
    ValueError
        If a step cannot be expressed as a plan; the message names it.
    """
    builder, source, settings = _translate_steps(transformers, machine)
    if isinstance(source, Raw):
        settings |= {"example": make_example(machine, builder.columns)}
    vector, features = add_bins(builder, machine, source, f"({type(machine).__name__})")
    return _finish(builder, vector, settings), features


def _translate_steps(
    transformers: Sequence[tuple[str, Any]], last: Any
) -> tuple[Builder, Source, dict[str, Any]]:
    """Translate the transformers; return the plan so far, its output, and the settings of the plan."""
    used = [(name, step) for name, step in transformers if step not in (None, "passthrough")]
    settings: dict[str, Any]
    if used and hasattr(used[0][1], "plan_"):
        first = used.pop(0)[1].plan_
        builder = Builder(list(first.columns), list(first.steps))
        rows = Vector(len(builder.steps) - 1, first.steps[-1].names)
        builder.is_sparse[rows.step] = True
        source: Source = rows
        kept = ("required", "whole", "example", "training")
        settings = {name: getattr(first, name) for name in kept}
    else:
        columns = _list_columns(used, last)
        builder = Builder(columns)
        source = Raw(range(len(columns)))
        settings = {"required": True, "whole": _takes_values(used)}
    return builder, _translate_all(builder, used, source, ""), settings


def _finish(builder: Builder, vector: Vector, settings: dict[str, Any]) -> Plan:
    """Return the finished plan; its rows are `vector`."""
    if vector.step != len(builder.steps) - 1:
        builder.add(steps.concatenate([vector.step], vector.names))
    return Plan(builder.columns, builder.steps, **settings)


def _takes_values(transformers: Sequence[tuple[str, Any]]) -> bool:
    """Return whether a record of the pipeline is a single text or dict, not a row of a table."""
    if not transformers:
        return False
    names = class_names(transformers[0][1])
    if "Pipeline" in names:
        return _takes_values(transformers[0][1].steps)
    if "FeatureUnion" in names:
        return _takes_values(transformers[0][1].transformer_list)
    return not names.isdisjoint(_VECTORIZERS)


def _list_columns(transformers: Sequence[tuple[str, Any]], last: Any) -> list[str]:
    if _takes_values(transformers):
        return ["record"]
    first = transformers[0][1] if transformers else last
    names = getattr(first, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    return [f"x{index}" for index in range(int(first.n_features_in_))]


def _translate_all(
    builder: Builder, transformers: Sequence[tuple[str, Any]], source: Source, where: str
) -> Source:
    for name, transformer in transformers:
        source = _translate(builder, transformer, source, f"{where}{name!r}")
    return source


def _translate(builder: Builder, transformer: Any, source: Source, where: str) -> Source:
    if transformer is None or transformer == "passthrough":
        return source
    names = class_names(transformer)
    label = f"{where} ({type(transformer).__name__})"
    if type(transformer).__name__ not in names:
        refuse(label, "is of a class that is not scikit-learn's")
    if type(transformer).__name__ not in TRANSFORMERS:
        refuse(label, "is not one that can be compiled")
    check_parameters(transformer, label)
    if "Pipeline" in names:
        return _translate_all(builder, transformer.steps, source, where + " / ")
    if "ColumnTransformer" in names:
        return _translate_column_transformer(builder, transformer, source, where)
    if "FeatureUnion" in names:
        return _translate_feature_union(builder, transformer, source, where)
    if not names.isdisjoint(LINEAR_MAPS):
        refuse(
            label,
            "can be compiled only before a linear model, with nothing but scalers and selections between",
        )
    translate = TRANSLATORS.get(type(transformer).__name__, numbers.translate_selector)
    result = translate(builder, transformer, source, label)
    if isinstance(result, Vector):
        builder.is_sparse[result.step] = _makes_sparse_matrix(builder, transformer, source)
    return result


def _makes_sparse_matrix(builder: Builder, transformer: Any, source: Source) -> bool:
    """Return whether the output of a transformer is a sparse matrix in scikit-learn."""
    name = type(transformer).__name__
    if name in _VECTORIZERS:
        return bool(getattr(transformer, "sparse", True))  # only DictVectorizer has this parameter
    if name in ("OneHotEncoder", "SplineTransformer"):
        return bool(transformer.sparse_output)
    if name == "KBinsDiscretizer":
        return bool(transformer.encode == "onehot")
    return isinstance(source, Vector) and builder.is_sparse.get(source.step, False)


def _translate_column_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    parts = []
    weights = transformer.transformer_weights or {}
    for name, part_transformer, selection in transformer.transformers_:
        indices = [int(index) for index in transformer._transformer_to_input_indices[name]]
        if part_transformer == "drop" or not indices:
            continue
        path = f"{where} / {name!r}"
        if _takes_values([(name, part_transformer)]) and not isinstance(selection, (str, int, np.integer)):
            refuse(path, "takes one column, which must be given as a string or a number, not as a list")
        part = builder.numbers(
            _translate(builder, part_transformer, _select_columns(builder, source, indices), path), path
        )
        parts.append(_multiply_by_weight(builder, part, weights.get(name)))
    if not parts:
        refuse(where, "drops every column")
    joined = builder.concatenate(parts)
    builder.is_sparse[joined.step] = bool(transformer.sparse_output_)
    return joined


def _select_columns(builder: Builder, source: Source, indices: list[int]) -> Source:
    if isinstance(source, Raw):
        columns = [source.columns[index] for index in indices]
        return Raw(columns, {column: source.fills[column] for column in columns if column in source.fills})
    target = np.full(len(source.names), -1, np.int32)
    target[indices] = np.arange(len(indices))
    names = [source.names[index] for index in indices]
    selected = builder.add(
        PlanStep("select", {"input": source.step, "places": target, "width": len(indices)}, names)
    )
    builder.is_sparse[selected.step] = builder.is_sparse.get(source.step, False)
    return selected


def _translate_feature_union(builder: Builder, union: Any, source: Source, where: str) -> Vector:
    parts = []
    is_sparse = False
    weights = union.transformer_weights or {}
    for name, part_transformer in union.transformer_list:
        if part_transformer == "drop":
            continue
        path = f"{where} / {name!r}"
        part = builder.numbers(_translate(builder, part_transformer, source, path), path)
        is_sparse |= builder.is_sparse.get(part.step, False)
        parts.append(_multiply_by_weight(builder, part, weights.get(name)))
    joined = builder.concatenate(parts)
    builder.is_sparse[joined.step] = is_sparse
    return joined


def _multiply_by_weight(builder: Builder, vector: Vector, weight: float | None) -> Vector:
    if weight is None:
        return vector
    factors = np.full(len(vector.names), float(weight))
    return builder.add(steps.scale(vector.step, vector.names, multiply=factors))
