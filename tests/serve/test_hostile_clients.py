"""Clients that are slow, or too many, or send too much, and work that does not end."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from serve.serving import RECORDS, Server, started
from unkernel.serve.guarding import Guard

pytestmark = pytest.mark.hostile
PATIENCE = 60.0  # seconds, after which something hangs
HEAD = b"POST /models/people/predict HTTP/1.1\r\nhost: x\r\n"
ONE = json.dumps(RECORDS[0]).encode()


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes its side."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def status_and_error(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def answers(server: Server) -> bool:
    with connected(server) as connection:
        connection.sendall(HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(ONE) + ONE)
        return read_all(connection).startswith(b"HTTP/1.1 200")


# --- Slow clients -------------------------------------------------------------------------------------


def test_heads_that_do_not_come_are_given_up(files):
    with started(files["people"], "--max-seconds", "0.5") as server:
        with connected(server) as silent, connected(server) as half:
            half.sendall(HEAD + b"content-le")
            assert status_and_error(read_all(half)) == (408, "the head of the request did not come in time")
            assert read_all(silent) == b""
        with connected(server) as kept:  # a client that rests between requests is not given up
            for _ in range(2):
                kept.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE)
                assert kept.recv(65536).startswith(b"HTTP/1.1 200")
                time.sleep(1.0)
        assert answers(server)


def test_heads_that_do_not_end_are_refused(people):
    for line in (b"x: y\r\n", b"y" * 1000):
        with connected(people) as connection:
            connection.sendall(HEAD + b"x: ")
            with contextlib.suppress(ConnectionError):  # if the server does not read all of it
                for _ in range(1_000_000 // len(line)):
                    connection.sendall(line)
            status, error = status_and_error(read_all(connection))
        assert (status, error) == (431, "the head of a request may have 65,536 bytes")
    assert answers(people)


class Stalled:
    """A connection that waits as it is told."""

    def __init__(self) -> None:
        self.wait: object | None = None
        self.given_up = False

    def waits_for(self) -> object | None:
        return self.wait

    def give_up(self) -> None:
        self.given_up = True


def test_only_one_and_the_same_wait_counts():
    guard, one, other = Guard(10.0, 100), Stalled(), Stalled()
    guard.connections = [one, other]
    one.wait, other.wait = object(), object()
    guard.look(0.0)
    guard.look(9.0)
    other.wait = object()  # another request begins
    guard.look(10.0)
    assert (one.given_up, other.given_up) == (True, False)
    guard.look(19.0)
    assert not other.given_up
    guard.look(20.0)
    assert other.given_up


# --- Large and broken requests ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_bodies_that_are_too_large_are_answered_before_the_connection_ends(files, how):
    """Also if the client sends all of it before it reads."""
    with started(files["people"], "--max-body", "100k") as server:
        part, count = b"x" * 1_000_000, 50
        with connected(server) as connection:
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
def test_what_is_no_request_gets_an_answer(people, sent, status):
    with connected(people) as connection:
        connection.sendall(sent)
        assert status_and_error(read_all(connection))[0] == status
    assert answers(people)


@pytest.fixture(scope="module")
def people(files):
    with started(files["people"]) as server:
        yield server


def test_websockets_are_answered_as_plain_requests(people):
    with connected(people) as connection:
        connection.sendall(
            b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            b"sec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n"
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    assert answers(people)


# --- Many clients -------------------------------------------------------------------------------------


def test_connections_beyond_the_limit_are_told_so(files):
    with started(files["people"], "--max-connections", "20") as server, contextlib.ExitStack() as stack:
        kept = [stack.enter_context(connected(server)) for _ in range(20)]
        for connection in kept:
            connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with connected(server) as refused:
            status, error = status_and_error(read_all(refused))
            assert (status, error) == (503, "the server has too many connections: try again in a second")
        kept[0].sendall(HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE)
        assert kept[0].recv(65536).startswith(b"HTTP/1.1 200")


# --- A full disk --------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_for_the_log_fails_no_request(files):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "unkernel", "serve", str(files["people"]), "--log-requests"]
    with (
        Path("/dev/full").open("w") as full,
        subprocess.Popen([*command, "--port", str(port)], stderr=full, text=True) as process,
    ):
        server = Server(process, f"http://127.0.0.1:{port}")
        while process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError):
                assert answers(server)
                break
            time.sleep(0.1)
        process.terminate()
        assert process.wait(PATIENCE) == 0


# --- Work that does not end ---------------------------------------------------------------------------

SLOW = """
    import sys, time
    from unkernel.serve import Limits, Settings, serve
    from unkernel.serve.answering.records import RecordAnswerer
    RecordAnswerer.explain = lambda *_: time.sleep(600)
    settings = Settings({"people": sys.argv[1]}, port=0, drain=1, limits=Limits(seconds=0.5))
    serve(settings, lambda address: print(address, flush=True))
    print("ended", flush=True)
"""


def test_work_that_was_given_up_does_not_keep_the_server_from_ending(files: dict[str, Path]):
    command = [sys.executable, "-c", textwrap.dedent(SLOW), str(files["people"])]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **options) as process:
        assert process.stdout is not None
        server = Server(process, process.stdout.readline().strip())
        request = HEAD.replace(b"predict", b"explain") + b"content-length: %d\r\n\r\n" % len(ONE) + ONE
        with connected(server) as connection:
            connection.sendall(request)
            assert connection.recv(65536).startswith(b"HTTP/1.1 504")
            connection.sendall(request)  # and one that is being answered
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        assert process.stdout.read() == "ended\n"
