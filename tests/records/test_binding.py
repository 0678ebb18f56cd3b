"""Bound records: shared columns are summed once, and the results equal the results of complete records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC

import unkernel
from reference.selection import slow_after
from unkernel import PolySVC, RecordEncoder

ROWS = 60
SHARED = [["colour"], ["x", "text"], ["shape", "y", "colour"], ["colour", "shape", "x", "y"], ["text"]]


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "colour": rng.choice(["red", "grün", "blue"], ROWS),
            "x": np.where(rng.random(ROWS) < 0.2, np.nan, rng.normal(size=ROWS).round(2)),
            "shape": rng.choice(["round", "flat"], ROWS),
            "y": rng.normal(size=ROWS).round(2),
            "text": [" ".join(rng.choice(["cat", "mat", "Café", "sat"], 4)) for _ in range(ROWS)],
        }
    )


def labels(count: int) -> np.ndarray:
    return np.array(["a", "b", "c"])[np.arange(ROWS) * 7 % 11 % count]


def columns() -> ColumnTransformer:
    bins = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
    return ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore"), ["colour", "shape"]),
            ("code", OrdinalEncoder(), ["shape", "colour"]),
            ("flags", SimpleImputer(add_indicator=True), ["x", "y"]),
            ("bins", make_pipeline(SimpleImputer(), StandardScaler(), bins), ["y", "x"]),
            ("text", TfidfVectorizer(), "text"),
        ],
        transformer_weights={"flags": 0.5},
    )


def separate() -> dict[str, tuple[Any, str]]:
    """Return pipelines in which every feature depends on one column, and what `bind` sums once."""
    poly = {"kernel": "poly", "coef0": 1.0, "gamma": 0.5}
    return {
        "linear": (make_pipeline(columns(), LogisticRegression()), "linear"),
        "selected": (make_pipeline(columns(), SelectKBest(k=9), LogisticRegression()), "linear"),
        "values of degree 2": (make_pipeline(columns(), SVC(degree=2, **poly)), "pairs"),
        "sets of degree 2": (make_pipeline(RecordEncoder(), PolySVC(degree=2)), "pairs"),
        "degree 3": (make_pipeline(RecordEncoder(), SVC(degree=3, **poly)), "nothing"),
        "rbf": (make_pipeline(RecordEncoder(), SVC()), "nothing"),
    }


def score_together() -> dict[str, Any]:
    """Return pipelines with a step that needs all columns."""
    return {
        "norm": make_pipeline(columns(), Normalizer(), LogisticRegression()),
        "products": make_pipeline(columns(), PolynomialFeatures(2), LogisticRegression()),
    }


def check(fast: Any, shared: list[str], X: pd.DataFrame) -> None:
    records = X.to_dict("records")
    for record in records[:3]:
        bound_part = {name: record[name] for name in shared}
        bound = fast.bind(bound_part)
        rest_parts = [
            {name: candidate[name] for name in X.columns if name not in shared} for candidate in records[:15]
        ]
        complete = [bound_part | candidate for candidate in rest_parts]
        for candidates in (rest_parts, pd.DataFrame(rest_parts)):
            close(bound.decision_function(candidates), fast.decision_function(complete))
            np.testing.assert_array_equal(bound.predict(candidates), fast.predict(complete))
        for candidate, full_record in zip(rest_parts, complete, strict=True):
            close(bound.score_one(candidate), fast.score_one(full_record))
            assert bound.predict_one(candidate) == fast.predict_one(full_record)
        assert hasattr(bound, "predict_proba") == hasattr(fast, "predict_proba")
        if hasattr(fast, "predict_proba"):
            close(bound.predict_proba(rest_parts), fast.predict_proba(complete))
            close(bound.predict_proba_one(rest_parts[0]), fast.predict_proba_one(complete[0]))


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", separate())
@pytest.mark.parametrize("classes", slow_after(1, [3, 2]))
def test_shared_columns_are_summed_once(name, classes):
    pipeline, what = separate()[name]
    X = frame()
    fast = unkernel.compile(pipeline.fit(X, labels(classes)), measure=False)
    for shared in SHARED:
        bound = fast.bind({column: X[column][0] for column in shared})
        assert bound.sums_once == what
        check(fast, shared, X)


@pytest.mark.parametrize("name", score_together())
def test_steps_that_need_all_columns(name):
    X = frame()
    fast = unkernel.compile(score_together()[name].fit(X, labels(2)), measure=False)
    bound = fast.bind({"colour": "red"})
    assert bound.sums_once == "record"
    assert "whole records are encoded" in repr(bound)
    check(fast, ["colour"], X)


def test_norms_of_single_columns_can_be_bound():
    X = frame()
    fast = unkernel.compile(make_pipeline(columns(), LogisticRegression()).fit(X, labels(2)), measure=False)
    assert fast.bind({"text": "cat mat"}).sums_once == "linear"


def test_bound_records_are_independent():
    """Bound records share the divided plan, but have separate buffers and sums."""
    X = frame()
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, labels(2)))
    records = X.to_dict("records")
    shared = [{name: record[name] for name in ("colour", "x")} for record in records[:10]]
    rest_parts = [{name: record[name] for name in ("shape", "y", "text")} for record in records[:10]]
    bound = [fast.bind(dict(reversed(part.items())) if k % 2 else part) for k, part in enumerate(shared)]
    assert bound[0]._parts is bound[1]._parts
    for bound_index, rest_index in [(k, (3 * k + j) % 10) for j in range(3) for k in range(10)]:
        expected = fast.score_one(shared[bound_index] | rest_parts[rest_index])
        assert bound[bound_index].score_one(rest_parts[rest_index]) == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="shape"):  # other columns, another division
        fast.bind({"shape": "flat"}).score_one(rest_parts[0])


def test_dicts():
    records = frame().drop(columns=["x", "text"]).to_dict("records")
    pipeline = make_pipeline(DictVectorizer(), LogisticRegression()).fit(records, labels(2))
    fast = unkernel.compile(pipeline, measure=False)
    bound = fast.bind({"colour": "red", "y": 1.0})
    assert bound.score_one({"shape": "flat"}) == fast.score_one({"colour": "red", "y": 1.0, "shape": "flat"})


def test_missing_keys_are_missing_values():
    X = frame()
    fast = unkernel.compile(
        make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, labels(2)), measure=False
    )
    bound = fast.bind({"colour": "red", "x": None})
    close(bound.score_one({"y": 0.5}), fast.score_one({"colour": "red", "y": 0.5}))
    close(bound.score_one({}), fast.score_one({"colour": "red"}))


def test_unknown_and_repeated_bindings_are_refused():
    X = frame()
    fast = unkernel.compile(make_pipeline(columns(), LogisticRegression()).fit(X, labels(2)), measure=False)
    bound = fast.bind({"colour": "red", "shape": "flat"})
    remaining = {"x": 1.0, "y": 2.0, "text": "cat"}
    assert bound.predict_one(remaining | {"else": 1}) in ("a", "b")
    with pytest.raises(ValueError, match="the column 'shape' is bound already"):
        bound.predict_one(remaining | {"shape": "round"})
    with pytest.raises(ValueError, match="the column 'shape' is bound already"):
        bound.predict([remaining | {"shape": "round"}])
    with pytest.raises(ValueError, match="no column 'y'"):
        bound.predict_one({"x": 1.0, "text": "cat"})
    with pytest.raises(ValueError, match="column 'y': expected a number"):
        bound.predict_one({"x": 1.0, "y": "two", "text": "cat"})
    with pytest.raises(ValueError, match="column 'x': expected a number"):
        fast.bind({"x": "one"})
    with pytest.raises(TypeError, match="bind takes a dict"):
        fast.bind(["red"])
    texts = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(X["text"], labels(2))
    with pytest.raises(ValueError, match="no columns to bind"):
        unkernel.compile(texts, measure=False).bind({"text": "cat"})
