"""Serving: Adult's records over HTTP, one worker and one machine, against other servers of the same pipeline.

All servers have the same pipeline of OneHotEncoder, KBinsDiscretizer and LogisticRegression, and return the
label and the probabilities. wrk sends requests over connections that stay open. Our server is also measured
with a model of conjunctions of degree 2.

- "one": a record per request: requests per second, the CPU time of the server, and the 99th percentile of the
  latency at full load and at half of this load.
- "batch": a list of 1,000 records per request.
- "lines": JSON lines, streamed in and out.

The peers are FastAPI with scikit-learn, MLServer's runtime for scikit-learn, and ONNX Runtime under uvicorn,
the server that we use. If other programs run at the same time, latencies mean little; CPU times are affected
least.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/serve.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import joblib
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import unkernel
from harness import Report, main
from records import NUMBERS, adult, one_hot_and_bins
from unkernel import PolySVC, RecordEncoder

CONNECTIONS = 16
BATCH = 1000
PATIENCE = 120  # seconds for a server to start
TICKS = os.sysconf("SC_CLK_TCK")
MLSERVER_MODEL = {
    "name": "m",
    "implementation": "mlserver_sklearn.SKLearnModel",
    "parameters": {"uri": "../pipeline.joblib"},
}
POST = """wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
file:close()
"""


def as_json(inputs: Any) -> bytes:
    """Return a record or a list of records as JSON."""
    return json.dumps(inputs, separators=(",", ":")).encode()


def as_tensors(record_or_list: Any) -> bytes:
    """Return a request of the Open Inference Protocol: a tensor per column, read as a pandas DataFrame."""
    records = record_or_list if isinstance(record_or_list, list) else [record_or_list]
    inputs = [
        {
            "name": name,
            "datatype": "FP64" if name in NUMBERS else "BYTES",
            "shape": [len(records), 1],
            "data": [record[name] for record in records],
        }
        | ({} if name in NUMBERS else {"parameters": {"content_type": "str"}})
        for name in records[0]
    ]
    outputs = [{"name": "predict"}, {"name": "predict_proba"}]
    return as_json({"parameters": {"content_type": "pd"}, "inputs": inputs, "outputs": outputs})


def count_of_tensors(answer: Any) -> int:
    """Return the number of records in an answer of the Open Inference Protocol."""
    return int(answer["outputs"][0]["shape"][0])


@dataclass(frozen=True)
class Contender:
    """A server: how it is started, where it answers, and how requests and answers are written."""

    name: str
    command: Callable[[int], list[str]]
    path: str
    needs: Sequence[str] = ()
    environment: Callable[[int], dict[str, str]] = lambda _: {}
    request: Callable[[Any], bytes] = as_json
    count: Callable[[Any], int] = len


def ours(name: str, file: str) -> Contender:
    return Contender(
        name,
        lambda port: [sys.executable, "-m", "unkernel", "serve", f"m={file}", "--port", str(port), "-q"],
        "/models/m/predict",
    )


def peer(name: str, factory: str, *needs: str) -> Contender:
    def command(port: int) -> list[str]:
        where = [f"serve_peers:{factory}", "--factory", "--port", str(port)]
        return [sys.executable, "-m", "uvicorn", *where, "--no-access-log", "--log-level", "warning"]

    return Contender(name, command, "/predict", needs)


def mlserver_settings(port: int) -> dict[str, str]:
    """Return settings of MLServer: one process, little output, and free ports."""
    settings = {
        "HOST": "127.0.0.1",
        "HTTP_PORT": port,
        "GRPC_PORT": free_port(),
        "METRICS_ENDPOINT": "",
        "PARALLEL_WORKERS": 0,
        "DEBUG": "false",
    }
    return {f"MLSERVER_{name}": str(value) for name, value in settings.items()}


CONTENDERS = [
    ours("unkernel", "linear.uk"),
    ours("unkernel, degree 2", "degree2.uk"),
    peer("ONNX Runtime under uvicorn", "onnx", "onnxruntime", "skl2onnx"),
    peer("FastAPI + scikit-learn", "fastapi_sklearn", "fastapi"),
    Contender(
        "MLServer + scikit-learn",
        lambda _: [sys.executable, "-c", "from mlserver.cli import main; main()", "start", "mlserver"],
        "/v2/models/m/infer",
        ("mlserver", "mlserver_sklearn"),
        mlserver_settings,
        as_tensors,
        count_of_tensors,
    ),
]


def make_models(folder: Path) -> list[Any]:
    """Write the models of all contenders, and return a batch of records."""
    X, y = adult("train")
    pipeline = make_pipeline(one_hot_and_bins(X, "onehot-dense"), LogisticRegression(max_iter=1000)).fit(X, y)
    unkernel.compile(pipeline).save(folder / "linear.uk")
    degree2 = make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y)
    unkernel.compile(degree2).save(folder / "degree2.uk")
    joblib.dump(pipeline, folder / "pipeline.joblib")
    (folder / "mlserver").mkdir()
    (folder / "mlserver" / "model-settings.json").write_text(json.dumps(MLSERVER_MODEL))
    (folder / "classes.json").write_text(json.dumps(pipeline.classes_.tolist()))
    if importlib.util.find_spec("skl2onnx"):
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType

        kinds = {name: FloatTensorType if name in NUMBERS else StringTensorType for name in X.columns}
        types = [(name, kind([None, 1])) for name, kind in kinds.items()]
        model = to_onnx(pipeline, initial_types=types, options={"zipmap": False})
        (folder / "pipeline.onnx").write_bytes(model.SerializeToString())
    return adult("test")[0].head(BATCH).to_dict("records")


# --- Servers and clients ------------------------------------------------------------------------------


class Running:
    """A running server."""

    def __init__(self, contender: Contender, process: int, port: int) -> None:
        self.contender = contender
        self._process = process
        self.port = port

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the server and its workers so far."""
        return sum(_cpu_seconds(process) for process in (self._process, *_children(self._process)))

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, inputs: Any) -> Any:
        """Return the answer to a record or a list of records; raise an OSError if it is an error."""
        body = self.contender.request(inputs)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("POST", self.contender.path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise OSError(f"{response.status}: {answer.decode()}")
        return json.loads(answer)

    def load(self, body: Path, seconds: float, connections: int = CONNECTIONS) -> tuple[float, float, float]:
        """Return requests per second, the 99th percentile of latency in ms, and CPU µs per request."""
        script = body.with_suffix(".lua")
        script.write_text(POST.format(body=body))
        cpu_before = self.cpu_seconds()
        address = f"http://127.0.0.1:{self.port}{self.contender.path}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", f"{PATIENCE}", "-s", script]
        command += ["--latency", address]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "Non-2xx" not in output and "Socket errors" not in output, output
        requests = int(re.search(r"(\d+) requests in", output)[1])  # type: ignore[index]
        rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])  # type: ignore[index]
        latency, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", output).groups()  # type: ignore[union-attr]
        spent = (self.cpu_seconds() - cpu_before) / requests
        return rate, float(latency) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit], spent * 1e6


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _children(process: int) -> list[int]:
    return [
        int(child)
        for listed in Path(f"/proc/{process}/task").glob("*/children")
        for child in listed.read_text().split()
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free_socket:
        return int(free_socket.getsockname()[1])


@contextlib.contextmanager
def running(contender: Contender, folder: Path, batch: list[Any]) -> Iterator[Running]:
    """Start a server that answers; ImportError if something that it needs is not here."""
    for module in contender.needs:
        if importlib.util.find_spec(module) is None:
            raise ImportError(f"there is no module {module}")
    port = free_port()
    search = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {"SERVE_MODELS": str(folder), "PYTHONPATH": search, "OMP_NUM_THREADS": "1"}
    environment = os.environ | settings | contender.environment(port)
    with subprocess.Popen(contender.command(port), cwd=folder, env=environment) as process:
        try:
            server = Running(contender, process.pid, port)
            answer = first_answer(server, process, batch)
            assert contender.count(answer) == len(batch), answer
            yield server
        finally:
            process.terminate()


def first_answer(server: Running, process: subprocess.Popen[bytes], batch: list[Any]) -> Any:
    """Wait for the answer to a batch: some servers refuse requests until they have loaded the model."""
    fault: Exception | None = None
    for _ in range(10 * PATIENCE):
        try:
            return server.ask(batch)
        except OSError as error:
            fault = error
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"{server.contender.name} does not answer: {fault}")


