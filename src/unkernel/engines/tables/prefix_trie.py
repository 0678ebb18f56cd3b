"""The prefix trie of a compiled classifier: stored sums of frequent prefixes of rows. It can grow."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import Engine
from unkernel.data.rows.csr import narrow, stack_rows
from unkernel.data.threads import thread_count

SAVINGS = ("counted", "entries")
_ARRAYS = ("first_child", "ranks", "counts", "sums")
_PREFIX = "trie_"
_LIMIT = _PREFIX + "limit"
_MAX_NODES = (1 << 31) - 1

Check = Callable[[ArrayLike], Any]  # converts rows of any type to CSR, or raises a ValueError


def export_trie(engine: Engine, limit: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an engine's trie in the form that tables store; empty if there is no trie."""
    trie: Any = engine.trie()
    if trie is None:
        return {}
    arrays = {_PREFIX + name: np.asarray(trie[name]) for name in _ARRAYS}
    return arrays | {_LIMIT: np.array([limit], np.uint64)}


def remove_trie(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of tables, without the arrays of the trie."""
    return {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}


def restore_trie(engine: Engine, arrays: dict[str, NDArray[Any]]) -> None:
    """Restore the trie of an engine from its tables, if they have one; ValueError if it is invalid."""
    if any(name.startswith(_PREFIX) for name in arrays):
        engine.set_trie({name: arrays[_PREFIX + name] for name in _ARRAYS if _PREFIX + name in arrays})
        read_limit(arrays)  # raises an error if the limit is damaged


def read_limit(arrays: dict[str, NDArray[Any]]) -> int:
    """Return the largest number of nodes that the stored trie may have; 0 if there is no trie."""
    limit = arrays.get(_LIMIT)
    if limit is None and not any(name.startswith(_PREFIX) for name in arrays):
        return 0
    if limit is None or limit.dtype != np.uint64 or limit.shape != (1,) or not 0 < limit[0] <= _MAX_NODES:
        raise ValueError("the limit of the prefix trie is missing or damaged")
    return int(limit[0])


def check_limit(nodes: Any, name: str) -> int:
    """Return a limit on the number of nodes as an int; raise a ``ValueError`` if it is out of range."""
    is_integer = isinstance(nodes, int | np.integer) and not isinstance(nodes, bool)
    if not is_integer or not 1 <= nodes <= _MAX_NODES:
        raise ValueError(f"{name} must be a whole number from 1 to {_MAX_NODES:,}, got {nodes!r}")
    return int(nodes)


def grow(engine: Engine, rows: Any, most_nodes: int, saving: str, threads: int) -> None:
    """Add the prefixes of CSR rows to the trie, then remove the nodes that save the least time."""
    engine.grow_trie(narrow(rows), most_nodes=int(most_nodes), saving=saving, threads=threads)


_TRIES: weakref.WeakSet[PrefixTrie] = weakref.WeakSet()


def _replace_locks() -> None:
    """Replace all locks in the child after a fork: the threads that held locks do not exist there."""
    for trie in list(_TRIES):
        trie.make_locks()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_replace_locks)


class PrefixTrie:
    """Stored sums of frequent prefixes of rows, in a classifier made by ``compile(trie=...)``.

    The features of a row are sorted by frequency. For the longest prefix that has a node, the stored sum is
    looked up; only conjunctions with a feature after this prefix are added. All tries give the same scores.

    Attributes
    ----------
    nodes : int
    limit : int
        The largest number of nodes. To stay within it, :meth:`grow` removes the nodes that save least time.
    """

    def __init__(self, engine: Engine, limit: int, check: Check) -> None:
        self._engine = engine
        self._check = check
        self._growing = threading.Lock()
        self._sampler: _Sampler | None = None
        self.limit = limit
        _TRIES.add(self)

    @property
    def limit(self) -> int:
        """The largest number of nodes; a new value takes effect with the next :meth:`grow`."""
        return self._limit

    @limit.setter
    def limit(self, nodes: int) -> None:
        self._limit = check_limit(nodes, "limit")

    @property
    def nodes(self) -> int:
        """The number of stored prefixes."""
        return int(self._engine.trie_nodes)

    @property
    def nbytes(self) -> int:
        """Size of all nodes in bytes."""
        return sum(int(array.nbytes) for array in export_trie(self._engine, self.limit).values())

    def grow(self, rows: ArrayLike, *, saving: str = "counted", n_jobs: int | None = None) -> PrefixTrie:
        """Add the prefixes of more rows, within the limit. Until this is done, rows use the old trie.

        Parameters
        ----------
        rows : {array-like, sparse matrix}
            Typical rows; labels are not needed.
        saving : {"counted", "entries"}, default="counted"
            Estimate of the time that a node saves for each row with its prefix. "counted" is the number of
            conjunctions of the node's last feature with earlier features; "entries" is the number of table
            entries that are read for these conjunctions.
        n_jobs : int or None, default=None
            Number of threads; None means 1 and -1 means all processors.
        """
        if saving not in SAVINGS:
            raise ValueError(f"saving must be one of {', '.join(SAVINGS)}, got {saving!r}")
        checked = self._check(rows)
        with self._growing:
            grow(self._engine, checked, self.limit, saving, thread_count(n_jobs))
        return self

    def sample(self, share: float, *, batch: int = 10_000) -> PrefixTrie:
        """Grow the trie from a share of all rows that are predicted from now on; 0 stops the growth.

        Whenever ``batch`` rows have been collected, a background thread grows the trie. Predictions never
        wait.
        """
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= share <= 1:
            raise ValueError(f"share must be a number from 0 to 1, got {share!r}")
        if isinstance(batch, bool) or not isinstance(batch, Integral) or batch < 1:
            raise ValueError(f"batch must be a whole number of rows, at least 1, got {batch!r}")
        self._sampler = _Sampler(self, share, batch) if share else None
        return self

    def offer(self, rows: Any) -> None:
        """Pass scored CSR rows to the sampler, which keeps a share of them."""
        if self._sampler is not None:
            self._sampler.offer(rows)

    def make_locks(self) -> None:
        """Make new locks, and discard the waiting rows."""
        self._growing = threading.Lock()
        self._engine.release_after_fork()
        if self._sampler is not None:
            self._sampler.begin()

    def __repr__(self) -> str:
        return f"PrefixTrie(nodes={self.nodes:,}, limit={self.limit:,})"


class _Sampler:
    """Samples rows, and grows the trie each time a batch is complete."""

    def __init__(self, trie: PrefixTrie, share: float, batch: int) -> None:
        self._trie = trie
        self._share = share
        self._batch = batch
        self.begin()

    def begin(self) -> None:
        """Reset the sampler to a state without waiting rows and without a thread."""
        self._lock = threading.Lock()
        self._due = 0.0  # fraction of a row that is carried over to the next sample
        self._waiting: list[Any] = []
        self._thread: threading.Thread | None = None

    def offer(self, rows: Any) -> None:
        """Keep a share of the rows, and start a thread that grows the trie when a batch is complete."""
        with self._lock:
            due = self._due + self._share * np.arange(rows.shape[0] + 1)
            self._due = float(due[-1] % 1)
            chosen = np.flatnonzero(np.diff(np.floor(due)))
            # Keep at most two batches, because rows may arrive faster than the trie grows.
            n_waiting = sum(part.shape[0] for part in self._waiting)
            chosen = chosen[: max(2 * self._batch - n_waiting, 0)]
            if len(chosen):
                self._waiting.append(rows[chosen])
            is_idle = self._thread is None or not self._thread.is_alive()
            if is_idle and sum(part.shape[0] for part in self._waiting) >= self._batch:
                batch_rows, self._waiting = stack_rows(self._waiting), []
                # Use one thread, because predictions need the other cores. The thread is not a daemon: Python
                # then waits for it at exit. A daemon would be stopped inside the core, and crash.
                options = {"n_jobs": 1}
                self._thread = threading.Thread(target=self._trie.grow, args=(batch_rows,), kwargs=options)
                self._thread.start()
