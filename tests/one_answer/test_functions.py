"""Models with functions, powers, ranks and splines of numbers give the same answer by every interface."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
)

import unkernel
from one_answer.answers import Answer
from one_answer.comparison import WAYS, differences, draw_records
from one_answer.subjects import Subject
from one_answer.ways import DASK, Session, Way, ask_one

RNG = np.random.default_rng(8)
FRAME = pd.DataFrame(
    {"size": np.exp(RNG.normal(size=60)), "grade": RNG.integers(0, 6, 60), "depth": RNG.normal(size=60) * 9}
)
KINDS = {"size": "number", "grade": "number", "depth": "number"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    filled = SimpleImputer(strategy="median")
    bins = KBinsDiscretizer(3, strategy="quantile", quantile_method="averaged_inverted_cdf")
    columns = make_column_transformer(
        (make_pipeline(filled, FunctionTransformer(np.arcsinh), bins), ["grade", "depth"]),
        (make_pipeline(QuantileTransformer(n_quantiles=30, output_distribution="normal"), filled), ["grade"]),
        (make_pipeline(PowerTransformer(), filled), ["size", "depth"]),
        (make_pipeline(filled, FunctionTransformer(np.tanh)), ["depth"]),
        (make_pipeline(filled, SplineTransformer(n_knots=4)), ["size", "grade"]),
        (make_pipeline(filled, SplineTransformer(degree=2, extrapolation="periodic")), ["depth"]),
    )
    labels = np.where(FRAME["depth"] + FRAME["grade"] > 2, "yes", "no")
    pipeline = make_pipeline(columns, LogisticRegression()).fit(FRAME, labels)
    subject = Subject("functions", unkernel.compile(pipeline, sample=FRAME, measure=False), KINDS)
    session = Session(subject, tmp_path_factory.mktemp("functions"))
    yield session
    session.close()


@pytest.mark.parametrize("way", [*WAYS, DASK], ids=lambda way: way.name)
def test_functions_have_one_answer(session: Session, way: Way) -> None:
    records = [
        record for k in range(6) for record in draw_records(np.random.default_rng([9, k]), session.subject)
    ]
    records += FRAME[:10].to_dict("records")
    answered = [ask_one(session.model, item) for item in session.items(records)]
    assert sum(isinstance(answer, Answer) for answer in answered) > 30
    assert [str(difference) for difference in differences(session, way, records)] == []
