"""Servers in this process and in separate processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import unkernel
from unkernel import PolyLogisticRegression, RecordEncoder
from unkernel.serve.model_snapshots import ModelSnapshots, make_snapshot_folder
from unkernel.serve.settings import Settings
from unkernel.serve.worker import make_application

RECORDS = [
    {"age": age, "town": town}
    for age in (20, 30, 40, 50, 60, 70)
    for town in ("Kyoto", "Nara", "Osaka", "Uji")
]
LABELS = ["high" if (record["age"] > 45) != (record["town"] == "Nara") else "low" for record in RECORDS]
TREES = [
    "(S (NP dogs) (VP bark))",
    "(S (NP cats) (VP sleep))",
    "(NP (NP cats) (PP of))",
    "(NP (NP a) (PP b))",
]


def record_model(C: float = 1000.0, kind: Any = PolyLogisticRegression) -> Any:
    from sklearn.pipeline import make_pipeline

    encoder = RecordEncoder(n_bins=4, min_count=1)
    return unkernel.compile(make_pipeline(encoder, kind(degree=2, C=C)).fit(RECORDS, LABELS), measure=False)


class Client:
    """A client of an application in this process."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, **options)

        return asyncio.run(asked())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("POST", path, **options)


@contextmanager
def served(files: dict[str, Path], **options: Any) -> Iterator[Client]:
    """Yield a server in this process."""
    names = {name: str(path) for name, path in files.items()}
    with make_snapshot_folder() as folder:
        snapshots = ModelSnapshots(folder, names)
        for name in names:
            assert snapshots.take_snapshot(name).refusal is None
        yield Client(make_application(Settings(names, depot=str(folder), **options)))


class Server:
    """A server in its own process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.port = int(address.rpartition(":")[2])

    def log(self, message: str) -> dict[str, Any]:
        """Return the next line of the log with a message."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("{") and (entry := json.loads(line))["message"] == message:
                return dict(entry)
        raise AssertionError(f"the server ended before it logged {message!r}")


@contextmanager
def started(*arguments: str | Path, patch: str = "") -> Iterator[Server]:
    """Yield ``unkernel serve`` with a free port, once it listens and its models are loaded.

    All of its processes run `patch` before anything else.
    """
    command = [sys.executable, "-m", "unkernel", "serve", *map(str, arguments), "--port", "0"]
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | _write_startup_patch(Path(folder), patch),
        ) as process,
    ):
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            address = re.search(r"http://\S+", line)
            assert address, line + process.stderr.read()
            yield Server(process, address[0])
        finally:
            process.terminate()  # a killed server could not end its workers


def _write_startup_patch(folder: Path, patch: str) -> dict[str, str]:
    """Return an environment in which Python runs some code at startup."""
    if not patch:
        return {}
    (folder / "sitecustomize.py").write_text(textwrap.dedent(patch))
    search_path = filter(None, [os.environ.get("PYTHONPATH")])
    return {"PYTHONPATH": os.pathsep.join([str(folder), *search_path])}
