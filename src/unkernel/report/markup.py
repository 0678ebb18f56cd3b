"""Make HTML from values. Text is escaped, except for instances of :class:`Html`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Characters that HTML and XML do not allow: control characters, lone surrogates, and non-characters.
_INVALID_CHARACTERS = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Html(str):
    """Text that is already HTML and is not escaped again."""

    __slots__ = ()


def clean_text(value: Any) -> str:
    """Return text without the characters that pages and figures cannot contain."""
    return _INVALID_CHARACTERS.sub(_REPLACEMENT, str(value))


def escape_html(value: Any) -> Html:
    """Escape a value, unless it is HTML already."""
    return value if isinstance(value, Html) else Html(html.escape(clean_text(value)))


def join_parts(parts: Iterable[Any], between: str = "") -> Html:
    """Escape and concatenate several values."""
    return Html(between.join(map(escape_html, parts)))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; attributes with the value None are omitted, and ``class_`` means ``class``."""
    html_attributes = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
    attribute_text = "".join(
        f' {name}="{escape_html(value)}"' for name, value in html_attributes.items() if value is not None
    )
    return Html(f"<{tag}{attribute_text}>{join_parts(children)}</{tag}>")


def paragraph(*content: Any, note: bool = False) -> Html:
    """Return a paragraph; notes have smaller text."""
    return element("p", *content, class_="note" if note else None)


class Bar(str):
    """The text of a table cell with a bar behind it.

    `share` is the length of the bar relative to the longest bar; its sign selects one of two colours.
    """

    share: float

    def __new__(cls, text: str, share: float) -> Bar:
        """Make a text that carries a share."""
        cell = super().__new__(cls, text)
        cell.share = share
        return cell


def table(
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str,
    texts: Iterable[int] = (),
    marked: Iterable[int] = (),
) -> Html:
    """Return a table whose first column names its rows.

    `texts` lists the other columns with text instead of numbers, and `marked` lists the rows to highlight.
    """
    text_columns, marked_rows = {0, *texts}, set(marked)
    titles = element(
        "tr",
        *(_make_cell("th", title, number in text_columns, scope="col") for number, title in enumerate(head)),
    )
    body = [_make_row(cells, text_columns, number in marked_rows) for number, cells in enumerate(rows)]
    content = element("caption", caption) + element("thead", titles) + element("tbody", *body)
    # A table that is wider than the screen can be scrolled, even with the keyboard.
    return element(
        "div", element("table", Html(content)), class_="wide", tabindex=0, role="region", aria_label=caption
    )


def _make_row(cells: Sequence[Any], text_columns: set[int], marked: bool) -> Html:
    name, *values = cells
    row = [_make_cell("th", name, True, scope="row")]
    row += [_make_cell("td", value, number in text_columns) for number, value in enumerate(values, 1)]
    return element("tr", *row, class_="marked" if marked else None)


def _make_cell(tag: str, value: Any, is_text: bool, **attributes: Any) -> Html:
    classes = [] if is_text else ["number"]
    style = None
    if isinstance(value, Bar):
        classes += ["bar", "against" if value.share < 0 else "for"]
        style = f"--share: {100 * min(abs(value.share), 1):.1f}%"
    return element(tag, value, class_=" ".join(classes) or None, style=style, **attributes)


def facts(names: Sequence[str], rows: Iterable[tuple[str, Sequence[Any]]], *, caption: str) -> Html:
    """Return a table of texts, with one row per fact and one column per object."""
    return table(["", *names], [[name, *values] for name, values in rows], caption=caption, texts=range(99))


def figure(picture: Html, caption: Any) -> Html:
    """Return a figure and its caption."""
    return element("figure", picture, element("figcaption", caption))


def side_by_side(parts: Iterable[Html]) -> Html:
    """Place parts side by side, in several lines if necessary."""
    return element("div", *parts, class_="grid")


def fold_details(summary: Any, *content: Any, opened: bool = False) -> Html:
    """Return a summary that unfolds to show the content."""
    return element("details", element("summary", summary), *content, open="" if opened else None)
