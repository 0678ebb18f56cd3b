"""Starting a server and ending it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
from collections.abc import Callable, Iterator

from unkernel.errors import FormatError
from unkernel.serve.metrics import share_counts
from unkernel.serve.settings import STORED, Settings

_APPLICATION = "unkernel.serve.worker:application"
_KEEP_ALIVE = 75  # seconds: longer than those of the usual proxies
_LONGEST_START = 60  # seconds in which a new worker must say something
_BACKLOG = 2048


def serve(settings: Settings, on_start: Callable[[str], object] = lambda _: None) -> None:
    """Serve models over HTTP until the process gets SIGTERM or Ctrl-C.

    Parameters
    ----------
    settings : Settings
        The models and the settings of the server.
    on_start : callable, optional
        Called with the address when the models are loaded and the server accepts connections.

    Raises
    ------
    FormatError
        If a file is damaged or not a model.
    OSError
        If a file cannot be read, or the port is in use.

    See Also
    --------
    Settings : The settings of a server.

    Examples
    --------
    >>> from unkernel.serve import Settings, serve
    >>> serve(Settings(models={"income": "income.uk"}), on_start=print)  # doctest: +SKIP
    http://127.0.0.1:8080
    """
    from unkernel.serve.depot import Depot, new_depot

    with new_depot() as folder:
        depot = Depot(folder, settings.models)
        for name, path in settings.models.items():
            if (entry := depot.take(name, again=True)).refused:
                raise FormatError(path, 0, 0, entry.refused.removeprefix(f"{path}: "))
        listening = _listen(settings.host, settings.port)
        stored = folder / "settings.json"
        dataclasses.replace(settings, depot=str(folder)).write(stored)
        os.environ[STORED] = str(stored)
        if settings.workers > 1:
            share_counts(folder)
        with listening:
            on_start(_address(listening))
            _run(settings, listening)


def _run(settings: Settings, listening: socket.socket) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from unkernel.serve.connection import Connection

    config = uvicorn.Config(
        _APPLICATION,
        factory=True,
        workers=settings.workers,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.drain)),
        timeout_worker_healthcheck=_LONGEST_START,
        backlog=_BACKLOG,
    )
    if settings.workers > 1:
        Multiprocess(config, [listening]).run()
        return
    with _obeyed_once():
        uvicorn.Server(config).run([listening])


@contextlib.contextmanager
def _obeyed_once() -> Iterator[None]:
    """Uvicorn raises the signals that ended it again: those must not end the process before it cleans up."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; an OSError that says which port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        words = (
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --port or --host"
        )
        raise OSError(error.errno, words) from None
    except BaseException:
        listening.close()
        raise
    listening.set_inheritable(True)
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
