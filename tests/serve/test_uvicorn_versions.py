"""The oldest and the newest supported uvicorn, whose internals our connections use."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from unkernel.serve import connection

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = "oldest", "newest"


def allowed() -> dict[str, str]:
    """Return pip's requirements for the oldest and the newest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (words,) = (
        requirement
        for requirement in project["project"]["optional-dependencies"]["serve"]
        if "uvicorn" in requirement
    )
    bound = words.removeprefix("uvicorn>=").partition(",")[0]
    return {OLDEST: f"uvicorn=={bound}.0", NEWEST: words}


def test_uvicorn_has_an_upper_bound():
    assert ",<" in allowed()[NEWEST]


@pytest.mark.slow
@pytest.mark.parametrize("which", [OLDEST, NEWEST])
def test_connections_work_with(which: str, tmp_path: Path):
    """Connections work with this version of uvicorn, which is downloaded from a package index."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, allowed()[which]], check=True)
    search = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": search}
    code = "from unkernel.serve import connection as c; assert c.choose_protocol() is c.Connection"
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    tests = [f"tests/serve/test_{name}.py" for name in ("connection", "process", "hostile_clients")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", *tests]
    subprocess.run(command, check=True, env=environment, cwd=ROOT)


class _Other(connection.HttpToolsProtocol):  # type: ignore[misc]
    """A protocol as in a version of uvicorn without a pipeline."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        del self.pipeline


def test_changed_internals_are_detected():
    cycle = connection.RequestResponseCycle
    assert connection.find_difference(connection.HttpToolsProtocol, cycle) == ""
    assert connection.find_difference(_Other, cycle) == "no pipeline"
    assert "an incompatible constructor" in connection.find_difference(object, cycle)
    assert connection.find_difference(connection.HttpToolsProtocol, lambda: None) == "no keep_alive"


def test_changed_internals_are_logged_once_and_not_used(monkeypatch):
    reasons: list[str] = []
    monkeypatch.setattr(connection, "HttpToolsProtocol", _Other)
    monkeypatch.setattr(connection, "log", lambda message, **facts: reasons.append(facts["reason"]))
    assert connection.choose_protocol() == "httptools"
    (reason,) = reasons
    assert reason.endswith("has no pipeline")
