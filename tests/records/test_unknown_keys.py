"""Unknown keys of records, and unknown columns of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC

import unkernel
from unkernel import PolySVC, RecordEncoder
from unkernel.engines.records.classifier import RecordClassifier

PEOPLE = [{"age": 20 + k % 50, "job": ("clerk", "pilot")[k % 2], "id": k} for k in range(60)]
RICH = np.array([person["age"] > 40 and person["job"] == "pilot" for person in PEOPLE])
COLUMNS = {name: [person[name] for person in PEOPLE] for name in PEOPLE[0]}
MORE = "a column 'height' that the model does not know"


def fit_pipeline() -> Pipeline:
    return make_pipeline(RecordEncoder(kinds={"id": "drop"}), PolySVC(degree=2)).fit(PEOPLE, RICH)


@pytest.fixture(scope="module", params=["made", "loaded"])
def strict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordClassifier:
    compiled = unkernel.compile(fit_pipeline(), measure=False, unknown_keys="error")
    if request.param == "made":
        return compiled
    path = tmp_path_factory.mktemp("files") / "m.uk"
    compiled.save(path)
    return unkernel.load(path)


def tables(columns: dict[str, Any]) -> list[Any]:
    """Return the same columns as each installed kind of table."""
    result: list[Any] = [columns]
    for module, name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            result.append(getattr(__import__(module), name)(columns))
        except ImportError:
            continue
    return result


def test_unknown_keys_are_ignored_by_default() -> None:
    compiled = unkernel.compile(fit_pipeline(), measure=False)
    assert compiled.plan.ignores_unknown_keys
    assert compiled.predict_one(PEOPLE[0] | {"height": 1}) == compiled.predict_one(PEOPLE[0])
    for table in tables(COLUMNS | {"height": [1] * 60}):
        assert (compiled.predict(table) == compiled.predict(PEOPLE)).all()


def test_known_keys_are_taken(strict: RecordClassifier) -> None:
    expected = strict.predict(PEOPLE)
    assert [strict.predict_one(person) for person in PEOPLE] == expected.tolist()
    for table in tables(COLUMNS):
        assert (strict.predict(table) == expected).all()
    without_id = {name: column for name, column in COLUMNS.items() if name != "id"}  # which no step reads
    for table in tables(without_id):
        assert (strict.predict(table) == expected).all()
    assert strict.predict_one({"age": 50}) == strict.predict([{"age": 50}])[0]
    assert strict.predict_one([50, "pilot", 3]) == strict.predict_one({"age": 50, "job": "pilot"})
    assert strict.predict(np.array([[50, "pilot", 3]], dtype=object)).shape == (1,)


def test_an_unknown_key_of_one_record_is_an_error(strict: RecordClassifier) -> None:
    for ask in (strict.predict_one, strict.score_one, strict.explain_one):
        with pytest.raises(ValueError, match=f"the record has {MORE}"):
            ask(PEOPLE[0] | {"height": None})
    with pytest.raises(ValueError, match=f"the record has {MORE}"):
        strict.predict_one({"height": 3})
    with pytest.raises(ValueError, match="a column 3 that the model does not know"):
        strict.predict_one({3: 1})


def test_an_unknown_key_among_many_records_is_an_error(strict: RecordClassifier) -> None:
    for ask in (strict.predict, strict.decision_function, strict.transform):
        with pytest.raises(ValueError, match=f"record 2 has {MORE}"):
            ask([*PEOPLE[:2], PEOPLE[2] | {"height": 1}, PEOPLE[3]])


def test_an_unknown_column_of_a_table_is_an_error(strict: RecordClassifier) -> None:
    for table in tables(COLUMNS | {"height": [1] * 60}):
        with pytest.raises(ValueError, match=f"the table has {MORE}"):
            strict.predict(table)


def test_bound_records_have_no_unknown_keys_either(strict: RecordClassifier) -> None:
    bound = strict.bind({"age": 50})
    assert bound.predict_one({"job": "pilot"}) == strict.predict_one({"age": 50, "job": "pilot"})
    with pytest.raises(ValueError, match=MORE):
        bound.predict_one({"job": "pilot", "height": 1})
    with pytest.raises(ValueError, match=MORE):
        bound.predict([{"job": "pilot", "height": 1}])
    with pytest.raises(ValueError, match=MORE):
        strict.bind({"age": 50, "height": 1})


def test_a_sample_with_unknown_keys_is_an_error() -> None:
    with pytest.raises(ValueError, match=f"record 0 has {MORE}"):
        unkernel.compile(fit_pipeline(), sample=[PEOPLE[0] | {"height": 1}], unknown_keys="error")


def test_column_transformers_know_the_columns_that_they_were_fitted_on() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS)
    pipeline = make_pipeline(make_column_transformer((OneHotEncoder(), ["job"])), LinearSVC()).fit(
        frame, RICH
    )
    classifier = unkernel.compile(pipeline, measure=False, unknown_keys="error")
    assert (classifier.predict(frame) == pipeline.predict(frame)).all()
    with pytest.raises(ValueError, match=MORE):
        classifier.predict(frame.assign(height=1))


def test_unknown_keys_is_refused_for_models_without_keys() -> None:
    with pytest.raises(ValueError, match="unknown_keys must be one of ignore, error, got 'warn'"):
        unkernel.compile(fit_pipeline(), unknown_keys="warn")
    rows = SVC(kernel="linear").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="unknown_keys is for pipelines"):
        unkernel.compile(rows, unknown_keys="error")
    texts = make_pipeline(CountVectorizer(), LinearSVC()).fit(["one two", "three four"], [0, 1])
    dicts = make_pipeline(DictVectorizer(), PolySVC(degree=2)).fit([{"a": 1.0}, {"b": 1.0}], [0, 1])
    for pipeline in (texts, dicts):
        with pytest.raises(ValueError, match="a record of this pipeline is a single value"):
            unkernel.compile(pipeline, unknown_keys="error")


def test_files_with_unknown_columns_are_refused_by_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("pyarrow")
    from unkernel.cli.inputs.records import open_record_model, read_blocks
    from unkernel.records.files import open_records

    model = tmp_path / "m.uk"
    unkernel.compile(fit_pipeline(), measure=False, unknown_keys="error").save(model)
    opened = open_record_model(model)
    for name, text, message in (
        (
            "a.csv",
            "age,job,id,height\n20,pilot,1,2\n",
            "does not know the column 'height'",
        ),
        ("a.jsonl", '{"age": 20}\n{"age": 20, "height": 2}\n', r"a.jsonl:2: .*has a column 'height'"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=message):
            for block in read_blocks(opened, open_records(tmp_path / name), 1):
                block.encode(opened.classifier.plan)
