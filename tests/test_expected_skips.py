"""With UNKERNEL_NO_SKIPS, only the skips that expected_skips.toml lists are accepted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from unkernel import datasets

TESTS = Path(__file__).resolve().parent
ENTRIES = tomllib.loads((TESTS / "expected_skips.toml").read_text(encoding="utf-8"))["skip"]

SKIPPED_TESTS = """
import pytest

def test_passes():
    pass

def test_lacks_a_library():
    pytest.importorskip("no_such_library")

@pytest.mark.skipif(True, reason="too tired")
def test_has_a_mark():
    pass

def test_is_expected():
    pytest.skip("root may write anywhere")

@pytest.mark.xfail
def test_fails_as_it_should():
    raise AssertionError
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "reference.expected_skips",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.run(
        [*command, *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.slow), ("-n", "1")])
def test_unexpected_skips_fail(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_some.py").write_text(SKIPPED_TESTS)
    completed = run_pytest(tmp_path, *options)
    assert completed.returncode == 1, completed.stdout
    assert "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error" in completed.stdout
    assert (
        "test_some.py:10: skipped for a reason that is not in tests/expected_skips.toml: too tired"
        in completed.stdout
    )
    assert "could not import 'no_such_library'" in completed.stdout


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)])
def test_unexpected_skips_of_whole_files_fail(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_some.py").write_text("import pytest; pytest.importorskip('no_such_library')")
    completed = run_pytest(tmp_path, *options)
    assert completed.returncode != 0
    assert "is not in tests/expected_skips.toml: could not import 'no_such_library'" in completed.stdout


def test_the_variable_switches_it_on() -> None:
    """.ci/common sets the variable that conftest.py reads."""
    assert '"UNKERNEL_NO_SKIPS"' in (TESTS / "conftest.py").read_text(encoding="utf-8")
    common = TESTS.parent / ".ci" / "common"  # missing in a source archive
    assert not common.exists() or "export UNKERNEL_NO_SKIPS=1" in common.read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["reason"])
def test_every_entry_has_a_reason(entry: dict[str, str]) -> None:
    assert set(entry) == {"reason", "because"}
    assert entry["because"].endswith(".")


@pytest.mark.parametrize("folder", ["empty", None])
def test_skips_for_missing_data_are_expected(
    folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "folder", lambda: tmp_path / folder if folder else None)
    with pytest.raises(FileNotFoundError) as error:
        datasets.path("a9a")
    assert any(re.match(entry["reason"], str(error.value)) for entry in ENTRIES)
