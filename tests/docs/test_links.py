"""Links between the project's pages are valid, and evidence named on pages exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Recorded on one machine when the benchmarks are run, so not always present.
MAY_BE_ABSENT = {ROOT / "benchmarks" / "RESULTS.md"}

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
CODE = re.compile(r"```.*?```", re.DOTALL)


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {re.sub(r"\s+", "-", text.strip()) for text in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists() or path in MAY_BE_ABSENT, f"{page}: {link}"
        if anchor:
            assert anchor in anchors(path), f"{page}: {link}"


# A claim names the test or benchmark behind it: `tests/poly/test_svc.py`, `benchmarks/engines.py`.
EVIDENCE = re.compile(r"`((?:tests|benchmarks|cpp|docs|tools)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_evidence_exists(page: Path) -> None:
    for named in EVIDENCE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / named).exists() or ROOT / named in MAY_BE_ABSENT, f"{page}: {named}"


def test_trust_pages_name_evidence() -> None:
    pages = [page for page in PAGES if page.parent.name == "trust"]
    assert sum(len(EVIDENCE.findall(page.read_text(encoding="utf-8"))) for page in pages) > 30
