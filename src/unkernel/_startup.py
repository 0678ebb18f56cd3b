"""Ctrl-C while the command ``unkernel`` starts: one line and exit code 130, in the place of a traceback.

The package imports this before all else. ``unkernel.cli.main`` answers Ctrl-C once it runs; until then,
Python itself would. Programs that import the package keep their own tracebacks.
"""

import os
import sys
from types import TracebackType

_INTERRUPTED = 130
_NAMES = ("unkernel", "unkernel.exe", "-m")  # argv[0] is -m while Python imports the package for -m unkernel


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
