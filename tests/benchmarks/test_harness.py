"""What the benchmarks are made of: figures that are kept, the page of them, and the check for regressions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def on_path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def report():
    from harness import Report, Times

    made = Report("data", quick=True)
    made.add("reading", "unkernel", "time", "CPU s", Times([0.5, 0.25, 0.5]))
    made.add("reading", "peer", "time", "CPU s", Times([1.0, 1.0, 1.1]), version="1.2")
    made.add("reading", "unkernel", "memory", "MB", 10.0)
    made.add("reading", "slow peer", "time", "CPU s", None, note="ended after 60 s")
    made.leave_out("other peer", "Traceback ...\nImportError: no module named peer")
    return made


def test_figures_come_back(report, tmp_path):
    from harness.report import read, saved

    path = report.save(tmp_path)
    back = read(path)
    assert back.figures == report.figures and back.state == report.state
    assert back.left_out == {"other peer": "ImportError: no module named peer"}
    assert [file.benchmark for file in saved(tmp_path)] == ["data"]
    best = back.figures[0]
    assert (best.value, best.repeats, best.spread) == (0.25, 3, 1.0)


def test_the_page_shows_every_figure(report, tmp_path):
    import page
    from harness.report import saved

    report.save(tmp_path)
    text = page.page(saved(tmp_path))
    assert "## Reading svmlight files, against scikit-learn's load_svmlight_file\n" in text
    assert "| task | contender | time, CPU s | memory, MB |" in text
    assert "| reading | **unkernel** | ~0.25 | 10 |" in text
    assert "|  | peer 1.2 | 1 (4) |  |" in text
    assert "|  | slow peer | not reached; ended after 60 s |  |" in text
    assert "- other peer: left out, ImportError: no module named peer" in text
    assert report.state.commit in text and "short version" in text


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({0: 0.3}, 0),  # within what runs spread
        ({0: 1.2}, 1),  # slower beside the peer
        ({0: 2.5, 1: 10.0}, 0),  # a slower machine
        ({1: 0.2}, 1),  # the peer has become faster
        ({2: 20.0}, 1),  # sizes are compared as they are
    ],
)
def test_regressions_are_those_of_ratios(report, tmp_path, changes, found):
    import regressions

    old = report.save(tmp_path / "old")
    for place, value in changes.items():
        report.figures[place] = replace(report.figures[place], value=value)
    assert len(regressions.worse(old, report.save(tmp_path / "new"))) == found


def test_contenders_take_turns():
    from harness import take_turns

    order = []
    times = take_turns(
        {name: lambda name=name: order.append(name) for name in "ab"}, 3, lambda work: work() or 1.0
    )
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert all(taken.values == [1.0] * 3 for taken in times.values())
