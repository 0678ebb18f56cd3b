"""The server describes and answers models of several labels and outputs like Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import unkernel
from serve.serving import RECORDS, Client, served
from unkernel import RecordEncoder
from unkernel.serve.answer_counter import make_answer_counter
from unkernel.serve.answerers import make_answerer

TOPICS = ["hot", "Nara", "e"]
INDICATOR = np.array(
    [[one["age"] > 45, one["town"] == "Nara", "a" not in one["town"]] for one in RECORDS], dtype=int
)
CLASSES = np.array([[one["town"], "old" if one["age"] > 45 else "new"] for one in RECORDS])
TARGETS = {
    "labels": (OneVsRestClassifier(LogisticRegression()), INDICATOR, TOPICS),
    "outputs": (MultiOutputClassifier(LogisticRegression()), CLASSES, None),
    "numbers": (Ridge(), INDICATOR[:, :2] * 1.5, None),
}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        name: unkernel.compile(
            make_pipeline(RecordEncoder(n_bins=4, min_count=1), last).fit(RECORDS, targets),
            classes=classes,
            measure=False,
        )
        for name, (last, targets, classes) in TARGETS.items()
    }


@pytest.fixture(scope="module")
def client(models: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("models")
    files = {name: folder / f"{name}.uk" for name in models}
    for name, model in models.items():
        model.save(files[name])
    with served(files) as client:
        yield client


def ask(client: Client, name: str, items: Any, action: str = "predict") -> Any:
    response = client.post(f"/models/{name}/{action}", json=items)
    assert response.status_code == 200, response.text
    return response.json()


def test_labels(client: Client, models: dict[str, Any]) -> None:
    answers, model = ask(client, "labels", RECORDS), models["labels"]
    assert any(not answer["prediction"] for answer in answers)
    for record, answer in zip(RECORDS, answers, strict=True):
        indicator = model.predict_one(record)
        assert answer["prediction"] == [
            label for label, is_set in zip(TOPICS, indicator, strict=True) if is_set
        ]
        assert answer["score"] == model.score_one(record)
        assert answer["probabilities"] == dict(zip(TOPICS, model.predict_proba_one(record), strict=True))
    ids, values = model.plan.encode_one(RECORDS[0])
    row = {"ids": ids.tolist(), "values": values.tolist()}
    assert make_answerer(model.classifier).answer_one(row) == answers[0]


def test_outputs(client: Client, models: dict[str, Any]) -> None:
    model = models["outputs"]
    for record, answer in zip(RECORDS, ask(client, "outputs", RECORDS), strict=True):
        assert answer["prediction"] == model.predict_one(record)
        assert answer["score"] == model.score_one(record)
        shares = [list(part.values()) for part in answer["probabilities"]]
        assert shares == model.predict_proba_one(record)
        assert [list(part) for part in answer["probabilities"]] == [
            classes.tolist() for classes in model.classes_
        ]
    answer = ask(client, "numbers", RECORDS[0])
    assert answer == {"prediction": answer["score"], "score": models["numbers"].predict_one(RECORDS[0])}


def test_explanations(client: Client, models: dict[str, Any]) -> None:
    explained = ask(client, "labels", RECORDS[0], "explain?of=Nara")
    assert (explained["for_class"], explained["against"], "for_output" in explained) == ("Nara", None, False)
    assert explained["total"] == pytest.approx(explained["score"][1])
    explained = ask(client, "outputs", RECORDS[0], "explain?of=1")
    assert (explained["for_class"], explained["against"], explained["for_output"]) == ("old", "new", 1)
    assert explained["prediction"] == models["outputs"].predict_one(RECORDS[0])
    response = client.post("/models/outputs/explain?of=old", json=RECORDS[0])
    assert response.status_code == 400
    assert "of must be one of 0, 1, got 'old'" in response.json()["error"]


def test_descriptions(client: Client) -> None:
    described = client.get("/models/labels").json()
    assert (described["scheme"], described["classes"]) == ("multi_label", TOPICS)
    outputs = client.get("/models/outputs").json()["outputs"]
    assert [output["scheme"] for output in outputs] == ["one_vs_rest", "binary"]
    assert outputs[1]["classes"] == ["new", "old"]
    tensors = {
        name: {
            tensor["name"]: (tensor["datatype"], tensor["shape"])
            for tensor in client.get(f"/v2/models/{name}").json()["outputs"]
        }
        for name in TARGETS
    }
    assert tensors["labels"] == {
        "predict": ("INT64", [-1, 3]),
        "scores": ("FP64", [-1, 3]),
        "probabilities": ("FP64", [-1, 3]),
    }
    assert tensors["outputs"] == {
        "predict": ("BYTES", [-1, 2]),
        "scores": ("FP64", [-1, 5]),
        "probabilities": ("FP64", [-1, 6]),
    }
    assert tensors["numbers"] == {"predict": ("FP64", [-1, 2]), "scores": ("FP64", [-1, 2])}


def test_schemas(models: dict[str, Any]) -> None:
    labels, outputs, numbers = (make_answerer(models[name]).answer_schema for name in TARGETS)
    assert labels["properties"]["prediction"]["items"] == {"enum": TOPICS}
    assert list(labels["properties"]["probabilities"]["properties"]) == TOPICS
    assert set(labels["required"]) == {"prediction", "score", "probabilities"}
    towns = sorted({record["town"] for record in RECORDS})
    prediction = outputs["properties"]["prediction"]
    assert prediction["prefixItems"] == [{"enum": towns}, {"enum": ["new", "old"]}]
    assert (prediction["minItems"], prediction["maxItems"]) == (2, 2)
    shares = outputs["properties"]["probabilities"]["prefixItems"]
    assert [list(part["properties"]) for part in shares] == [towns, ["new", "old"]]
    assert outputs["properties"]["score"]["minItems"] == 5
    assert numbers["properties"]["prediction"]["prefixItems"] == [{"type": "number"}] * 2
    assert "probabilities" not in numbers["properties"]


def test_labels_are_counted(models: dict[str, Any]) -> None:
    counter = make_answer_counter(models["labels"].decision, None)
    assert counter.count_predictions([["hot", "e"], [], ["hot"]]) == {"hot": 2, "e": 1}
    assert list(counter.names) == TOPICS
    assert make_answer_counter(models["outputs"].decision, None).count_predictions([["a", "b"]]) == {}
