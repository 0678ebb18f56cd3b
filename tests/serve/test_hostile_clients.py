"""Slow clients, too many clients, too large requests, and work that does not end."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from serve.serving import RECORDS, Server, started
from unkernel.serve.connection_limits import ConnectionLimits

pytestmark = pytest.mark.hostile
PATIENCE = 60.0  # seconds, after which a test counts as hung
HEAD = b"POST /models/people/predict HTTP/1.1\r\nhost: x\r\n"
ONE = json.dumps(RECORDS[0]).encode()


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def read_all(connection: socket.socket) -> bytes:
    """Return everything received until the server closes its side."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def status_and_error(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def answers(server: Server) -> bool:
    with connect(server) as connection:
        connection.sendall(HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(ONE) + ONE)
        return read_all(connection).startswith(b"HTTP/1.1 200")


def wait_for_answers(server: Server) -> None:
    """Wait until a server that has just started answers."""
    while server.process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError):
            assert answers(server)
            break
        time.sleep(0.1)


# --- Slow clients -------------------------------------------------------------------------------------


def test_requests_whose_head_is_late_are_closed(files):
    with started(files["people"], "--max-seconds", "0.5") as server:
        with connect(server) as silent, connect(server) as incomplete:
            incomplete.sendall(HEAD + b"content-le")
            assert status_and_error(read_all(incomplete)) == (
                408,
                "the head of the request did not arrive in time",
            )
            assert read_all(silent) == b""
        with connect(server) as idle:  # an idle client between requests is not disconnected
            for _ in range(2):
                idle.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE)
                assert idle.recv(65536).startswith(b"HTTP/1.1 200")
                time.sleep(1.0)
        assert answers(server)


def test_endless_request_heads_are_refused(people):
    for line in (b"x: y\r\n", b"y" * 1000):
        with connect(people) as connection:
            connection.sendall(HEAD + b"x: ")
            with contextlib.suppress(ConnectionError):  # if the server does not read all of it
                for _ in range(1_000_000 // len(line)):
                    connection.sendall(line)
            status, error = status_and_error(read_all(connection))
        assert (status, error) == (431, "the head of a request may have at most 65,536 bytes")
    assert answers(people)


class Stalled:
    """A connection with a controlled wait."""

    def __init__(self) -> None:
        self.wait: object | None = None
        self.given_up = False

    def pending_head(self) -> object | None:
        return self.wait

    def refuse_late_head(self) -> None:
        self.given_up = True


def test_late_heads_are_refused_only_if_the_same_request_is_waiting():
    limits, same_request, new_request = ConnectionLimits(10.0, 100), Stalled(), Stalled()
    limits.connections = [same_request, new_request]
    same_request.wait, new_request.wait = object(), object()
    limits.close_overdue(0.0)
    limits.close_overdue(9.0)
    new_request.wait = object()  # another request begins
    limits.close_overdue(10.0)
    assert (same_request.given_up, new_request.given_up) == (True, False)
    limits.close_overdue(19.0)
    assert not new_request.given_up
    limits.close_overdue(20.0)
    assert new_request.given_up


# --- Large and broken requests ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_bodies_that_are_too_large_are_answered_before_the_connection_ends(files, how):
    """Clients that send the whole body before they read get the answer, too."""
    with started(files["people"], "--max-body", "100k") as server:
        part, count = b"x" * 1_000_000, 50
        with connect(server) as connection:
            if how == "length":
                connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % (len(part) * count))
            else:
                connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
            for _ in range(count):
                frame = b"%x\r\n%b\r\n" % (len(part), part) if how == "chunks" else part
                connection.sendall(frame)
            status, error = status_and_error(read_all(connection))
        assert (status, error) == (413, "the body has more than 100,000 bytes, the server's limit")
        assert answers(server)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # the beginning of TLS
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400),
        (HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", 400),
        (HEAD + b"connection: close\r\ncontent-length: 200000\r\n\r\n" + b"[" * 200_000, 400),
        (HEAD + b"connection: close\r\ncontent-length: 3\r\n\r\n\xff\xfe[", 400),
        (HEAD + b"connection: close\r\ncontent-length: 5\r\n\r\n" + b'"\xc3\x28" ', 400),
    ],
)
def test_invalid_requests_get_an_error_response(people, sent, status):
    with connect(people) as connection:
        connection.sendall(sent)
        assert status_and_error(read_all(connection))[0] == status
    assert answers(people)


@pytest.fixture(scope="module")
def people(files):
    with started(files["people"]) as server:
        yield server


def test_websockets_are_answered_as_plain_requests(people):
    with connect(people) as connection:
        connection.sendall(
            b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            b"sec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n"
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    assert answers(people)


# --- Many clients -------------------------------------------------------------------------------------


def test_connections_beyond_the_limit_are_refused_with_a_response(files):
    with started(files["people"], "--max-connections", "20") as server, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(server)) for _ in range(20)]
        for connection in connections:
            connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with connect(server) as refused:
            status, error = status_and_error(read_all(refused))
            assert (status, error) == (503, "the server has too many connections: try again in a second")
        connections[0].sendall(HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE)
        assert connections[0].recv(65536).startswith(b"HTTP/1.1 200")


