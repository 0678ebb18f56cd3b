"""The built site is self-contained: its links are valid, and it loads nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
# Resources that a browser fetches by itself, by the attribute that names them (unlike links, which a reader
# follows).
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload"}
ELSEWHERE = re.compile(r"(https?:)?//")
LOADS_OF_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]*)""")

pytestmark = pytest.mark.docs


@dataclass
class Page(HTMLParser):
    """The targets of links in a page, its own links, and the resources that it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loads.append(given["href"])
        self.loads += [given[name] for element, name in LOADED if element == tag and name in given]


def read(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    if not SITE.is_dir():
        pytest.skip("`make docs` builds the site first")
    paths = [
        path for path in SITE.rglob("*.html") if path.parent.name != "_static"
    ]  # a template of the theme
    return {path: read(path.read_text(encoding="utf-8")) for path in paths}


def dead_links(pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path}: {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path}: {link} (no such anchor)"


def test_links_have_existing_targets(pages: dict[Path, Page]) -> None:
    assert {"index.html", "guide.html", "results.html"} <= {path.name for path in pages}
    assert list(dead_links(pages)) == []


def test_links_to_other_projects_are_complete(pages: dict[Path, Page]) -> None:
    """An inventory writes ``$`` for a name."""
    assert [link for page in pages.values() for link in page.links if "$" in link] == []


def test_pages_load_nothing_from_other_sites(pages: dict[Path, Page]) -> None:
    assert [
        (path, load) for path, page in pages.items() for load in page.loads if ELSEWHERE.match(load)
    ] == []


def test_styles_load_nothing_from_other_sites(pages: dict[Path, Page]) -> None:
    styles = {path: path.read_text(encoding="utf-8") for path in SITE.rglob("*.css")}
    assert styles
    assert [(path, load) for path, style in styles.items() for load in LOADS_OF_STYLES.findall(style)] == []


def test_a_page_is_read() -> None:
    page = read(
        '<link rel="stylesheet" href="a.css"><link rel="canonical" href="https://example.org">'
        '<h1 id="top"></h1><a href="b.html#x">b</a><img src="//example.org/c.png">'
    )
    assert (page.anchors, page.links, page.loads) == ({"top"}, ["b.html#x"], ["a.css", "//example.org/c.png"])
    assert LOADS_OF_STYLES.findall("a { src: url('https://e.org/f.woff2'), url(g.svg) }") == [
        "https://e.org/f.woff2"
    ]


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").touch()
    pages = {tmp_path / "a.html": read('<p id="x"><a href="#x"></a><a href="#y"></a><a href="b.html"></a>')}
    assert [problem.split(": ")[1] for problem in dead_links(pages)] == ["#y (no such anchor)", "b.html"]
