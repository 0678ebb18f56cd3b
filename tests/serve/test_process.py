"""Servers in separate processes: start, end, reloads under load, and bad clients."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

import httpx
import pytest

from serve.serving import LABELS, RECORDS, record_model, started
from unkernel.cli import main

hostile = pytest.mark.hostile


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a temporary folder per test, which has no files of other servers."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


def depots() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("unkernel-serve-*")}


# --- Starting -----------------------------------------------------------------------------------------


def test_files_and_options_that_cannot_be_served_are_refused_at_start(files, tmp_path: Path, capsys):
    cut_file = tmp_path / "cut.uk"
    cut_file.write_bytes(files["people"].read_bytes()[:-10])
    old_depots = depots()
    for arguments, words in (
        ([cut_file], "cut.uk"),
        ([tmp_path / "none.uk"], "none.uk: No such file or directory"),
        ([files["people"], f"people={files['rows']}"], "two models are called 'people'"),
        ([files["people"], "--token-file", tmp_path / "no"], "no: No such file"),
        ([files["people"], "--max-body", "much"], "--max-body must be bytes"),
    ):
        assert main(["serve", *map(str, arguments)]) == 2
        assert words in capsys.readouterr().err
    assert depots() == old_depots


def test_a_port_that_is_taken_is_named(files, capsys):
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        assert main(["serve", str(files["people"]), "--port", str(port)]) == 2
    message = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in " ".join(message.split())


# --- Running ------------------------------------------------------------------------------------------


@hostile
@pytest.mark.parametrize("workers", [1, 2])
def test_servers_end_cleanly_and_leave_no_files(files, workers: int):
    old_depots = depots()
    with started(files["people"], "--workers", str(workers)) as server:
        server.log("model loaded")
        with httpx.Client(base_url=server.address) as client:
            assert client.post("/models/people/predict", json=RECORDS[0]).json()["prediction"] == LABELS[0]
            assert client.get("/metrics").text.count("unkernel_request_seconds_count") >= 1
        assert depots() > old_depots
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
    assert depots() == old_depots


@hostile
def test_workers_end_when_their_server_is_killed(files):
    with started(files["people"], "--workers", "2") as server:
        server.log("model loaded")
        server.process.kill()
        server.process.wait(30)
        assert any(_refuses_connections(server.address) for _ in range(600))


def _refuses_connections(address: str) -> bool:
    """Return whether no worker has the socket any more."""
    try:
        httpx.get(f"{address}/v2/health/live")
    except httpx.ConnectError:
        return True
    except httpx.TransportError:  # a worker is just ending
        pass
    time.sleep(0.1)
    return False


@hostile
def test_requests_that_began_are_answered_after_sigterm(files):
    head = b"POST /models/people/predict HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{"
    with started(files["people"]) as server:
        server.log("model loaded")
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
            client.sendall(head)
            while httpx.get(f"{server.address}/v2/health/live").status_code != 200:
                pass
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(OSError):  # it accepts no more connections
                for _ in range(10_000):
                    socket.create_connection(("127.0.0.1", server.port), timeout=30).close()
            client.sendall(b"}")
            assert client.recv(4096).startswith(b"HTTP/1.1 200 OK")
        assert server.process.wait(30) == 0


@hostile
def test_a_worker_that_is_killed_is_replaced(files):
    with started(files["people"], "--workers", "2") as server:
        killed = server.log("model loaded")["process"]
        os.kill(killed, signal.SIGKILL)
        remaining = {server.log("model loaded")["process"] for _ in range(2)}
        assert killed not in remaining
        assert httpx.get(f"{server.address}/v2/health/ready").status_code == 200


@hostile
def test_reloads_under_load_fail_no_request(files, tmp_path: Path):
    """A short version of tests/campaigns/reloads.py: files are replaced while requests continue."""
    path, other_model = tmp_path / "people.uk", tmp_path / "other.uk"
    shutil.copy(files["people"], path)
    record_model(C=0.01).save(other_model)
    statuses: list[int] = []
    ended = threading.Event()
    with started(path, "--workers", "2", "--watch", "0.05") as server:
        server.log("model loaded")

        def ask() -> None:
            with httpx.Client(base_url=server.address) as client:
                while not ended.is_set():
                    statuses.append(client.post("/models/people/predict", json=RECORDS[0]).status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            with httpx.Client(base_url=server.address) as client:
                for number in range(40):
                    source = other_model if number % 2 else files["people"]
                    shutil.copy(source, tmp_path / "new.uk").replace(path)
                    assert client.post("/models/people/load").status_code == 200
                path.write_bytes(b"damaged")
                assert client.post("/models/people/load").status_code == 409
        finally:
            ended.set()
            asking.join()
        assert set(statuses) == {200}
        assert httpx.get(f"{server.address}/models/people").json()["version"] >= "40"


# --- Bad clients --------------------------------------------------------------------------------------


@hostile
def test_bad_clients_do_no_harm(files):
    with started(files["people"], "--max-body", "1M", "--max-seconds", "0.5") as server:
        server.log("model loaded")

        def send_bytes(data: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
                client.sendall(data)
                result = b""
                while part := client.recv(65536):
                    result += part
                return result

        post = b"POST /models/people/predict HTTP/1.1\r\nhost: x\r\n"
        assert send_bytes(b"\0\1\2 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert send_bytes(post + b"content-length: 1000000000\r\n\r\n").startswith(b"HTTP/1.1 413")
        assert send_bytes(post + b"content-length: 10\r\n\r\n{").startswith(b"HTTP/1.1 408")
        chunked = post + b"transfer-encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n"
        assert send_bytes(chunked).startswith(b"HTTP/1.1 408")
        with httpx.Client(base_url=server.address) as client:
            deep = client.post("/models/people/predict", content=b"[" * 900_000)
            assert deep.status_code == 400
            assert client.post("/models/people/predict", json=RECORDS[0]).status_code == 200
