"""Evaluate models on test data, and show the results as an HTML page."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.measures.intervals import Measure
    from unkernel.report.build_report import report
    from unkernel.report.page import Report
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.measures.intervals": "Measure",
            "unkernel.report.build_report": "report",
            "unkernel.report.page": "Report",
        },
    )

__all__ = ["Measure", "Report", "report"]