def send_steadily(server: Running, body: bytes, rate: float, seconds: float) -> float:
    """Return the 99th percentile of the latency, in milliseconds, of requests at a steady rate.

    There are several connections: a request that takes long does not keep the next from being sent.
    """
    head = f"POST {server.contender.path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    request = head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body
    took: list[float] = []
    with contextlib.ExitStack() as opened, selectors.DefaultSelector() as answered:
        idle = [opened.enter_context(server.connect()) for _ in range(CONNECTIONS)]
        sent: dict[socket.socket, float] = {}
        for connection in idle:
            answered.register(connection, selectors.EVENT_READ)
        began = time.perf_counter()
        for number in range(int(rate * seconds)):
            due = began + number / rate
            while not idle or time.perf_counter() < due:
                for key, _ in answered.select(0):
                    connection = cast("socket.socket", key.fileobj)
                    if connection.recv(65536).endswith(b"}"):
                        took.append(time.perf_counter() - sent.pop(connection))
                        idle.append(connection)
            connection = idle.pop(0)
            sent[connection] = time.perf_counter()
            connection.sendall(request)
    return sorted(took)[int(0.99 * len(took))] * 1e3


def stream_lines(server: Running, lines: bytes) -> float:
    """Return the bytes of JSON lines per second, sent and received."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(lines)
        file.flush()
        command = ["curl", "-sS", "-X", "POST", "-T", file.name, "-H", "content-type: application/x-ndjson"]
        command += [f"http://127.0.0.1:{server.port}{server.contender.path}", "-o", os.devnull]
        began = time.perf_counter()
        subprocess.run([*command, "-H", "expect:"], check=True)
        return len(lines) / (time.perf_counter() - began)


# --- Tasks --------------------------------------------------------------------------------------------


def measure_one(report: Report, server: Running, folder: Path, batch: list[Any], seconds: float) -> None:
    task, name = "one record per request", server.contender.name
    record = server.contender.request(batch[0])
    body = folder / "one.json"
    body.write_bytes(record)
    server.load(body, 1)  # what is made ready by the first requests is ready
    rate, late, spent = max((server.load(body, seconds) for _ in range(3)), key=lambda actual: actual[0])
    report.add(task, name, "requests", "1/s", rate)
    report.add(task, name, "CPU time of the server", "µs per request", spent)
    report.add(task, name, "99th percentile, full load", "ms", late)
    report.add(
        task, name, "99th percentile, half load", "ms", send_steadily(server, record, rate / 2, seconds)
    )


def measure_batch(report: Report, server: Running, folder: Path, batch: list[Any], seconds: float) -> None:
    task, name = f"{BATCH:,} records per request", server.contender.name
    body = folder / "batch.json"
    body.write_bytes(server.contender.request(batch))
    rate, _, spent = max((server.load(body, seconds, 2) for _ in range(3)), key=lambda actual: actual[0])
    report.add(task, name, "records", "1/s", rate * BATCH)
    report.add(task, name, "CPU time of the server", "µs per record", spent / BATCH)


def measure_lines(report: Report, server: Running, _: Path, batch: list[Any], seconds: float) -> None:
    if not server.contender.name.startswith("unkernel"):
        return  # the others have no streams
    lines = b"".join(as_json(record) + b"\n" for record in batch)
    best = max(stream_lines(server, lines * int(20 * seconds)) for _ in range(3))
    report.add("JSON lines", server.contender.name, "in and out", "MB/s", best / 1e6)


TASKS = {"one": measure_one, "batch": measure_batch, "lines": measure_lines}


def measure(report: Report, tasks: Sequence[str]) -> None:
    if shutil.which("wrk") is None:
        report.leave_out("all", "there is no wrk, which asks the servers")
        return
    warnings.filterwarnings("ignore", "Bins whose width")
    seconds = 2 if report.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            batch = make_models(folder)
        except FileNotFoundError as error:
            report.leave_out("all", error)
            return
        for contender in CONTENDERS:
            try:
                with running(contender, folder, batch) as server:
                    for task in tasks:
                        TASKS[task](report, server, folder, batch, seconds)
            except (ImportError, RuntimeError) as error:
                report.leave_out(contender.name, error)


if __name__ == "__main__":
    main(measure, list(TASKS))
