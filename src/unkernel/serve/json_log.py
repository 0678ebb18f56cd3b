"""Write the server's log to stderr, with one JSON object per line."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

_LOGGER = logging.getLogger("unkernel.serve")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "process": record.process}
        line |= {"message": record.getMessage(), **getattr(record, "facts", {})}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return str(msgspec.json.encode(line), "utf-8")


def log(message: str, *, level: str = "info", exc_info: Any = None, **facts: Any) -> None:
    """Write a line to the log."""
    _LOGGER.log(
        logging.getLevelNamesMapping()[level.upper()], message, extra={"facts": facts}, exc_info=exc_info
    )


def start_log(*, quiet: bool = False) -> None:
    """Log to stderr; with `quiet`, log only errors and warnings.

    If a line cannot be written, for example to a full disk, the line is lost, but no request fails.
    """
    logging.raiseExceptions = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    levels = {"unkernel.serve": logging.WARNING if quiet else logging.INFO, "uvicorn": logging.WARNING}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
