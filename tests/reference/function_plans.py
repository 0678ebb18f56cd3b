"""Small data, plans and a compiled pipeline of functions, powers, ranks and splines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

import unkernel
from unkernel.records import Plan
from unkernel.records.sklearn import make_plan_of_steps

X = np.exp(np.random.default_rng(3).normal(size=(40, 2)))
Y = (X[:, 0] > X[:, 1]).astype(int)
TIED = np.ceil(X * 2.0)


def make_plan(*transformers: Any, data: Any = X) -> Plan:
    """Return the plan of fitted steps."""
    pipeline = make_pipeline(*transformers, LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, step in pipeline.steps[:-1]:
            data = step.fit_transform(data, Y[: data.shape[0]])
    return make_plan_of_steps(pipeline.steps[:-1])


def make_model() -> Any:
    """Return a compiled pipeline of all steps."""
    union = FeatureUnion(
        [
            ("logarithms", FunctionTransformer(np.log1p)),
            ("powers", PowerTransformer()),
            ("more powers", PowerTransformer(method="box-cox")),
            ("ranks", QuantileTransformer(n_quantiles=7, output_distribution="normal")),
            ("splines", SplineTransformer(n_knots=4, extrapolation="linear")),
            ("tides", SplineTransformer(n_knots=4, degree=2, extrapolation="periodic")),
            ("roots", make_pipeline(FunctionTransformer(np.sqrt, validate=True), StandardScaler())),
            (
                "ranks of logarithms",
                make_pipeline(FunctionTransformer(np.log), QuantileTransformer(n_quantiles=20)),
            ),
        ]
    )
    return unkernel.compile(make_pipeline(union, LogisticRegression()).fit(TIED, Y), measure=False)
