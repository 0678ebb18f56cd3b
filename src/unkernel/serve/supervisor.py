"""The process that starts the workers, replaces those that end, and ends them."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread

from unkernel.serve.json_log import log
from unkernel.serve.settings import STORED, Settings
from unkernel.serve.watchdog import take_report

READY = b"ready\n"  # a worker writes it to its stdout when it answers
_RESTART_SECONDS = 1.0  # before a worker is replaced that ended before it was ready
_HANDSHAKE_SECONDS = 0.1  # connections that are being opened when the server ends are opened, and answered
_PATIENCE_SECONDS = 10.0  # workers end so much later than running requests must, or are killed


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    is_ready: bool = False


class Supervisor:
    """Workers that share a socket.

    Every worker is a process of its own, also if there is only one: native code that does not return holds
    up all of its process, and the supervisor replaces it.

    Parameters
    ----------
    settings : Settings
    stored : Path
        The file of the settings.
    listening : socket
        It is closed when the workers end.
    """

    def __init__(self, settings: Settings, stored: Path, listening: socket.socket) -> None:
        self._settings = settings
        self._stored = stored
        self._listening = listening
        self._workers: list[_Worker] = []
        self._events: SimpleQueue[_Worker | None] = SimpleQueue()  # workers that ended; None for a signal

    def run(self) -> None:
        """Run the workers until SIGTERM or Ctrl-C; a ChildProcessError if one cannot start."""
        signals = (signal.SIGTERM, signal.SIGINT) if current_thread() is main_thread() else ()
        before = {number: signal.signal(number, lambda *_: self._events.put(None)) for number in signals}
        try:
            for _ in range(self._settings.workers):
                self._start()
            while (ended := self._events.get()) is not None:
                self._replace(ended)
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self) -> None:
        """Start a worker. Its stdin ends when this process does, however that is."""
        descriptor = self._listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "unkernel.serve.worker", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
            process_group=0,  # Ctrl-C is for the supervisor, which tells the workers
            env=self._environment(),
        )
        worker = _Worker(process)
        self._workers.append(worker)
        Thread(target=self._wait_for, args=(worker,), daemon=True).start()

    def _environment(self) -> Mapping[str, str]:
        path = os.pathsep.join(filter(None, sys.path))
        return os.environ | {STORED: str(self._stored), "PYTHONPATH": path}

    def _wait_for(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        worker.is_ready = worker.process.stdout.readline() == READY
        worker.process.wait()
        if not worker.is_ready:
            time.sleep(_RESTART_SECONDS)
        self._events.put(worker)

    def _replace(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        code, number = worker.process.returncode, worker.process.pid
        if code > 0 and not worker.is_ready:
            raise ChildProcessError("a worker could not start; the log says why")
        stack = take_report(self._stored.parent, number)
        if stack:
            log("worker did not answer", level="error", worker=number, stack=stack)
        log("worker replaced", level="warning", worker=number, code=code)
        self._start()

    def _end(self) -> None:
        """End the workers: those that do not end in time are killed, and all after another signal."""
        turn_away(self._listening)
        time.sleep(_HANDSHAKE_SECONDS)
        self._listening.close()
        for worker in self._workers:
            worker.process.terminate()
        latest = time.monotonic() + self._settings.drain + _PATIENCE_SECONDS
        while any(worker.process.poll() is None for worker in self._workers):
            if time.monotonic() > latest or (not self._events.empty() and self._events.get() is None):
                for worker in self._workers:
                    worker.process.kill()
            time.sleep(0.02)


def turn_away(listening: socket.socket) -> None:
    """Let a socket take no new connection, and keep those that it has.

    Connections that wait to be accepted when a socket is closed are reset. On Linux, a filter drops the
    packets that ask for a new connection (SYN without ACK), so that no more come while the workers accept
    those that wait; their senders try again, and find the port closed. Elsewhere nothing is done.
    """
    if not sys.platform.startswith("linux"):
        return
    load_flags, mask, is_equal, take, drop = (
        (0x30, 0, 0, 13),  # A = the byte of TCP's flags
        (0x54, 0, 0, 0x12),  # A &= SYN | ACK
        (0x15, 1, 0, 0x02),  # over the next if A == SYN
        (0x06, 0, 0, 0xFFFFFFFF),
        (0x06, 0, 0, 0),
    )
    steps = [load_flags, mask, is_equal, take, drop]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    so_attach_filter = 26
    try:
        listening.setsockopt(socket.SOL_SOCKET, so_attach_filter, program)
    except OSError as error:  # a system that does not allow it
        log("connections that wait may be reset", level="warning", reason=str(error))
