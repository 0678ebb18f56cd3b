"""Predictions of the server: the same as in Python, for one input, for lists and for lines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from serve.serving import LABELS, RECORDS, TREES, Client, record_model, served
from unkernel import PolyRegressor, RecordEncoder
from unkernel._core import JsonShape
from unkernel.serve.answerers.classifier_scores import AnswerFormat


def are_same_answers(actual: list, expected: list) -> bool:
    """Return whether answers are the same, except for the last digit of probabilities."""
    return len(actual) == len(expected) and all(
        answer.keys() == expected_answer.keys()
        and (answer["prediction"], answer["score"])
        == (expected_answer["prediction"], expected_answer["score"])
        and answer.get("probabilities") == pytest.approx(expected_answer.get("probabilities"), abs=1e-15)
        for answer, expected_answer in zip(actual, expected, strict=True)
    )


def lines(response) -> list:
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_record_is_answered_as_in_python(client: Client, files):
    model = unkernel.load(files["people"])
    for record in [*RECORDS, {}, {"age": None, "town": "Edo", "other": [1, {"2": 3}]}]:
        answer = client.post("/models/people/predict", json=record).json()
        assert answer["prediction"] == model.predict_one({k: v for k, v in record.items() if k != "other"})
        assert answer["score"] == pytest.approx(model.score_one(record), abs=1e-12)
        shares = dict(zip(["high", "low"], model.predict_proba_one(record), strict=True))
        assert answer["probabilities"] == pytest.approx(shares, abs=1e-12)


def test_a_list_is_answered_like_its_single_records(client: Client):
    response = client.post("/models/people/predict", json=RECORDS)
    assert are_same_answers(
        response.json(), [client.post("/models/people/predict", json=record).json() for record in RECORDS]
    )
    assert [answer["prediction"] for answer in response.json()] == LABELS
    assert client.post("/models/people/predict", json=[]).json() == []


def test_json_lines_are_answered_like_a_list_of_the_same_records(client: Client):
    body = "\n".join(map(json.dumps, RECORDS)) + "\n\n"
    response = client.post(
        "/models/people/predict", content=body, headers={"content-type": "application/x-ndjson"}
    )
    assert response.headers["content-type"] == "application/x-ndjson"
    assert are_same_answers(lines(response), client.post("/models/people/predict", json=RECORDS).json())


def test_lines_can_arrive_in_any_pieces(client: Client):
    body = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
    expected = client.post("/models/people/predict", json=RECORDS).json()
    for size in (1, 7, 64, 10_000):

        async def pieces(size: int = size):
            for begin in range(0, len(body), size):
                yield body[begin : begin + size]

        headers = {"content-type": "application/x-ndjson; charset=utf-8"}
        assert are_same_answers(
            lines(client.post("/models/people/predict", content=pieces(), headers=headers)), expected
        )


@pytest.mark.parametrize("name", ["people", "rows"])
def test_each_line_is_one_input(client: Client, name):
    line = json.dumps(client.get(f"/models/{name}").json()["example"])
    line_in_two = line.replace(",", ",\n", 1)
    for body, faults in (
        (f"{line} {line}\n", [True]),
        (f"{line}\n{line_in_two}\n", [False, True, True]),
        (f"{line} {line}\n{line}\n", [True, False]),
        (f"{line}\r\n{line}\n", [False, False]),
    ):
        response = client.post(
            f"/models/{name}/predict", content=body, headers={"content-type": "application/jsonl"}
        )
        assert ["error" in answer for answer in lines(response)] == faults


def test_bad_lines_are_answered_with_an_error(client: Client):
    valid_line = json.dumps(RECORDS[0])
    body = f'{valid_line}\n{{"age": "old"}}\n\n{{"age": \n{valid_line}'
    answers = lines(
        client.post("/models/people/predict", content=body, headers={"content-type": "application/jsonl"})
    )
    assert are_same_answers(
        [answers[0], answers[3]], 2 * [client.post("/models/people/predict", json=RECORDS[0]).json()]
    )
    assert (answers[1]["line"], answers[1]["field"]) == (2, "age")
    assert (answers[2]["line"], answers[2]["error"]) == (4, "the line is not JSON: Input data was truncated")


def test_rows_are_lists_of_values_or_of_columns(client: Client, files):
    model = unkernel.load(files["rows"])
    X = np.array([[0, 1], [1.5, 0], [0, 0]])
    expected = model.predict(X).tolist()
    assert [
        row["prediction"] for row in client.post("/models/rows/predict", json=X.tolist()).json()
    ] == expected
    sparse = [{"ids": [1]}, {"ids": [0], "values": [1.5]}, {"ids": []}]
    assert [client.post("/models/rows/predict", json=row).json()["prediction"] for row in sparse] == expected
    assert client.post("/models/rows/predict", json=[1.5, 0]).json()["prediction"] == expected[1]
    assert (
        client.post("/models/rows/predict", json=sparse).json()
        == client.post("/models/rows/predict", json=X.tolist()).json()
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1, 2, 3], "the row has 3 values"),
        ([1, "2"], "the row must be a list of numbers"),
        ({"ids": [-1]}, "ids must be a list of column numbers"),
        ({"ids": [2]}, "there is no column 2: the model has 2, counted from 0"),
        ({"ids": [0, 0]}, "a column twice"),
        ({"ids": [0, 1], "values": [1]}, "one value per id, got 2 ids and 1 values"),
        ({"ids": [0], "value": [1]}, "a row is a list of numbers"),
        ("0 1", "a row is a list of numbers"),
    ],
)
def test_invalid_rows_are_refused(client: Client, row, reason):
    response = client.post("/models/rows/predict", json=row)
    assert response.status_code == 400
    assert reason in response.json()["error"]


def test_trees_are_answered_as_in_python(client: Client, files):
    model = unkernel.load(files["trees"])
    answers = client.post("/models/trees/predict", json=TREES).json()
    assert [tree_answer["prediction"] for tree_answer in answers] == model.predict(TREES).tolist()
    assert answers[0] == client.post("/models/trees/predict", json=TREES[0]).json()
    refused = client.post("/models/trees/predict", json=[TREES[0], "(S (NP"])
    assert refused.status_code == 400
    assert refused.json()["field"] == "[1]"


def test_text_becomes_trees(client: Client, files):
    text = "They didn't see it.  Why not?"
    doc = unkernel.load(files["text"]).parse(text)
    answer = client.post("/models/text/predict", json=text).json()
    assert answer["output"] == doc.to_conllu()
    assert [[word["form"] for word in sentence["words"]] for sentence in answer["sentences"]] == [
        sentence.forms for sentence in doc
    ]
    why = client.post("/models/text/explain", json=text).json()
    assert [sentence["svg"][:4] for sentence in why["sentences"]] == ["<svg"] * len(doc)
    assert why["decisions"][0]["evidence"]
    assert client.post("/models/text/predict", json="").json() == {"sentences": [], "output": ""}


def test_sentences_in_columns_are_answered(client: Client, files):
    text = "She PRP\nsaw VBD\n\n"
    answer = client.post("/models/chunks/predict", json=text).json()
    assert answer["output"] == "She PRP B-NP\nsaw VBD B-VP\n\n"
    assert answer["sentences"] == [{"text": "She saw", "words": ["She", "saw"], "tags": ["B-NP", "B-VP"]}]
    explanation = client.post("/models/chunks/explain", json=text).json()
    assert explanation["sentences"][0]["drawn"] == "[NP She] [VP saw]\n"
    arcs = client.get("/models/arcs").json()["example"]
    assert client.post("/models/arcs/predict", json=arcs).json()["sentences"][0]["words"][1]["head"] == 0
    refused = client.post("/models/arcs/predict", json="no columns\n\n")
    assert refused.status_code == 400
    assert "the input:1" in refused.json()["error"]


def test_an_explanation_adds_up(client: Client):
    for path in ("/models/people/explain?top=3", "/models/people/explain?top=3&of=low"):
        why = client.post(path, json=RECORDS[0]).json()
        parts = [part["value"] for part in why["contributions"]]
        assert 1 <= len(parts) <= 3
        assert why["intercept"] + sum(parts) + why["rest"] == pytest.approx(why["total"])
    assert why["for_class"] == "low"
    assert why["prediction"] == LABELS[0]
    rows = client.post("/models/rows/explain", json=[1, 0]).json()
    assert rows["contributions"]
    trees = client.post("/models/trees/explain?top=2", json=TREES[0]).json()
    total = trees["intercept"] + sum(part["value"] for part in trees["contributions"]) + trees["rest"]
    assert total == pytest.approx(trees["total"])


@pytest.mark.parametrize(
    ("query", "field"),
    [("top=-1", "top"), ("top=x", "top"), ("top=99999", "top"), ("to=3", "to"), ("of=x", "of")],
)
def test_options_of_explanations_are_checked(client: Client, query, field):
    response = client.post(f"/models/people/explain?{query}", json=RECORDS[0])
    assert (response.status_code, response.json()["field"]) == (400, field)


@pytest.mark.parametrize(
    ("name", "items"), [("people", RECORDS[:2]), ("rows", [[0, 1]]), ("trees", TREES[:1]), ("text", ["A b."])]
)
def test_an_explanation_is_of_one_input(client: Client, name, items):
    response = client.post(f"/models/{name}/explain", json=items)
    assert response.json() == {"error": "explain takes one input, and the body is a list of them"}


@pytest.mark.parametrize("kind", [unkernel.PolyLogisticRegression, unkernel.PolySVC])
def test_the_json_of_a_score_equals_its_answer(kind):
    """The compiled writer of answers of two classes, compared with the writer of all other models."""
    answers = AnswerFormat(record_model(kind=kind).decision)
    scores = np.array([-800.0, -40.0, -1.5, -0.0, 0.0, 1e-300, 0.25, 40.0, 900.0])
    assert json.loads(answers.encode(scores[:, np.newaxis], JsonShape.LIST)) == answers.make_answers(
        scores[:, np.newaxis]
    )


def test_probabilities_equal_the_probabilities_of_the_model(client: Client, files):
    """Probabilities are equal to the last bit, for one record and for several."""
    model = unkernel.load(files["people"])
    expected = [
        dict(zip(model.classes_.tolist(), model.predict_proba_one(record), strict=True)) for record in RECORDS
    ]
    assert [list(expected_answer.values()) for expected_answer in expected] == model.predict_proba(
        RECORDS
    ).tolist()
    answer = client.post("/models/people/predict", json=RECORDS).json()
    assert [expected_answer["probabilities"] for expected_answer in answer] == expected
    for record, probabilities in zip(RECORDS, expected, strict=True):
        assert client.post("/models/people/predict", json=record).json()["probabilities"] == probabilities


def test_every_model_accepts_its_own_example(client: Client, files):
    for name in files:
        about = client.get(f"/models/{name}").json()
        assert client.post(f"/models/{name}/predict", json=about["example"]).status_code == 200
        assert client.post(f"/models/{name}/explain", json=about["example"]).status_code == 200


def test_an_example_has_whole_numbers_where_the_training_records_had(client: Client):
    assert isinstance(client.get("/models/people").json()["example"]["age"], int)


def test_headers_give_the_version_and_the_duration(client: Client):
    response = client.post("/models/people/predict", json=RECORDS[0])
    assert response.headers["x-model-version"] == "1"
    assert float(response.headers["server-timing"].removeprefix("model;dur=")) > 0


def test_a_model_of_counts_answers_with_means(tmp_path: Path) -> None:
    records = [{"age": age, "town": town} for age in (20, 40, 60) for town in ("Oslo", "Nara")]
    counts = [1, 4, 2, 9, 3, 15]
    regressor = PolyRegressor(loss="poisson", C=10.0)
    fast = unkernel.compile(make_pipeline(RecordEncoder(min_count=1), regressor).fit(records, counts))
    fast.save(tmp_path / "counts.uk")
    with served({"counts": tmp_path / "counts.uk"}) as client:
        answers = client.post("/models/counts/predict", json=records).json()
        explained = client.post("/models/counts/explain", json=records[0]).json()
        described = client.get("/models/counts").json()
    assert [answer["prediction"] for answer in answers] == fast.predict(records).tolist()
    assert [answer["score"] for answer in answers] == fast.decision_function(records).tolist()
    assert explained["prediction"] == answers[0]["prediction"]
    assert explained["total"] == pytest.approx(math.log(explained["prediction"]))
    assert (described["scheme"], described["link"]) == ("regression", "log")
