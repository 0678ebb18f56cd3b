"""What a server is told when it starts. The defaults are here alone: the command line reads them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

STORED = "UNKERNEL_SERVE_SETTINGS"  # the environment variable that names the file of a server's settings
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # of models, as addresses have them
_SUFFIX = ".uk"


@dataclass(frozen=True)
class Limits:
    """What one request may ask for. What is beyond gets an answer that says so.

    Attributes
    ----------
    body : int
        Bytes of a body, and of a line of a stream (413).
    batch : int
        Records of a body that is no stream (413).
    seconds : float
        To send a body (408), or the next part of a stream, and to find an answer (504).
    concurrency : int
        Requests of a worker that are being answered (429).
    """

    body: int = 64_000_000
    batch: int = 100_000
    seconds: float = 30.0
    concurrency: int = 512


@dataclass(frozen=True)
class Settings:
    """How a server runs.

    Attributes
    ----------
    models : dict
        The file of each model, by the name that addresses have.
    depot : str
        The folder of the server's own copies of the files.
    host, port, workers
        Where it listens, and in how many processes.
    tokens : sequence of str
        Who sends one of these may ask; empty lets everybody ask.
    watch : float
        Seconds between two looks at the files; 0 looks only when told by ``POST /models/{name}/load``.
    drain : float
        Seconds that requests have to end when the server is told to.
    log_requests : bool
        Whether each request is a line of the log.
    limits : Limits
    """

    models: dict[str, str]
    depot: str = ""
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    tokens: Sequence[str] = ()
    watch: float = 1.0
    drain: float = 10.0
    log_requests: bool = False
    limits: Limits = Limits()

    def write(self, path: Path) -> None:
        """Store them for the workers."""
        path.write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Settings:
        """The inverse of :meth:`write`."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(**stored | {"limits": Limits(**stored["limits"])})


def named_models(given: Iterable[str]) -> dict[str, str]:
    """Files by name, from such as ``income.uk`` and ``people=models/income-7.uk``."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or "/" in name:
            name, path = Path(word).name.removesuffix(_SUFFIX), word
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{word}: a model's name has letters, digits, '.', '-' and '_' only: write name={path}"
            )
        if name in found:
            raise ValueError(f"two models are called {name!r}: give one another name, as in other={path}")
        found[name] = path
    if not found:
        raise ValueError("name at least one model file")
    return found


def read_tokens(path: Path) -> tuple[str, ...]:
    """The tokens in a file, one per line; empty lines and those that begin with # are none."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    found = tuple(line for line in lines if line and not line.startswith("#"))
    if not found:
        raise ValueError(
            f"{path}: has no token; put one on a line, such as the output of: openssl rand -hex 32"
        )
    for token in found:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(f"{path}: a token has printable ASCII characters and no blanks")
    return found
