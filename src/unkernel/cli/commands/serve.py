"""``unkernel serve``: serve models over HTTP."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from unkernel.cli.options import shared_options
from unkernel.cli.terminal.console import note
from unkernel.data.memory import parse_bytes
from unkernel.serve.server import serve as run
from unkernel.serve.settings import Limits, Settings, parse_model_files, read_tokens

_default = Settings({})
_MAX_WORKERS = 256


def _limit(*names: str, **options: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Limits", **options)


ModelFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...",
        show_default=False,
        help=".uk files, served under the name of the file, or NAME=FILE.",
    ),
]
Host = Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 listens on all interfaces.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")]
Workers = Annotated[
    int,
    typer.Option(min=1, max=_MAX_WORKERS, help="Number of processes; they share the memory of the models."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Require one of the bearer tokens in this file, one per line.",
        show_default="no token is required",
    ),
]
Watch = Annotated[
    float,
    typer.Option(
        min=0,
        max=3600,
        metavar="SECONDS",
        help="Seconds between checks for new model files; 0: only on POST /models/NAME/load.",
    ),
]
Drain = Annotated[
    float,
    typer.Option(
        min=1, max=3600, metavar="SECONDS", help="Seconds to let running requests finish on shutdown."
    ),
]
LogRequests = Annotated[bool, typer.Option("--log-requests", help="Log every request.")]
MaxBody = Annotated[str, _limit(metavar="BYTES", help="Largest request body, such as 64M.")]
MaxBatch = Annotated[int, _limit(min=1, help="Largest number of records per request, except in streams.")]
MaxSeconds = Annotated[
    float, _limit(min=0.1, max=3600, help="Timeout for receiving a body, and for answering.")
]
MaxRequests = Annotated[
    int, _limit(min=1, help="Largest number of requests that a worker answers at the same time.")
]
MaxConnections = Annotated[int, _limit(min=1, help="Largest number of open connections of a worker.")]


def serve(
    models: ModelFiles,
    *,
    host: Host = _default.host,
    port: Port = _default.port,
    workers: Workers = _default.workers,
    token_file: TokenFile = None,
    watch: Watch = _default.watch,
    drain: Drain = _default.drain,
    max_body: MaxBody = f"{_default.limits.body // 10**6}M",
    max_batch: MaxBatch = _default.limits.batch,
    max_seconds: MaxSeconds = _default.limits.seconds,
    max_requests: MaxRequests = _default.limits.concurrency,
    max_connections: MaxConnections = _default.limits.connections,
    log_requests: LogRequests = False,
    quiet: shared_options.Quiet = False,
) -> None:
    """Serve models over HTTP: any .uk file, of records, rows, trees or text.

    POST /models/NAME/predict takes a record, a list of records, or a stream of
    JSON lines; /models/NAME/explain also explains the prediction. /v2 is the
    Open Inference Protocol, /metrics is for Prometheus, /docs lists all
    endpoints, and / is a page for trying the models.

    To replace a model, move or copy a new file over the old one. The server
    loads the new file, and no request fails. If the new file is damaged, the
    server keeps the old version. After SIGTERM or Ctrl-C, running requests
    are finished before the server stops (exit code 0). Logs go to stderr, one
    JSON object per line.

    \b
    [dim]$[/dim] unkernel serve income.uk en.uk
    [dim]$[/dim] curl -d '{"age": 51, "job": "pilot"}' localhost:8080/models/income/predict
    [dim]$[/dim] unkernel serve people=models/income-7.uk --host 0.0.0.0 --token-file tokens.txt
    [dim]$[/dim] curl -T new.jsonl -X POST -H 'Content-Type: application/x-ndjson' localhost:8080/models/income/predict
    """  # noqa: D301, E501 (Click keeps the lines after a backspace as they are)
    settings = Settings(
        parse_model_files(models),
        host=host,
        port=port,
        workers=workers,
        tokens=() if token_file is None else read_tokens(token_file),
        watch=watch,
        drain=drain,
        log_requests=log_requests,
        quiet=quiet,
        limits=Limits(
            int(parse_bytes(max_body, "--max-body")), max_batch, max_seconds, max_requests, max_connections
        ),
    )

    def announce(address: str) -> None:
        if not quiet:
            with contextlib.suppress(OSError):  # a full disk must not stop the server
                note(f"{', '.join(settings.models)} at {address} (Ctrl-C stops)")

    try:
        run(settings, announce)
    except ImportError as error:
        raise ValueError(f'serve needs {error.name}: pip install "unkernel[serve]"') from None
