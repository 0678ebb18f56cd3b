"""Start the server: copy the models, open the socket and run the workers."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable

from unkernel.errors import FormatError
from unkernel.serve.metrics import share_counts
from unkernel.serve.settings import BACKLOG, Settings


def serve(settings: Settings, on_start: Callable[[str], object] = lambda _: None) -> None:
    """Serve models over HTTP until SIGTERM or Ctrl-C.

    Parameters
    ----------
    settings : Settings
        The models and the settings of the server.
    on_start : callable, optional
        Called with the server's address once the models are loaded and connections are accepted.

    Raises
    ------
    FormatError
        If a file is damaged or not a model.
    OSError
        If a file cannot be read, the port is in use, or a worker cannot start.

    See Also
    --------
    Settings : The settings of a server.

    Examples
    --------
    >>> from unkernel.serve import Settings, serve
    >>> serve(Settings(models={"income": "income.uk"}), on_start=print)  # doctest: +SKIP
    http://127.0.0.1:8080
    """
    from unkernel.serve.json_log import start_log
    from unkernel.serve.model_snapshots import ModelSnapshots, make_snapshot_folder
    from unkernel.serve.supervisor import Supervisor

    with make_snapshot_folder() as folder:
        snapshots = ModelSnapshots(folder, settings.models)
        for name, path in settings.models.items():
            refusal = snapshots.take_snapshot(name, again=True).refusal
            if refusal:
                raise FormatError(path, 0, 0, refusal.removeprefix(f"{path}: "))
        listener = _listen(settings.host, settings.port)
        settings_file = folder / "settings.json"
        dataclasses.replace(settings, depot=str(folder)).write(settings_file)
        if settings.workers > 1:
            share_counts(folder)
        with listener:
            on_start(_format_address(listener))
            start_log(quiet=settings.quiet)
            Supervisor(settings, settings_file, listener).run()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise an OSError that names the port if it is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        message = (
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --port or --host"
        )
        raise OSError(error.errno, message) from None
    except BaseException:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


def _format_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
