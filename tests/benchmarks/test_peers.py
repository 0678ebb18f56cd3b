"""The script that lists peers and builds those that can be built."""

from __future__ import annotations

import hashlib
import sys
import tarfile
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("UNKERNEL_PEERS", str(tmp_path / "peers"))
    monkeypatch.delitem(sys.modules, "peers", raising=False)


def make_archive(folder: Path, makefile: str) -> Path:
    (folder / "Makefile").write_text(makefile)
    path = folder / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "Makefile", "learner/Makefile")
    return path


def test_peers_are_listed_with_version_and_source(capsys):
    import peers

    peers.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(peers.PEERS)
    assert any(line.startswith("pecco ") and "not built (r1875)" in line for line in lines)
    assert all("http" in line for line in lines)


def test_an_archive_is_built(tmp_path, capsys):
    import peers
    from harness.processes import program

    packed = make_archive(tmp_path, "all:\n\tprintf '#!/bin/sh\\necho learnt\\n' > learn\n\tchmod +x learn\n")
    learner = peers.Program("Learner", "1.0", "http://home", ("of/learn",), packed.as_uri())
    assert learner.state() == "not built (1.0)"
    peers.main(["--install"], [learner])
    assert hashlib.sha256(packed.read_bytes()).hexdigest() in capsys.readouterr().out
    assert learner.state() == "1.0" and learner.install() == "is here"
    assert Path(program("of/learn")).is_file()


@pytest.mark.parametrize(
    ("archive", "reason"),
    [("", "by hand from http://home"), ("file:///nowhere/archive.tar.gz", "No such file")],
)
def test_peers_that_cannot_be_built_are_left_out_and_named(archive, reason):
    import peers

    message = peers.Program("Learner", "1.0", "http://home", ("learn",), archive).install()
    assert message.startswith("left out") and reason in message


def test_failed_builds_are_reported(tmp_path):
    import peers

    packed = make_archive(tmp_path, "all:\n\tfalse\n")
    message = peers.Program("Learner", "1.0", "http://home", ("learn",), packed.as_uri()).install()
    assert message.startswith("left out") and "make" in message
