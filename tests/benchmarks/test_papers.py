"""Pages of the papers: the generated parts, and the parts that stay as written."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace

import pytest

NAMES = ("chang2010", "goldberg2008", "yoshinaga2009", "joachims2006", "severyn2011")


@pytest.fixture
def paper():
    from _plots import Axes
    from papers import Paper

    def table_5(report):
        """Training, on another machine."""
        report.add("table 5, a9a", "unkernel", "training", "CPU s", 0.25)
        report.add("table 5, a9a", "paper, LIBLINEAR", "training", "CPU s", 1.5)

    def figure_2(report):
        """Passes do not grow."""
        for rows, passes in ((1000, 20.0), (10_000, 19.0)):
            report.add("figure 2", "a9a", "passes", "", passes, at=rows)

    def table_9(_):
        """Needs data."""
        raise FileNotFoundError("there is no data set wsj")

    work = {"table 5": table_5, "figure 2": figure_2, "table 9": table_9}
    return Paper(work, axes={"figure 2": Axes("rows", "passes")}, missing={"table 8": "lists features"})


@pytest.fixture
def page(paper, tmp_path, monkeypatch):
    """Return the generated part of a page about the paper."""
    import papers
    from harness import Report
    from harness.report import read

    monkeypatch.setattr(papers, "PAGES", tmp_path)
    report = Report("paper_chang2010")
    paper.measure(report, list(paper.work))
    return papers.make_page_part(paper, read(report.save(tmp_path)), "chang2010")


def test_tables_compare_the_numbers_of_the_paper_with_ours(page):
    assert "### Table 5\n\nTraining, on another machine.\n" in page
    assert "| a9a | **unkernel** | 0.25 |" in page
    assert "|  | paper, LIBLINEAR | 1.5 (6) |" in page


def test_figures_are_drawn_from_their_points(page, tmp_path):
    assert "### Figure 2\n\nPasses do not grow.\n" in page
    assert "](figures/chang2010-figure-2.svg)" in page
    assert "<svg" in (tmp_path / "figures" / "chang2010-figure-2.svg").read_text()


def test_missing_figures_are_listed_with_the_reason(page):
    assert "### Table 9\n\nLeft out: there is no data set wsj" in page
    assert "### Not here\n\n- table 8: lists features" in page


def test_an_updated_page_keeps_its_text_and_changes_its_figures(tmp_path, monkeypatch):
    import papers
    from harness import Report

    monkeypatch.setattr(papers, "PAGES", tmp_path)
    page = tmp_path / "chang2010.md"
    page.write_text("# The paper\n\nWords before.\n")
    for spent in (0.25, 0.5):
        report = Report("paper_chang2010")
        report.add("table 5, a9a", "unkernel", "training", "CPU s", spent)
        report.save(tmp_path / "results")
        papers.write("chang2010", tmp_path / "results")
    written = page.read_text()
    assert written.startswith("# The paper\n\nWords before.\n")
    assert "**unkernel** | 0.5 |" in written and "0.25" not in written
    assert written.count(papers.BEGIN) == written.count(papers.END) == 1


def test_complete_runs_are_preferred_to_short_ones_and_newer_ones_to_older_ones(tmp_path, monkeypatch):
    import papers
    from harness import Report

    monkeypatch.setattr(papers, "PAGES", tmp_path)
    page = tmp_path / "chang2010.md"
    page.write_text("# The paper\n")
    runs = {
        "early": (1.5, "2026-01-01", False),
        "late": (2.5, "2026-02-01", False),
        "short": (3.5, "2026-03-01", True),
    }
    for machine, (spent, date, quick) in runs.items():
        report = Report("paper_chang2010")
        report.state = replace(report.state, machine=machine, date=date, quick=quick)
        report.add("table 5, a9a", "unkernel", "training", "CPU s", spent)
        report.save(tmp_path / "results")
    papers.write("chang2010", tmp_path / "results")
    assert "2.5" in page.read_text() and not {"1.5", "3.5"} & set(page.read_text().split())


@pytest.mark.parametrize("name", NAMES)
def test_every_table_names_the_differences_from_the_paper(name):
    paper = importlib.import_module(f"paper_{name}").PAPER
    assert all(inspect.getdoc(redraw) for redraw in paper.work.values())
    assert set(paper.axes) <= set(paper.work)
    assert paper.missing
