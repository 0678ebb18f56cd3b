"""Compiled classifiers of records: files, damage, bad records, re-entrancy, threads."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolyLogisticRegression, PolySVC, RecordEncoder
from unkernel.engines.records.classifier import RecordClassifier
from unkernel.errors import FormatError
from unkernel.records import steps

BLOCKED = ("scipy", "sklearn", "pandas", "joblib", "typer", "rich")
ASK = f"""
import json, sys
sys.modules.update(dict.fromkeys({BLOCKED!r}))
import unkernel
fast = unkernel.load(sys.argv[1])
records = json.load(sys.stdin)
print(json.dumps([[fast.predict_one(r), fast.score_one(r), fast.explain_one(r).score] for r in records]
      + [fast.predict(records).tolist()]))
"""


def some_records() -> list[dict[str, Any]]:
    generator = np.random.default_rng(3)
    words = ["red", "blue", "été", "日本 語", "big", "small"]
    return [
        {
            "age": int(generator.integers(18, 80)),
            "job": str(generator.choice(["clerk", "pilot", "smith"])),
            "gain": float(generator.normal()) if generator.random() < 0.9 else None,
            "note": " ".join(generator.choice(words, 6)) + f" n{k}",
            "tags": [str(tag) for tag in generator.choice(["x", "y", "z"], 2)],
        }
        for k in range(120)
    ]


RECORDS = some_records()
TWO = np.array([int(record["age"] > 45) for record in RECORDS])
THREE = np.array(["young", "middle", "old"])[[(r["age"] > 35) + (r["age"] > 60) for r in RECORDS]]
ENCODER = RecordEncoder(kinds={"gain": "number"})


@pytest.fixture(scope="module", params=["two", "three", "probabilities"])
def fast(request: pytest.FixtureRequest) -> RecordClassifier:
    learner = (
        PolyLogisticRegression(degree=2, C=1.0) if request.param == "probabilities" else PolySVC(degree=2)
    )
    y = THREE if request.param == "three" else TWO
    pipeline = make_pipeline(ENCODER, learner).fit(RECORDS, y)
    compiled = unkernel.compile(pipeline, measure=False)
    assert (compiled.predict(RECORDS) == pipeline.predict(RECORDS)).all()
    return compiled


@pytest.fixture(scope="module")
def classifier() -> RecordClassifier:
    return unkernel.compile(make_pipeline(ENCODER, PolySVC(degree=2)).fit(RECORDS, TWO), measure=False)


def test_one_record_is_answered_as_many_are(fast: RecordClassifier) -> None:
    assert [fast.predict_one(record) for record in RECORDS] == fast.predict(RECORDS).tolist()
    scores = [fast.score_one(record) for record in RECORDS]
    np.testing.assert_allclose(scores, fast.decision_function(RECORDS), rtol=1e-12, atol=1e-12)
    by_position = [fast.predict_one(list(record.values())) for record in RECORDS]
    assert by_position == fast.predict(RECORDS, n_jobs=2).tolist()
    if hasattr(fast, "predict_proba"):
        result = [fast.predict_proba_one(record) for record in RECORDS]
        np.testing.assert_allclose(result, fast.predict_proba(RECORDS), rtol=1e-12)
    else:
        assert not hasattr(fast, "predict_proba_one")


def test_explanations_add_up_and_speak_of_the_record(fast: RecordClassifier) -> None:
    for record in RECORDS[:10]:
        explained = fast.explain_one(record, top=None)
        text = str(explained)
        if not hasattr(fast, "predict_proba"):  # models with probabilities are sparse here, without jobs
            assert f"job = {record['job']}" in text
        assert "age" in text
        if len(fast.classes_) == 2:
            assert abs(explained.score) == pytest.approx(abs(fast.score_one(record)), abs=1e-9)


def test_saving_a_loaded_file_gives_equal_bytes(fast: RecordClassifier, tmp_path: Path) -> None:
    fast.save(tmp_path / "one.uk")
    loaded = unkernel.load(tmp_path / "one.uk")
    loaded.save(tmp_path / "two.uk")
    assert (tmp_path / "one.uk").read_bytes() == (tmp_path / "two.uk").read_bytes()
    for restored in (loaded, pickle.loads(pickle.dumps(fast))):
        assert [restored.score_one(record) for record in RECORDS] == [fast.score_one(r) for r in RECORDS]
        assert restored.predict(RECORDS).tolist() == fast.predict(RECORDS).tolist()
        assert restored.feature_names_in_.tolist() == list(RECORDS[0])


def test_numpy_alone_is_needed(classifier: RecordClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path / "model.uk")
    run = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "model.uk")],
        input=json.dumps(RECORDS[:5]),
        capture_output=True,
        text=True,
        check=True,
    )
    *answers_of_one, answers_of_many = json.loads(run.stdout)
    assert answers_of_many == classifier.predict(RECORDS[:5]).tolist()
    for record, (answer, score, _) in zip(RECORDS[:5], answers_of_one, strict=True):
        assert (answer, score) == (classifier.predict_one(record), classifier.score_one(record))


def damaged(value: Any) -> list[Any]:
    """Return replacements for a setting."""
    replacements = [
        None,
        -1,
        0,
        3,
        2**31 - 1,
        2**70,
        1.5,
        float("inf"),
        "x",
        "(",
        [],
        {},
        [[]],
        True,
        {"array": "no"},
    ]
    return [
        replacement
        for replacement in replacements
        if replacement != value or type(replacement) is not type(value)
    ]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    result = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            result += places(value[key], (*path, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 2)):
            result += places(value[number], (*path, number))
    return result


def is_refused(arrays: Any, settings: Any) -> bool:
    """Return whether a damaged file is refused; a file that is not refused must predict."""
    try:
        loaded = RecordClassifier.from_container("file.uk", arrays, settings)
    except FormatError:
        return True
    for record in RECORDS[:2]:
        assert [loaded.predict_one(record)] == loaded.predict([record]).tolist()
    return False


def test_damaged_settings_are_refused(classifier: RecordClassifier) -> None:
    """Other names, switches and codes of categories can be valid; every other change is refused."""
    _, arrays, settings = classifier.to_container()
    settings = json.loads(json.dumps(settings))
    accepted = set()
    for path in places(settings["plan"]):
        for replacement in damaged(None):
            changed = copy.deepcopy(settings)
            node = changed["plan"]
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = replacement
            if not is_refused(arrays, changed):
                accepted.add(next(key for key in reversed(path) if isinstance(key, str)))
    switches = {"required", "ignores_unknown_keys"}
    examples = {"example", *settings["plan"]["example"]}  # none, and other values
    training = settings["plan"]["training"]  # other counts of values can be valid, and other bounds
    counts = {"missing", "classes", "bounds", *training["missing"], *training["unknown"]}
    codes = {"none", "nan", "absent", "unknown"}
    assert accepted == {"names"} | switches | examples | codes | counts
    for example in ({"age": [None]}, {"age": None}, {"age": math.inf}, {"no column": 1}):
        assert is_refused(arrays, settings | {"plan": settings["plan"] | {"example": example}})
    for replacement in damaged(None):
        assert is_refused(arrays, settings | {"plan": replacement})
        assert is_refused(arrays, settings | {"classifier": replacement})


def test_plans_wider_than_the_classifier_are_refused(classifier: RecordClassifier) -> None:
    last_step = len(classifier.plan.steps) - 1
    for sources, fits in (
        ([last_step], True),
        ([last_step, last_step], False),
        ([last_step, 0], False),
        ([0], False),
    ):
        wider = replace(classifier.plan, steps=[*classifier.plan.steps, steps.concatenate(sources, [])])
        _, arrays, settings = classifier.to_container()
        plan_arrays, settings["plan"] = wider.to_container("plan.")
        settings["plan"]["steps"][-1]["names"] = None
        if fits:
            restored = RecordClassifier.from_container("file.uk", arrays | plan_arrays, settings)
            assert restored.score_one(RECORDS[0]) == classifier.score_one(RECORDS[0])
            continue
        with pytest.raises(FormatError, match=r"^file\.uk: the encoding plan does not match the classifier$"):
            RecordClassifier.from_container("file.uk", arrays | plan_arrays, settings)


def find_text_table(settings: Any) -> Any:
    return next(step["table"] for step in settings["plan"]["steps"] if step["kind"] == "text")


@pytest.mark.parametrize("pattern", [r"(?:(?:a|a)+)+b", r"(a)(b)", r"(?u)\b(\w\w+)\b", r"\S+", "", "("])
@pytest.mark.parametrize("analyzer", ["word", "char"])
def test_unknown_token_patterns_in_files_are_refused(
    classifier: RecordClassifier, pattern: str, analyzer: str
) -> None:
    """Searching forty letters for the first pattern would take years."""
    _, arrays, settings = classifier.to_container()
    settings = copy.deepcopy(settings)
    find_text_table(settings).update(token_pattern=pattern, analyzer=analyzer)
    with pytest.raises(
        FormatError, match=r"^file\.uk: .*the token pattern .* is not one of those that are known"
    ):
        RecordClassifier.from_container("file.uk", arrays, settings)


def test_token_patterns_that_are_known_and_fit_the_shortest_word(classifier: RecordClassifier) -> None:
    _, arrays, settings = classifier.to_container()
    for shortest, pattern in ((2, r"(?u)\b\w\w+\b"), (1, r"(?u)\b\w+\b"), (2, None)):
        settings = copy.deepcopy(settings)
        find_text_table(settings).update(token_pattern=pattern, shortest_token=shortest)
        RecordClassifier.from_container("file.uk", arrays, settings)
        find_text_table(settings).update(shortest_token=3 - shortest)
        with pytest.raises(FormatError, match="shortest word length"):
            RecordClassifier.from_container("file.uk", arrays, settings)


def test_damaged_arrays_are_refused_or_answer(classifier: RecordClassifier) -> None:
    _, arrays, settings = classifier.to_container()
    refused = []
    for name in [name for name in arrays if name.startswith("plan.")]:
        array = arrays[name]
        assert is_refused({key: value for key, value in arrays.items() if key != name}, settings)
        for changed_array in (array.astype(np.float32), array.reshape(1, -1)):
            assert is_refused(arrays | {name: changed_array}, settings)
        for changed_array in (
            array[:-1],
            np.concatenate([array, array]),
            array[::-1].copy(),
            np.full_like(array, 255 if array.dtype == np.uint8 else -1),
            np.full_like(array, np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).max),
        ):
            if not np.array_equal(changed_array, array):
                refused.append(is_refused(arrays | {name: changed_array}, settings))
    assert sum(refused) > 0.8 * len(refused)  # some changed arrays are valid


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "old"}, "column 'age': expected a number, got the string 'old'"),
        ({"age": [1]}, "column 'age': expected one value, or a list of strings, got a list with .* int"),
        (
            {"age": {"a": {"b": 1}}},
            "column 'age': expected a number, a string or a date, got a value of type dict",
        ),
        ({"age": b"1"}, "column 'age': expected a number, a string or a date, got a value of type bytes"),
        ({"age": 10**400}, "column 'age': the number is larger than any float"),
        ({"age": float("inf")}, "column 'age': the number is infinite"),
        ({"job": ["clerk"]}, "column 'job': expected one category, got a list or a dict"),
        ({"job": "\ud800"}, "column 'job': the string has a lone surrogate"),
        ({"job": 1j}, "column 'job': expected a number, a string or a date, got a value of type complex"),
        ({"note": 3}, "column 'note': expected a text, got another type"),
        ({"note": ["red"]}, "column 'note': expected a text, got a value of type list"),
        ({"note": "\udfff red"}, "column 'note': the string has a lone surrogate"),
        ({"tags": "x"}, "column 'tags': expected a list of strings"),
        ({"tags": ["x", None]}, "column 'tags': .* got a list with a value of type NoneType"),
        ({"gain": 1e308}, "a score is not finite"),
    ],
)
def test_bad_records_name_the_column(classifier: RecordClassifier, change: Any, message: str) -> None:
    record = RECORDS[0] | change
    for ask_one in (classifier.predict_one, classifier.score_one):
        with pytest.raises(ValueError, match=message) as caught:
            ask_one(record)
        assert "\n" not in str(caught.value)
    if "gain" not in change:
        with pytest.raises(ValueError, match=message):
            classifier.predict([RECORDS[1], record])
    assert (
        classifier.predict_one(RECORDS[0]) == classifier.predict(RECORDS[:1])[0]
    )  # refused records do not change the classifier


def test_unusual_valid_records_are_predicted(classifier: RecordClassifier) -> None:
    unusual: list[dict[str, Any]] = [
        {},
        {"unknown": object()},
        {"age": 2**70, "gain": float("nan")},
        {"age": np.float32(3), "job": np.str_("clerk"), "gain": True},
        {"note": "red " * 250_000, "job": "x" * 10_000_000},
        {"note": "é" * 100_000},
    ]
    for record in unusual:
        assert classifier.predict_one(record) == classifier.predict([{"age": None} | record])[0]


class Calls:
    """A number whose conversion to float calls the classifier and changes the record."""

    def __init__(self, fast: RecordClassifier, record: dict[str, Any]) -> None:
        self.fast, self.record, self.found = fast, record, None

    def __float__(self) -> float:
        self.found = self.fast.score_one(RECORDS[0])
        self.record.clear()
        return 50.0


def test_values_that_call_the_model_and_change_the_record_are_safe(classifier: RecordClassifier) -> None:
    expected = classifier.score_one(RECORDS[1] | {"gain": 50.0})
    record = {name: str(value) + "" if name == "job" else value for name, value in RECORDS[1].items()}
    record["gain"] = Calls(classifier, record)
    number = record["gain"]
    assert classifier.score_one(record) == expected
    assert number.found == classifier.score_one(RECORDS[0])


def test_errors_of_values_are_passed_on(classifier: RecordClassifier) -> None:
    class Interrupted:
        def __float__(self) -> float:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        classifier.predict_one({"age": Interrupted()})


def test_threads_share_a_classifier(classifier: RecordClassifier) -> None:
    expected = [classifier.score_one(record) for record in RECORDS]
    with ThreadPoolExecutor(4) as pool:
        result = list(pool.map(lambda _: [classifier.score_one(record) for record in RECORDS], range(8)))
    assert all(scores == expected for scores in result)
