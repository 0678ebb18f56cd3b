"""HTML, made of text that is escaped unless it says that it is HTML already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

# What HTML and XML have no place for: control characters, halves of characters, and non-characters.
_NOT_IN_PAGES = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Html(str):
    """Text that is HTML, and is not escaped again."""

    __slots__ = ()


def clean_text(value: Any) -> str:
    """Text without the characters that pages and pictures cannot have."""
    return _NOT_IN_PAGES.sub(_REPLACEMENT, str(value))


def escape_html(value: Any) -> Html:
    """A value as HTML: text that comes from data can neither end an element nor begin one."""
    return value if isinstance(value, Html) else Html(html.escape(clean_text(value)))


def join_parts(parts: Iterable[Any], between: str = "") -> Html:
    """Several values one after the other."""
    return Html(between.join(map(escape_html, parts)))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """An element; an attribute that is None is left out, and ``class_`` stands for ``class``."""
    given = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
    written = "".join(f' {name}="{escape_html(value)}"' for name, value in given.items() if value is not None)
    return Html(f"<{tag}{written}>{join_parts(children)}</{tag}>")


def paragraph(*words: Any, note: bool = False) -> Html:
    """Some sentences; a note is set smaller."""
    return element("p", *words, class_="note" if note else None)


class Bar(str):
    """A cell with a bar behind its text, as long as its share of the longest one.

    The sign of the share says which of two colours it has.
    """

    share: float

    def __new__(cls, words: str, share: float) -> Bar:
        """Keep the share with the text."""
        made = super().__new__(cls, words)
        made.share = share
        return made


def table(
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str,
    texts: Iterable[int] = (),
    marked: Iterable[int] = (),
) -> Html:
    """A table whose first column names its rows; all other columns are numbers, unless `texts` has them.

    `marked` are the numbers of rows that stand out.
    """
    left, standing_out = {0, *texts}, set(marked)
    titles = element(
        "tr", *(_cell("th", title, number in left, scope="col") for number, title in enumerate(head))
    )
    body = [_row(cells, left, number in standing_out) for number, cells in enumerate(rows)]
    content = element("caption", caption) + element("thead", titles) + element("tbody", *body)
    # What is wider than the screen scrolls by itself, by keyboard as well.
    return element(
        "div", element("table", Html(content)), class_="wide", tabindex=0, role="region", aria_label=caption
    )


def _row(cells: Sequence[Any], left: set[int], marked: bool) -> Html:
    name, *others = cells
    found = [_cell("th", name, True, scope="row")]
    found += [_cell("td", value, number in left) for number, value in enumerate(others, 1)]
    return element("tr", *found, class_="marked" if marked else None)


def _cell(tag: str, value: Any, is_text: bool, **attributes: Any) -> Html:
    classes = [] if is_text else ["number"]
    style = None
    if isinstance(value, Bar):
        classes += ["bar", "against" if value.share < 0 else "for"]
        style = f"--share: {100 * min(abs(value.share), 1):.1f}%"
    return element(tag, value, class_=" ".join(classes) or None, style=style, **attributes)


def facts(names: Sequence[str], rows: Iterable[tuple[str, Sequence[Any]]], *, caption: str) -> Html:
    """What is known of one or several things: a row for each fact, a column for each thing."""
    return table(["", *names], [[name, *values] for name, values in rows], caption=caption, texts=range(99))


def figure(picture: Html, caption: Any) -> Html:
    """A picture and what it shows."""
    return element("figure", picture, element("figcaption", caption))


def side_by_side(parts: Iterable[Html]) -> Html:
    """As many beside each other as there is room for."""
    return element("div", *parts, class_="grid")


def fold_details(summary: Any, *content: Any, opened: bool = False) -> Html:
    """What is shown when it is asked for."""
    return element("details", element("summary", summary), *content, open="" if opened else None)
