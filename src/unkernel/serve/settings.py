"""The settings of a server. The command line uses the same defaults."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SETTINGS_VARIABLE = "UNKERNEL_SERVE_SETTINGS"  # environment variable: path of the settings file
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # names are parts of URLs
_SUFFIX = ".uk"
BACKLOG = 2048  # largest number of connections that wait to be accepted


@dataclass(frozen=True)
class Limits:
    """Limits of requests. A request that exceeds a limit gets an error with the status in parentheses.

    Attributes
    ----------
    body : int, default=64000000
        Largest size of a body, and of one line of a stream, in bytes (413).
    batch : int, default=100000
        Largest number of records in a body that is not a stream (413).
    seconds : float, default=30.0
        Time in which a client must send a body or the next part of a stream (408), and in which the response
        must be computed (504).
    concurrency : int, default=512
        Largest number of requests that a worker processes at the same time (429).
    connections : int, default=10000
        Largest number of connections per worker (503). The limit is lower if the system allows fewer open
        files.

    See Also
    --------
    Settings : All settings of a server.

    Examples
    --------
    >>> from unkernel.serve import Limits
    >>> Limits(batch=1000).batch
    1000
    """

    body: int = 64_000_000
    batch: int = 100_000
    seconds: float = 30.0
    concurrency: int = 512
    connections: int = 10_000


@dataclass(frozen=True)
class Settings:
    """Settings of a server.

    Attributes
    ----------
    models : dict of str to str
        The file of each model, by name. The name is a part of the model's URL.
    depot : str, default=""
        Folder of the server's own copies of the files; :func:`serve` sets it.
    host : str, default="127.0.0.1"
        Address to listen on.
    port : int, default=8080
        Port to listen on; 0 means any free port.
    workers : int, default=1
        Number of processes.
    tokens : sequence of str, default=()
        Accepted bearer tokens. If there are none, all requests are accepted.
    watch : float, default=1.0
        Seconds between checks for new files. With 0, files are checked only on
        ``POST /models/{name}/load``.
    drain : float, default=10.0
        Number of seconds in which running requests can finish when the server stops.
    log_requests : bool, default=False
        Whether to log every request.
    quiet : bool, default=False
        Whether to log only errors and warnings.
    limits : Limits, default=Limits()
        Limits of one request.

    See Also
    --------
    serve : Run a server with these settings.

    Examples
    --------
    >>> from unkernel.serve import Settings
    >>> Settings(models={"income": "income.uk"}, workers=2).port
    8080
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
    quiet: bool = False
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        """Check that the names of the models can be parts of URLs."""
        for name in self.models:
            _check_name(name, name)

    def write(self, path: Path) -> None:
        """Write the settings to a file for the workers.

        Parameters
        ----------
        path : Path
            The file.
        """
        path.write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Settings:
        """Read settings from a file written by :meth:`write`.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        Settings
            The settings.
        """
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(**stored | {"limits": Limits(**stored["limits"])})


def parse_model_files(arguments: Iterable[str]) -> dict[str, str]:
    """Return the path of each model by name, from arguments ``income.uk`` or ``name=models/income-7.uk``."""
    paths: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or ("/" in name and not Path(path).exists()):
            name, path = Path(argument).name.removesuffix(_SUFFIX), argument
        _check_name(name, argument, f"; write name={path}")
        if name in paths:
            raise ValueError(f"two models are called {name!r}: give one another name, as in other={path}")
        paths[name] = path
    if not paths:
        raise ValueError("name at least one model file")
    return paths


def _check_name(name: str, argument: str, advice: str = "") -> None:
    if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name):
        raise ValueError(
            f"{argument}: a model's name may have letters, digits, '.', '-' and '_', and begins with a "
            f"letter or digit{advice}"
        )


def read_tokens(path: Path) -> tuple[str, ...]:
    """Return the tokens in a file, one per line; skip empty lines and lines that begin with #."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8: byte {error.start} is invalid") from None
    tokens = tuple(line for line in lines if line and not line.startswith("#"))
    if not tokens:
        raise ValueError(
            f"{path}: has no token; write one per line, such as the output of: openssl rand -hex 32"
        )
    for token in tokens:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(f"{path}: a token must have printable ASCII characters and no blanks")
    return tokens
