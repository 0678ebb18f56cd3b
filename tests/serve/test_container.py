"""The Dockerfile names existing files, includes them, and starts an existing command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from unkernel.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"

pytestmark = pytest.mark.skipif(not DOCKERFILE.exists(), reason="the source archive has no Dockerfile")


def test_copied_files_exist_and_are_not_ignored():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE.read_text(), re.M)
    names = {name for line in copied for name in line.split()}
    assert names == allowed
    assert all((ROOT / name).exists() for name in names)


def test_it_starts_a_command_that_exists(capsys):
    entry = re.search(r"^ENTRYPOINT (.+)$", DOCKERFILE.read_text(), re.M)
    assert entry
    program, *arguments = json.loads(entry[1])
    assert program == "unkernel"
    assert main([*arguments, "--help"]) == 0
    assert "Serve models over HTTP" in capsys.readouterr().out
