"""The errors that unkernel raises, beside Python's own ``ValueError`` and ``OSError``."""

from __future__ import annotations


class FormatError(ValueError):
    """A file that is not what it claims to be.

    Attributes
    ----------
    file : str
        The name of the file (``"<stream>"`` where there is none).
    line, column : int
        Where the fault is, counted from 1; 0 where it has no place of its own.
    reason : str
        What is wrong there and, where that helps, what would be right.
    """

    def __init__(self, file: str, line: int, column: int, reason: str) -> None:
        place = "".join(f":{number}" for number in (line, column) if number > 0)
        super().__init__(f"{file}{place}: {reason}")
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, int, int, str]]:
        return type(self), (self.file, self.line, self.column, self.reason)


class LimitError(FormatError, MemoryError):
    """A file that would take more memory than its size accounts for.

    ``limit=`` of :func:`unkernel.load` and :func:`unkernel.read_model` allows more.
    """
