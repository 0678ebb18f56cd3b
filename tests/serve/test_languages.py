"""Every interface gives text beyond ASCII the same scores as ``predict_one``, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import unkernel
from serve.serving import Client, served
from unkernel.cli import main

REVIEWS = [
    ("un film très beau, vraiment très réussi", "pos"),
    ("une œuvre élégante et drôle, à voir", "pos"),
    ("c'était génial, très émouvant", "pos"),
    ("déjà vu, ennuyeux et raté", "neg"),
    ("un scénario bâclé, un échec complet", "neg"),
    ("trop long, mal joué, à éviter", "neg"),
]
TEXTS = [
    "très",
    "tr\u0065\u0300s",  # the same word with a combining mark
    "ÉLÉGANTE",
    "œuvre géniale… 🎬",
    "東京の映画",
    "фильм",
    "מעולה",
    '\u0001\t"quoted" \\',
    "beau",
    "",
]
LINES = {"content-type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model of French reviews, trained with the defaults of the package."""
    folder = tmp_path_factory.mktemp("reviews")
    rows = [f'"{text} {number}",{label}' for number in range(10) for text, label in REVIEWS]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    command = [
        "train",
        "poly",
        folder / "reviews.csv",
        "--target",
        "label",
        "-o",
        folder / "reviews.uk",
        "-q",
    ]
    assert main(list(map(str, command))) == 0
    return folder / "reviews.uk"


@pytest.fixture(scope="module")
def model(reviews: Path) -> Any:
    return unkernel.load(reviews)


@pytest.fixture(scope="module")
def french(reviews: Path) -> Any:
    with served({"reviews": reviews}) as client:
        yield client


def encode_json(record: Any, escaped: bool) -> bytes:
    return json.dumps(record, ensure_ascii=escaped).encode()


def compute_expected_answer(model: Any, text: str) -> tuple[Any, float]:
    record = {"text": text}
    return model.predict_one(record), model.score_one(record)


def test_reviews_are_texts(model: Any):
    """The model must treat reviews as texts, not as categories."""
    assert next(step.kind for step in model.plan.steps) == "text"
    assert model.score_one({"text": "très"}) != model.score_one({"text": "tres"})


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_one_record_by_all_ways(french: Client, model: Any, text: str, escaped: bool):
    body, path = encode_json({"text": text}, escaped), "/models/reviews/predict"
    single = french.post(path, content=body).json()
    assert (single["prediction"], single["score"]) == compute_expected_answer(model, text)
    assert french.post(path, content=b"[" + body + b"]").json() == [single]
    assert french.post(path, content=body + b"\n", headers=LINES).json() == single
    at_once = french.app.answer_immediately(path.encode(), [], body)
    assert json.loads(at_once.body) == single
    explained = french.post("/models/reviews/explain", content=body).json()
    assert {key: explained[key] for key in single} == single
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}
    inferred = french.post(
        "/v2/models/reviews/infer", content=encode_json({"inputs": [tensor]}, escaped)
    ).json()
    result = {output["name"]: output["data"][0] for output in inferred["outputs"]}
    assert (result["predict"], result["scores"]) == (single["prediction"], single["score"])


def test_many_records_by_all_ways(french: Client, model: Any):
    expected = [compute_expected_answer(model, text) for text in TEXTS]
    for escaped in (False, True):
        records = [encode_json({"text": text}, escaped) for text in TEXTS]
        answers = french.post("/models/reviews/predict", content=b"[" + b",".join(records) + b"]").json()
        lines = french.post("/models/reviews/predict", content=b"\n".join(records), headers=LINES).text
        assert [(answer["prediction"], answer["score"]) for answer in answers] == expected
        assert list(map(json.loads, lines.splitlines())) == answers


@pytest.mark.parametrize(
    "invalid", [b"\xff", b"\xc3", b"\xe8s", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80"]
)
def test_bytes_that_are_no_utf_8_are_refused_by_all_ways(french: Client, invalid: bytes):
    record = b'{"text": "tr' + invalid + b'"}'
    tensor = (
        b'{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["' + invalid + b'"]}]}'
    )
    bodies = {
        "/models/reviews/predict": [record, b"[" + record + b"]", b'{"other": "' + invalid + b'"}'],
        "/models/reviews/explain": [record],
        "/v2/models/reviews/infer": [tensor],
    }
    for path, bodies_of_path in bodies.items():
        for body in bodies_of_path:
            response = french.post(path, content=body)
            assert (response.status_code, "is not UTF-8" in response.json()["error"]) == (400, True), body
    at_once = french.app.answer_immediately(b"/models/reviews/predict", [], record)
    assert at_once.status == 400
    line = french.post("/models/reviews/predict", content=record + b"\n{}\n", headers=LINES).text.splitlines()
    assert "is not UTF-8" in json.loads(line[0])["error"]
    assert "prediction" in json.loads(line[1])


@pytest.mark.parametrize("surrogate", ["\\ud800", "\\udc00\\ud800", "\\ud83d x", "a\\udfff"])
def test_lone_surrogates_are_refused_by_all_ways(french: Client, model: Any, surrogate: str):
    words = "column 'text': the string has a lone surrogate, which is no character"
    record = f'{{"text": "{surrogate}"}}'
    with pytest.raises(ValueError, match=words):
        model.predict_one(json.loads(record))
    tensor = f'{{"inputs": [{{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["{surrogate}"]}}]}}'
    for path, body, field in (
        ("/models/reviews/predict", record, "text"),
        ("/models/reviews/predict", f'[{{"text": "a"}}, {record}]', "[1].text"),
        ("/models/reviews/explain", record, "text"),
        ("/v2/models/reviews/infer", tensor, "text"),
    ):
        response = french.post(path, content=body)
        assert (response.status_code, response.json()["field"]) == (400, field)
        assert words in response.json()["error"]
    assert json.loads(
        french.app.answer_immediately(b"/models/reviews/predict", [], record.encode()).body
    ) == {
        "error": words,
        "field": "text",
    }
    line = french.post("/models/reviews/predict", content=record, headers=LINES).json()
    assert (line["error"], line["line"]) == (words, 1)
