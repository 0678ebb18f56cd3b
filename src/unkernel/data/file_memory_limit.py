"""Limit the memory that loading a file may take.

A number in a small file, such as a count of columns or classes, must not cause a large allocation. Readers
therefore claim memory before they allocate it. The default limit of a file is ``BASE_BYTES`` plus
``BYTES_PER_FILE_BYTE`` times its size. The caller (``limit=``) or the environment (``UNKERNEL_LIMIT``) can
set another limit. Larger claims raise a :class:`LimitError`. The limit applies to the thread that reads the
file; other threads can claim any amount of memory.
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
    """The memory that a file, or a set of tables, may take.

    Attributes
    ----------
    file : str
        The name of the file; empty for tables that are built from a model in memory.
    limit : float
        Number of bytes that the file may take in total.
    """

    file: str
    limit: float
    _claimed: float = field(default=0.0, init=False)

    @property
    def left(self) -> float:
        """Number of bytes that can still be claimed."""
        return max(self.limit - self._claimed, 0.0)

    def claim(self, nbytes: float, purpose: str) -> None:
        """Claim memory for `purpose`; raise an error if not enough of the allowance is left."""
        if nbytes > self.left:
            raise self.new_limit_error(f"{purpose} would take {format_bytes(nbytes)}", self._claimed + nbytes)
        self._claimed += nbytes

    def new_limit_error(self, reason: str, needed: float) -> Exception:
        """Return the error for a claim that is too large; a limit of `needed` bytes would be enough."""
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


def claim(nbytes: float, purpose: str) -> None:
    """Claim memory for `purpose` before it is allocated; raise an error if the claim exceeds the limit."""
    allowance = _current.get()
    if allowance is not None:
        allowance.claim(nbytes, purpose)


def get_allowance() -> Allowance | None:
    """Return the allowance of the file that this thread is reading, or None."""
    return _current.get()


@contextmanager
def limit_file(path: str | os.PathLike[str], limit: float | str | None = None) -> Iterator[None]:
    """Limit the memory that reading a file may take: to `limit` or, by default, according to its size.

    In a nested call, the allowance of the outer call remains in force.
    """
    if _current.get() is not None:
        yield
        return
    size = os.stat(path).st_size  # noqa: PTH116 (any PathLike, and pathlib is slow to import)
    limit = _compute_default_limit(size) if limit is None else _parse_limit(limit)
    with _set_current(Allowance(name_of(path), limit)):
        try:
            yield
        except FormatError:
            raise
        except MemoryError as error:
            raise LimitError(name_of(path), 0, 0, f"there is not enough memory for it: {error}") from error


@contextmanager
def limit_tables(nbytes: float) -> Iterator[None]:
    """Limit the memory that tables may take while they are built."""
    with _set_current(Allowance("", nbytes)):
        yield


@contextmanager
def _set_current(allowance: Allowance) -> Iterator[None]:
    token = _current.set(allowance)
    try:
        yield
    finally:
        _current.reset(token)


def _compute_default_limit(size: int) -> float:
    """Return the limit for a file of this size if the caller sets none."""
    if limit := os.environ.get(_ENVIRONMENT_VARIABLE):
        return parse_bytes(limit, _ENVIRONMENT_VARIABLE)
    return BASE_BYTES + BYTES_PER_FILE_BYTE * float(size)


def _parse_limit(limit: float | str) -> float:
    if isinstance(limit, str):
        return parse_bytes(limit, "limit")
    if isinstance(limit, bool) or not isinstance(limit, Real) or not limit > 0:
        raise ValueError(f"limit must be a number of bytes above 0, or such as '8G', got {limit!r}")
    return float(limit)
