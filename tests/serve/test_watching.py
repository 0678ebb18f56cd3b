"""The metrics count records, answers and values, beside the shares of the training records."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from serve.serving import LABELS, RECORDS, Client, record_model, served, started
from unkernel import CuttingPlaneSVC, PolyRegressor, RecordEncoder
from unkernel._core import JsonShape
from unkernel.serve.answer_counter import MAX_LABELS
from unkernel.serve.answerers import make_answerer
from unkernel.serve.model_counts import ModelCounts

LINES = {"content-type": "application/x-ndjson"}
NEW = [
    {"age": 25, "town": "Kyoto"},
    {"age": None, "town": "Nara"},
    {"town": "Kobe"},
    {"age": 66},
    {"age": 41, "town": "東京"},
    {"age": 33, "town": "Uji", "other": [1, 2]},
]
MISSING, UNKNOWN = {"age": 2, "town": 1}, {"town": 2}


def read_metrics(text: str, name: str, model: str) -> dict[str, float]:
    """Return the values of a metric by its second label, or by "" if there is only the model."""
    values = {}
    for labels, value in re.findall(rf"^unkernel_{name}\{{(.*)\}} (\S+)$", text, re.M):
        by_name = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if by_name.pop("model") == model:
            values[next(iter(by_name.values()), "")] = float(value)
    return values


class Watched:
    """The counts of a model on a server."""

    def __init__(self, client: Client, model: str) -> None:
        self.client, self.model = client, model

    def read(self, name: str) -> dict[str, float]:
        return read_metrics(self.client.get("/metrics").text, name, self.model)

    def post(self, content: bytes, **options: Any) -> Any:
        return self.client.post(f"/models/{self.model}/predict", content=content, **options)


@pytest.fixture
def watched(files: dict[str, Path]) -> Any:
    with served({"people": files["people"]}) as client:
        yield Watched(client, "people")


def infer(watched: Watched) -> list[str]:
    inputs = [
        {
            "name": "age",
            "datatype": "FP64",
            "shape": [len(NEW)],
            "data": [record.get("age") or "NaN" for record in NEW],
        },
        {"name": "town", "datatype": "BYTES", "shape": [len(NEW)], "data": [r.get("town") for r in NEW]},
    ]
    answer = watched.client.post("/v2/models/people/infer", json={"inputs": inputs})
    return list(answer.json()["outputs"][0]["data"])


@pytest.mark.parametrize("way", ["one", "indented", "list", "lines", "plain", "escaped"])
def test_answers_and_values_are_counted(watched: Watched, way: str) -> None:
    ascii_only = way != "plain"
    texts = [json.dumps(record, ensure_ascii=ascii_only).encode() for record in NEW]
    if way in ("one", "indented"):
        indent = 1 if way == "indented" else None
        bodies = [json.dumps(record, indent=indent).encode() for record in NEW]
        answers = [watched.post(body).json() for body in bodies]
    elif way == "lines":
        lines = b"\n".join([*texts, b'{"age": "x"}', b"", b"oops"])
        answers = [json.loads(line) for line in watched.post(lines, headers=LINES).text.splitlines()]
        assert [answer["line"] for answer in answers if "error" in answer] == [7, 9]
    else:
        answers = watched.post(b"[" + b",".join(texts) + b"]").json()
    predictions = Counter(answer["prediction"] for answer in answers if "prediction" in answer)
    assert watched.read("records_total") == watched.read("examined_records_total") == {"": len(NEW)}
    assert watched.read("answers_total") == {"high": 0, "low": 0, **predictions}
    assert watched.read("missing_values_total") == MISSING
    assert watched.read("unknown_values_total") == UNKNOWN


def test_tensors_are_counted(watched: Watched) -> None:
    inputs = [
        {"name": "age", "datatype": "FP64", "shape": [3], "data": [20, 30, 40]},
        {"name": "town", "datatype": "BYTES", "shape": [3], "data": ["Kyoto", "Kobe", "Nara"]},
    ]
    for tensors in (inputs, inputs[1:]):
        assert watched.client.post("/v2/models/people/infer", json={"inputs": tensors}).status_code == 200
    assert watched.read("records_total") == watched.read("examined_records_total") == {"": 6}
    assert sum(watched.read("answers_total").values()) == 6
    assert watched.read("missing_values_total") == {"age": 3, "town": 0}
    assert watched.read("unknown_values_total") == {"town": 2}


def test_explanations_and_errors_are_not_counted(watched: Watched) -> None:
    watched.client.post("/models/people/explain", json=RECORDS[0])
    for body in (b"{", b"[1]", b'{"age": "x"}', b'[{"age": 1}, {"age": []}]'):
        assert watched.post(body).status_code == 400
    assert watched.read("records_total") == watched.read("examined_records_total") == {"": 0}
    assert watched.read("answers_total") == {"high": 0, "low": 0}


def test_training_shares_stand_beside_the_counts(tmp_path: Path) -> None:
    records = [record | ({"age": None} if k < 6 else {}) for k, record in enumerate(RECORDS)]
    records[0] = {"town": "Rome"}
    encoder = RecordEncoder(min_count=2)
    pipeline = make_pipeline(encoder, CuttingPlaneSVC(C=1)).fit(records, LABELS)
    unkernel.compile(pipeline, measure=False).save(tmp_path / "m.uk")
    with served({"m": tmp_path / "m.uk"}) as client:
        watched = Watched(client, "m")
        assert watched.read("training_records") == {"": 24}
        high = LABELS.count("high") / 24
        assert watched.read("training_answer_share") == {"high": high, "low": 1 - high}
        assert watched.read("training_missing_share") == {"age": 0.25, "town": 0.0}
        assert watched.read("training_unknown_share") == {"town": 1 / 24}
        for record in records:  # the training records have the training shares
            watched.post(json.dumps(record).encode())
        assert watched.read("missing_values_total") == {"age": 6, "town": 0}
        assert watched.read("unknown_values_total") == {"town": 1}


def test_numbers_are_counted_by_intervals_of_the_training_targets(tmp_path: Path) -> None:
    targets = np.arange(24.0)
    pipeline = make_pipeline(RecordEncoder(min_count=1), PolyRegressor(C=100)).fit(RECORDS, targets)
    fast = unkernel.compile(pipeline, measure=False)
    fast.save(tmp_path / "m.uk")
    with served({"m": tmp_path / "m.uk"}) as client:
        watched = Watched(client, "m")
        shares = watched.read("training_answer_share")
        assert list(shares)[:2] == ["(-inf, 2]", "(2, 4]"] and sum(shares.values()) == pytest.approx(1)
        assert watched.post(json.dumps(RECORDS).encode()).status_code == 200
        bounds = fast.plan.training.bounds
        counts = np.bincount(np.searchsorted(bounds, fast.predict(RECORDS)), minlength=len(shares))
        assert list(watched.read("answers_total").values()) == counts.tolist()


def test_files_without_counts_are_counted_without_training_shares(tmp_path: Path) -> None:
    from dataclasses import replace

    from unkernel.engines import RecordClassifier

    model = record_model()
    RecordClassifier(replace(model.plan, training=None), model.classifier).save(tmp_path / "m.uk")
    with served({"m": tmp_path / "m.uk"}) as client:
        watched = Watched(client, "m")
        watched.post(b'[{"age": 20}, {"town": "Nara", "age": 41}]')
        assert watched.read("missing_values_total") == {"age": 0, "town": 1}
        assert sum(watched.read("answers_total").values()) == 2
        assert watched.read("training_answer_share") == watched.read("training_missing_share") == {}


def test_models_of_rows_and_trees_count_answers_and_parsers_nothing(files: dict[str, Path]) -> None:
    with served({name: files[name] for name in ("rows", "trees", "text")}) as client:
        assert client.post("/models/rows/predict", json=[[0, 1], [2, 1]]).status_code == 200
        assert client.post("/models/rows/predict", json=[0, 1]).status_code == 200
        assert client.post("/models/trees/predict", json="(S (NP dogs) (VP bark))").status_code == 200
        assert client.post("/models/text/predict", json="They left.").status_code == 200
        text = client.get("/metrics").text
        assert sum(read_metrics(text, "answers_total", "rows").values()) == 3
        assert sum(read_metrics(text, "answers_total", "trees").values()) == 1
        assert not read_metrics(text, "records_total", "text")
        assert not read_metrics(text, "examined_records_total", "rows")


def make_counts(records: list[dict[str, Any]], labels: list[str]) -> ModelCounts:
    pipeline = make_pipeline(RecordEncoder(min_count=1), CuttingPlaneSVC(C=1)).fit(records, labels)
    return ModelCounts(make_answerer(unkernel.compile(pipeline, measure=False)))


def test_the_number_of_time_series_is_bounded() -> None:
    count = MAX_LABELS + 20
    records = [{f"c{column}": f"v{k}" for column in range(count)} for k in range(count)]
    counts = make_counts([*records, records[0]], [*(f"class {k:03}" for k in range(count)), "class 000"])
    assert len(counts.answers.names) == MAX_LABELS and "(other classes)" in counts.answers.names
    assert len({mark.column for mark in counts.marks}) == MAX_LABELS
    assert sum(counts.answers.training_shares.values()) == pytest.approx(1)
    answer = json.dumps({"prediction": "class 069", "score": 1}).encode()
    counts.add(b"{}", JsonShape.ONE, answer)
    counts.add(b'{"c0": "new", "c69": "new"}', JsonShape.ONE, answer)
    taken = counts.take()
    assert taken.answers == {"(other classes)": 2}
    by_mark = {(mark.column, mark.what): number for mark, number in taken.values.items()}
    assert by_mark["c0", "missing"] == by_mark["c0", "unknown"] == by_mark["(other columns)", "unknown"] == 1
    assert by_mark["(other columns)", "missing"] == 21 + 20


def test_part_of_long_requests_is_examined_and_all_answers_are_counted() -> None:
    counts = make_counts(RECORDS, LABELS)
    for shape, begin, between, end in ((JsonShape.LIST, "[", ", ", "]"), (JsonShape.LINES, "", "\n", "\n")):
        body = (begin + between.join(['{"age": null, "town": "a},{b"}'] * 5_000) + end).encode()
        answers = (
            begin + ("," if begin else "\n").join(['{"prediction":"low","score":1}'] * 5_000) + end
        ).encode()
        counts.add(body, shape, answers)
        taken = counts.take()
        assert taken.records == taken.answers["low"] == 5_000
        assert taken.examined < 1_000
        assert all(number == taken.examined for number in taken.values.values())


def test_a_busy_server_examines_a_limited_number_of_bytes() -> None:
    counts = make_counts(RECORDS, LABELS)
    body, answer = b'{"age": 1, "town": "Kobe", "other": "%s"}' % (b"x" * 1000), b'{"prediction":"low"}'
    for _ in range(3_000):
        counts.add(body, JsonShape.ONE, answer)
    taken = counts.take()
    assert taken.records == 3_000 and 900 < taken.examined < 1_100
    counts.add(body, JsonShape.ONE, answer)
    assert counts.take().examined == 1


def test_a_new_version_continues_the_counts(tmp_path: Path) -> None:
    record_model().save(tmp_path / "m.uk")
    with served({"m": tmp_path / "m.uk"}) as client:
        watched = Watched(client, "m")
        watched.post(b'{"age": 20}')
        record_model(C=1.0).save(tmp_path / "m.uk")
        assert client.post("/models/m/load").status_code == 200
        watched.post(b'{"age": 20}')
        assert watched.read("records_total") == {"": 2}
        assert watched.read("missing_values_total") == {"age": 0, "town": 2}


def test_all_workers_are_counted(files: dict[str, Path]) -> None:
    with started(files["people"], "--workers", "2") as server:
        for number in range(40):  # new connections: the system spreads them over the workers
            with httpx.Client(base_url=server.address, timeout=60) as client:
                client.post("/models/people/predict", json=NEW[number % 2]).raise_for_status()
        with httpx.Client(base_url=server.address, timeout=60) as client:
            while True:  # workers share their counts at regular intervals
                text = client.get("/metrics").text
                if read_metrics(text, "records_total", "people") == {"": 40}:
                    break
        assert read_metrics(text, "examined_records_total", "people") == {"": 40}
        assert read_metrics(text, "missing_values_total", "people") == {"age": 20, "town": 0}
        assert read_metrics(text, "training_records", "people") == {"": 24}
