"""How much memory a file may take while it is made ready.

A small file must not take much memory because of a number that is written in it: columns times classes
without a weight, or weights that are all zero. So what is about to be allocated is claimed first, and the
claims of one file may take ``CONSTANT`` bytes and ``FOLD`` times its size. More is a :class:`LimitError`,
unless whoever loads the file allows more with ``limit=``, or the environment with ``UNKERNEL_LIMIT``.

The allowance is that of the file being read in this thread. Where none is read, every claim is granted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Real

from unkernel.data.files import name_of
from unkernel.data.memory import format_bytes, parse_bytes
from unkernel.errors import FormatError, LimitError

BASE_BYTES = 1 << 26
BYTES_PER_FILE_BYTE = 128
_ENVIRONMENT_VARIABLE = "UNKERNEL_LIMIT"


@dataclass
class Allowance:
    """What may still be taken, and for whom.

    Attributes
    ----------
    file : str
        The name of the file; empty for tables that are built of a model in memory.
    granted : float
        Bytes that may be taken in all.
    """

    file: str
    limit: float
    _claimed: float = field(default=0.0, init=False)

    @property
    def left(self) -> float:
        """Bytes that may still be taken."""
        return max(self.limit - self._claimed, 0.0)

    def claim(self, nbytes: float, what: str) -> None:
        """Take some; an error if they are not left."""
        if nbytes > self.left:
            raise self.refusal(f"{what} would take {format_bytes(nbytes)}", self._claimed + nbytes)
        self._claimed += nbytes

    def refusal(self, reason: str, needed: float) -> Exception:
        """Return the error for a claim that is not granted; `needed` bytes would be enough."""
        if not self.file:
            return MemoryError(f"{reason}, and the limit is {format_bytes(self.limit)}; raise memory")
        enough = f"{max(1, math.ceil(needed / 1e9)):d}G" if math.isfinite(needed) else "8G"
        return LimitError(
            self.file,
            0,
            0,
            f"{reason}, and the limit for a file of this size is {format_bytes(self.limit)}; if trusted, "
            f"read it with limit={enough!r}, or set UNKERNEL_LIMIT={enough}",
        )


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def claim(nbytes: float, what: str) -> None:
    """Say that so many bytes are about to be allocated for `what`; an error if they are not allowed."""
    allowance = _current.get()
    if allowance is not None:
        allowance.claim(nbytes, what)


def current_allowance() -> Allowance | None:
    """Return the allowance of the file that is being read; None if there is none."""
    return _current.get()


@contextmanager
def limit_file(path: str | os.PathLike[str], limit: float | str | None = None) -> Iterator[None]:
    """While a file is read: it may take what its size accounts for, or what `limit` says.

    Inside of another reading, that one's allowance is what counts.
    """
    if _current.get() is not None:
        yield
        return
    size = os.stat(path).st_size  # noqa: PTH116 (any PathLike, and pathlib is slow to import)
    limit = _default_limit(size) if limit is None else _parse_limit(limit)
    with _as_current(Allowance(name_of(path), limit)):
        try:
            yield
        except FormatError:
            raise
        except MemoryError as error:
            raise LimitError(name_of(path), 0, 0, f"there is not enough memory for it: {error}") from error


@contextmanager
def limit_tables(nbytes: float) -> Iterator[None]:
    """While tables are built that may take so many bytes."""
    with _as_current(Allowance("", nbytes)):
        yield


@contextmanager
def _as_current(allowance: Allowance) -> Iterator[None]:
    token = _current.set(allowance)
    try:
        yield
    finally:
        _current.reset(token)


def _default_limit(size: int) -> float:
    """What a file of that size may take where nobody says more."""
    if limit := os.environ.get(_ENVIRONMENT_VARIABLE):
        return parse_bytes(limit, _ENVIRONMENT_VARIABLE)
    return BASE_BYTES + BYTES_PER_FILE_BYTE * float(size)


def _parse_limit(limit: float | str) -> float:
    if isinstance(limit, str):
        return parse_bytes(limit, "limit")
    if isinstance(limit, bool) or not isinstance(limit, Real) or not limit > 0:
        raise ValueError(f"limit must be a number of bytes above 0, or such as '8G', got {limit!r}")
    return float(limit)
