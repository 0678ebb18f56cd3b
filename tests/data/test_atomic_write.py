"""replace_file replaces a file completely or not at all, even if the process is killed."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from reference.patience import PATIENCE
from unkernel.data import atomic_write
from unkernel.data.atomic_write import remove_stale, replace_file

WRITER = """
import sys
from unkernel.data import atomic_write
if sys.argv[2] == "named":
    atomic_write._open_nameless = lambda folder: None
with atomic_write.replace_file(sys.argv[1]) as file:
    file.write(b"half" * 100_000)
    file.flush()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["nameless", "named"])
def kind(request, monkeypatch) -> str:
    """Run a test with nameless temporary files, and with named ones as on systems without nameless files."""
    if request.param == "named":
        monkeypatch.setattr(atomic_write, "_open_nameless", lambda folder: None)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    return request.param


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def killed_half_way(target: Path, kind: str, number: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(target), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_writer_leaves_the_old_file(tmp_path, kind, number):
    target = tmp_path / "target"
    target.write_bytes(b"old")
    killed_half_way(target, kind, number)
    assert target.read_bytes() == b"old"
    assert len(names(tmp_path)) == (1 if kind == "nameless" else 2)
    with replace_file(target) as file:  # the next writer cleans up before it needs space
        assert len(names(tmp_path)) == (1 if kind == "nameless" else 2)
        file.write(b"new")
    assert names(tmp_path) == {"target"}
    assert target.read_bytes() == b"new"


def test_temporary_files_of_other_writers_are_kept(tmp_path, kind):
    with replace_file(tmp_path / "one") as first, replace_file(tmp_path / "two") as second:
        first.write(b"1")
        second.write(b"2")
        remove_stale(tmp_path)
    assert names(tmp_path) == {"one", "two"}
    with replace_file(tmp_path / "one") as first:  # two writers to one target: the last one wins
        first.write(b"first")
        with replace_file(tmp_path / "one") as second:
            second.write(b"second")
        assert (tmp_path / "one").read_bytes() == b"second"
    assert (tmp_path / "one").read_bytes() == b"first"
    assert names(tmp_path) == {"one", "two"}


def test_a_new_file_that_another_writer_removed_is_created_again(tmp_path, monkeypatch):
    """If another writer removes the temporary file before it is locked, another file is created."""
    monkeypatch.setattr(atomic_write, "_open_nameless", lambda folder: None)
    lock, removed = atomic_write._lock, []

    def late(descriptor: int, *, wait: bool) -> bool:
        if wait and not removed:
            removed.append(descriptor)
            remove_stale(tmp_path)
            assert names(tmp_path) == set()
        return lock(descriptor, wait=wait)

    monkeypatch.setattr(atomic_write, "_lock", late)
    with replace_file(tmp_path / "target") as file:
        file.write(b"new")
    assert removed
    assert (tmp_path / "target").read_bytes() == b"new"
    assert names(tmp_path) == {"target"}


@pytest.mark.parametrize("failing", ["no links", "no /proc"])
def test_systems_without_links_of_nameless_files(tmp_path, monkeypatch, failing):
    if failing == "no /proc":
        monkeypatch.setattr(atomic_write, "_descriptor_path", lambda descriptor: f"/nowhere/{descriptor}")
    else:
        monkeypatch.setattr(atomic_write, "_link", lambda *_: os.link("/nowhere", "/nowhere"))
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "target").chmod(0o640)
    with replace_file(tmp_path / "target") as file:
        file.write(b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o640
    assert names(tmp_path) == {"target"}


def test_links_and_permissions_are_kept(tmp_path, kind):
    (tmp_path / "plain").write_bytes(b"")
    with replace_file(tmp_path / "target") as file:
        file.write(b"1")
    assert (tmp_path / "target").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "link").symlink_to("target")
    with replace_file(tmp_path / "link") as file:
        file.write(b"2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"2"
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o600


def test_an_error_leaves_no_files(tmp_path, kind):
    with pytest.raises(RuntimeError), replace_file(tmp_path / "target") as file:
        file.write(b"1")
        raise RuntimeError
    assert names(tmp_path) == set()


def test_only_our_temporary_files_are_removed(tmp_path):
    os.mkfifo(tmp_path / ".unkernel-fifo.tmp")
    (tmp_path / ".unkernel-folder.tmp").mkdir()
    (tmp_path / "mine").write_bytes(b"1")
    (tmp_path / ".unkernel-link.tmp").symlink_to("mine")
    (tmp_path / ".mine.tmp").write_bytes(b"1")
    expected = names(tmp_path)
    (tmp_path / ".unkernel-0123456789abcdef.tmp").write_bytes(b"stale")
    remove_stale(tmp_path)
    assert names(tmp_path) == expected
    remove_stale(tmp_path / "missing")


def test_the_longest_name(tmp_path, kind):
    with replace_file(tmp_path / ("n" * 255)) as file:
        file.write(b"1")
    with pytest.raises(OSError, match="too long"), replace_file(tmp_path / ("n" * 256)):
        pass


def test_threads_can_write_at_the_same_time(tmp_path, kind):
    def write(number: int) -> None:
        for _ in range(20):
            with replace_file(tmp_path / f"{number % 2}") as file:
                file.write(f"{number}".encode() * 10_000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(tmp_path) == {"0", "1"}
    for number in (0, 1):
        content = (tmp_path / f"{number}").read_bytes()
        assert content in {f"{number}".encode() * 10_000, f"{number + 2}".encode() * 10_000}


def test_a_full_disk_is_named(tmp_path, kind):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught, replace_file(tmp_path / "target") as file:
            file.write(b"1" * 1000)  # buffered, and written at the end
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.filename == str(tmp_path / "target")
    assert names(tmp_path) == set()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_full_device_is_named(size):
    with pytest.raises(OSError, match="No space") as caught, replace_file("/dev/full") as file:
        file.write(b"1" * size)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
