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
_RESTART_SECONDS = 1.0  # delay before replacing a worker that ended during its start
_HANDSHAKE_SECONDS = 0.1  # time for half-open connections to be established at shutdown
_KILL_DELAY_SECONDS = 10.0  # time from the end of the drain until running workers are killed


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    is_ready: bool = False  # whether it has accepted requests


class Supervisor:
    """Starts workers that share a socket, and replaces workers that end.

    Every worker is a process, even if there is only one: if native code does not return, the only way out is
    to end the process and start another one.

    Parameters
    ----------
    settings : Settings
    settings_file : Path
        The file of the settings.
    listener : socket
        The listening socket, which is closed when the workers stop.
    """

    def __init__(self, settings: Settings, settings_file: Path, listener: socket.socket) -> None:
        self._settings = settings
        self._settings_file = settings_file
        self._listener = listener
        self._workers: list[_Worker] = []
        # Each event is a worker that has ended, or None for a signal.
        self._events: SimpleQueue[_Worker | None] = SimpleQueue()

    def run(self) -> None:
        """Run the workers until SIGTERM or Ctrl-C; raise a ChildProcessError if a worker cannot start."""
        signals = (signal.SIGTERM, signal.SIGINT) if current_thread() is main_thread() else ()
        former_handlers = {
            number: signal.signal(number, lambda *_: self._events.put(None)) for number in signals
        }
        try:
            for _ in range(self._settings.workers):
                self._start_worker()
            for ended_worker in iter(self._events.get, None):
                self._replace_worker(ended_worker)
        finally:
            self._stop_workers()
            for number, handler in former_handlers.items():
                signal.signal(number, handler)

    def _start_worker(self) -> None:
        """Start a worker. Its stdin is closed when this process ends, even if this process is killed."""
        descriptor = self._listener.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "unkernel.serve.worker", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
            process_group=0,  # makes Ctrl-C reach only the supervisor
            env=self._make_environment(),
        )
        worker = _Worker(process)
        self._workers.append(worker)
        Thread(target=self._wait_for_exit, args=(worker,), daemon=True).start()

    def _make_environment(self) -> Mapping[str, str]:
        """Return environment variables that make workers import from the same folders as this process."""
        path = os.pathsep.join(filter(None, sys.path))
        return os.environ | {SETTINGS_VARIABLE: str(self._settings_file), "PYTHONPATH": path}

    def _wait_for_exit(self, worker: _Worker) -> None:
        """Wait until a worker is ready, then until it ends; report its end as an event."""
        assert worker.process.stdout is not None
        worker.is_ready = worker.process.stdout.readline() == READY
        worker.process.wait()
        if not worker.is_ready:
            time.sleep(_RESTART_SECONDS)
        self._events.put(worker)

    def _replace_worker(self, worker: _Worker) -> None:
        """Log the end of a worker and start another; raise an error if it failed before it was ready."""
        self._workers.remove(worker)
        code, number = worker.process.returncode, worker.process.pid
        if code > 0 and not worker.is_ready:
            raise ChildProcessError("a worker could not start; the log says why")
        stack = take_report(self._settings_file.parent, number)
        if stack:
            log("worker did not answer", level="error", worker=number, stack=stack)
        log("worker replaced", level="warning", worker=number, code=code)
        self._start_worker()

    def _stop_workers(self) -> None:
        """Stop the workers; kill workers that do not stop in time, or all workers at a second signal."""
        refuse_connections(self._listener)
        time.sleep(_HANDSHAKE_SECONDS)
        self._listener.close()
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + self._settings.drain + _KILL_DELAY_SECONDS
        while any(worker.process.poll() is None for worker in self._workers):
            if time.monotonic() > deadline or (not self._events.empty() and self._events.get() is None):
                for worker in self._workers:
                    worker.process.kill()
            time.sleep(0.02)


def refuse_connections(listener: socket.socket) -> None:
    """Make a socket refuse new connections, but keep the connections in its backlog.

    Closing a socket would reset the connections in its backlog. On Linux, a filter therefore drops packets
    that request a new connection (SYN without ACK) while the workers accept the backlog. The clients of
    dropped packets retry, and find the port closed. On other systems, this function does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    # Instructions of classic BPF: operation, jumps if true and if false, operand. A is the accumulator.
    load_flags, mask, is_equal, accept, drop = (
        (0x30, 0, 0, 13),  # A = the byte of TCP's flags
        (0x54, 0, 0, 0x12),  # A &= SYN | ACK
        (0x15, 1, 0, 0x02),  # skip the next step if A == SYN
        (0x06, 0, 0, 0xFFFFFFFF),
        (0x06, 0, 0, 0),
    )
    steps = [load_flags, mask, is_equal, accept, drop]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    so_attach_filter = 26
    try:
        listener.setsockopt(socket.SOL_SOCKET, so_attach_filter, program)
    except OSError as error:  # for example in a sandbox
        log("waiting connections may be reset", level="warning", reason=str(error))