# --- A full disk --------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_for_the_log_fails_no_request(files):
    with socket.create_server(("127.0.0.1", 0)) as free_port:
        port = free_port.getsockname()[1]
    command = [sys.executable, "-m", "unkernel", "serve", str(files["people"]), "--log-requests"]
    with (
        Path("/dev/full").open("w") as full_device,
        subprocess.Popen([*command, "--port", str(port)], stderr=full_device, text=True) as process,
    ):
        wait_for_answers(Server(process, f"http://127.0.0.1:{port}"))
        process.terminate()
        assert process.wait(PATIENCE) == 0


# --- Work that does not end ---------------------------------------------------------------------------

PATIENT = """
    from unkernel.serve import model_endpoints, watchdog
    from unkernel.serve.answerers.records import RecordAnswerer
    model_endpoints._GRACE_SECONDS = watchdog._GRACE_SECONDS = {grace}
    RecordAnswerer.explain = lambda *_: {work}
"""
WITH_THE_LOCK = "__import__('ctypes').PyDLL(None).sleep(600)"  # so that no other thread can run
WITHOUT_THE_LOCK = "__import__('time').sleep(600)"
EXPLAIN = HEAD.replace(b"predict", b"explain") + b"content-length: %d\r\n\r\n" % len(ONE) + ONE


def test_timed_out_work_does_not_keep_the_server_from_ending(files: dict[str, Path]):
    patch = PATIENT.format(grace=600, work=WITHOUT_THE_LOCK)
    options = ("--max-seconds", "0.5", "--drain", "1")
    with started(files["people"], *options, patch=patch) as server, connect(server) as connection:
        connection.sendall(EXPLAIN)
        assert connection.recv(65536).startswith(b"HTTP/1.1 504")
        connection.sendall(EXPLAIN)  # and one request in progress
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0


def test_a_worker_whose_work_does_not_end_is_replaced(files: dict[str, Path]):
    patch = PATIENT.format(grace=0.5, work=WITHOUT_THE_LOCK)
    with started(files["people"], "--max-seconds", "0.5", "--drain", "1", patch=patch) as server:
        with connect(server) as connection:
            connection.sendall(EXPLAIN)
            assert connection.recv(65536).startswith(b"HTTP/1.1 504")
        assert answers(server)
        stuck = server.log("request does not end")["process"]
        assert server.log("worker replaced")["worker"] == stuck
        assert answers(server)


def test_blocked_workers_are_replaced(files: dict[str, Path]):
    """No thread of a blocked worker can run, so not even health checks are answered."""
    patch = PATIENT.format(grace=0.5, work=WITH_THE_LOCK)
    with started(files["people"], "--max-seconds", "0.5", patch=patch) as server:
        held_up = server.log("model loaded")["process"]
        with connect(server) as connection, connect(server) as waiting:
            connection.sendall(EXPLAIN)
            with contextlib.suppress(ConnectionError):
                assert connection.recv(65536) == b""
            with contextlib.suppress(ConnectionError):  # its clients must connect again
                waiting.sendall(HEAD)
        report = server.log("worker did not answer")
        assert report["worker"] == held_up
        assert "explain" in report["stack"] or "<lambda>" in report["stack"]
        assert server.log("worker replaced")["worker"] == held_up
        assert answers(server)


def test_a_worker_that_cannot_start_ends_the_server(files: dict[str, Path]):
    patch = """
        import sys
        if "-m" in sys.orig_argv and "unkernel.serve.worker" in sys.orig_argv:
            raise SystemExit(3)
    """
    with started(files["people"], patch=patch) as server:
        assert server.process.wait(PATIENCE) == 2
        assert server.process.stderr is not None
        message = server.process.stderr.read().splitlines()[-1]
        assert message == "unkernel: error: a worker could not start; the log says why"


@pytest.mark.parametrize("keep_alive", [False, True])
def test_no_connection_is_reset_when_the_server_ends(files: dict[str, Path], keep_alive: bool):
    """Requests already sent are answered, on new and on kept connections."""
    answered, faults = threading.Semaphore(0), []
    request = HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE

    def ask_until_refused() -> None:
        while True:
            try:
                connection = connect(server)
            except OSError:
                return
            with connection:
                try:
                    ask_until_told_to_close(connection)
                except Exception as fault:
                    faults.append(fault)

    def ask_until_told_to_close(connection: socket.socket) -> None:
        while True:
            connection.sendall(request)
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            answered.release()
            if not keep_alive or b"connection: close" in answer:
                return

    with started(files["people"], "--workers", "2") as server:
        clients = [threading.Thread(target=ask_until_refused) for _ in range(8)]
        for client in clients:
            client.start()
        for _ in range(200):
            answered.acquire()
        server.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(PATIENCE)
        assert server.process.wait(PATIENCE) == 0
    assert faults == []


def test_quiet_servers_log_errors_alone(files: dict[str, Path]):
    with socket.create_server(("127.0.0.1", 0)) as free_port:
        port = free_port.getsockname()[1]
    command = [sys.executable, "-m", "unkernel", "serve", str(files["people"]), "--port", str(port)]
    with subprocess.Popen([*command, "--quiet"], stderr=subprocess.PIPE, text=True) as process:
        wait_for_answers(Server(process, f"http://127.0.0.1:{port}"))
        process.terminate()
        assert process.communicate(timeout=PATIENCE)[1] == ""
