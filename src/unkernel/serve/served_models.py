"""The models that a worker serves, and their replacement by new versions."""

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
from unkernel.serve.answerers import Answerer, make_answerer
from unkernel.serve.errors import RequestError
from unkernel.serve.json_log import log
from unkernel.serve.model_counts import ModelCounts
from unkernel.serve.model_snapshots import ModelSnapshots, Snapshot, identify_file
from unkernel.serve.settings import Settings

_MAX_LOAD_ATTEMPTS = 10  # loading is repeated if a newer copy replaces the copy meanwhile


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded version of a model."""

    name: str
    version: str
    answerer: Answerer
    load_seconds: float
    counts: ModelCounts


class ServedModels:
    """The models of a worker.

    Each request holds its :class:`ServedModel` until the response. An old version is therefore freed after
    the last of its requests.

    Parameters
    ----------
    settings : Settings
    on_load : callable
        Called with each version that is loaded.
    on_refusal : callable
        Called with the name of each model whose file is rejected.
    """

    def __init__(
        self,
        settings: Settings,
        on_load: Callable[[ServedModel], object] = lambda _: None,
        on_refusal: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._sources = {name: Path(path) for name, path in settings.models.items()}
        self._snapshots = ModelSnapshots(Path(settings.depot), settings.models)
        self._watch = settings.watch
        self._on_load, self._on_refusal = on_load, on_refusal
        self._served: dict[str, ServedModel] = {}
        self._entries: dict[str, Snapshot] = {}
        self._lock = Lock()
        self._table_identity: tuple[int, ...] = ()
        self._last_identities: dict[str, tuple[int, ...] | None] = {}
        self._logged_faults: dict[str, str] = {}  # the last logged fault of each model
        self._unreadable: dict[str, str] = {}  # why the file of a model cannot be read, by model

    @property
    def names(self) -> list[str]:
        return list(self._sources)

    def get(self, name: str, version: str | None = None) -> ServedModel:
        """Return a model; raise a RequestError if it does not exist."""
        served = self._served.get(name)
        if served is None:
            raise RequestError(404, f"there is no model {name!r}; known models: {', '.join(self._served)}")
        if version is not None and version != served.version:
            raise RequestError(
                404, f"model {name!r} has version {served.version}, and no version {version!r}"
            )
        return served

    def describe(self, name: str) -> dict[str, Any]:
        """Describe a model for ``GET /models/{name}``."""
        served, entry = self.get(name), self._entries[name]
        return {
            "name": name,
            "version": served.version,
            "input": served.answerer.input,
            **served.answerer.describe(),
            "example": served.answerer.example,
            "loaded_at": entry.loaded_at,
            "load_seconds": served.load_seconds,
            "refused": self._unreadable.get(name) or entry.refusal,
        }

    # --- New versions ---------------------------------------------------------------------------------

    def load_snapshots(self) -> None:
        """Load the new snapshots in the table."""
        with self._lock:
            table_identity = self._snapshots.identify_table()
            if table_identity != self._table_identity:
                for name in self._sources:
                    self._load_snapshot(name)
                self._table_identity = table_identity

    def _load_snapshot(self, name: str) -> None:
        """Load the newest snapshot of a model, if it is not loaded; report a file that was rejected."""
        previous = self._entries.get(name, Snapshot())
        for _ in range(_MAX_LOAD_ATTEMPTS):
            entry = self._snapshots.read_table()[name]
            try:
                if entry.version != previous.version:
                    self._load(name, entry)
            except FileNotFoundError:  # a newer version has replaced the copy
                continue
            self._entries[name] = entry
            if entry.refusal and entry.source_identity != previous.source_identity:
                self._log_fault(name, entry.refusal)
                self._on_refusal(name)
            return
        raise RuntimeError(f"model {name!r} is replaced faster than it can be loaded")

    def _load(self, name: str, entry: Snapshot) -> None:
        """Load a snapshot, and let it answer all requests from now on."""
        start_time = time.perf_counter()
        # No check is necessary: the worker that copied the file has checked every byte.
        answerer = make_answerer(load(self._snapshots.get_path(entry), verify=False))
        with contextlib.suppress(ValueError):
            answerer.answer_one(answerer.example)  # the first answer of a parser builds its tables
        counts = ModelCounts(answerer)
        served = ServedModel(name, str(entry.version), answerer, time.perf_counter() - start_time, counts)
        self._served[name] = served
        self._logged_faults.pop(name, None)
        self._on_load(served)
        log("model loaded", model=name, version=served.version, seconds=round(served.load_seconds, 6))

    def reload(self, name: str) -> ServedModel:
        """Copy and load the file of a model immediately; raise a RequestError if it is rejected."""
        self.get(name)
        try:
            entry = self._snapshots.take_snapshot(name, again=True)
        except OSError as error:
            self._log_fault(name, _describe_error(error))
            raise RequestError(
                409, f"{name}: {_describe_error(error)}; version {self._version(name)} stays in use"
            ) from None
        self.load_snapshots()
        if entry.refusal:
            raise RequestError(409, f"{entry.refusal}; version {self._version(name)} stays in use")
        return self.get(name)

    def check_files(self) -> None:
        """Load changed files, except files that changed since the last check: they may be incomplete."""
        for name, entry in self._snapshots.read_table().items():
            identity = self._identify_source(name)
            is_stable = identity is not None and identity == self._last_identities.get(name)
            self._last_identities[name] = identity
            if is_stable and identity != entry.source_identity:
                try:
                    self._snapshots.take_snapshot(name)
                except OSError as error:
                    self._log_fault(name, _describe_error(error))
        self.load_snapshots()

    def _identify_source(self, name: str) -> tuple[int, ...] | None:
        """Return the identity of a model's file; if it cannot be read, report the reason and return None."""
        try:
            identity = identify_file(self._sources[name])
        except OSError as error:
            self._unreadable[name] = _describe_error(error)
            self._log_fault(name, _describe_error(error))
            return None
        self._unreadable.pop(name, None)
        return identity

    async def watch(self) -> None:
        """Check the files and the table at regular intervals, in an endless loop."""
        while True:
            await asyncio.sleep(self._watch or 1.0)
            try:
                await asyncio.to_thread(self.check_files if self._watch else self.load_snapshots)
            except Exception as error:  # for example a full disk; the next check may succeed
                self._log_fault("", f"looking for new models failed: {error!r}")

    def _version(self, name: str) -> str:
        return self._served[name].version

    def _log_fault(self, name: str, reason: str) -> None:
        """Log a fault, unless the last logged fault of the model was the same."""
        if self._logged_faults.get(name) != reason:
            self._logged_faults[name] = reason
            log("model refused", level="error", model=name, reason=reason)


def _describe_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
