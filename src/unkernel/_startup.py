"""Checks and settings before all other imports of the package.

A free-threaded Python is rejected. If Ctrl-C is pressed while the command ``unkernel`` starts, one line is
printed instead of a traceback, and the exit code is 130; later, ``unkernel.cli.main`` handles Ctrl-C.
Programs that import the package keep their own tracebacks.
"""

import os
import sys
from types import TracebackType

_INTERRUPTED_EXIT_CODE = 130
_NAMES = ("unkernel", "unkernel.exe", "-m")  # argv[0] is -m while Python imports the package for -m unkernel

if "free-threading" in sys.version:  # compiled plans and records rely on the global interpreter lock
    raise ImportError(
        "unkernel needs a Python with the global interpreter lock, and this one is free-threaded; use the "
        f"ordinary build of Python {sys.version.split()[0]}"
    )


def _is_command() -> bool:
    """Return whether this process runs the command ``unkernel``."""
    return os.path.basename((getattr(sys, "argv", None) or [""])[0]) in _NAMES  # noqa: PTH119 (pathlib is slow)


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that ends the process; for Ctrl-C, print one line and exit."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print("unkernel: interrupted", file=sys.stderr, flush=True)
    os._exit(_INTERRUPTED_EXIT_CODE)  # there is nothing to clean up yet


if _is_command():
    sys.excepthook = _report
