"""The Open Inference Protocol: its specification, and a third-party client."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import unkernel
from serve.serving import LABELS, RECORDS, Client, started


def tensor(name: str, values: list, datatype: str = "BYTES", shape: list[int] | None = None) -> dict:
    return {"name": name, "shape": shape or [len(values)], "datatype": datatype, "data": values}


def columns(records: list[dict]) -> list[dict]:
    return [
        tensor("age", [record["age"] for record in records], "FP64"),
        tensor("town", [record["town"] for record in records]),
    ]


def infer(client: Client, request: dict, name: str = "people"):
    return client.post(f"/v2/models/{name}/infer", json=request)


def test_health_and_metadata(client: Client):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    server = client.get("/v2").json()
    assert (server["name"], server["version"]) == ("unkernel", unkernel.__version__)
    assert server["extensions"] == ["binary_tensor_data", "model_repository"]
    for path in ("/v2/models/people", "/v2/models/people/versions/1"):
        assert client.get(path).json() == {
            "name": "people",
            "versions": ["1"],
            "platform": "unkernel",
            "inputs": [
                {"name": "age", "datatype": "FP64", "shape": [-1]},
                {"name": "town", "datatype": "BYTES", "shape": [-1]},
            ],
            "outputs": [
                {"name": "predict", "datatype": "BYTES", "shape": [-1]},
                {"name": "scores", "datatype": "FP64", "shape": [-1]},
                {"name": "probabilities", "datatype": "FP64", "shape": [-1, 2]},
            ],
        }
        assert client.get(f"{path}/ready").json() == {"name": "people", "ready": True}
    assert client.get("/v2/models/people/versions/2").status_code == 404
    assert client.get("/v2/models/nobody/ready").status_code == 404


def test_inference_equals_predictions_in_python(client: Client, files):
    model = unkernel.load(files["people"])
    answer = infer(client, {"id": "42", "inputs": columns(RECORDS)}).json()
    assert {key: answer[key] for key in ("id", "model_name", "model_version")} == {
        "id": "42",
        "model_name": "people",
        "model_version": "1",
    }
    outputs = {output["name"]: output for output in answer["outputs"]}
    assert outputs["predict"]["data"] == LABELS
    assert outputs["scores"]["data"] == pytest.approx(model.decision_function(RECORDS))
    assert outputs["probabilities"]["shape"] == [len(RECORDS), 2]
    assert outputs["probabilities"]["data"] == pytest.approx(model.predict_proba(RECORDS).reshape(-1))
    by_version = client.post("/v2/models/people/versions/1/infer", json={"inputs": columns(RECORDS)}).json()
    assert by_version["outputs"] == answer["outputs"]


def test_only_requested_outputs_are_returned(client: Client):
    answer = infer(client, {"inputs": columns(RECORDS[:2]), "outputs": [{"name": "scores"}]}).json()
    assert [output["name"] for output in answer["outputs"]] == ["scores"]
    assert "id" not in answer


def test_columns_can_be_missing_or_have_a_second_axis(client: Client, files):
    model = unkernel.load(files["people"])
    ages = tensor("age", [20, None, 70], "INT32", [3, 1])
    answer = infer(client, {"inputs": [ages]}).json()
    expected = model.decision_function([{"age": 20}, {}, {"age": 70}])
    assert answer["outputs"][1]["data"] == pytest.approx(expected)


def test_rows_trees_and_texts(client: Client):
    rows = infer(client, {"inputs": [tensor("rows", [[0, 1], [1, 0]], "FP32", [2, 2])]}, "rows").json()
    assert rows["outputs"][0] == {"name": "predict", "datatype": "INT64", "shape": [2], "data": [1, 1]}
    trees = infer(client, {"inputs": [tensor("tree", ["(S (NP dogs) (VP bark))"])]}, "trees").json()
    assert trees["outputs"][0]["data"] == ["S"]
    text = infer(client, {"inputs": [tensor("text", ["Why not?"])]}, "text").json()
    assert (
        text["outputs"][0]["data"][0].startswith("1\tWhy\t") or "\n1\tWhy\t" in text["outputs"][0]["data"][0]
    )


def test_tensors_can_be_bytes(client: Client):
    ages = np.array([record["age"] for record in RECORDS], np.float32).tobytes()
    towns = b"".join(struct.pack("<I", len(record["town"])) + record["town"].encode() for record in RECORDS)
    inputs = [
        {
            "name": name,
            "shape": [len(RECORDS)],
            "datatype": kind,
            "parameters": {"binary_data_size": len(data)},
        }
        for name, kind, data in (("age", "FP32", ages), ("town", "BYTES", towns))
    ]
    outputs = [{"name": "predict", "parameters": {"binary_data": True}}, {"name": "scores"}]
    head = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    response = client.post(
        "/v2/models/people/infer",
        content=head + ages + towns,
        headers={"inference-header-content-length": str(len(head))},
    )
    length = int(response.headers["inference-header-content-length"])
    message = json.loads(response.content[:length])
    assert message["outputs"][0]["parameters"]["binary_data_size"] == len(response.content) - length
    assert response.content[length:] == b"".join(
        struct.pack("<I", len(label)) + label.encode() for label in LABELS
    )
    assert "data" in message["outputs"][1]
    cut = client.post(
        "/v2/models/people/infer",
        content=head + ages + towns[:-1],
        headers={"inference-header-content-length": str(len(head))},
    )
    assert (cut.status_code, cut.json()["field"]) == (400, "inputs[1].parameters.binary_data_size")


GOOD = {"name": "age", "shape": [1], "datatype": "FP64", "data": [20]}


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ([], 400, 'expected an object with "inputs"'),
        ({}, 400, "inputs is missing"),
        ({"inputs": {}}, 400, "inputs must be a list"),
        ({"inputs": []}, 400, "is empty: give 'age'"),
        ({"inputs": [7]}, 400, "inputs[0] must be an object"),
        ({"inputs": [GOOD], "id": 7}, 400, "id must be a string"),
        ({"inputs": [GOOD, GOOD]}, 400, "inputs[1]: a second input 'age'"),
        ({"inputs": [GOOD | {"name": "old"}]}, 400, "the model has no input 'old'; it has: age, town"),
        ({"inputs": [GOOD | {"datatype": "FP8"}]}, 400, "inputs[0].datatype must be one of BYTES, BOOL"),
        ({"inputs": [GOOD | {"shape": [2]}]}, 400, "has 2 values, and there are 1"),
        ({"inputs": [GOOD | {"shape": [-1]}]}, 400, "inputs[0].shape must be a list of sizes"),
        ({"inputs": [GOOD | {"data": ["x"]}]}, 400, 'inputs[0].data: "x" is not of type FP64'),
        ({"inputs": [GOOD | {"data": [[1], 2]}]}, 400, "inputs[0].data is nested unevenly"),
        ({"inputs": [GOOD | {"datatype": "INT8", "data": [999]}]}, 400, "does not fit INT8"),
        ({"inputs": [GOOD, tensor("town", ["a", "b"])]}, 400, "different numbers of items"),
        ({"inputs": [GOOD], "outputs": [{"name": "x"}]}, 400, "the model has no output 'x'; it has: predict"),
        ({"inputs": [tensor("age", [1.0] * 51, "FP64")]}, 413, "there are 51 items"),
        ({"inputs": [GOOD | {"shape": [1 << 60, 1 << 60]}]}, 400, "and there are 1"),
        ({"inputs": [GOOD | {"shape": [1 << 62, 1 << 62, 0], "data": []}]}, 400, "shape is too large"),
        ({"inputs": [GOOD | {"shape": [10**18, 0], "data": []}]}, 413, "items"),
        ({"inputs": [GOOD | {"datatype": "INT64", "data": [1.5]}]}, 400, "1.5 is not of type INT64"),
        (
            {"inputs": [tensor("town", [["a", "b"]], "BYTES", [1, 2])]},
            400,
            "must have the shape [n] or [n, 1]",
        ),
    ],
)
def test_bad_requests_are_named(client: Client, request_, status, words):
    response = infer(client, request_)
    assert response.status_code == status
    assert words in response.json()["error"]


def test_inputs_of_one_axis_have_one(client: Client):
    request = {"inputs": [tensor("tree", ["(a b)"] * 4, shape=[2, 2])]}
    response = infer(client, request, "trees")
    assert (response.status_code, "[n] or [n, 1]" in response.json()["error"]) == (400, True)


def test_a_length_beyond_all_bounds_is_refused(client: Client):
    headers = {"inference-header-content-length": "9" * 5000}
    response = client.post("/v2/models/people/infer", content=b"{}", headers=headers)
    assert (response.status_code, "is not a number" in response.json()["error"]) == (400, True)


def test_the_client_of_triton_is_served(files):
    triton = pytest.importorskip("tritonclient.http", reason="needs tritonclient[http]")
    with started(files["people"]) as server:
        client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("people")
        assert client.is_model_ready("people", "1")
        assert not client.is_model_ready("nobody")
        assert client.get_server_metadata()["name"] == "unkernel"
        assert client.get_model_metadata("people")["inputs"][0]["name"] == "age"
        assert client.get_model_repository_index() == [{"name": "people", "version": "1", "state": "READY"}]
        ages = np.array([record["age"] for record in RECORDS], np.float64)
        towns = np.array([record["town"] for record in RECORDS], object)
        for binary in (True, False):
            inputs = [
                triton.InferInput("age", list(ages.shape), "FP64"),
                triton.InferInput("town", list(towns.shape), "BYTES"),
            ]
            inputs[0].set_data_from_numpy(ages, binary_data=binary)
            inputs[1].set_data_from_numpy(towns, binary_data=binary)
            outputs = [
                triton.InferRequestedOutput(name, binary_data=binary) for name in ("predict", "probabilities")
            ]
            response = client.infer("people", inputs, outputs=outputs, request_id="7")
            answers = response.as_numpy("predict").tolist()
            assert [answer.decode() if isinstance(answer, bytes) else answer for answer in answers] == LABELS
            assert response.as_numpy("probabilities").shape == (len(RECORDS), 2)
            assert response.get_response()["id"] == "7"
        client.load_model("people")
        assert client.get_model_metadata("people")["versions"] == ["2"]
        with pytest.raises(triton.InferenceServerException, match="there is no model 'nobody'"):
            client.get_model_metadata("nobody")
        client.close()
