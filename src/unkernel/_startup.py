"""Checks and settings before all other imports of the package.

A free-threaded Python is refused. Ctrl-C while the command ``unkernel`` starts ends it with one line and exit
code 130, in the place of a traceback: ``unkernel.cli.main`` answers Ctrl-C once it runs; until then, Python
itself would. Programs that import the package keep their own tracebacks.
"""

import os
import sys
from types import TracebackType

_INTERRUPTED = 130
_NAMES = ("unkernel", "unkernel.exe", "-m")  # argv[0] is -m while Python imports the package for -m unkernel

if "free-threading" in sys.version:  # compiled plans and records are shared under Python's lock
    raise ImportError(
        "unkernel needs a Python with the global interpreter lock, and this one is free-threaded; use the "
        f"ordinary build of Python {sys.version.split()[0]}"
    )


def _is_command() -> bool:
    return os.path.basename((getattr(sys, "argv", None) or [""])[0]) in _NAMES  # noqa: PTH119 (pathlib is slow)


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print("unkernel: interrupted", file=sys.stderr, flush=True)
    os._exit(_INTERRUPTED)  # nothing has begun that would need to be ended


if _is_command():
    sys.excepthook = _report
