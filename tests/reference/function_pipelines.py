"""Generated scikit-learn pipelines of functions, power and quantile transforms, and splines of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from reference.pipelines import N_ROWS, N_TEST_ROWS, Case, classes, classifiers, make_chain

ANY_NUMBER = [np.absolute, np.arcsinh, np.arctan, np.cbrt, np.ceil, np.cos, np.degrees, np.fabs, np.floor]
ANY_NUMBER += [np.negative, np.radians, np.rint, np.round, np.sign, np.sin, np.square, np.tanh, np.trunc]
# These make numbers of very different sizes, unless their arguments are small.
GROWING = [np.exp, np.exp2, np.expm1]
POSITIVE = [np.log, np.log2, np.log10, np.log1p, np.sqrt, np.reciprocal]
FAR_FROM_ZERO = (1.2, 4.0)  # so that most numbers for tests, which may lie outside, are positive


@st.composite
def functions(draw: Any, *, has_missing: bool = False) -> Any:
    """Draw a FunctionTransformer, behind a scaler if its function needs positive or small numbers."""
    function = draw(st.sampled_from([*ANY_NUMBER, *GROWING, *POSITIVE]))
    transformer = FunctionTransformer(function, validate=draw(st.booleans()) and not has_missing)
    if function in GROWING:
        return make_chain([MaxAbsScaler(), transformer])
    if function in POSITIVE:
        return make_chain([MinMaxScaler(feature_range=FAR_FROM_ZERO), transformer])
    return transformer


@st.composite
def power_transforms(draw: Any) -> Any:
    standardize = draw(st.booleans())
    if draw(st.booleans()):
        return PowerTransformer(standardize=standardize)
    return make_chain(
        [
            MinMaxScaler(feature_range=FAR_FROM_ZERO),
            PowerTransformer(method="box-cox", standardize=standardize),
        ]
    )


@st.composite
def quantile_transforms(draw: Any) -> Any:
    return QuantileTransformer(
        n_quantiles=draw(st.sampled_from([1, 2, 5, 14])),
        output_distribution=draw(st.sampled_from(["uniform", "normal"])),
        subsample=draw(st.sampled_from([14, None])),
        random_state=0,
    )


@st.composite
def splines(draw: Any, *, has_missing: bool = False) -> Any:
    extrapolation = draw(st.sampled_from(["constant", "linear", "continue", "periodic", "error"]))
    n_knots = draw(st.sampled_from([2, 3, 5, 8]))
    # Sparse output fails in scikit-learn for periodic steps, and for missing values of some columns.
    can_be_sparse = not has_missing
    degree = draw(st.sampled_from([0, 1, 2, 3, 5]))
    if extrapolation == "periodic":
        degree = min(degree, n_knots - 1)
        can_be_sparse = can_be_sparse and degree > 0
    return SplineTransformer(
        n_knots=n_knots,
        degree=degree,
        knots=draw(st.sampled_from(["uniform", "quantile"])),
        extrapolation=extrapolation,
        include_bias=draw(st.booleans()),
        order=draw(st.sampled_from(["C", "F"])),
        sparse_output=can_be_sparse and draw(st.booleans()),
        **({"handle_missing": "zeros"} if has_missing else {}),
    )


def scalers() -> Any:
    return st.sampled_from([StandardScaler(), MaxAbsScaler(), RobustScaler(), MinMaxScaler()])


@st.composite
def chains(draw: Any, *, has_missing: bool) -> Any:
    """Draw one to four steps; missing numbers are filled in by one of them, or become zeros of splines."""
    # A second power or rank would magnify the rounding errors of the first.
    kinds = draw(
        st.permutations(
            [functions(has_missing=has_missing), power_transforms(), quantile_transforms(), scalers()]
        )
    )
    first, then = draw(st.integers(0, 2)), draw(st.integers(1, 2))
    steps: list[Any] = []
    if has_missing:
        steps += [draw(kind) for kind in kinds[:first]]
        if draw(st.booleans()):
            return make_chain([*steps, draw(splines(has_missing=True))])
        steps.append(SimpleImputer(strategy="median", add_indicator=draw(st.booleans())))
    steps += [draw(kind) for kind in kinds[first : first + then]]
    last = [
        Binarizer(threshold=0.4),
        KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"),
        PolynomialFeatures(2),
    ]
    steps += draw(
        st.one_of(st.just([]), st.lists(splines(), max_size=1), st.sampled_from([[one] for one in last]))
    )
    return make_chain(steps)


def numbers(rng: np.random.Generator, rows: int, *, is_test: bool) -> Any:
    """Return columns of different sizes and with ties; numbers for tests go beyond those for training."""
    wider = 1.7 if is_test else 1.0
    return np.column_stack(
        [
            rng.normal(size=rows) * 3.0 * wider,
            np.exp(rng.normal(size=rows) * wider),
            np.round(rng.normal(size=rows) * 2.0 * wider),
            rng.integers(0, 1000, rows) * 0.1 * wider,
        ]
    )


@st.composite
def function_pipelines(draw: Any) -> Case:
    """Draw a chain of steps, alone, in a union or in a ColumnTransformer beside categories."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X, X_test = numbers(rng, N_ROWS, is_test=False), numbers(rng, N_TEST_ROWS, is_test=True)
    has_missing = draw(st.booleans())
    if has_missing:
        for values in (X, X_test):
            values[rng.random(values.shape) < 0.15] = np.nan
    kind = draw(st.sampled_from(["chain", "union", "columns"]))
    first = draw(chains(has_missing=has_missing))
    if kind == "union":
        second = draw(chains(has_missing=has_missing))
        weights = draw(st.sampled_from([None, {"two": 2.0}]))
        first = FeatureUnion([("one", first), ("two", second)], transformer_weights=weights)
    if kind == "columns":
        X, X_test = (_make_frame(rng, values) for values in (X, X_test))
        parts = [
            ("one", first, ["a", "c"]),
            ("two", draw(chains(has_missing=has_missing)), ["d", "b"]),
            ("categories", OneHotEncoder(sparse_output=draw(st.booleans())), ["colour"]),
        ]
        threshold = draw(st.sampled_from([0.0, 0.3, 1.0]))
        first = ColumnTransformer(draw(st.permutations(parts)), sparse_threshold=threshold)
    steps = [("first é", first)]
    if draw(st.booleans()):
        steps.append(("then", draw(st.one_of(scalers(), functions()))))
    count = draw(st.sampled_from([2, 3]))
    return Case(Pipeline([*steps, ("last", draw(classifiers(count)))]), X, classes(rng, count), X_test)


def _make_frame(rng: np.random.Generator, values: Any) -> Any:
    frame = pd.DataFrame(values, columns=list("abcd"))
    frame["colour"] = np.array(["red", "blue"], dtype=object)[np.arange(len(values)) % 2]
    return frame
