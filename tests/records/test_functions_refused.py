"""Functions, power and quantile transforms, and splines that are refused, and damaged ones in files."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
)

import unkernel
from reference.function_plans import X, Y, make_model
from unkernel import FormatError
from unkernel.records import Plan, PlanStep, steps
from unkernel.records.sklearn import make_plan_of_steps
from unkernel.records.steps import KEEPS_ZERO


@pytest.fixture(scope="module")
def fast():
    return make_model()


# --- Refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (
            FunctionTransformer(lambda data: data),
            "only `None`, or one of the NumPy functions `absolute`, .*`log1p`",
        ),
        (FunctionTransformer(np.sinc), "has func=<function sinc.*one of the NumPy functions"),
        (FunctionTransformer(np.round, kw_args={"decimals": 1}), "kw_args=.*functions have one argument"),
        (FunctionTransformer(np.reciprocal), "divides whole numbers without a fraction: put a scaler"),
        (
            ColumnTransformer([("r", FunctionTransformer(np.reciprocal), [0])], transformer_weights={"r": 2}),
            "divides whole numbers",
        ),
        (make_pipeline(OneHotEncoder(), QuantileTransformer(n_quantiles=3)), "gets a sparse matrix"),
        (
            make_pipeline(SplineTransformer(sparse_output=True), QuantileTransformer(n_quantiles=3)),
            "gets a sparse matrix",
        ),
        (SplineTransformer(degree=32), "from 0 to 31 can be compiled"),
        (SplineTransformer(degree=1, n_knots=2, extrapolation="linear"), "has lines that cross"),
    ],
)
def test_refused_steps(step, reason):
    data = np.round(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(step, LogisticRegression()).fit(data + 1.0, Y)
    with pytest.raises(ValueError, match=reason):
        unkernel.compile(pipeline)


def test_a_transformer_that_was_changed_after_the_fit_is_refused():
    transformer = SplineTransformer().fit(X)
    transformer.degree = 2
    with pytest.raises(ValueError, match="changed after the fit"):
        make_plan_of_steps([("splines", transformer)])
    for transformer in (QuantileTransformer(n_quantiles=4).fit(X), PowerTransformer().fit(X)):
        for values in ("quantiles_", "lambdas_"):
            if hasattr(transformer, values):
                getattr(transformer, values)[:] = np.nan
        with pytest.raises(ValueError, match="had no numbers in fit"):
            make_plan_of_steps([("step", transformer)])


# --- Damaged files --------------------------------------------------------------------------------------


def drop(table, name):
    return table | {name: table[name][:-1]}


def replace_first(table, name, value):
    return table | {name: np.concatenate([[value], table[name][1:]]).astype(table[name].dtype)}


DAMAGES: list[tuple[str, Any]] = [
    ("function", lambda table: table | {"function": "system"}),
    ("function", lambda table: table | {"function": 3}),
    ("function", lambda table: table | {"function": "log1p\0"}),
    ("finite", lambda table: table | {"allows_missing": "x"}),
    ("snap", lambda table: drop(table, "points")),
    ("snap", lambda table: drop(table, "begins")),
    ("snap", lambda table: drop(table, "tolerances")),
    ("snap", lambda table: replace_first(table, "begins", 1)),
    ("snap", lambda table: replace_first(table, "begins", -1)),
    ("snap", lambda table: replace_first(table, "points", np.nan)),
    ("snap", lambda table: replace_first(table, "points", 1e9)),
    ("snap", lambda table: replace_first(table, "tolerances", np.inf)),
    ("power", lambda table: table | {"method": "cube"}),
    ("power", lambda table: drop(table, "lambdas")),
    ("power", lambda table: drop(table, "names")),
    ("power", lambda table: replace_first(table, "lambdas", np.nan)),
    ("quantiles", lambda table: drop(table, "quantiles")),
    ("quantiles", lambda table: drop(table, "ranks")),
    ("quantiles", lambda table: table | {"ranks": np.empty(0)}),
    ("quantiles", lambda table: replace_first(table, "ranks", 2.0)),
    ("quantiles", lambda table: replace_first(table, "quantiles", 1e300)),
    ("quantiles", lambda table: replace_first(table, "quantiles", -np.inf)),
    ("quantiles", lambda table: table | {"normal": None}),
    ("splines", lambda table: table | {"degree": -1}),
    ("splines", lambda table: table | {"degree": 4}),
    ("splines", lambda table: table | {"degree": 32}),
    ("splines", lambda table: table | {"degree": 2**31}),
    ("splines", lambda table: drop(table, "knots")),
    ("splines", lambda table: table | {"knots": np.empty(0)}),
    ("splines", lambda table: replace_first(table, "knots", 1e9)),
    ("splines", lambda table: replace_first(table, "knots", np.nan)),
    ("splines", lambda table: table | {"periodic": not table["periodic"]}),
    ("splines", lambda table: table | {"drops_last": True}),
    ("splines", lambda table: table | {"below": "zeros"}),
    ("splines", lambda table: table | {"above": "error"}),
    ("splines", lambda table: drop(table, "low")),
    ("splines", lambda table: drop(table, "high")),
    ("splines", lambda table: replace_first(table, "low", np.nan)),
    ("splines", lambda table: drop(table, "low_values")),
    ("splines", lambda table: drop(table, "high_slopes")),
    ("splines", lambda table: replace_first(table, "high_values", np.inf)),
    ("splines", lambda table: drop(table, "names")),
    ("splines", lambda table: {key: value for key, value in table.items() if key != "low"}),
]


@pytest.mark.parametrize("number", range(len(DAMAGES)))
def test_damaged_steps_are_refused(fast, number):
    kind, change = DAMAGES[number]
    plan = fast.plan
    place = next(k for k, step in enumerate(plan.steps) if step.kind == kind)
    step = plan.steps[place]
    changed = [*plan.steps]
    changed[place] = PlanStep(kind, change(step.table), step.names)
    damaged = Plan(plan.columns, changed)
    with pytest.raises(FormatError, match="the plan of the model is damaged"):
        Plan.from_container("m.uk", *damaged.to_container("plan."))


def test_functions_that_change_zeros_are_refused_for_sparse_vectors():
    table = steps.categories({"a": 0, "b": 1}, unknown=-1)
    first = steps.one_hot([0], [table], ["a", "b"])
    for name, keeps_zero in KEEPS_ZERO.items():
        plan = Plan(["x"], [first, PlanStep("function", {"input": 0, "function": name}, ["a", "b"])])
        if keeps_zero:
            assert plan.encode_one({"x": "c"})[0].tolist() == []
            continue
        with pytest.raises(ValueError, match="a sparse block has zeros that would change"):
            _ = plan.native
