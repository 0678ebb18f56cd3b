"""The report: its sections, and the HTML page."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from unkernel._version import __version__
from unkernel.data.atomic_write import replace_file
from unkernel.data.frames import frame_of
from unkernel.measures.intervals import Measure
from unkernel.report.markup import Html, element, escape_html, join_parts, paragraph

_NOTEBOOK_HEIGHT = "80vh"  # height of a report in a notebook


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str
    content: Html

    @property
    def anchor(self) -> str:
        """Return the id of the section, which links refer to."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True, eq=False)
class Report:
    """Report on one or more models: an HTML page that needs no network.

    The ``report`` method of models and :func:`~unkernel.report.report` make reports. Notebooks display them.

    Attributes
    ----------
    title : str
        Title of the page.
    measures : dict of str to list of Measure
        The measures of each model, by name, with their 95 % confidence intervals.
    sections : sequence of Section
        The sections of the page.
    notes : sequence of str, default=()
        Remarks at the top of the page, for example about undefined measures.
    summary : dict of str to list of str
        The sentences about each model at the top of the page, by name. They state how good the model is,
        compare it with baselines, and name its greatest weakness.

    See Also
    --------
    report : Evaluate models and make a report.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> page = PolySVC(C=10, gamma=1).fit(X, y).report(X, y)  # needs matplotlib
    >>> page.measures["PolySVC"][0].name, page.measures["PolySVC"][0].value
    ('accuracy', 1.0)
    >>> page.save("report.html")
    """

    title: str
    measures: dict[str, list[Measure]]
    sections: Sequence[Section] = field(repr=False)
    notes: Sequence[str] = ()
    summary: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def html(self) -> str:
        """Return the page as HTML.

        Returns
        -------
        str
            The complete page.
        """
        links = [
            element("li", element("a", section.title, href=f"#{section.anchor}")) for section in self.sections
        ]
        parts = [
            element("section", element("h2", section.title), section.content, id=section.anchor)
            for section in self.sections
        ]
        body = join_parts(
            [
                element(
                    "header",
                    element("h1", self.title),
                    *self._format_summaries(),
                    *map(_format_note, self.notes),
                ),
                element("nav", element("ul", *links), aria_label="Sections"),
                element("main", *parts),
                element("footer", element("p", f"Made by unkernel {__version__}.")),
            ]
        )
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape_html(self.title)}</title>\n"
            f"<style>\n{read_style('tables.css')}{read_style('page.css')}</style>\n</head>\n"
            f'<body class="unkernel">\n{body}\n</body>\n</html>\n'
        )

    def _format_summaries(self) -> list[Html]:
        lists = []
        for name, sentences in self.summary.items():
            lines = [element("li", sentence) for sentence in sentences]
            title = element("p", element("strong", name)) if len(self.summary) > 1 else ""
            lists.append(element("div", title, element("ul", *lines), class_="summary"))
        return lists

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        An existing file is replaced in one step, or left unchanged if writing fails.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        with replace_file(path) as file:
            file.write(self.html().encode())

    def to_frame(self) -> Any:
        """Return the measures as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row for each measure of each model.
        """
        return frame_of(
            [
                {
                    "model": name,
                    "measure": measure.name,
                    "value": measure.value,
                    "low": measure.low,
                    "high": measure.high,
                    "interval": measure.method,
                }
                for name, measures in self.measures.items()
                for measure in measures
            ]
        )

    def _repr_html_(self) -> str:
        """Return the page in a frame, which isolates it from the style of the notebook."""
        return element(
            "iframe",
            srcdoc=self.html(),
            title=self.title,
            sandbox="",
            style=f"width: 100%; height: {_NOTEBOOK_HEIGHT}; border: 0",
        )

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.sections)} sections)"


def _format_note(note: str) -> Html:
    return paragraph(f"{note[0].upper()}{note[1:]}.")


def read_style(name: str) -> str:
    """Read a style sheet of this package."""
    return resources.files("unkernel.report").joinpath(name).read_text(encoding="utf-8")
