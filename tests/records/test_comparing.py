"""``compile`` compares predictions with the pipeline's, on a sample or on generated records."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC

import unkernel
from unkernel import RecordEncoder
from unkernel.engines.records.classifier import RecordClassifier
from unkernel.engines.records.pipeline_check import check_generated
from unkernel.records import PlanStep
from unkernel.records.record_generator import generate_records

ROWS = 40
Y = np.arange(ROWS) % 3


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "colour": rng.choice(["red", "grün", "blue"], ROWS),
            "x1": rng.normal(size=ROWS).round(2),
            "x2": rng.normal(size=ROWS).round(2),
            "grade": rng.integers(0, 4, ROWS),
            "text": [" ".join(rng.choice(["cat", "mat", "Café", "sat"], 4)) for _ in range(ROWS)],
        }
    )


def columns(unknown: str = "ignore") -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("colour", OneHotEncoder(handle_unknown=unknown), ["colour"]),
            ("grade", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["grade"]),
            ("x", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["x1"]),
            ("bins", KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["x2"]),
            ("text", TfidfVectorizer(), "text"),
        ]
    )


def pipelines() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    X = frame()
    dicts = X.drop(columns="text").to_dict("records")
    return {
        "frame": (make_pipeline(columns(), LogisticRegression()), X),
        "known only": (make_pipeline(columns("error"), LogisticRegression()), X),
        "texts": (make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), SVC()), X["text"].tolist()),
        "characters": (
            make_pipeline(HashingVectorizer(analyzer="char_wb", n_features=64), LogisticRegression()),
            X["text"].tolist(),
        ),
        "dicts": (make_pipeline(DictVectorizer(), LogisticRegression()), dicts),
        "hashed dicts": (make_pipeline(FeatureHasher(32), LogisticRegression()), dicts),
        "hashed strings": (
            make_pipeline(FeatureHasher(32, input_type="string"), LogisticRegression()),
            [text.split() for text in X["text"]],
        ),
        "array": (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), rng.normal(size=(ROWS, 3))),
        "strings": (make_pipeline(OneHotEncoder(), LogisticRegression()), X[["colour"]].to_numpy(object)),
        "values": (make_pipeline(StandardScaler(), Ridge()), rng.normal(size=(ROWS, 3))),
        "encoder": (make_pipeline(RecordEncoder(), LogisticRegression()), X),
        "nothing": (make_pipeline("passthrough", LogisticRegression()), rng.normal(size=(ROWS, 3))),
    }


@pytest.mark.parametrize("name", pipelines())
def test_generated_records_are_compared(name):
    pipeline, X = pipelines()[name]
    pipeline.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = unkernel.compile(pipeline, measure=False)
        compared = check_generated(fast, pipeline)
    assert compared == 48


# Steps as a translator with a bug would make them.
WRONG = {
    "one_hot": lambda table: table | {"categories": [_swap_first_codes(table["categories"][0])]},
    "ordinal": lambda table: table | {"categories": [_other_values(table["categories"][0])]},
    "impute": lambda table: table | {"fill": table["fill"] + 1e-3},
    "scale": lambda table: table | {"subtract": table["subtract"] + 1e-6},
    "bins": lambda table: table | {"edges": np.nextafter(table["edges"], -np.inf)},
    "tfidf": lambda table: table | {"idf": table["idf"] + np.arange(len(table["idf"])) * 1e-6},
}


def _swap_first_codes(categories):
    return categories | {"string_codes": categories["string_codes"][::-1].copy()}


def _other_values(categories):
    return categories | {"values": categories["values"] + 1.0}


@pytest.mark.parametrize("kind", WRONG)
def test_a_difference_is_an_error(kind):
    pipeline = make_pipeline(columns(), LogisticRegression()).fit(frame(), Y)
    fast = unkernel.compile(pipeline, measure=False)
    steps = [
        PlanStep(step.kind, WRONG[kind](step.table), step.names) if step.kind == kind else step
        for step in fast.plan.steps
    ]
    wrong_translation = RecordClassifier(replace(fast.plan, steps=steps), fast.classifier)
    with pytest.raises(ValueError, match="differ from the pipeline's own on records made for it"):
        check_generated(wrong_translation, pipeline)


def test_generated_records_do_not_change_between_runs():
    pipeline = make_pipeline(columns(), LogisticRegression()).fit(frame(), Y)
    plan = unkernel.compile(pipeline, measure=False).plan
    records, records_again = (generate_records(plan, 20, unseen=True) for _ in range(2))
    assert records == records_again
    of_known_values = generate_records(plan, 20)
    assert {record[0] for record in of_known_values} <= {"red", "grün", "blue"}


def test_pipelines_that_fail_on_generated_records_warn():
    class Picky(StandardScaler):
        def transform(self, X, copy=None):
            if len(X) != ROWS:
                raise ValueError("too few")
            return super().transform(X, copy)

    Picky.__module__, Picky.__name__ = "sklearn.preprocessing", "StandardScaler"
    X = np.random.default_rng(0).normal(size=(ROWS, 2))
    pipeline = make_pipeline(Picky(), LogisticRegression()).fit(X, Y)
    with pytest.warns(UserWarning, match="give compile a sample"):
        unkernel.compile(pipeline, measure=False)
