"""The parts of benchmarks: saved figures, the page that shows them, and the check for regressions."""

from __future__ import annotations

import os
import runpy
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


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


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_can_be_imported_without_peers(path):
    runpy.run_path(str(path), run_name="imported")


def test_saved_figures_are_read_back(report, tmp_path):
    from harness.report import read, read_saved

    path = report.save(tmp_path)
    back = read(path)
    assert back.figures == report.figures and back.state == report.state
    assert back.left_out == {"other peer": "ImportError: no module named peer"}
    assert [file.benchmark for file in read_saved(tmp_path)] == ["data"]
    best = back.figures[0]
    assert (best.value, best.repeats, best.spread) == (0.25, 3, 1.0)


def test_the_page_shows_every_figure(report, tmp_path):
    import page
    from harness.report import read_saved

    report.save(tmp_path)
    text = page.subject_page("linear", read_saved(tmp_path))
    assert "## Reading svmlight files, against scikit-learn's load_svmlight_file\n" in text
    assert "| task | contender | time, CPU s | memory, MB |" in text
    assert "| reading | **unkernel** | ~0.25 | 10 |" in text
    assert "|  | peer (1.2) | 1 (4) |  |" in text
    assert "|  | slow peer | not reached; ended after 60 s |  |" in text
    assert "- Left out: other peer (ImportError: no module named peer)" in text
    assert "\n```sh\nUNKERNEL_DATA=/where/the/data/is python benchmarks/data.py" in text
    assert f"Commit {report.state.commit}, " in text
    assert "short version" in text
    assert "## Ranking\n" in text and "*Not measured yet.*" in text
    overview = page.overview(read_saved(tmp_path))
    assert "(../docs/results/linear.md)" in overview
    assert f"- {page.machine(report.state)}; commit {report.state.commit}\n" in overview


def test_every_benchmark_is_on_one_page():
    import page
    import run

    shown = [benchmark for _, _, benchmarks in page.SUBJECTS.values() for benchmark in benchmarks]
    assert sorted(shown) == sorted(run.benchmarks())


def test_headlines_are_figures_of_one_machine():
    import summary
    from harness.report import HEADLINE_MACHINE, read_saved

    files = list(read_saved())
    assert len(list(summary.lines(files))) == len(summary.COMPARISONS)
    others = [file for file in files if file.state.machine != HEADLINE_MACHINE]
    assert list(summary.lines(others)) == []


def test_headlines_are_written_in_words(report, tmp_path):
    import page
    import summary
    from harness.report import HEADLINE_MACHINE, read_saved

    report.state = replace(report.state, machine=HEADLINE_MACHINE)
    report.add("reading", "peer", "speed", "1/s", 300.0)
    report.add("reading", "unkernel", "speed", "1/s", 1200.0)
    report.save(tmp_path)
    files = list(read_saved(tmp_path))
    compared = [
        summary.Comparison("Read", "data", "reading", figure, "unkernel", "peer")
        for figure in ("time", "speed")
    ]
    assert list(summary.lines(files, compared)) == [
        ["Read", "**250 ms**", "peer: 1 s", "4 ×"],
        ["Read", "**1,200 per second**", "peer: 300 per second", "4 ×"],
    ]
    text = page.insert_results("<!-- headlines: 2 -->\nold\n<!-- end of results -->\n", files)
    assert "times better" in text and "old" not in text


def test_titles_end_at_a_colon():
    import page
    import run

    titles = [page.split_docstring(name)[0] for name in run.benchmarks()]
    assert len(set(titles)) == len(titles) and not any(":" in title for title in titles)
    title, text = page.split_docstring("records")
    assert title == "Records" and text.startswith("From a dict to its class, against")


def test_points_of_a_curve_are_shown_in_separate_rows(report, tmp_path):
    import page
    from harness.report import read_saved

    report.add("reading", "unkernel, in parts", "time", "CPU s", 2.0, at=10.0)
    report.add("reading", "unkernel, in parts", "time", "CPU s", 3.0, at=2000.0)
    report.save(tmp_path)
    text = page.subject_page("linear", read_saved(tmp_path))
    assert "| **unkernel, in parts** at 10 | 2 |" in text
    assert "| **unkernel, in parts** at 2,000 | 3 |" in text


