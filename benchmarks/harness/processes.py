"""Contenders in processes of their own, so that memory is theirs alone, and programs of other languages."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.state import ROOT
from unkernel import datasets

FOLDER = ROOT / "benchmarks"
PEERS = "UNKERNEL_PEERS"  # a folder of programs; peers.py fills build/peers


class LeftOutError(Exception):
    """A contender that is not here, or does not end; the message says why."""


def result_of(module: str, call: str, *, seconds: float | None = None) -> Any:
    """What ``module.call`` gives in a process of its own: what JSON can say. `LeftOutError` if it fails."""
    program = f"import json, {module}; print(json.dumps({module}.{call}))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(FOLDER), *_inherited()])}
    environment["UNKERNEL_DATA"] = str(datasets.folder() or "")
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise LeftOutError(f"it did not end in {seconds:g} s") from None
    if done.returncode:
        raise LeftOutError((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def program(name: str) -> str:
    """Where a peer's program is. `LeftOutError` if it has not been built."""
    folder = Path(os.environ.get(PEERS) or ROOT / "build" / "peers")
    path = folder / name
    if not path.exists():
        raise LeftOutError(f"there is no program {path}; see benchmarks/peers.py")
    return str(path)


def _inherited() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
