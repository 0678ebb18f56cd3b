"""Adapters inside MLServer, KServe and MLflow, which run in separate processes."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolyLogisticRegression, RecordEncoder

pytestmark = pytest.mark.slow
PATIENCE = 120  # seconds for a server to start
RECORDS = [{"age": 20.0, "job": "a"}, {"age": 30.0, "job": "b"}, {"age": 50.0, "job": "a"}] * 10
LABELS = ["no", "yes", "no"] * 10
TENSORS = {
    "inputs": [
        {"name": "age", "datatype": "FP64", "shape": [3], "data": [20.0, 30.0, 50.0]},
        {"name": "job", "datatype": "BYTES", "shape": [3], "data": ["a", "b", "a"]},
    ]
}


def needs(*modules: str) -> pytest.MarkDecorator:
    missing_modules = [module for module in modules if find_spec(module) is None]
    return pytest.mark.skipif(bool(missing_modules), reason=f"not installed: {', '.join(missing_modules)}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one model."""
    pipeline = make_pipeline(RecordEncoder(), PolyLogisticRegression(degree=2)).fit(RECORDS, LABELS)
    model_folder = tmp_path_factory.mktemp("model")
    unkernel.compile(pipeline).save(model_folder / "model.uk")
    return model_folder


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free_socket:
        return int(free_socket.getsockname()[1])


def send_request(port: int, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200:
        raise OSError(f"{response.status}: {answer!r}")
    return json.loads(answer)


@contextmanager
def run_server(command: list[str], **environment: str) -> Iterator[Callable[[int, str, Any], Any]]:
    """Start a server, and yield a function that sends requests to it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    everything = os.environ | {"PATH": path} | environment
    with subprocess.Popen([sys.executable, *command], env=everything) as process:

        def ask(port: int, path: str, body: Any) -> Any:
            fault: Exception | None = None
            for _ in range(2 * PATIENCE):
                try:
                    return send_request(port, path, body)
                except OSError as error:
                    fault = error
                assert process.poll() is None, "the server ended"
                time.sleep(0.5)
            raise AssertionError(f"the server does not answer: {fault}")

        try:
            yield ask
        finally:
            process.terminate()


def predictions(answer: Any) -> list[str]:
    (data,) = [output["data"] for output in answer["outputs"] if output["name"] == "predict"]
    return list(data)


@needs("mlserver")
def test_mlserver(folder: Path):
    settings = {"name": "income", "implementation": "unkernel.mlserver.UnkernelRuntime"}
    settings["parameters"] = {"uri": "./model.uk", "version": "1"}  # type: ignore[assignment]
    (folder / "model-settings.json").write_text(json.dumps(settings))
    port = free_port()
    server_settings = {"HOST": "127.0.0.1", "HTTP_PORT": str(port), "GRPC_PORT": str(free_port())}
    server_settings |= {"METRICS_ENDPOINT": "", "PARALLEL_WORKERS": "0"}
    command = ["-c", "from mlserver.cli import main; main()", "start", str(folder)]
    with run_server(command, **{f"MLSERVER_{name}": value for name, value in server_settings.items()}) as ask:
        assert predictions(ask(port, "/v2/models/income/infer", TENSORS)) == LABELS[:3]


@needs("kserve")
def test_kserve(folder: Path):
    port = free_port()
    command = ["-m", "unkernel.kserve", "--model_name", "income", "--model_dir", str(folder)]
    with run_server([*command, "--http_port", str(port), "--enable_grpc", "false"]) as ask:
        result = ask(port, "/v1/models/income:predict", {"instances": RECORDS})
        assert [prediction["prediction"] for prediction in result["predictions"]] == LABELS
        assert predictions(ask(port, "/v2/models/income/infer", TENSORS)) == LABELS[:3]


@needs("mlflow", "fastapi", "uvicorn")
def test_mlflow(folder: Path, tmp_path: Path):
    flavour = pytest.importorskip("unkernel.mlflow")
    flavour.save_model(unkernel.load(folder / "model.uk"), tmp_path / "income")
    port = free_port()
    command = ["-m", "mlflow", "models", "serve", "-m", str(tmp_path / "income"), "-p", str(port)]
    with run_server([*command, "--env-manager", "local"]) as ask:
        result = ask(port, "/invocations", {"dataframe_records": RECORDS})
        assert result["predictions"] == LABELS
