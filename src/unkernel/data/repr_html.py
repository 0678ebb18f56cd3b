"""Show objects as HTML in notebooks, write reports of models, and perform other registered tasks.

The functions for these tasks are registered by name, and imported at their first call: they need libraries
that loading a model and predicting do not need.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

from unkernel._lazy import import_object

_DRAWN_SENTENCES = 3

_function_names: dict[str, str] = {}


def register(task: str, function_name: str) -> None:
    """Register a function, written as ``"module:function"``, for a task; it is imported at its first call."""
    _function_names[task] = function_name


def is_lazy(X: Any) -> bool:
    """Return whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def ask(task: str, *arguments: Any, **options: Any) -> Any:
    """Call the function registered for a task, and return its result."""
    return import_object(_function_names[task])(*arguments, **options)


class Page(Protocol):
    """A report, such as :class:`unkernel.report.Report`."""

    def html(self) -> str:
        """Return the whole page."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, replacing an existing file in one step."""

    def to_frame(self) -> Any:
        """Return the measures that the page contains as a data frame."""


class Reportable:
    """A mixin for models that can report how well they predict."""

    def report(self, X: Any, y: Any, **options: Any) -> Page:
        """Evaluate predictions on labelled examples and write an HTML report.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame, list of trees}
            The examples, in the form that ``predict`` takes.
        y : array-like of shape (n_samples,)
            The correct labels or values.
        **options
            Options for :func:`~unkernel.report.report`, for example ``costs=(1, 5)``, ``qid`` or ``title``.

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
        """Return the object to report on, or a dict that maps a name to it."""
        return self


class HtmlRepr:
    """A mixin for objects that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        html: str = ask("html", self)
        return html


def corpus_html(corpus: Sequence[Any]) -> str:
    """Return a summary of a corpus and drawings of its first sentences, as HTML."""
    import html

    drawings = "".join(sentence._repr_html_() for sentence in corpus[:_DRAWN_SENTENCES])
    n_hidden = len(corpus) - _DRAWN_SENTENCES
    note = f"<p>and {n_hidden:,} more</p>" if n_hidden > 0 else ""
    return f"<p>{html.escape(repr(corpus))}</p>{drawings}{note}"
