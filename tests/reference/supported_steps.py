"""Pipelines that use each value in the table of supported steps."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2, f_classif
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC

from unkernel.records.sklearn.supported_parameters import Supported

N_ROWS = 24
LABELS = np.arange(N_ROWS) % 2
MULTICLASS_LABELS = np.arange(N_ROWS) % 3


def upper(text: Any, *rest: Any) -> Any:
    """Stand in for a function of a user."""
    return text


OBJECTS: dict[str, Any] = {
    "<function>": upper,
    "<f_classif>": f_classif,
    "<chi2>": chi2,
    "<categories>": [["b", "a", "é", "c"], ["x", "y", ""]],
    "<drop>": ["a", "x"],
    "<knots>": [[-9.0, -8.0], [0.0, -1.0], [0.5, 1.0], [12.0, 11.0]],
    "<LogisticRegression>": LogisticRegression(),
    "<RidgeClassifier>": RidgeClassifier(),
    "<LinearSVC>": LinearSVC(),
    "<SVC>": SVC(),
    "<SVC with gamma>": SVC(gamma=0.5),
    "<Ridge>": Ridge(),
    "<SVR>": SVR(),
    "<classifiers>": [("one", LogisticRegression()), ("two", SGDClassifier(loss="log_loss", random_state=0))],
    "<regressions>": [("one", Ridge()), ("two", LinearRegression())],
    "<StandardScaler>": StandardScaler(),
    "<steps>": [("scale", StandardScaler()), ("nothing", "passthrough"), ("flag", Binarizer())],
}
# Parameters whose defaults take long.
_CHEAPER: dict[str, dict[str, Any]] = {"TunedThresholdClassifierCV": {"thresholds": 9}}
# Other parameters that scikit-learn requires together with a value.
REQUIRED_WITH: dict[tuple[str, str], dict[str, Any]] = {
    ("OrdinalEncoder", "unknown_value"): {"handle_unknown": "use_encoded_value"},
    ("KBinsDiscretizer", "subsample"): {"strategy": "quantile"},
    ("TruncatedSVD", "algorithm"): {"n_components": 1},
    ("SimpleImputer", "fill_value"): {"strategy": "constant"},
    ("FunctionTransformer", "inv_kw_args"): {"check_inverse": False},
}


@dataclass(frozen=True)
class Trial:
    """A value of a parameter in an unfitted pipeline, and records for it."""

    name: str
    parameter: str
    value: Any
    pipeline: Pipeline
    X: Any
    y: Any

    def __str__(self) -> str:
        value = (
            self.value.__name__
            if callable(self.value) and hasattr(self.value, "__name__")
            else repr(self.value)
        )
        return f"{self.name}({self.parameter}={value})"


def resolve(value: Any) -> Any:
    """Return the object for a name in angle brackets, or the value itself."""
    return OBJECTS.get(value, value) if isinstance(value, str) else value


def make_trials(table: dict[str, Supported], *, refused: bool = False) -> list[Trial]:
    """Return one trial per parameter value that the table lists as supported, or as refused.

    Of equal pipelines, such as the ones for all values that are defaults, the first is enough.
    """
    result: dict[str, Trial] = {}
    for name, entry in table.items():
        class_ = getattr(importlib.import_module(entry.module), name)
        cases = [
            (parameter, value)
            for parameter, support in entry.parameters.items()
            for value in (support.refused if refused else support.examples)
        ]
        for parameter, value in cases or ([] if refused else [("", None)]):
            for trial in _make_trial(class_, name, parameter, value):
                key = str(trial) if refused else _describe_steps(trial.pipeline)
                result.setdefault(key, trial)
    return list(result.values())


def _describe_steps(pipeline: Pipeline) -> str:
    """Return the classes and parameters of all steps."""
    return repr([(type(step), step.get_params(deep=False)) for _, step in pipeline.steps])


def _make_trial(class_: Any, name: str, parameter: str, value: Any) -> Iterator[Trial]:
    step = class_.__new__(class_)
    class_.__init__(step, **_make_required_parameters(name))
    if parameter and parameter not in step.get_params(deep=False):
        return  # of another version of scikit-learn
    parameters = _parameters_for(name, parameter, resolve(value))
    if parameter and resolve(value) != "<parts>":
        parameters[parameter] = resolve(value)
    step.set_params(**parameters)
    if (hasattr(step, "predict") or name in _COMBINED) and name not in ("Pipeline", "RFE", "RFECV"):
        y = _targets(name)
        first = _FIRST_STEPS.get(name, StandardScaler())
        X = categories() if isinstance(first, OrdinalEncoder) else numbers()
        yield Trial(name, parameter, value, Pipeline([("first", first), ("last", step)]), X, y)
        return
    X = _records(name, parameters)
    earlier_steps: list[tuple[str, Any]] = []
    if value is np.reciprocal:
        earlier_steps = [("floats", MaxAbsScaler())]
    if name == "TfidfTransformer":
        earlier_steps = [("count", CountVectorizer())]
    if parameters.get("score_func") is chi2 or step.get_params().get("score_func") is chi2:
        earlier_steps = [("positive", MinMaxScaler())]
    pipeline = Pipeline([*earlier_steps, ("my step", step), ("last", LogisticRegression())])
    yield Trial(name, parameter, value, pipeline, X, LABELS)


_REGRESSORS = (
    "SVR",
    "NuSVR",
    "LinearSVR",
    "LinearRegression",
    "Ridge",
    "Lasso",
    "ElasticNet",
    "SGDRegressor",
)


_REGRESSORS_OF_SEVERAL = ("MultiOutputRegressor", "MultiTaskLasso", "MultiTaskElasticNet")


def _targets(name: str) -> Any:
    values = np.linspace(-1, 1, N_ROWS)
    if name in _REGRESSORS_OF_SEVERAL:
        return np.column_stack([values, np.abs(values)])
    if name == "MultiOutputClassifier":
        return np.column_stack([LABELS, MULTICLASS_LABELS])
    if name in _REGRESSORS:
        return values
    return MULTICLASS_LABELS if name == "OneVsOneClassifier" else LABELS


_FIRST_STEPS = {
    "MultinomialNB": MinMaxScaler(),
    "ComplementNB": MinMaxScaler(),
    "CategoricalNB": OrdinalEncoder(),
}
_CROSS_VALIDATED = (
    "CalibratedClassifierCV",
    "TunedThresholdClassifierCV",
    "RFECV",
    "SequentialFeatureSelector",
)
_WRAPPERS = (
    "OneVsRestClassifier",
    "OneVsOneClassifier",
    "MultiOutputClassifier",
    "CalibratedClassifierCV",
    "FixedThresholdClassifier",
    "TunedThresholdClassifierCV",
)
_COMBINED: dict[str, dict[str, Any]] = {
    "VotingRegressor": {"estimators": OBJECTS["<regressions>"]},
    "MultiOutputRegressor": {"estimator": Ridge()},
    "StackingRegressor": {"estimators": OBJECTS["<regressions>"]},
    "VotingClassifier": {"estimators": OBJECTS["<classifiers>"], "voting": "soft"},
    "StackingClassifier": {"estimators": OBJECTS["<classifiers>"], "stack_method": "decision_function"},
}


def _make_required_parameters(name: str) -> dict[str, Any]:
    """Return values for parameters without a default."""
    parts = [("numbers", StandardScaler(), ["x"]), ("kept", "passthrough", ["y"])]
    if name == "ColumnTransformer":
        return {"transformers": [*parts, ("words", OneHotEncoder(), ["colour"])]}
    if name == "FeatureUnion":
        return {"transformer_list": [("one", StandardScaler()), ("two", "passthrough"), ("three", "drop")]}
    if name == "Pipeline":
        return {"steps": OBJECTS["<steps>"]}
    if name in ("SelectFromModel", "RFE", "RFECV", "SequentialFeatureSelector"):
        return {"estimator": LogisticRegression()}
    if name in _WRAPPERS:
        return {"estimator": LogisticRegression()}
    return _COMBINED.get(name, {})


def _parameters_for(name: str, parameter: str, value: Any) -> dict[str, Any]:
    parameters = _CHEAPER.get(name, {}) | REQUIRED_WITH.get((name, parameter), {})
    if name == "OrdinalEncoder":
        parameters |= {"handle_unknown": "use_encoded_value", "unknown_value": -5}
        if parameter == "handle_unknown" and value == "error":
            parameters |= {"unknown_value": None}
        if parameter == "unknown_value" and value is None:
            parameters |= {"handle_unknown": "error"}
    if name == "SimpleImputer" and parameter == "missing_values":
        parameters |= {"add_indicator": True}
    if name == "KBinsDiscretizer" and "quantile_method" not in (parameter,):
        parameters |= {"quantile_method": "averaged_inverted_cdf"}
    if parameter == "cv" or name in _CROSS_VALIDATED:
        parameters |= {"cv": 2}
    if name == "GenericUnivariateSelect":
        parameters |= {"mode": "percentile", "param": 50} if parameter != "mode" else {"param": 2}
    if name in ("SelectFpr", "SelectFdr", "SelectFwe") and parameter != "alpha":
        parameters |= {"alpha": 0.999}
    if name == "SelectKBest" and parameter != "k":
        parameters |= {"k": 2}
    if parameter == "min_df" and value == 2:
        parameters |= {"ngram_range": (1, 2)}
    if name in ("HashingVectorizer", "FeatureHasher") and parameter != "n_features":
        parameters |= {"n_features": 32}
    if parameter == "break_ties" and value:
        parameters |= {"decision_function_shape": "ovr"}
    return parameters


def _records(name: str, parameters: dict[str, Any]) -> Any:
    if name in ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer", "TfidfTransformer"):
        return texts()
    if name in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"):
        return categories()
    if name in ("FunctionTransformer", "PowerTransformer"):
        return np.abs(numbers()) + 0.5
    if name == "SimpleImputer":
        return numbers_with_missing(parameters.get("missing_values", np.nan))
    makers = {
        "DictVectorizer": dicts,
        "FeatureHasher": lambda: make_hasher_input(parameters),
        "ColumnTransformer": frame,
    }
    return makers.get(name, numbers)()


def make_hasher_input(parameters: dict[str, Any]) -> Any:
    """Return the input of a hasher."""
    words = [text.split() for text in texts()]
    inputs = {"dict": dicts(), "string": words, "pair": [[("a", 1), ("b", 2)]] * N_ROWS}
    return inputs[parameters.get("input_type", "dict")]


def numbers() -> Any:
    """Return numbers that separate the classes only partly."""
    rng = np.random.default_rng(5)
    return np.round(rng.normal(size=(N_ROWS, 2)) * 3 + LABELS[:, None] * [2.0, 1.0], 2)


def numbers_with_missing(missing: Any) -> Any:
    """Return numbers, some of them missing."""
    X = numbers()
    X[::5, 0] = missing
    X[1::7, 1] = missing
    return X


def categories() -> Any:
    """Return two columns of strings."""
    rng = np.random.default_rng(6)
    X = np.empty((N_ROWS, 2), dtype=object)
    X[:, 0] = rng.choice(["a", "a", "b", "b", "é", "c"], N_ROWS)
    X[:, 1] = rng.choice(["x", "x", "y", ""], N_ROWS)
    return X


def frame() -> Any:
    """Return a frame with two columns of numbers, one of strings and one of fractions."""
    X = pd.DataFrame(numbers(), columns=["x", "y"])
    X["colour"] = categories()[:, 0]
    X["rest"] = np.arange(N_ROWS) / 7.0
    return X


def texts() -> list[str]:
    """Return sentences."""
    sentences = ["the cat sat", "A mat, a café", "The CAT on a mat", "sat, sat CAFÉ", "a x y", "the mat"]
    return sentences * (N_ROWS // len(sentences))


def dicts() -> list[dict[str, Any]]:
    """Return dicts of numbers and strings."""
    rng = np.random.default_rng(7)
    return [{"n": float(rng.normal()), "c": str(rng.choice(["a", "é"])), "t": True} for _ in range(N_ROWS)]
