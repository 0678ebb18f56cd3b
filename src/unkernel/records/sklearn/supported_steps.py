"""The steps of pipelines that can be compiled, with the supported values of their parameters.

Translators refuse all other steps and values. ``docs/pipelines.md`` is generated from this table, and the
tests try every value in it. Classes and functions of scikit-learn are named as strings, to avoid its import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unkernel.records.sklearn.plan_builder import class_names, is_nan, refuse
from unkernel.records.text_analysis import TOKEN_PATTERNS

FITTED = "any: only the fitted attributes matter"
UNUSED = "any: it does not affect predictions"


@dataclass(frozen=True, eq=False)
class Parameter:
    """The values of a parameter that can be compiled.

    Attributes
    ----------
    takes : str
        The values that are supported, in words.
    examples : sequence
        Supported values, which the tests try. Strings in angle brackets, such as ``"<f_classif>"``, stand
        for objects that the tests make.
    accepts : callable
        Returns whether a value is supported.
    refused : sequence
        Unsupported values, which the tests try, too.
    why : str
        The reason why other values are unsupported, or a remedy.
    """

    takes: str
    examples: Sequence[Any] = ()
    accepts: Callable[[Any], bool] = lambda value: True
    refused: Sequence[Any] = ()
    why: str = ""


@dataclass(frozen=True, eq=False)
class Supported:
    """A class of scikit-learn that can be compiled.

    Attributes
    ----------
    module : str
        Module of the class.
    does : str
        Its compiled form.
    parameters : dict of str to Parameter
    """

    module: str
    does: str
    parameters: dict[str, Parameter]


def among(*values: Any, refused: Sequence[Any] = (), why: str = "") -> Parameter:
    """Describe a parameter that must have one of these values."""
    takes = ", ".join(f"`{value!r}`" for value in values)
    return Parameter(
        takes, values, lambda actual: any(_is_same(actual, value) for value in values), refused, why
    )


def _is_same(first: Any, second: Any) -> bool:
    if first is second or (is_nan(first) and is_nan(second)):
        return True
    return type(first) is type(second) and bool(first == second)


def fitted(*examples: Any) -> Parameter:
    """Describe a parameter that may have any value, because it is used only in ``fit``."""
    return Parameter(FITTED, examples)


def unused(*examples: Any) -> Parameter:
    """Describe a parameter that may have any value, because it does not affect predictions."""
    return Parameter(UNUSED, examples)


def stated(takes: str, *examples: Any) -> Parameter:
    """Describe a parameter that may have any value that scikit-learn accepts."""
    return Parameter(takes, examples)


_ROUNDED = "answers are computed in float64, and scikit-learn's would be rounded differently"
_CODE = "Python code cannot be stored in a plan"


def _dtype(*more_dtypes: Any) -> Parameter:
    kinds = [np.dtype(kind) for kind in (np.float64, *more_dtypes) if kind is not None]

    def accepts(value: Any) -> bool:
        return (value is None and None in more_dtypes) or (value is not None and np.dtype(value) in kinds)

    takes = ", ".join(["`None`"] * (None in more_dtypes) + [f"`{kind.name}`" for kind in kinds])
    return Parameter(takes, [np.float64, *more_dtypes], accepts, [np.float32], _ROUNDED)


# --- Categories --------------------------------------------------------------------------------------------

_INFREQUENT = {
    "min_frequency": stated("any: infrequent categories share one feature", None, 2, 0.3),
    "max_categories": stated("any: infrequent categories share one feature", None, 2, 3),
}
_CATEGORIES = stated("`'auto'`, or a list per column", "auto", "<categories>")

# --- Texts -------------------------------------------------------------------------------------------------

_TEXTS = {
    "input": among("content", refused=["file"], why="records hold texts, not files: read them first"),
    "encoding": Parameter("any: records hold `str`; bytes are refused", ["utf-8", "latin-1"]),
    "decode_error": Parameter("any: records hold `str`; bytes are refused", ["strict", "replace"]),
    "strip_accents": among(None, "ascii", "unicode", refused=["<function>"], why=_CODE),
    "lowercase": among(True, False),
    "preprocessor": among(None, refused=["<function>"], why=f"{_CODE}: use lowercase and strip_accents"),
    "tokenizer": among(None, refused=["<function>"], why=f"{_CODE}: use one of the token patterns"),
    "analyzer": among("word", "char", "char_wb", refused=["<function>"], why=_CODE),
    "stop_words": stated("`None`, `'english'` or a list", None, "english", ["cat", "café"]),
    "token_pattern": Parameter(
        ", ".join(f"`{pattern!r}`" for pattern in TOKEN_PATTERNS) + "; any where `analyzer` is not `'word'`",
        list(TOKEN_PATTERNS),
        lambda pattern: True,  # checked together with the analyzer
        [r"\S+"],
        "words are found natively",
    ),
    "ngram_range": stated("any", (1, 1), (1, 2), (2, 3)),
    "binary": among(True, False),
}
_COUNTED = _TEXTS | {
    "max_df": fitted(1.0, 0.8),
    "min_df": fitted(1, 2),
    "max_features": fitted(None, 4),
    "vocabulary": fitted(None, ["cat", "mat", "café"], {"the cat": 1, "cat": 0}),
}
_WEIGHTED = {
    "norm": among("l1", "l2", None),
    "use_idf": among(True, False),
    "smooth_idf": fitted(True, False),
    "sublinear_tf": among(True, False),
}

# --- Numbers -----------------------------------------------------------------------------------------------

_COPY = {"copy": unused(True, False)}
_SCORED = {"score_func": fitted("<f_classif>", "<chi2>")}
_TESTED = {"score_func": fitted("<f_classif>"), "alpha": fitted(0.99)}
_SELECTED = "features that were selected"
_PARALLEL = {"n_jobs": unused(None, 1)}

TRANSFORMERS: dict[str, Supported] = {
    "OneHotEncoder": Supported(
        "sklearn.preprocessing",
        "one feature per category",
        {
            "categories": _CATEGORIES,
            "drop": stated("any", None, "first", "if_binary", "<drop>"),
            "sparse_output": unused(True, False),
            "dtype": _dtype(np.int64),
            "handle_unknown": among("error", "ignore", "infrequent_if_exist", "warn"),
            **_INFREQUENT,
            "feature_name_combiner": unused("concat", "<function>"),
        },
    ),
    "OrdinalEncoder": Supported(
        "sklearn.preprocessing",
        "the index of the category",
        {
            "categories": _CATEGORIES,
            "dtype": _dtype(np.int64),
            "handle_unknown": among("error", "use_encoded_value"),
            "unknown_value": stated("any", None, -1, -7),
            "encoded_missing_value": stated("any", float("nan"), -1),
            **_INFREQUENT,
        },
    ),
    "KBinsDiscretizer": Supported(
        "sklearn.preprocessing",
        "the interval that a number lies in",
        {
            "n_bins": fitted(2, 4, [3, 2]),
            "encode": among("onehot", "onehot-dense", "ordinal"),
            "strategy": fitted("uniform", "quantile", "kmeans"),
            "quantile_method": fitted("averaged_inverted_cdf", "linear"),
            "dtype": _dtype(None),
            "subsample": fitted(200_000, None),
            "random_state": fitted(None, 0),
        },
    ),
    "StandardScaler": Supported(
        "sklearn.preprocessing",
        "the number minus its mean, divided by its standard deviation",
        {**_COPY, "with_mean": among(True, False), "with_std": among(True, False)},
    ),
    "MinMaxScaler": Supported(
        "sklearn.preprocessing",
        "the number, mapped to a range",
        {"feature_range": fitted((0, 1), (-2, 5)), **_COPY, "clip": among(True, False)},
    ),
    "MaxAbsScaler": Supported(
        "sklearn.preprocessing",
        "the number, divided by the largest absolute value",
        {**_COPY, "clip": among(False, True)},
    ),
    "RobustScaler": Supported(
        "sklearn.preprocessing",
        "the number minus its median, divided by a quantile range",
        {
            "with_centering": among(True, False),
            "with_scaling": among(True, False),
            "quantile_range": fitted((25.0, 75.0), (10.0, 90.0)),
            **_COPY,
            "unit_variance": fitted(True, False),
        },
    ),
    "Normalizer": Supported(
        "sklearn.preprocessing", "the row, divided by its norm", {"norm": among("l1", "l2", "max"), **_COPY}
    ),
    "Binarizer": Supported(
        "sklearn.preprocessing",
        "1 above the threshold, else 0",
        {"threshold": stated("any", 0.0, 1.5, -0.5), **_COPY},
    ),
    "PolynomialFeatures": Supported(
        "sklearn.preprocessing",
        "products of features; of 0/1 features before a linear classifier: conjunctions of the model, "
        "never expanded",
        {
            "degree": stated("any", 2, 3, (2, 2), (0, 2)),
            "interaction_only": among(True, False),
            "include_bias": among(True, False),
            "order": unused("C", "F"),
        },
    ),
    "FunctionTransformer": Supported(
        "sklearn.preprocessing",
        "its input, unchanged; functions are refused",
        {
            "func": among(None, refused=["<function>"], why=_CODE),
            "inverse_func": unused(None, "<function>"),
            "validate": unused(False, True),
            "accept_sparse": unused(False, True),
            "check_inverse": unused(False),
            "feature_names_out": unused(None, "one-to-one"),
            "kw_args": unused(None),
            "inv_kw_args": unused(None),
        },
    ),
    "SimpleImputer": Supported(
        "sklearn.impute",
        "the number or string, or the replacement of a missing one, and indicators of missing numbers",
        {
            "missing_values": stated(
                "NaN or a number; for strings before an encoder also `None` or a string", float("nan"), 0, -1
            ),
            "strategy": fitted("mean", "median", "most_frequent", "constant"),
            "fill_value": fitted(None, 3.5),
            **_COPY,
            "add_indicator": among(True, False),
            "keep_empty_features": among(True, False),
        },
    ),
    "TfidfTransformer": Supported(
        "sklearn.feature_extraction.text", "counts, weighted by their rarity and normalized", _WEIGHTED
    ),
    "CountVectorizer": Supported(
        "sklearn.feature_extraction.text", "counts of n-grams", _COUNTED | {"dtype": _dtype(np.int64)}
    ),
    "TfidfVectorizer": Supported(
        "sklearn.feature_extraction.text",
        "counts of n-grams, weighted by their rarity and normalized",
        _COUNTED | {"dtype": _dtype()} | _WEIGHTED,
    ),
    "HashingVectorizer": Supported(
        "sklearn.feature_extraction.text",
        "counts of hashed n-grams",
        _TEXTS
        | {
            "n_features": stated("any", 7, 1024),
            "norm": among("l1", "l2", None),
            "alternate_sign": among(True, False),
            "dtype": _dtype(),
        },
    ),
    "DictVectorizer": Supported(
        "sklearn.feature_extraction",
        "the entries of a dict: numbers, strings and lists of strings",
        {
            "dtype": _dtype(),
            "separator": stated("any", "=", "é"),
            "sparse": unused(True, False),
            "sort": fitted(True, False),
        },
    ),
    "FeatureHasher": Supported(
        "sklearn.feature_extraction",
        "the entries of a dict, or the strings of a list, hashed",
        {
            "n_features": stated("any", 7, 1024),
            "input_type": among("dict", "string", refused=["pair"], why="give dicts"),
            "dtype": _dtype(),
            "alternate_sign": among(True, False),
        },
    ),
    "SelectKBest": Supported("sklearn.feature_selection", _SELECTED, {**_SCORED, "k": fitted(1, "all")}),
    "SelectPercentile": Supported(
        "sklearn.feature_selection", _SELECTED, {**_SCORED, "percentile": fitted(50)}
    ),
    "SelectFpr": Supported("sklearn.feature_selection", _SELECTED, _TESTED),
    "SelectFdr": Supported("sklearn.feature_selection", _SELECTED, _TESTED),
    "SelectFwe": Supported("sklearn.feature_selection", _SELECTED, _TESTED),
    "GenericUnivariateSelect": Supported(
        "sklearn.feature_selection",
        _SELECTED,
        {**_SCORED, "mode": fitted("percentile", "k_best"), "param": fitted(50)},
    ),
    "SelectFromModel": Supported(
        "sklearn.feature_selection",
        _SELECTED,
        {
            "estimator": fitted("<LogisticRegression>"),
            "threshold": fitted("mean", "0.9*median", float("-inf")),
            "prefit": fitted(False),
            "norm_order": fitted(1, 2),
            "max_features": fitted(None, 2),
            "importance_getter": fitted("auto", "coef_"),
        },
    ),
    "VarianceThreshold": Supported("sklearn.feature_selection", _SELECTED, {"threshold": fitted(0.0, 0.1)}),
    "RFE": Supported(
        "sklearn.feature_selection",
        _SELECTED,
        {
            "estimator": fitted("<LogisticRegression>"),
            "n_features_to_select": fitted(None, 1),
            "step": fitted(1, 2),
            "verbose": unused(0),
            "importance_getter": fitted("auto"),
        },
    ),
    "RFECV": Supported(
        "sklearn.feature_selection",
        _SELECTED,
        {
            "estimator": fitted("<LogisticRegression>"),
            "step": fitted(1),
            "min_features_to_select": fitted(1, 2),
            "cv": fitted(2),
            "scoring": fitted(None, "accuracy"),
            "verbose": unused(0),
            **_PARALLEL,
            "importance_getter": fitted("auto"),
        },
    ),
    "SequentialFeatureSelector": Supported(
        "sklearn.feature_selection",
        _SELECTED,
        {
            "estimator": fitted("<LogisticRegression>"),
            "n_features_to_select": fitted("auto", 1),
            "tol": fitted(None),
            "direction": fitted("forward", "backward"),
            "scoring": fitted(None, "accuracy"),
            "cv": fitted(2),
            **_PARALLEL,
        },
    ),
    "Pipeline": Supported(
        "sklearn.pipeline",
        "its steps, one after the other; `'passthrough'` and `None` do nothing",
        {
            "steps": stated("any of the steps listed here", "<steps>"),
            "transform_input": among(None, refused=[["sample_weight"]], why="records have no such inputs"),
            "memory": unused(None),
            "verbose": unused(False),
        },
    ),
    "ColumnTransformer": Supported(
        "sklearn.compose",
        "the concatenated features of its parts; columns by name, position, slice, mask or selector",
        {
            "transformers": stated("any of the steps listed here, `'passthrough'` and `'drop'`", "<parts>"),
            "remainder": stated("any: as for transformers", "drop", "passthrough", "<StandardScaler>"),
            "sparse_threshold": unused(0.0, 0.3, 1.0),
            **_PARALLEL,
            "transformer_weights": stated("any", None, {"numbers": 0.5}),
            "verbose": unused(False),
            "verbose_feature_names_out": unused(True, False),
            "force_int_remainder_cols": unused(),
        },
    ),
    "FeatureUnion": Supported(
        "sklearn.pipeline",
        "the concatenated features of its parts",
        {
            "transformer_list": stated(
                "any of the steps listed here, `'passthrough'` and `'drop'`", "<parts>"
            ),
            **_PARALLEL,
            "transformer_weights": stated("any", None, {"one": 0.5}),
            "verbose": unused(False),
            "verbose_feature_names_out": unused(True, False),
        },
    ),
}


def check_parameters(transformer: Any, where: str) -> None:
    """Raise an error if a parameter of a transformer, or its value, is not supported."""
    name = type(transformer).__name__
    if name not in class_names(transformer) or name not in TRANSFORMERS:
        return
    supported = TRANSFORMERS[name].parameters
    for parameter, value in transformer.get_params(deep=False).items():
        if parameter in supported:
            _check(supported[parameter], parameter, value, where)
        elif not _is_default(type(transformer), parameter, value):
            refuse(where, f"has {parameter}={value!r}, an unsupported parameter: leave its default")


def _check(parameter: Parameter, name: str, value: Any, where: str) -> None:
    if not parameter.accepts(value):
        refuse(where, f"has {name}={value!r}, and only {parameter.takes} can be compiled: {parameter.why}")


def _is_default(kind: type, parameter: str, value: Any) -> bool:
    """Return whether a parameter, perhaps of a newer scikit-learn, has its default value."""
    declared = inspect.signature(kind).parameters.get(parameter)
    return declared is not None and _is_same(value, declared.default)
