"""The process that starts, replaces and stops the workers."""

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
from unkernel.serve.settings import SETTINGS_VARIABLE, Settings
from unkernel.serve.watchdog import take_report

READY = b"ready\n"  # a worker writes this to stdout when it accepts requests
_RESTART_SECONDS = 1.0  # delay before replacing a worker that was never ready
_HANDSHAKE_SECONDS = 0.1  # time for half-open connections to complete at shutdown
_KILL_DELAY_SECONDS = 10.0  # after the drain time, workers that still run are killed


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    is_ready: bool = False


class Supervisor:
    """Workers that share a socket.

    Every worker is a process, even if there is only one: native code that does not return blocks its whole
    process, which the supervisor replaces.

    Parameters
    ----------
    settings : Settings
    stored : Path
        The file of the settings.
    listening : socket
        Closed when the workers stop.
    """

    def __init__(self, settings: Settings, stored: Path, listening: socket.socket) -> None:
        self._settings = settings
        self._stored = stored
        self._listening = listening
        self._workers: list[_Worker] = []
        self._events: SimpleQueue[_Worker | None] = SimpleQueue()  # workers that ended; None for a signal

    def run(self) -> None:
        """Run the workers until SIGTERM or Ctrl-C; raise a ChildProcessError if one cannot start."""
        signals = (signal.SIGTERM, signal.SIGINT) if current_thread() is main_thread() else ()
        former_handlers = {
            number: signal.signal(number, lambda *_: self._events.put(None)) for number in signals
        }
        try:
            for _ in range(self._settings.workers):
                self._start_worker()
            while (ended := self._events.get()) is not None:
                self._replace_worker(ended)
        finally:
            self._stop_workers()
            for number, handler in former_handlers.items():
                signal.signal(number, handler)

    def _start_worker(self) -> None:
        """Start a worker. Its stdin closes when this process ends, however that happens."""
        descriptor = self._listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "unkernel.serve.worker", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
            process_group=0,  # Ctrl-C reaches the supervisor alone
            env=self._make_environment(),
        )
        worker = _Worker(process)
        self._workers.append(worker)
        Thread(target=self._await_exit, args=(worker,), daemon=True).start()

    def _make_environment(self) -> Mapping[str, str]:
        path = os.pathsep.join(filter(None, sys.path))
        return os.environ | {SETTINGS_VARIABLE: str(self._stored), "PYTHONPATH": path}

    def _await_exit(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        worker.is_ready = worker.process.stdout.readline() == READY
        worker.process.wait()
        if not worker.is_ready:
            time.sleep(_RESTART_SECONDS)
        self._events.put(worker)

    def _replace_worker(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        code, number = worker.process.returncode, worker.process.pid
        if code > 0 and not worker.is_ready:
            raise ChildProcessError("a worker could not start; the log says why")
        stack = take_report(self._stored.parent, number)
        if stack:
            log("worker did not answer", level="error", worker=number, stack=stack)
        log("worker replaced", level="warning", worker=number, code=code)
        self._start_worker()

    def _stop_workers(self) -> None:
        """Stop the workers; kill the late ones, or all workers after another signal."""
        refuse_connections(self._listening)
        time.sleep(_HANDSHAKE_SECONDS)
        self._listening.close()
        for worker in self._workers:
            worker.process.terminate()
        latest = time.monotonic() + self._settings.drain + _KILL_DELAY_SECONDS
        while any(worker.process.poll() is None for worker in self._workers):
            if time.monotonic() > latest or (not self._events.empty() and self._events.get() is None):
                for worker in self._workers:
                    worker.process.kill()
            time.sleep(0.02)


def refuse_connections(listening: socket.socket) -> None:
    """Make a socket refuse new connections, but keep those in its backlog.

    Closing a socket resets the connections in its backlog. On Linux, a filter drops packets that ask for a
    new connection (SYN without ACK) while the workers accept the backlog. Their senders try again, and find
    the port closed. On other systems, do nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    load_flags, mask, is_equal, take, drop = (
        (0x30, 0, 0, 13),  # A = the byte of TCP's flags
        (0x54, 0, 0, 0x12),  # A &= SYN | ACK
        (0x15, 1, 0, 0x02),  # skip the next step if A == SYN
        (0x06, 0, 0, 0xFFFFFFFF),
        (0x06, 0, 0, 0),
    )
    steps = [load_flags, mask, is_equal, take, drop]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    so_attach_filter = 26
    try:
        listening.setsockopt(socket.SOL_SOCKET, so_attach_filter, program)
    except OSError as error:  # such as a sandbox
        log("waiting connections may be reset", level="warning", reason=str(error))
