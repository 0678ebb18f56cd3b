"""Read rows to predict."""

from __future__ import annotations

from unkernel.cli.inputs.models import Opened
from unkernel.cli.inputs.trees import check_holds_rows, explain_trees
from unkernel.cli.terminal.progress import Display
from unkernel.data import SvmlightData
from unkernel.models.model_rows import read_for


def expect_rows(opened: Opened, file: str) -> None:
    """Raise ``ValueError`` if a file contains trees or a model; to be called before the model is compiled."""
    check_holds_rows(file, _make_remedy(opened))


def _make_remedy(opened: Opened) -> str:
    return f"the model {opened.path} answers for rows"


def read_rows_to_predict(
    opened: Opened, file: str, display: Display, zero_based: bool | None, jobs: int | None = None
) -> SvmlightData:
    """Return the rows to predict."""
    with display.show_reading(file) as stream, explain_trees(_make_remedy(opened)):
        return read_for(opened.model, stream, zero_based, jobs)
