"""The models that a worker serves, and how new ones take their place."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from unkernel import load
from unkernel.serve.answerers import Answerer, answerer_of
from unkernel.serve.errors import RequestError
from unkernel.serve.json_log import log
from unkernel.serve.model_snapshots import Depot, Entry, identity
from unkernel.serve.settings import Settings

_ATTEMPTS = 10  # to load a copy that is replaced meanwhile


@dataclass(frozen=True, eq=False)
class Served:
    """A version of a model, ready to answer.

    Attributes
    ----------
    name : str
    version : str
    answerer : Answerer
    load_seconds : float
    """

    name: str
    version: str
    answerer: Answerer
    load_seconds: float


class Models:
    """The models of a worker.

    Requests take a :class:`Served` and keep it until they are answered: a new version takes the place of the
    old one in between, and the old one goes when the last request that has it is answered.

    Parameters
    ----------
    settings : Settings
    on_load : callable
        Is told of each version that is loaded.
    on_refusal : callable
        Is told the names of models whose file was refused.
    """

    def __init__(
        self,
        settings: Settings,
        on_load: Callable[[Served], object] = lambda _: None,
        on_refusal: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._sources = {name: Path(path) for name, path in settings.models.items()}
        self._depot = Depot(Path(settings.depot), settings.models)
        self._watch = settings.watch
        self._on_load, self._on_refusal = on_load, on_refusal
        self._served: dict[str, Served] = {}
        self._entries: dict[str, Entry] = {}
        self._lock = Lock()
        self._mark: tuple[int, ...] = ()
        self._last_looks: dict[str, tuple[int, ...] | None] = {}
        self._faults: dict[str, str] = {}  # that were told
        self._unreadable: dict[str, str] = {}  # files that are gone, say

    @property
    def names(self) -> list[str]:
        return list(self._sources)

    def get(self, name: str, version: str | None = None) -> Served:
        """A model; a RequestError if there is none."""
        served = self._served.get(name)
        if served is None:
            raise RequestError(404, f"there is no model {name!r}; there are: {', '.join(self._served)}")
        if version is not None and version != served.version:
            raise RequestError(
                404, f"model {name!r} has version {served.version}, and no version {version!r}"
            )
        return served

    def describe(self, name: str) -> dict[str, Any]:
        """What is served under a name, for ``GET /models/{name}``."""
        served, entry = self.get(name), self._entries[name]
        return {
            "name": name,
            "version": served.version,
            "input": served.answerer.input,
            **served.answerer.describe(),
            "example": served.answerer.example,
            "loaded_at": entry.loaded_at,
            "load_seconds": served.load_seconds,
            "refused": self._unreadable.get(name) or entry.refused,
        }

    # --- New versions ---------------------------------------------------------------------------------

    def take_up(self) -> None:
        """Load what is new in the depot."""
        with self._lock:
            mark = self._depot.mark()
            if mark != self._mark:
                for name in self._sources:
                    self._take_up(name)
                self._mark = mark

    def _take_up(self, name: str) -> None:
        before = self._entries.get(name, Entry())
        for _ in range(_ATTEMPTS):
            entry = self._depot.table()[name]
            try:
                if entry.version != before.version:
                    self._load(name, entry)
            except FileNotFoundError:  # a newer version came between
                continue
            self._entries[name] = entry
            if entry.refused and entry.seen != before.seen:
                self._tell_fault(name, entry.refused)
                self._on_refusal(name)
            return
        raise RuntimeError(f"model {name!r} is replaced faster than it can be loaded")

    def _load(self, name: str, entry: Entry) -> None:
        began = time.perf_counter()
        # Whoever copied it has checked every byte.
        answerer = answerer_of(load(self._depot.copy_of(entry), verify=False))
        with contextlib.suppress(ValueError):
            answerer.one(answerer.example)  # tables that parsers make for their first answer are made now
        served = Served(name, str(entry.version), answerer, time.perf_counter() - began)
        self._served[name] = served
        self._faults.pop(name, None)
        self._on_load(served)
        log("model loaded", model=name, version=served.version, seconds=round(served.load_seconds, 6))

    def reload(self, name: str) -> Served:
        """Copy and load a model's file now; a RequestError if it is refused."""
        self.get(name)
        try:
            entry = self._depot.take(name, again=True)
        except OSError as error:
            self._tell_fault(name, _words(error))
            raise RequestError(
                409, f"{name}: {_words(error)}; version {self._version(name)} stays in use"
            ) from None
        self.take_up()
        if entry.refused:
            raise RequestError(409, f"{entry.refused}; version {self._version(name)} stays in use")
        return self.get(name)

    def look(self) -> None:
        """Load the files that have changed and, at the last look, were the same: those are whole."""
        for name, entry in self._depot.table().items():
            now = self._look_at(name)
            settled = now is not None and now == self._last_looks.get(name)
            self._last_looks[name] = now
            if settled and now != entry.seen:
                try:
                    self._depot.take(name)
                except OSError as error:
                    self._tell_fault(name, _words(error))
        self.take_up()

    def _look_at(self, name: str) -> tuple[int, ...] | None:
        try:
            now = identity(self._sources[name])
        except OSError as error:
            self._unreadable[name] = _words(error)
            self._tell_fault(name, _words(error))
            return None
        self._unreadable.pop(name, None)
        return now

    async def watch(self) -> None:
        """Check the files and the table of the workers regularly, in an endless loop."""
        while True:
            await asyncio.sleep(self._watch or 1.0)
            try:
                await asyncio.to_thread(self.look if self._watch else self.take_up)
            except Exception as error:  # a full disk, say: the next look may find it mended
                self._tell_fault("", f"looking for new models failed: {error!r}")

    def _version(self, name: str) -> str:
        return self._served[name].version

    def _tell_fault(self, name: str, reason: str) -> None:
        """Log a fault, once."""
        if self._faults.get(name) != reason:
            self._faults[name] = reason
            log("model refused", level="error", model=name, reason=reason)


def _words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
