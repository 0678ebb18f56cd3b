"""Limits of requests, and their error messages."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from serve.serving import Client, served
from unkernel import PolyLogisticRegression, RecordEncoder
from unkernel.serve.answerers.trees import TreeAnswerer
from unkernel.serve.errors import RequestError
from unkernel.serve.request_bodies import BodyTimeouts
from unkernel.serve.settings import Limits, Settings, parse_model_files, read_tokens

PREDICT = "/models/people/predict"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body is empty: send one input, or a list of them"),
        (b"{", "the body is not JSON: Input data was truncated"),
        (b'{"age": NaN}', "the body is not JSON"),
        (b"They saw it.", "double quotes"),
        (b'{"town": "\xff"}', "the body is not UTF-8: byte 10 is invalid"),
        (b'{"town": "\xed\xa0\x80"}', "UTF-8"),
        (b"[" * 9_000, "nested too deeply"),
        (b'{"age":' * 2_000, "nested too deeply"),
        (b"7", "a record is an object, or a list of one value per column, not a number"),
        (b'"old"', "not a string"),
        (b"[null]", "[0]: a record is an object, or a list of one value per column, not null"),
        (b'{"age": {"a": 1}}', "column 'age': expected a number, got a list or an object"),
        (b'{"age": "a dict"}', "column 'age': expected a number, got the string 'a dict'"),
        (b'{"age": "old"}', "column 'age': expected a number, got the string 'old'"),
        (b'{"age": [1]}', "column 'age': expected one value, or a list of strings, got a list with a number"),
        (b'{"age": ["1"]}', "column 'age': expected a number, got a list or an object"),
        (b'{"town": "\\ud800"}', "column 'town': the string has a lone surrogate, which is no character"),
        (b'[{"age": 1}, 7]', "[1]: "),
        (b'{"town": {"a": 1}}', "column 'town'"),
    ],
)
def test_errors_describe_bad_bodies(client: Client, body, words):
    response = client.post(PREDICT, content=body)
    assert response.status_code == 400
    assert words in response.json()["error"]


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 5000])
def test_numbers_larger_than_any_float_are_named(client: Client, number: bytes):
    response = client.post(PREDICT, content=b'{"age": ' + number + b"}")
    assert (response.status_code, response.json()["error"]) == (
        400,
        "the body has a number that is larger than any float",
    )


@pytest.mark.parametrize("body", [b"NaN", b"-Infinity", b"\xff\xfe{", b"\x00", b"'old'", b"{'age': 1}"])
def test_only_bare_words_get_a_hint_of_quotes(client: Client, body: bytes):
    response = client.post(PREDICT, content=body)
    assert response.status_code == 400
    assert "double quotes" not in response.json()["error"]


def test_a_byte_order_mark_before_json_is_ignored(client: Client):
    body = b'{"age": 51, "town": "Oslo"}'
    for endpoint in ("predict", "explain"):
        without_mark, with_mark = (
            client.post(f"/models/people/{endpoint}", content=mark + body).json()
            for mark in (b"", b"\xef\xbb\xbf")
        )
        assert without_mark == with_mark


def test_texts_and_trees_have_no_lone_surrogates(client: Client):
    for name in ("text", "trees", "arcs"):
        for endpoint in ("predict", "explain"):
            response = client.post(f"/models/{name}/{endpoint}", content=b'"(S \\ud800)"')
            words = "character 3 of the text is a lone surrogate, which is no character"
            assert (response.status_code, response.json()["error"]) == (400, words)


def test_truth_values_are_the_numbers_1_and_0(client: Client):
    for truth, number in (("true", "1"), ("false", "0")):
        bodies = [
            f'{{"age": {value}, "town": "{town}"}}' for town in ("Uji", "é") for value in (truth, number)
        ]
        result = [client.post(PREDICT, content=body).json() for body in bodies]
        assert result[0] == result[1]
        assert result[2] == result[3]


def test_scores_that_are_not_finite_are_refused_by_both_readers(tmp_path):
    """``predict_one`` refuses the same records."""
    rows = [{"gain": number} for number in range(20)]
    encoder = RecordEncoder(kinds={"gain": "number"}, min_count=1)
    pipeline = make_pipeline(encoder, PolyLogisticRegression(degree=2))
    unkernel.compile(pipeline.fit(rows, [number > 9 for number in range(20)]), measure=False).save(
        tmp_path / "m.uk"
    )
    with served({"m": tmp_path / "m.uk"}) as client:
        for body in (b'{"gain": 1e308}', b'{"gain": 1e308, "other": "\xc3\xa9"}', b'[{"gain": 1e308}]'):
            response = client.post("/models/m/predict", content=body)
            assert (response.status_code, "a score is not finite" in response.json()["error"]) == (400, True)


def test_the_field_is_named(client: Client):
    assert client.post(PREDICT, json={"age": "old"}).json()["field"] == "age"
    assert client.post(PREDICT, json=[{"age": 1}, {"age": "old"}]).json()["field"] == "[1].age"


def test_numbers_of_any_size_are_read(client: Client):
    for number in (1e308, -1e308, 10**18, 10**40):
        assert client.post(PREDICT, content=json.dumps({"age": number})).status_code == 200


def test_long_bodies_and_batches_are_refused(client: Client):
    response = client.post(PREDICT, content=b" " * 20_001)
    assert (response.status_code, response.headers["connection"]) == (413, "close")
    assert "20,000 bytes" in response.json()["error"]

    async def endless():
        while True:
            yield b" " * 1000

    assert client.post(PREDICT, content=endless()).status_code == 413
    lines = {"content-type": "application/x-ndjson"}
    assert client.post(PREDICT, content=endless(), headers=lines).status_code == 413
    assert client.post(PREDICT, json=[{}] * 50).status_code == 200
    assert client.post(PREDICT, json=[{}] * 51).status_code == 413


def test_errors_in_a_started_stream_are_its_last_line(client: Client):
    async def longer_and_longer():
        yield b'{"age": 20}\n'
        for _ in range(21):
            yield b" " * 1000

    lines = {"content-type": "application/x-ndjson"}
    response = client.post(PREDICT, content=longer_and_longer(), headers=lines)
    answer, error = map(json.loads, response.text.splitlines())
    assert (response.status_code, "prediction" in answer) == (200, True)
    assert (error["line"], error["error"]) == (2, "a line has more than 20,000 bytes, the server's limit")


def test_vast_trees_are_refused(files):
    with served({"trees": files["trees"]}) as client:
        responses = [
            client.post("/models/trees/predict", json="(a " * n + "b" + ")" * n) for n in (3000, 10_001)
        ]
    assert [response.status_code for response in responses] == [200, 400]
    assert "more than 10,000 nodes" in responses[1].json()["error"]


@pytest.mark.parametrize(
    "path", ["/models/nobody/predict", "/v2/models/nobody/infer", "/models/people/nothing"]
)
def test_missing_models_are_404(client: Client, path):
    response = client.post(path, json={})
    assert response.status_code == 404
    assert response.json()["error"].startswith("there is no")


def test_other_paths_and_methods_are_refused(client: Client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/page/..%2fapp.py").status_code == 404
    assert client.get("/page/app.py").status_code == 404
    response = client.get(PREDICT)
    assert response.status_code == 405
    assert "method not allowed" in response.json()["error"]
    assert response.headers["allow"] == "POST"


def test_too_many_requests_are_429_with_retry_after(files):
    with served({"people": files["people"]}, limits=Limits(concurrency=0)) as client:
        response = client.post(PREDICT, json={})
        assert (response.status_code, response.headers["retry-after"]) == (429, "1")
        for path in ("/v2/health/live", "/v2/health/ready", "/metrics"):
            assert client.get(path).status_code == 200  # health checks bypass the limit


def test_bodies_that_cannot_be_read_are_refused(client: Client):
    response = client.post(PREDICT, content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert (response.status_code, response.headers["connection"]) == (415, "close")
    response = client.post(PREDICT, json={}, headers={"connection": "upgrade", "upgrade": "h2c"})
    assert response.status_code == 400
    assert "without the header Upgrade" in response.json()["error"]


def test_requests_that_take_too_long_are_504(files, monkeypatch):
    answered = threading.Event()
    with served({"trees": files["trees"]}, limits=Limits(seconds=0.01)) as client:
        monkeypatch.setattr(TreeAnswerer, "_compute_scores", lambda *_: answered.wait())
        response = client.post("/models/trees/predict", json="(S a)")
        answered.set()
        assert (response.status_code, response.json()["error"]) == (504, "there was no answer within 0.01 s")


def test_native_work_that_takes_too_long_ends(files, monkeypatch):
    """After the response with status 504, the work occupies neither thread nor processor."""
    raw, ended = TreeAnswerer._compute_scores, threading.Event()

    def endless(self, items):
        try:
            while True:
                raw(self, items)
        finally:
            ended.set()

    with served({"trees": files["trees"]}, limits=Limits(seconds=0.01)) as client:
        monkeypatch.setattr(TreeAnswerer, "_compute_scores", endless)
        assert client.post("/models/trees/predict", json="(S a)").status_code == 504
        assert ended.wait(60)


INFER_TREE = {"inputs": [{"name": "tree", "datatype": "BYTES", "shape": [1], "data": ["(S (NP a))"]}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/models/trees/predict", "(S (NP a))"),
        ("/models/trees/explain", "(S (NP a))"),
        ("/v2/models/trees/infer", INFER_TREE),
        ("/v2/models/trees/versions/1/infer", INFER_TREE),
    ],
)
def test_slow_models_do_not_hold_up_the_event_loop(files, monkeypatch, path, body):
    """Requests to other models must not wait for a slow model."""
    raw, threads = TreeAnswerer._compute_scores, []

    def noted(self, items):
        threads.append(threading.current_thread())
        return raw(self, items)

    monkeypatch.setattr(TreeAnswerer, "_compute_scores", noted)
    with served({"trees": files["trees"]}) as client:
        threads.clear()  # from the example that was predicted when the model was loaded
        assert client.post(path, json=body).status_code == 200
    assert threads
    assert threading.main_thread() not in threads


def test_bodies_that_do_not_arrive_time_out():
    async def waited() -> None:
        timeouts = BodyTimeouts(0.001)
        sweeper = asyncio.create_task(timeouts.watch())
        try:
            await timeouts.wait_for(asyncio.Event().wait())
        finally:
            sweeper.cancel()

    with pytest.raises(RequestError, match=r"within 0\.001 s") as given_up:
        asyncio.run(waited())
    assert (given_up.value.status, given_up.value.close) == (408, True)


def test_timeouts_pass_on_results_and_cancellations():
    async def waited() -> int:
        timeouts = BodyTimeouts(60)
        waiting = asyncio.create_task(timeouts.wait_for(asyncio.Event().wait()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await timeouts.wait_for(asyncio.sleep(0, 7))

    assert asyncio.run(waited()) == 7


def test_tokens_are_required(files):
    with served({"people": files["people"]}, tokens=("secret", "other")) as client:
        for authorization in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}):
            response = client.post(PREDICT, json={}, headers=authorization)
            assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        for authorization in ("Bearer secret", "bearer other"):
            assert client.post(PREDICT, json={}, headers={"authorization": authorization}).status_code == 200
        for path in ("/metrics", "/models", "/openapi.json", "/v2"):
            assert client.get(path).status_code == 401
        for path in ("/", "/docs", "/v2/health/live", "/v2/health/ready"):
            assert client.get(path).status_code == 200


def test_requests_have_ids(client: Client):
    first_id, second_id = (client.get("/v2").headers["x-request-id"] for _ in range(2))
    assert first_id != second_id
    assert client.get("/v2", headers={"x-request-id": "mine"}).headers["x-request-id"] == "mine"
    for invalid_id in ("x" * 129, "a b"):
        assert client.get("/v2", headers={"x-request-id": invalid_id}).headers["x-request-id"] != invalid_id
    assert "x-request-id" in client.get("/nothing").headers


def test_metrics_count_requests(client: Client):
    def count() -> float:
        name = 'unkernel_request_seconds_count{endpoint="predict",model="people",status="400"}'
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(name)]
        return float(lines[0].rpartition(" ")[2]) if lines else 0.0

    count_before = count()
    client.post(PREDICT, content=b"{")
    assert count() == count_before + 1


def test_openapi_has_the_columns_of_the_model(files):
    with served({"people": files["people"], "text": files["text"]}) as client:
        answer = client.get("/openapi.json").json()
        body = answer["paths"]["/models/people/predict"]["post"]["requestBody"]["content"]["application/json"]
        properties = body["schema"]["oneOf"][0]["properties"]
        assert list(properties) == ["age", "town"]
        assert properties["town"]["examples"] == ["Kyoto", "Nara", "Osaka", "Uji"]
        for path, operations in answer["paths"].items():
            (method,) = operations
            assert client.ask(method.upper(), path, content=b"null").status_code in (200, 400), path


def test_the_schema_of_truth_values_allows_numbers(tmp_path):
    rows = [{"member": True, "age": 3}, {"member": False, "age": 4}] * 10
    pipeline = make_pipeline(RecordEncoder(min_count=1), PolyLogisticRegression(degree=1))
    unkernel.compile(pipeline.fit(rows, ["yes", "no"] * 10), measure=False).save(tmp_path / "m.uk")
    with served({"m": tmp_path / "m.uk"}) as client:
        result = client.get("/openapi.json").json()["paths"]["/models/m/predict"]["post"]
        item = result["requestBody"]["content"]["application/json"]["schema"]["oneOf"][0]
        assert item["properties"]["member"]["type"] == ["number", "boolean", "null"]
        assert client.post("/models/m/predict", json=rows[0]).json()["prediction"] == "yes"


@pytest.mark.parametrize("name", ["", "a/b", "..", "über", 7])
def test_names_of_models_are_checked_in_python_too(name):
    with pytest.raises(ValueError, match="a model's name may have letters"):
        Settings({name: "income.uk"})


def test_models_are_called_as_their_files():
    assert parse_model_files(["a/income.uk", "b=c/d.uk"]) == {"income": "a/income.uk", "b": "c/d.uk"}
    assert parse_model_files(["a/x=y/income.uk"]) == {"income": "a/x=y/income.uk"}
    for arguments, words in (
        (["a/x.uk", "b/x.uk"], "two models are called 'x'"),
        (["über.uk"], "write name=über.uk"),
        (["a/b=x.uk"], "write name=a/b=x.uk"),
        ([], "at least one"),
    ):
        with pytest.raises(ValueError, match=words):
            parse_model_files(arguments)


def test_names_with_slashes_are_refused_as_names(tmp_path):
    (tmp_path / "x.uk").touch()
    with pytest.raises(ValueError, match=f"write name={tmp_path / 'x.uk'}"):
        parse_model_files([f"a/b={tmp_path / 'x.uk'}"])


def test_token_files_are_checked(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("# ours\nabc\n\n  def \n")
    assert read_tokens(path) == ("abc", "def")
    for text, words in (("# none\n", "has no token"), ("two words\n", "no blanks")):
        path.write_text(text)
        with pytest.raises(ValueError, match=words):
            read_tokens(path)
    path.write_bytes(b"abc\xff")
    with pytest.raises(ValueError, match="tokens: is not UTF-8: byte 3 is invalid"):
        read_tokens(path)


def test_settings_are_read_back_from_their_file(tmp_path):
    settings = Settings({"a": "b.uk"}, port=1, tokens=("x",), limits=Limits(body=7))
    settings.write(tmp_path / "settings.json")
    restored = Settings.read(tmp_path / "settings.json")
    assert (restored.models, restored.port, list(restored.tokens), restored.limits) == (
        {"a": "b.uk"},
        1,
        ["x"],
        Limits(body=7),
    )
