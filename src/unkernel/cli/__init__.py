"""The command line: ``unkernel train``, ``compile``, ``predict`` and others.

Rooms: ``commands`` (one file per command), ``options`` (names, types and help), ``inputs`` (files that are
read), ``learners`` (what ``train`` and ``tune`` know of each kind of model), ``render`` (what is printed).

Exit codes: 0 all is well; 1 nobody reads what is written (a broken pipe); 2 a wrong command line, a bad file
or too little memory; 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP. A traceback is a bug of ours.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from unkernel._version import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:  # nothing else has to be imported for this
        print(f"unkernel {__version__}")
        return 0
    from unkernel.cli.signals import Terminated, terminable

    try:
        with terminable():
            from unkernel.cli.app import run

            return run(given)
    except KeyboardInterrupt:  # `run` reports those that come while a command runs
        print("unkernel: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except Terminated as ended:
        print(f"unkernel: ended by {ended.signal.name}", file=sys.stderr)
        return 128 + ended.signal
    except ImportError:  # of what `pip install --no-deps unkernel` left out
        if not (lacking := _list_missing_requirements()):
            raise
        names = ", ".join(lacking)
        verb = "is" if len(lacking) == 1 else "are"
        remedy = f"pip install {' '.join(lacking)}"
        print(
            f"unkernel: error: the command line needs {names}, which {verb} not installed: {remedy}",
            file=sys.stderr,
        )
        return 2


def _list_missing_requirements() -> list[str]:
    """List the packages that unkernel requires, extras apart, and that are not installed."""
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
    except PackageNotFoundError:  # run from the sources
        return []
    names = [re.split(r"[^\w.-]", one)[0] for one in required if "extra ==" not in one]
    return sorted(filter(is_missing, names))