def test_documents_show_the_figures_of_some_tasks(report, tmp_path):
    import page
    from harness.report import read_saved

    report.add("writing", "unkernel", "time", "CPU s", 7.0)
    report.save(tmp_path)
    files = list(read_saved(tmp_path))
    text = "Before.\n\n<!-- results of data: writing -->\nold\n<!-- end of results -->\n\nAfter.\n"
    new = page.insert_results(text, files)
    assert "| writing | **unkernel** | 7 |" in new and "reading" not in new and "old" not in new
    assert new.startswith("Before.\n") and new.endswith("\nAfter.\n")
    assert page.insert_results(new, files) == new
    assert "Not measured yet" in page.insert_results(text.replace("of data", "of nothing"), files)


def test_pages_match_the_saved_figures():
    import page

    for path, text in page.written().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run benchmarks/page.py"


def test_every_script_that_measures_is_run():
    import run

    helpers = {"page", "peers", "regressions", "run", "zipf_rows"}
    programs = {path.stem for path in BENCHMARKS.glob("*.py") if "__main__" in path.read_text("utf-8")}
    papers = {name for name in programs if name.startswith("paper")}  # by `make papers`
    assert set(run.benchmarks()) == programs - helpers - papers


def test_a_short_run_does_not_replace_a_whole_one(report, tmp_path, monkeypatch):
    import run
    from harness.report import read

    monkeypatch.setattr(run, "NEW", tmp_path / "new")
    monkeypatch.setattr(run, "RESULTS", tmp_path / "kept")
    new = report.save(tmp_path / "new")
    assert run.keep(new) and run.keep(new)
    report.state = replace(report.state, quick=False)
    kept = report.save(tmp_path / "kept")
    assert not run.keep(new)
    assert not read(kept).state.quick


def test_peers_have_the_versions_of_their_packages():
    from harness.state import find_contender_version, find_version

    for name in ("SVC", "LinearSVC, words", "scikit-learn, a frame of one row"):
        assert find_contender_version(name) == find_version("scikit-learn") != ""
    assert find_contender_version("unkernel, SVC compiled") == find_contender_version("SVCs") == ""


def test_peers_have_one_thread():
    from harness.processes import run_in_process

    assert run_in_process("os", "environ['OMP_NUM_THREADS']") == "1"


def test_reasons_are_returned_from_other_processes(monkeypatch, tmp_path):
    from harness.processes import LeftOutError, run_in_process

    monkeypatch.setenv("UNKERNEL_PEERS", str(tmp_path))
    assert run_in_process("harness.processes", "peak_megabytes()") > 1
    with pytest.raises(LeftOutError, match=r"^learner has not been built; see benchmarks/peers.py$"):
        run_in_process("harness.processes", "program('learner')")


def test_programs_are_run_and_measured(tmp_path):
    from harness.processes import LeftOutError, run_program

    result = run_program([sys.executable, "-c", "print('done')"])
    assert result.printed == "done\n" and result.cpu > 0 and result.peak_mb > 1
    with pytest.raises(LeftOutError, match="ended with 3: no luck"):
        run_program([sys.executable, "-c", "import sys; print('no luck'); sys.exit(3)"])


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({0: 0.3}, 0),  # within the variation between runs
        ({0: 1.2}, 1),  # slower compared with the peer
        ({0: 2.5, 1: 10.0}, 0),  # a slower machine
        ({1: 0.2}, 1),  # the peer has become faster
        ({2: 20.0}, 1),  # sizes are compared unchanged
    ],
)
def test_regressions_are_found_by_ratios(report, tmp_path, changes, found):
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


def test_forks_return_results_and_reasons():
    from harness.processes import LeftOutError, run_in_fork

    def fail():
        raise ValueError("no data")

    assert run_in_fork(lambda: {"answer": 42}, seconds=600) == {"answer": 42}
    with pytest.raises(LeftOutError, match=r"^ValueError: no data$"):
        run_in_fork(fail, seconds=600)
    with pytest.raises(LeftOutError, match=r"^it did not end in 0.01 s$"):
        run_in_fork(lambda: time.sleep(600), seconds=0.01)
    with pytest.raises(LeftOutError, match=r"^it ended with 3$"):
        run_in_fork(lambda: os._exit(3), seconds=600)
