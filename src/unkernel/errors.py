"""Errors and warnings of unkernel, in addition to ``ValueError`` and ``OSError``."""

from __future__ import annotations

import sys
import warnings


class FormatError(ValueError):
    r"""Error in the contents of a file. All parameters are also attributes.

    Parameters
    ----------
    file : str
        Name of the file; ``"<stream>"`` if it has no name.
    line : int
        Line of the error, counted from 1; 0 if the error concerns the whole file.
    column : int
        Column of the error, counted from 1; 0 if the error concerns the whole line.
    reason : str
        Description of the error and, if known, of a correct value.

    See Also
    --------
    LimitError : Error for files that would take too much memory.

    Examples
    --------
    >>> import io
    >>> from unkernel import FormatError, read_svmlight
    >>> try:
    ...     read_svmlight(io.StringIO("1 1:0.5\n1 2:x\n"))
    ... except FormatError as error:
    ...     print(error.line)
    2
    """

    def __init__(self, file: str, line: int, column: int, reason: str) -> None:
        position = "".join(f":{number}" for number in (line, column) if number > 0)
        super().__init__(f"{file}{position}: {reason}")
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, int, int, str]]:
        return type(self), (self.file, self.line, self.column, self.reason)


def describe_bad_byte(byte: int) -> str:
    """Return the reason for an error about a byte that is not valid UTF-8."""
    return (
        f"byte 0x{byte:02X} is not UTF-8: convert the text first, for example from Latin-1 by "
        "`iconv -f latin1 -t utf-8`"
    )


class LimitError(FormatError, MemoryError):
    """Error for a file that would take more memory than the limit for its size.

    The parameter ``limit`` of :func:`unkernel.load` and :func:`unkernel.read_model` raises the limit.

    Parameters
    ----------
    file : str
        Name of the file.
    line : int
        Line of the error; 0 if the error concerns the whole file.
    column : int
        Column of the error; 0 if the error concerns the whole line.
    reason : str
        Description of the error.

    See Also
    --------
    FormatError : Error in the contents of a file.

    Examples
    --------
    >>> import unkernel
    >>> unkernel.PolySVC(gamma=1).fit([[0, 1], [1, 0]], [0, 1]).save("small.uk")
    >>> try:
    ...     unkernel.load("small.uk", limit=10)
    ... except unkernel.LimitError:
    ...     print("too large")
    too large
    """


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the caller's line outside this package and scikit-learn."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("unkernel", "sklearn")
