"""The steps of pipelines that can be compiled, with the supported values of their parameters.

All other steps and values are rejected. ``docs/pipelines.md`` is generated from this table, and the tests try
every value in it. Classes and functions of scikit-learn are named as strings, to avoid importing
scikit-learn.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from unkernel.records.sklearn.plan_builder import class_names, is_number, refuse
from unkernel.records.sklearn.supported_parameters import (
    Parameter,
    Supported,
    any_of,
    is_same,
    one_of,
    used_in_fit,
    without_effect,
)
from unkernel.records.steps import KEEPS_ZERO
from unkernel.records.text_analysis import TOKEN_PATTERNS

_ROUNDED = "answers are computed in float64, and scikit-learn's would be rounded differently"
_CODE = "Python code cannot be stored in a plan"


def _dtype(*more_dtypes: Any) -> Parameter:
    """Describe a parameter ``dtype`` that must be float64 or one of these; None means the default."""
    kinds = [np.dtype(kind) for kind in (np.float64, *more_dtypes) if kind is not None]

    def accepts(value: Any) -> bool:
        return (value is None and None in more_dtypes) or (value is not None and np.dtype(value) in kinds)

    takes = ", ".join(["`None`"] * (None in more_dtypes) + [f"`{kind.name}`" for kind in kinds])
    return Parameter(takes, [np.float64, *more_dtypes], accepts, [np.float32], _ROUNDED)


# --- Categories --------------------------------------------------------------------------------------------

_INFREQUENT_PARAMETERS = {
    "min_frequency": any_of("any: infrequent categories share one feature", None, 2, 0.3),
    "max_categories": any_of("any: infrequent categories share one feature", None, 2, 3),
}
_CATEGORIES = any_of("`'auto'`, or a list per column", "auto", "<categories>")

# --- Texts -------------------------------------------------------------------------------------------------

_TEXT_PARAMETERS = {
    "input": one_of("content", refused=["file"], why="records hold texts, not files: read them first"),
    "encoding": Parameter("any: records hold `str`; bytes are refused", ["utf-8", "latin-1"]),
    "decode_error": Parameter("any: records hold `str`; bytes are refused", ["strict", "replace"]),
    "strip_accents": one_of(None, "ascii", "unicode", refused=["<function>"], why=_CODE),
    "lowercase": one_of(True, False),
    "preprocessor": one_of(None, refused=["<function>"], why=f"{_CODE}: use lowercase and strip_accents"),
    "tokenizer": one_of(None, refused=["<function>"], why=f"{_CODE}: use one of the token patterns"),
    "analyzer": one_of("word", "char", "char_wb", refused=["<function>"], why=_CODE),
    "stop_words": any_of("`None`, `'english'` or a list", None, "english", ["cat", "café"]),
    "token_pattern": Parameter(
        ", ".join(f"`{pattern!r}`" for pattern in TOKEN_PATTERNS) + "; any where `analyzer` is not `'word'`",
        list(TOKEN_PATTERNS),
        lambda pattern: True,  # checked together with the analyzer
        [r"\S+"],
        "words are found natively",
    ),
    "ngram_range": any_of("any", (1, 1), (1, 2), (2, 3)),
    "binary": one_of(True, False),
}
_COUNT_PARAMETERS = _TEXT_PARAMETERS | {
    "max_df": used_in_fit(1.0, 0.8),
    "min_df": used_in_fit(1, 2),
    "max_features": used_in_fit(None, 4),
    "vocabulary": used_in_fit(None, ["cat", "mat", "café"], {"the cat": 1, "cat": 0}),
}
_TFIDF_PARAMETERS = {
    "norm": one_of("l1", "l2", None),
    "use_idf": one_of(True, False),
    "smooth_idf": used_in_fit(True, False),
    "sublinear_tf": one_of(True, False),
}

# --- Numbers -----------------------------------------------------------------------------------------------

_COPY = {"copy": without_effect(True, False)}
_FOLDED = (
    "; in front of a linear model, with nothing but scalers and selections between them: the model gets the "
    "weights of the numbers themselves"
)
# Other names of functions in NumPy.
_NUMPY_ALIASES = {
    "fabs": "absolute",
    "rad2deg": "degrees",
    "deg2rad": "radians",
    "round": "rint",
    "around": "rint",
}
_NUMPY_NAMES = sorted([*KEEPS_ZERO, *_NUMPY_ALIASES])
_MAX_SPLINE_DEGREE = 31  # as in cpp/unkernel/records/function_steps.hpp


def find_numpy_function(function: Any) -> str:
    """Return the name of a NumPy function in plans; an empty string if plans do not have the function."""
    for name in _NUMPY_NAMES:
        if getattr(np, name, None) is function:
            return _NUMPY_ALIASES.get(name, name)
    return ""


_SCORE_PARAMETERS = {"score_func": used_in_fit("<f_classif>", "<chi2>")}
_TEST_PARAMETERS = {"score_func": used_in_fit("<f_classif>"), "alpha": used_in_fit(0.99)}
_SELECTED_FEATURES = "features that were selected"
_N_JOBS = {"n_jobs": without_effect(None, 1)}

TRANSFORMERS: dict[str, Supported] = {
    "OneHotEncoder": Supported(
        "sklearn.preprocessing",
        "one feature per category",
        {
            "categories": _CATEGORIES,
            "drop": any_of("any", None, "first", "if_binary", "<drop>"),
            "sparse_output": without_effect(True, False),
            "dtype": _dtype(np.int64),
            "handle_unknown": one_of("error", "ignore", "infrequent_if_exist", "warn"),
            **_INFREQUENT_PARAMETERS,
            "feature_name_combiner": without_effect("concat", "<function>"),
        },
    ),
    "OrdinalEncoder": Supported(
        "sklearn.preprocessing",
        "the index of the category",
        {
            "categories": _CATEGORIES,
            "dtype": _dtype(np.int64),
            "handle_unknown": one_of("error", "use_encoded_value"),
            "unknown_value": any_of("any", None, -1, -7),
            "encoded_missing_value": any_of("any", float("nan"), -1),
            **_INFREQUENT_PARAMETERS,
        },
    ),
    "TargetEncoder": Supported(
        "sklearn.preprocessing",
        "the mean target of the category, or of all rows for an unknown one",
        {
            "categories": _CATEGORIES,
            "target_type": used_in_fit("auto", "binary", "continuous"),
            "smooth": used_in_fit("auto", 3.0),
            "cv": used_in_fit(2),
            "shuffle": used_in_fit(True, False),
            "random_state": used_in_fit(None, 0),
        },
    ),
    "KBinsDiscretizer": Supported(
        "sklearn.preprocessing",
        "the interval that a number lies in",
        {
            "n_bins": used_in_fit(2, 4, [3, 2]),
            "encode": one_of("onehot", "onehot-dense", "ordinal"),
            "strategy": used_in_fit("uniform", "quantile", "kmeans"),
            "quantile_method": used_in_fit("averaged_inverted_cdf", "linear"),
            "dtype": _dtype(None),
            "subsample": used_in_fit(200_000, None),
            "random_state": used_in_fit(None, 0),
        },
    ),
    "StandardScaler": Supported(
        "sklearn.preprocessing",
        "the number minus its mean, divided by its standard deviation",
        {**_COPY, "with_mean": one_of(True, False), "with_std": one_of(True, False)},
    ),
    "MinMaxScaler": Supported(
        "sklearn.preprocessing",
        "the number, mapped to a range",
        {"feature_range": used_in_fit((0, 1), (-2, 5)), **_COPY, "clip": one_of(True, False)},
    ),
    "MaxAbsScaler": Supported(
        "sklearn.preprocessing",
        "the number, divided by the largest absolute value",
        {**_COPY, "clip": one_of(False, True)},
    ),
    "RobustScaler": Supported(
        "sklearn.preprocessing",
        "the number minus its median, divided by a quantile range",
        {
            "with_centering": one_of(True, False),
            "with_scaling": one_of(True, False),
            "quantile_range": used_in_fit((25.0, 75.0), (10.0, 90.0)),
            **_COPY,
            "unit_variance": used_in_fit(True, False),
        },
    ),
    "Normalizer": Supported(
        "sklearn.preprocessing", "the row, divided by its norm", {"norm": one_of("l1", "l2", "max"), **_COPY}
    ),
    "Binarizer": Supported(
        "sklearn.preprocessing",
        "1 above the threshold, else 0",
        {"threshold": any_of("any", 0.0, 1.5, -0.5), **_COPY},
    ),
    "PolynomialFeatures": Supported(
        "sklearn.preprocessing",
        "products of features; of 0/1 features before a linear classifier: conjunctions of the model, "
        "never expanded",
        {
            "degree": any_of("any", 2, 3, (2, 2), (0, 2)),
            "interaction_only": one_of(True, False),
            "include_bias": one_of(True, False),
            "order": without_effect("C", "F"),
        },
    ),
    "FunctionTransformer": Supported(
        "sklearn.preprocessing",
        "a function of NumPy of each number, in double precision; without a function, its input",
        {
            "func": Parameter(
                "`None`, or one of the NumPy functions "
                + ", ".join(f"`{name}`" for name in _NUMPY_NAMES)
                + " (`reciprocal` behind a scaler, because NumPy divides whole numbers without a fraction)",
                [None, *(getattr(np, name) for name in _NUMPY_NAMES)],
                lambda function: function is None or bool(find_numpy_function(function)),
                ["<function>", np.sinc],
                _CODE,
            ),
            "inverse_func": without_effect(None, "<function>"),
            "validate": any_of("`True`: missing and infinite numbers are errors; `False`", False, True),
            "accept_sparse": without_effect(False, True),
            "check_inverse": used_in_fit(True, False),
            "feature_names_out": without_effect(None, "one-to-one", "<function>"),
            "kw_args": one_of(None, {}, refused=[{"decimals": 1}], why="functions have one argument"),
            "inv_kw_args": without_effect(None, {"decimals": 1}),
        },
    ),
    "PowerTransformer": Supported(
        "sklearn.preprocessing",
        "a power of the number that makes its distribution more like the normal one; missing numbers stay "
        "missing",
        {
            "method": one_of("yeo-johnson", "box-cox"),
            "standardize": one_of(True, False),
            **_COPY,
        },
    ),
    "QuantileTransformer": Supported(
        "sklearn.preprocessing",
        "the rank of the number among the quantiles of its column, from 0 to 1, or the normal quantile of "
        "this rank; missing numbers stay missing; sparse matrices are refused",
        {
            "n_quantiles": used_in_fit(1000, 5, 1),
            "output_distribution": one_of("uniform", "normal"),
            "ignore_implicit_zeros": used_in_fit(False, True),
            "subsample": used_in_fit(10_000, None),
            "random_state": used_in_fit(None, 0),
            **_COPY,
        },
    ),
    "SplineTransformer": Supported(
        "sklearn.preprocessing",
        "B-splines of the number",
        {
            "n_knots": used_in_fit(5, 2, 9),
            "degree": Parameter(
                f"from 0 to {_MAX_SPLINE_DEGREE}",
                [3, 0, 1, 2, 6],
                lambda degree: is_number(degree) and 0 <= degree <= _MAX_SPLINE_DEGREE,
                [_MAX_SPLINE_DEGREE + 1],
                "splines of higher degrees lose precision",
            ),
            "knots": used_in_fit("uniform", "quantile", "<knots>"),
            "extrapolation": one_of("constant", "error", "linear", "continue", "periodic"),
            "include_bias": one_of(True, False),
            "order": without_effect("C", "F"),
            "handle_missing": one_of("error", "zeros"),
            "sparse_output": one_of(False, True),
        },
    ),
    "SimpleImputer": Supported(
        "sklearn.impute",
        "the number or string, or the replacement of a missing one, and indicators of missing numbers",
        {
            "missing_values": any_of(
                "NaN or a number; for strings before an encoder also `None` or a string", float("nan"), 0, -1
            ),
            "strategy": used_in_fit("mean", "median", "most_frequent", "constant"),
            "fill_value": used_in_fit(None, 3.5),
            **_COPY,
            "add_indicator": one_of(True, False),
            "keep_empty_features": one_of(True, False),
        },
    ),
    "PCA": Supported(
        "sklearn.decomposition",
        f"the components of centred numbers{_FOLDED}",
        {
            "n_components": used_in_fit(None, 1),
            **_COPY,
            "whiten": one_of(True, False),
            "svd_solver": used_in_fit("auto", "full"),
            "tol": used_in_fit(0.0),
            "iterated_power": used_in_fit("auto"),
            "n_oversamples": used_in_fit(10),
            "power_iteration_normalizer": used_in_fit("auto"),
            "random_state": used_in_fit(None, 0),
        },
    ),
    "TruncatedSVD": Supported(
        "sklearn.decomposition",
        f"the components of numbers or counts{_FOLDED}",
        {
            "n_components": used_in_fit(2, 1),
            "algorithm": used_in_fit("randomized", "arpack"),
            "n_iter": used_in_fit(5),
            "n_oversamples": used_in_fit(10),
            "power_iteration_normalizer": used_in_fit("auto"),
            "random_state": used_in_fit(None, 0),
            "tol": used_in_fit(0.0),
        },
    ),
    "TfidfTransformer": Supported(
        "sklearn.feature_extraction.text",
        "counts, weighted by their rarity and normalized",
        _TFIDF_PARAMETERS,
    ),
    "CountVectorizer": Supported(
        "sklearn.feature_extraction.text",
        "counts of n-grams",
        _COUNT_PARAMETERS | {"dtype": _dtype(np.int64)},
    ),
    "TfidfVectorizer": Supported(
        "sklearn.feature_extraction.text",
        "counts of n-grams, weighted by their rarity and normalized",
        _COUNT_PARAMETERS | {"dtype": _dtype()} | _TFIDF_PARAMETERS,
    ),
    "HashingVectorizer": Supported(
        "sklearn.feature_extraction.text",
        "counts of hashed n-grams",
        _TEXT_PARAMETERS
        | {
            "n_features": any_of("any", 7, 1024),
            "norm": one_of("l1", "l2", None),
            "alternate_sign": one_of(True, False),
            "dtype": _dtype(),
        },
    ),
    "DictVectorizer": Supported(
        "sklearn.feature_extraction",
        "the entries of a dict: numbers, strings and lists of strings",
        {
            "dtype": _dtype(),
            "separator": any_of("any", "=", "é"),
            "sparse": without_effect(True, False),
            "sort": used_in_fit(True, False),
        },
    ),
    "FeatureHasher": Supported(
        "sklearn.feature_extraction",
        "the entries of a dict, or the strings of a list, hashed",
        {
            "n_features": any_of("any", 7, 1024),
            "input_type": one_of("dict", "string", refused=["pair"], why="give dicts"),
            "dtype": _dtype(),
            "alternate_sign": one_of(True, False),
        },
    ),
    "SelectKBest": Supported(
        "sklearn.feature_selection", _SELECTED_FEATURES, {**_SCORE_PARAMETERS, "k": used_in_fit(1, "all")}
    ),
    "SelectPercentile": Supported(
        "sklearn.feature_selection", _SELECTED_FEATURES, {**_SCORE_PARAMETERS, "percentile": used_in_fit(50)}
    ),
    "SelectFpr": Supported("sklearn.feature_selection", _SELECTED_FEATURES, _TEST_PARAMETERS),
    "SelectFdr": Supported("sklearn.feature_selection", _SELECTED_FEATURES, _TEST_PARAMETERS),
    "SelectFwe": Supported("sklearn.feature_selection", _SELECTED_FEATURES, _TEST_PARAMETERS),
    "GenericUnivariateSelect": Supported(
        "sklearn.feature_selection",
        _SELECTED_FEATURES,
        {**_SCORE_PARAMETERS, "mode": used_in_fit("percentile", "k_best"), "param": used_in_fit(50)},
    ),
    "SelectFromModel": Supported(
        "sklearn.feature_selection",
        _SELECTED_FEATURES,
        {
            "estimator": used_in_fit("<LogisticRegression>"),
            "threshold": used_in_fit("mean", "0.9*median", float("-inf")),
            "prefit": used_in_fit(False),
            "norm_order": used_in_fit(1, 2),
            "max_features": used_in_fit(None, 2),
            "importance_getter": used_in_fit("auto", "coef_"),
        },
    ),
    "VarianceThreshold": Supported(
        "sklearn.feature_selection", _SELECTED_FEATURES, {"threshold": used_in_fit(0.0, 0.1)}
    ),
    "RFE": Supported(
        "sklearn.feature_selection",
        _SELECTED_FEATURES,
        {
            "estimator": used_in_fit("<LogisticRegression>"),
            "n_features_to_select": used_in_fit(None, 1),
            "step": used_in_fit(1, 2),
            "verbose": without_effect(0),
            "importance_getter": used_in_fit("auto"),
        },
    ),
    "RFECV": Supported(
        "sklearn.feature_selection",
        _SELECTED_FEATURES,
        {
            "estimator": used_in_fit("<LogisticRegression>"),
            "step": used_in_fit(1),
            "min_features_to_select": used_in_fit(1, 2),
            "cv": used_in_fit(2),
            "scoring": used_in_fit(None, "accuracy"),
            "verbose": without_effect(0),
            **_N_JOBS,
            "importance_getter": used_in_fit("auto"),
        },
    ),
    "SequentialFeatureSelector": Supported(
        "sklearn.feature_selection",
        _SELECTED_FEATURES,
        {
            "estimator": used_in_fit("<LogisticRegression>"),
            "n_features_to_select": used_in_fit("auto", 1),
            "tol": used_in_fit(None),
            "direction": used_in_fit("forward", "backward"),
            "scoring": used_in_fit(None, "accuracy"),
            "cv": used_in_fit(2),
            **_N_JOBS,
        },
    ),
    "Pipeline": Supported(
        "sklearn.pipeline",
        "its steps, one after the other; `'passthrough'` and `None` do nothing",
        {
            "steps": any_of("any of the steps listed here", "<steps>"),
            "transform_input": one_of(None, refused=[["sample_weight"]], why="records have no such inputs"),
            "memory": without_effect(None),
            "verbose": without_effect(False),
        },
    ),
    "ColumnTransformer": Supported(
        "sklearn.compose",
        "the concatenated features of its parts; columns by name, position, slice, mask or selector",
        {
            "transformers": any_of("any of the steps listed here, `'passthrough'` and `'drop'`", "<parts>"),
            "remainder": any_of("any: as for transformers", "drop", "passthrough", "<StandardScaler>"),
            "sparse_threshold": without_effect(0.0, 0.3, 1.0),
            **_N_JOBS,
            "transformer_weights": any_of("any", None, {"numbers": 0.5}),
            "verbose": without_effect(False),
            "verbose_feature_names_out": without_effect(True, False),
            "force_int_remainder_cols": without_effect(),
        },
    ),
    "FeatureUnion": Supported(
        "sklearn.pipeline",
        "the concatenated features of its parts",
        {
            "transformer_list": any_of(
                "any of the steps listed here, `'passthrough'` and `'drop'`", "<parts>"
            ),
            **_N_JOBS,
            "transformer_weights": any_of("any", None, {"one": 0.5}),
            "verbose": without_effect(False),
            "verbose_feature_names_out": without_effect(True, False),
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
    return declared is not None and is_same(value, declared.default)
