"""HTML built from values; text is escaped unless it is marked as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Characters that HTML and XML do not allow: control characters, lone surrogates, and non-characters.
_NOT_IN_PAGES = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Html(str):
    """Text that is already HTML and is not escaped again."""

    __slots__ = ()


def clean_text(value: Any) -> str:
    """Return text without the characters that pages and figures cannot contain."""
    return _NOT_IN_PAGES.sub(_REPLACEMENT, str(value))


def escape_html(value: Any) -> Html:
    """Return a value as HTML: text from data can neither begin nor end an element."""
    return value if isinstance(value, Html) else Html(html.escape(clean_text(value)))


def join_parts(parts: Iterable[Any], between: str = "") -> Html:
    """Join several values."""
    return Html(between.join(map(escape_html, parts)))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; an attribute of None is omitted, and ``class_`` stands for ``class``."""
    given = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
    written = "".join(f' {name}="{escape_html(value)}"' for name, value in given.items() if value is not None)
    return Html(f"<{tag}{written}>{join_parts(children)}</{tag}>")


def paragraph(*words: Any, note: bool = False) -> Html:
    """Return some sentences as a paragraph; notes are smaller."""
    return element("p", *words, class_="note" if note else None)


class Bar(str):
    """The text of a cell with a bar behind it; `share` is the bar's length relative to the longest bar.

    The sign of the share selects one of two colours.
    """

    share: float

    def __new__(cls, words: str, share: float) -> Bar:
        """Store the share with the text."""
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
    """Return a table whose first column names its rows.

    `texts` lists the other columns that hold text instead of numbers, and `marked` the rows to highlight.
    """
    text_columns, marked_rows = {0, *texts}, set(marked)
    titles = element(
        "tr", *(_cell("th", title, number in text_columns, scope="col") for number, title in enumerate(head))
    )
    body = [_row(cells, text_columns, number in marked_rows) for number, cells in enumerate(rows)]
    content = element("caption", caption) + element("thead", titles) + element("tbody", *body)
    # Tables wider than the screen scroll by themselves, by keyboard as well.
    return element(
        "div", element("table", Html(content)), class_="wide", tabindex=0, role="region", aria_label=caption
    )


def _row(cells: Sequence[Any], text_columns: set[int], marked: bool) -> Html:
    name, *others = cells
    found = [_cell("th", name, True, scope="row")]
    found += [_cell("td", value, number in text_columns) for number, value in enumerate(others, 1)]
    return element("tr", *found, class_="marked" if marked else None)


def _cell(tag: str, value: Any, is_text: bool, **attributes: Any) -> Html:
    classes = [] if is_text else ["number"]
    style = None
    if isinstance(value, Bar):
        classes += ["bar", "against" if value.share < 0 else "for"]
        style = f"--share: {100 * min(abs(value.share), 1):.1f}%"
    return element(tag, value, class_=" ".join(classes) or None, style=style, **attributes)


def facts(names: Sequence[str], rows: Iterable[tuple[str, Sequence[Any]]], *, caption: str) -> Html:
    """Return a table of facts about one or several things: a row for each fact, a column for each thing."""
    return table(["", *names], [[name, *values] for name, values in rows], caption=caption, texts=range(99))


def figure(picture: Html, caption: Any) -> Html:
    """Return a figure and its caption."""
    return element("figure", picture, element("figcaption", caption))


def side_by_side(parts: Iterable[Html]) -> Html:
    """Place parts side by side; parts for which there is no room go below."""
    return element("div", *parts, class_="grid")


def fold_details(summary: Any, *content: Any, opened: bool = False) -> Html:
    """Return details that readers can unfold."""
    return element("details", element("summary", summary), *content, open="" if opened else None)
