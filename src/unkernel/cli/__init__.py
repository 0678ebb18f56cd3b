"""The command line: ``unkernel train``, ``compile``, ``predict`` and others.

Rooms: ``commands`` (one file per command), ``learners`` (training and tuning, one file per kind of model),
``records`` (predictions of models of records), ``inputs`` (files that are read), ``render`` (printed text),
``options`` (names, types and help), ``terminal`` (messages, progress and tables).

Exit codes: 0 for success, 1 for a broken pipe (``verify``: a damaged file), 2 for a wrong command line, a bad
file or too little memory, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP. A traceback is a bug.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from unkernel._version import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments == ["--version"]:  # avoids the imports below, which take longer
        print(f"unkernel {__version__}")
        return 0
    from unkernel.cli.signals import Terminated, terminable

    try:
        with terminable():
            from unkernel.cli.app import run

            return run(arguments)
    except KeyboardInterrupt:  # during the imports; `run` handles later interrupts
        print("unkernel: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except Terminated as error:
        print(f"unkernel: ended by {error.signal.name}", file=sys.stderr)
        return 128 + error.signal
    except ImportError:  # after `pip install --no-deps unkernel`
        if not (missing := _list_missing_requirements()):
            raise
        names = ", ".join(missing)
        verb = "is" if len(missing) == 1 else "are"
        remedy = f"pip install {' '.join(missing)}"
        print(
            f"unkernel: error: the command line needs {names}, which {verb} not installed: {remedy}",
            file=sys.stderr,
        )
        return 2


def _list_missing_requirements() -> list[str]:
    """Return the packages that unkernel requires (without extras) and that are not installed."""
    import re
    from importlib.metadata import PackageNotFoundError, requires, version

    def is_missing(name: str) -> bool:
        try:
            version(name)
        except PackageNotFoundError:
            return True
        return False

    try:
        required = requires("unkernel") or []
    except PackageNotFoundError:  # unkernel runs from its sources
        return []
    names = [re.split(r"[^\w.-]", line)[0] for line in required if "extra ==" not in line]
    return sorted(filter(is_missing, names))
