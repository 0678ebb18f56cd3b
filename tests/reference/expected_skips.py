"""A pytest plugin: a skipped test counts as failed, unless expected_skips.toml lists the reason.

It changes reports in the process that makes them, so it works with and without pytest-xdist.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest

LIST = Path(__file__).resolve().parents[1] / "expected_skips.toml"
REASONS = [re.compile(entry["reason"]) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["skip"]]

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def fail_if_unexpected(report: Report) -> Report:
    """Turn the report of a skip into a failure if the list lacks its reason, and return it."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return report
    assert isinstance(report.longrepr, tuple)
    path, line, message = report.longrepr
    reason = message.removeprefix("Skipped: ")
    if not any(pattern.match(reason) for pattern in REASONS):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: skipped for a reason that is not in tests/{LIST.name}: {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return fail_if_unexpected((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return fail_if_unexpected((yield))
