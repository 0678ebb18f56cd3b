"""Rare cases of records: errors, and cases that still work."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder
from sklearn.svm import SVC

import unkernel
from unkernel import PolySVC, RecordEncoder, cli

LABELS = [0, 1] * 10
STRINGS = pd.DataFrame({"a": ["x", "y", "x", np.nan] * 5, "b": ["u", "v"] * 10}, dtype=object)
NUMBERS = pd.DataFrame({"a": [1.0, np.nan] * 10, "b": [np.nan] * 20, "c": np.arange(20.0)})


def fit_and_compile(*steps: Any, X: Any) -> Any:
    return unkernel.compile(make_pipeline(*steps, LogisticRegression()).fit(X, LABELS), measure=False)


@pytest.mark.parametrize(
    ("steps", "X", "reason"),
    [
        (
            [SimpleImputer(strategy="most_frequent", add_indicator=True), OneHotEncoder()],
            STRINGS,
            "adds flags of missing strings",
        ),
        (
            [SimpleImputer(strategy="most_frequent")] * 2 + [OneHotEncoder()],
            STRINGS,
            "is an imputer behind another one",
        ),
        (
            [
                ColumnTransformer([("words", CountVectorizer(analyzer="char"), "b"), ("no", "drop", ["a"])]),
                TfidfTransformer(),
            ],
            STRINGS,
            None,
        ),
        ([OneHotEncoder()], pd.DataFrame({"a": [2**53 + 1, 1] * 10}), "beyond 2"),
    ],
)
def test_steps_that_are_refused(steps: list[Any], X: Any, reason: str | None) -> None:
    if reason is None:
        assert fit_and_compile(*steps, X=X).predict(X).shape == (20,)
        return
    with pytest.raises(ValueError, match=reason):
        fit_and_compile(*steps, X=X)


def test_unsupported_calibrated_pipelines_are_refused() -> None:
    pipeline = make_pipeline(OneHotEncoder(), SVC())
    calibrated = CalibratedClassifierCV(pipeline, cv=2).fit(STRINGS.fillna("z"), LABELS)
    with pytest.raises(ValueError, match="give the pipelines a linear classifier"):
        unkernel.compile(calibrated)


def test_columns_without_any_value_are_left_out_by_imputers() -> None:
    pipeline = make_pipeline(SimpleImputer(), LogisticRegression()).fit(NUMBERS, LABELS)
    fast = unkernel.compile(pipeline, measure=False)
    np.testing.assert_allclose(
        fast.decision_function(NUMBERS), pipeline.decision_function(NUMBERS), rtol=1e-9
    )


def test_objects_that_are_not_tables_are_refused() -> None:
    fast = fit_and_compile(RecordEncoder(), X=STRINGS)
    for ask in (fast.predict, fast.plan.encode, RecordEncoder().fit):
        with pytest.raises(TypeError, match="'a' is a value of type str: put a single record into a list"):
            ask({"a": "x", "b": "u"})
    with pytest.raises(TypeError, match="a list of records must hold dicts, and has a value of type int"):
        fast.predict([{"a": "x", "b": "u"}, 3])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        fast.predict(np.array(["x", "u"]))
    with pytest.raises(ValueError, match="X has 3 features, but the plan is expecting 2"):
        fast.predict(np.array([["x", "u", "z"]]))
    assert fast.predict(np.array([["x", "u"]])).shape == (1,)


@pytest.mark.parametrize("whole", [False, True])
def test_tables_that_are_not_records_cannot_be_bound(whole: bool) -> None:
    steps = [OneHotEncoder(handle_unknown="ignore"), *([Normalizer()] if whole else [])]
    bound = fit_and_compile(*steps, X=STRINGS).bind({"a": "x"})
    if whole:
        with pytest.raises(TypeError, match="records must be a frame, a list of dicts or a dict of columns"):
            bound.decision_function(np.array([["u"]]))
    with pytest.raises(TypeError):
        bound.score_one(3)
    with pytest.raises(ValueError, match="is bound already"):
        bound.score_one({"a": "y", "b": "u"})
    with pytest.raises(ValueError, match="is bound already"):
        bound.decision_function([{"a": "y", "b": "u"}])


def test_parquet_to_learn_from(tmp_path: Any) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 20, pa.int64()), pa.array(["u", "v"]))
    table = pa.table(
        {
            "word": words,
            "number": pa.array([*range(39), None], pa.int32()),
            "truth": pa.array([True, False] * 20),
            "tags": pa.array([["x", "y"], []] * 20),
            "day": pa.array([18_000 + 9 * k for k in range(40)], pa.int32()).cast(pa.date32()),
            "y": ["no", "yes"] * 20,
        }
    )
    path, model = tmp_path / "t.parquet", tmp_path / "m.uk"
    pq.write_table(table, path)
    assert cli.main(["train", "poly", str(path), "--target", "y", "-o", str(model), "-q"]) == 0
    answers = tmp_path / "answers.csv"
    assert cli.main(["predict", str(model), str(path), "-o", str(answers), "-q"]) == 0
    assert answers.read_text().split()[1:] == table["y"].to_pylist()


def test_blank_lines_among_json(tmp_path: Any) -> None:
    path, model = tmp_path / "t.jsonl", tmp_path / "m.uk"
    lines = [json.dumps({"a": k, "y": "no" if k < 20 else "yes"}) for k in range(40)]
    path.write_text("\n\n".join(lines))  # without one at the end
    assert cli.main(["train", "poly", str(path), "--target", "y", "-o", str(model), "-q"]) == 0
    blank = tmp_path / "blank.jsonl"
    blank.write_text("\n \n\n")
    assert cli.main(["predict", str(model), str(blank), "-o", str(tmp_path / "a.csv"), "-q"]) == 0


def test_numbers_that_a_schema_asks_for(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path, schema = tmp_path / "t.csv", tmp_path / "schema.json"
    path.write_text("a,y\n" + "".join(f"{k},{k % 2}\n" for k in range(20)) + ",1\nmany,0\n")
    schema.write_text('{"a": "binned"}')
    command = [
        "train",
        "poly",
        str(path),
        "--target",
        "y",
        "--schema",
        str(schema),
        "-o",
        str(tmp_path / "m.uk"),
    ]
    assert cli.main(command) == 2
    assert (
        f"{path}:23: column 'a': expected a number, got 'many', as the schema asks" in capsys.readouterr().err
    )


def test_products_that_the_model_cannot_absorb_are_refused() -> None:
    from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures

    X = NUMBERS[["c"]].assign(d=np.arange(20.0)[::-1])
    bins = KBinsDiscretizer(3, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    for degree in (2, 4):
        pipeline = make_pipeline(bins, PolynomialFeatures(degree, include_bias=False), PolySVC(1)).fit(
            X, LABELS
        )
        fast = unkernel.compile(pipeline, measure=False)
        np.testing.assert_allclose(fast.decision_function(X), pipeline.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("sample", [None, STRINGS])
def test_pruned_models_are_not_compared(sample: Any) -> None:
    pipeline = make_pipeline(RecordEncoder(min_count=1), SVC(kernel="poly", degree=2)).fit(STRINGS, LABELS)
    pruned = unkernel.compile(pipeline, "pruned", threshold=10.0, sample=sample, measure=False)
    assert not pruned.classifier.exact
    assert pruned.decision_function(STRINGS).shape == (20,)


def test_columns_that_cannot_be_divided() -> None:
    fast = fit_and_compile(RecordEncoder(kinds={"b": "drop"}), X=STRINGS)
    for shared in ({"a": "x"}, {"b": "u"}):
        bound = fast.bind(shared)
        record = {"a": "x", "b": "u"}
        remaining = {name: record[name] for name in record if name not in shared}
        assert bound.score_one(remaining) == pytest.approx(fast.score_one(record | shared))


def test_a_nul_in_a_value_or_a_name_does_not_end_the_message() -> None:
    fast = fit_and_compile(OneHotEncoder(), X=pd.DataFrame({"\x00kind": ["x", "y"] * 10}))
    with pytest.raises(ValueError, match=r"^column '\\x00kind': 'a\\x00b' .* categories") as caught:
        fast.predict_one({"\x00kind": "a\x00b"})
    with pytest.raises(ValueError) as of_frame:
        fast.predict(pd.DataFrame({"\x00kind": ["a\x00b"]}))
    assert str(of_frame.value).endswith(str(caught.value).partition(": ")[2])


@pytest.mark.parametrize("frame", [pd.DataFrame, dict])
def test_records_without_any_column_of_the_model_have_answers(frame: Any) -> None:
    records = pd.DataFrame({"kind": ["x", "y"] * 10})
    pipeline = make_pipeline(RecordEncoder(min_count=1), PolySVC(degree=1)).fit(records, LABELS)
    fast = unkernel.compile(pipeline, measure=False)
    expected = fast.predict_one({"size": 1.0})
    assert fast.predict(frame({"size": [1.0, 2.0, 3.0]})).tolist() == [expected] * 3
