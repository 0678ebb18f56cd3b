"""Run contenders in separate processes, whose memory is measured, and programs of other languages."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from harness.state import ROOT
from unkernel import datasets

FOLDER = ROOT / "benchmarks"
PEERS = "UNKERNEL_PEERS"  # a folder of programs; peers.py fills build/peers


class LeftOutError(Exception):
    """A contender is not installed or does not end; the message gives the reason."""


def run_in_process(module: str, call: str, *, seconds: float | None = None) -> Any:
    """Return the result of ``module.call`` in a new process, as JSON; raise a `LeftOutError` if it fails."""
    program = f"import json, {module}; print(json.dumps({module}.{call}))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(FOLDER), *_list_python_path()])}
    environment["UNKERNEL_DATA"] = str(datasets.folder() or "")
    try:
        completed = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise LeftOutError(f"it did not end in {seconds:g} s") from None
    if completed.returncode:
        last_line = (completed.stderr.strip().splitlines() or [f"it ended with {completed.returncode}"])[-1]
        raise LeftOutError(last_line.removeprefix(f"{LeftOutError.__module__}.{LeftOutError.__name__}: "))
    return json.loads(completed.stdout.splitlines()[-1])


def run_in_fork(work: Callable[[], Any], *, seconds: float) -> Any:
    """Return the result of `work`, run in a fork of this process, which shares its memory.

    Raise a `LeftOutError` if the work fails, or takes longer than `seconds`.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(work, sender))
    process.start()
    sender.close()
    if not receiver.poll(seconds):
        process.kill()
        process.join()
        raise LeftOutError(f"it did not end in {seconds:g} s")
    try:
        result, reason = receiver.recv()
    except EOFError:
        process.join()
        raise LeftOutError(f"it ended with {process.exitcode}") from None
    process.join()
    if reason:
        raise LeftOutError(reason)
    return result


def _send_result(work: Callable[[], Any], sender: Connection) -> None:
    try:
        sender.send((work(), ""))
    except Exception as error:
        sender.send((None, f"{type(error).__name__}: {error}"))


def peak_megabytes() -> float:
    """Return the peak memory of this process; on Linux, without the memory of its parent before the fork."""
    status = Path("/proc/self/status")
    if status.exists() and (match := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(match[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


class Ran(NamedTuple):
    """The output of a program, and the system's accounting of its process."""

    printed: str
    cpu: float
    peak_mb: float


def run_program(command: Sequence[str | Path], *, seconds: float | None = None) -> Ran:
    """Run a program of another language; raise a `LeftOutError` if it fails or does not end in time."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [str(word) for word in command], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        stop = Timer(seconds, process.kill) if seconds else None
        if stop:
            stop.start()
        _, status, usage = os.wait4(process.pid, 0)
        if stop:
            stop.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read().decode("latin-1")
    if process.returncode:
        last_line = (printed.strip().splitlines() or [""])[-1][-200:]
        raise LeftOutError(f"{Path(command[0]).name} ended with {process.returncode}: {last_line}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Ran(printed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 2**20)


def program(name: str) -> str:
    """Return the path of a peer's program; raise a `LeftOutError` if it has not been built."""
    path = peers_folder() / name
    if not path.exists():
        raise LeftOutError(f"{name} has not been built; see benchmarks/peers.py")
    return str(path)


def peers_folder() -> Path:
    return Path(os.environ.get(PEERS) or ROOT / "build" / "peers")


def _list_python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
