"""What shows models and their answers: rooms above, which are told here by name.

A model can be asked for a report of itself, and notebooks ask whatever they show for HTML. What makes these
stands above models and engines, and brings libraries in that answering does not need.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

from unkernel._lazy import import_object

_places: dict[str, str] = {}


def register(task: str, place: str) -> None:
    """Say what does a task, as ``"module:function"``; it is imported when it is first asked for."""
    _places[task] = place


def is_lazy(X: Any) -> bool:
    """Return whether something is a collection of Dask's, which a room above knows to handle."""
    return hasattr(X, "__dask_graph__")


def ask(task: str, *arguments: Any, **options: Any) -> Any:
    """Have a task done."""
    return import_object(_places[task])(*arguments, **options)


class Page(Protocol):
    """A report, as :class:`unkernel.report.Report` is one."""

    def html(self) -> str:
        """Return the whole page."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, whole or not at all."""

    def to_frame(self) -> Any:
        """Its measures as a frame of pandas."""


class Reportable:
    """What answers examples, and can report how well."""

    def report(self, X: Any, y: Any, **options: Any) -> Page:
        """Evaluate predictions on labelled examples and write an HTML report.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame, list of trees}
            The examples, in the form that ``predict`` takes.
        y : array-like of shape (n_samples,)
            The correct answers.
        **options
            Passed on to :func:`~unkernel.report.report`, for example ``costs=(1, 5)``, ``qid`` or ``title``.

        Returns
        -------
        Report
            The report: notebooks display it, ``save`` writes it to a file.

        See Also
        --------
        unkernel.report.report : Compare several models in one report.
        """
        page: Page = ask("report", self._report_subject(), X, y, **options)
        return page

    def _report_subject(self) -> Any:
        """What the report is about; a dict says what it is called there."""
        return self


class HtmlRepr:
    """What notebooks show as HTML."""

    def _repr_html_(self) -> str:
        """Give notebooks a table."""
        html: str = ask("html", self)
        return html
