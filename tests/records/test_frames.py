"""Missing strings in frames, and columns that no step reads, are treated like in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

import unkernel
from reference.selection import slow_after
from unkernel import RecordEncoder, cli

WORDS = ["u", "v", None] * 20
LABELS = [0, 1, 1] * 20
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OrdinalEncoder(encoded_missing_value=-1),
    make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    make_pipeline(SimpleImputer(strategy="constant", fill_value="w"), OneHotEncoder()),
]


def frame(dtype: Any) -> pd.DataFrame:
    words = pd.Series([np.nan if word is None else word for word in WORDS], dtype=dtype)
    return pd.DataFrame({"word": words, "number": np.arange(60.0), "unread": ["x"] * 60})


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: type(encoder).__name__)
@pytest.mark.parametrize("dtype", slow_after(1, ["str", object]))
def test_missing_strings_are_encoded_like_scikit_learn(encoder: Any, dtype: Any) -> None:
    X = frame(dtype)
    columns = make_column_transformer((encoder, ["word"]), (StandardScaler(), ["number"]))
    pipeline = make_pipeline(columns, LogisticRegression()).fit(X, LABELS)
    for sample in (None, X):
        fast = unkernel.compile(pipeline, sample=sample, measure=False)
        np.testing.assert_allclose(fast.decision_function(X), pipeline.decision_function(X), rtol=1e-12)
        used = X[["number", "word"]]
        np.testing.assert_allclose(fast.decision_function(used), pipeline.decision_function(X), rtol=1e-12)


def test_files_have_missing_strings_as_frames_do(tmp_path: Any) -> None:
    X = frame("str")
    columns = make_column_transformer((ENCODERS[0], ["word"]), (StandardScaler(), ["number"]))
    pipeline = make_pipeline(columns, LogisticRegression()).fit(X, LABELS)
    unkernel.compile(pipeline, measure=False).save(tmp_path / "m.uk")
    for name, write in (("x.csv", X.to_csv), ("x.parquet", X.to_parquet)):
        write(tmp_path / name, index=False)
        answers = tmp_path / f"{name}.answers.csv"
        assert (
            cli.main(["predict", str(tmp_path / "m.uk"), str(tmp_path / name), "-o", str(answers), "-q"]) == 0
        )
        assert pd.read_csv(answers)["prediction"].tolist() == pipeline.predict(X).tolist()


def test_columns_that_no_step_reads_can_be_missing(tmp_path: Any) -> None:
    X = frame("str")
    columns = make_column_transformer((StandardScaler(), ["number"]))
    pipeline = make_pipeline(columns, LogisticRegression()).fit(X, LABELS)
    fast = unkernel.compile(pipeline, measure=False)
    expected = pipeline.predict(X).tolist()
    assert [fast.predict_one({"number": number}) for number in X["number"]] == expected
    assert fast.predict([{"number": number} for number in X["number"]]).tolist() == expected
    assert fast.predict({"number": X["number"]}).tolist() == expected
    with pytest.raises(ValueError, match="the record has no column 'number'"):
        fast.predict_one({"word": "u"})
    with pytest.raises(ValueError, match="columns are missing: number"):
        fast.predict({"word": ["u"]})
    pa = pytest.importorskip("pyarrow")
    assert fast.predict(pa.table({"number": X["number"]})).tolist() == expected


def test_lists_that_are_arrays() -> None:
    lists = [["x", "y"], [], ["y"], None] * 5
    arrays = [None if items is None else np.array(items, dtype=object) for items in lists]
    expected = RecordEncoder(min_count=1).fit({"tags": lists})
    encoder = RecordEncoder(min_count=1).fit({"tags": arrays})
    assert encoder.kinds_ == {"tags": "strings"}
    assert (encoder.transform({"tags": arrays}) != expected.transform({"tags": lists})).nnz == 0
    assert encoder.plan_.encode_one({"tags": arrays[0]})[0].tolist() == [0, 1]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_labels_that_are_objects(method: str) -> None:
    X = pd.DataFrame({"a": [3, 4, 5] * 20})
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=2, method=method)
    pipeline = make_pipeline(OneHotEncoder(), calibrated).fit(X, pd.Series(["x", "y", "x"] * 20))
    fast = unkernel.compile(pipeline, measure=False)
    assert [fast.predict_one({"a": a}) for a in (3, 4, 5)] == pipeline.predict(X[:3]).tolist()


def test_none_is_refused_as_a_record() -> None:
    fast = unkernel.compile(
        make_pipeline(RecordEncoder(), LinearSVC()).fit(frame(object), LABELS), measure=False
    )
    for ask in (fast.predict_one, fast.score_one, fast.explain_one, fast.plan.encode_one):
        with pytest.raises(TypeError, match="a record is a dict, or a list of one value per column"):
            ask(None)


def test_a_row_of_a_frame_is_no_record_and_its_dict_is() -> None:
    pipeline = make_pipeline(RecordEncoder(), LinearSVC()).fit(frame(object), LABELS)
    fast = unkernel.compile(pipeline, measure=False)
    row = frame(object).iloc[0]
    for ask in (fast.predict_one, fast.score_one, fast.explain_one):
        with pytest.raises(TypeError, match=r"type Series; give row.to_dict\(\) for a row of a frame"):
            ask(row)
    assert fast.predict_one(row.to_dict()) == fast.predict(frame(object)[:1])[0]


def test_rows_of_rounding_errors_are_not_normalized() -> None:
    """Scikit-learn treats rows of norm 1e-15 as zeros, such as the row of means after scaling."""
    values = np.array([1.1, 2.3, 3.7, 0.1] * 15)
    X = pd.DataFrame({"a": values, "b": values[::-1] * 3})
    pipeline = make_pipeline(StandardScaler(), Normalizer(), LinearSVC()).fit(X, [0, 1, 1, 0] * 15)
    near_mean = pipeline[0].mean_ * (1 + np.finfo(float).eps)
    rows = pd.DataFrame(np.array([near_mean, pipeline[0].mean_, [1.1, 0.3]]), columns=["a", "b"])
    assert 0 < np.abs(pipeline[0].transform(rows)[0]).max() < 1e-15
    fast = unkernel.compile(pipeline, measure=False)
    np.testing.assert_allclose(fast.decision_function(rows), pipeline.decision_function(rows), rtol=1e-12)


def test_truth_values_name_their_features() -> None:
    names = RecordEncoder(min_count=1).fit({"member": [True, False, None]}).get_feature_names_out()
    assert names.tolist()[:2] == ["member = False", "member = True"]


def test_lists_of_arrow_are_no_texts() -> None:
    pa = pytest.importorskip("pyarrow")
    notes = ["red tea", "milk", "été", "blue tea"] * 5
    pipeline = make_pipeline(RecordEncoder(kinds={"note": "text"}, min_count=1), LinearSVC())
    fast = unkernel.compile(pipeline.fit({"note": notes}, LABELS[:20]), measure=False)
    with pytest.raises(ValueError, match="column 'note': expected a text, got a value of type list"):
        fast.predict_one({"note": ["red", "tea"]})
    for rows in ([["red", "tea"]], [[]]):
        with pytest.raises(ValueError, match="column 'note': expected a text, got a value of type list"):
            fast.predict(pa.table({"note": rows}))
    assert fast.predict(pa.table({"note": pa.array([None], pa.list_(pa.string()))})).tolist() == [
        fast.predict_one({"note": None})
    ]


def test_unread_arrow_columns_can_have_any_type() -> None:
    pa = pytest.importorskip("pyarrow")
    X = frame("str")
    columns = make_column_transformer((StandardScaler(), ["number"]))
    pipeline = make_pipeline(columns, LogisticRegression()).fit(X, LABELS)
    fast = unkernel.compile(pipeline, measure=False)
    for unread in ([[1]], [{"a": 1}], [b"x"]):
        table = pa.table({"number": [3.0], "word": unread})
        assert fast.predict(table).tolist() == [fast.predict_one({"number": 3.0, "word": unread[0]})]
