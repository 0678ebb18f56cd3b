"""``unkernel parse``: sentences in, the same sentences with answers out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import typer

from unkernel.cli.inputs.contents import check_holds_sentences
from unkernel.cli.inputs.files import STANDARD_STREAM
from unkernel.cli.inputs.parsers import open_parser
from unkernel.cli.inputs.sentences import Task, reader, task_of
from unkernel.cli.options import parsing as own
from unkernel.cli.options import shared, training
from unkernel.cli.options.help import flowing
from unkernel.cli.outputs import check_different, check_output
from unkernel.cli.render.console import many, note, rate, seconds, warn
from unkernel.cli.render.drawings import Sink, arcs, check_arcs, columns, drawings
from unkernel.parsing import Parsed, parse_stream


def register(app: typer.Typer, _: Sequence[str]) -> None:
    """Add the command."""
    app.command(help=flowing(parse.__doc__))(parse)


def parse(
    model: own.ParserFile,
    file: own.InputFile = STANDARD_STREAM,
    *,
    output: own.Output = None,
    draw: own.Draw = False,
    svg: own.Svg = None,
    on_error: own.OnError = own.OnErrorName.stop,
    format: training.Format = None,
    jobs: shared.Jobs = None,
    quiet: shared.Quiet = False,
    force: shared.Force = False,
) -> None:
    """Parse sentences as they come, and write them with the answers.

    Every byte that is no answer is written as it was read. Sentences are
    answered once they are whole, in memory that does not grow; the answers
    are the same for any number of threads.

    A sentence that is not as it should be ends the run (exit code 2). Those
    before it have then been written to stdout; with --output, nothing is.
    With --on-error skip it passes through as it is, and a warning names its
    line.

    \b
    [dim]$[/dim] unkernel parse en.uk < raw.conllu > parsed.conllu
    [dim]$[/dim] unkernel parse en.uk raw.conllu.xz -o parsed.conllu.xz --jobs 4
    [dim]$[/dim] unkernel parse en.uk raw.conllu --draw | less
    [dim]$[/dim] unkernel parse en.uk raw.conllu --svg trees.html
    [dim]$[/dim] zcat web.gz | unkernel parse en.uk --on-error skip | gzip > web.parsed.gz
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    _check_places(model, file, output, svg, force=force)
    parser = open_parser(model, "parse")
    check_holds_sentences(file)
    task = task_of(parser)
    reader(task, None if format is None else format.value)
    sinks = _sinks(task, output, svg, draw=draw)
    counts = _Counts()
    stream = parse_stream(
        parser,
        "/dev/stdin" if file == STANDARD_STREAM else file,
        format="conllx" if format == training.FormatName.conllx else "conllu",
        on_error="skip" if on_error == own.OnErrorName.skip else "raise",
        n_jobs=shared.threads(jobs),
    )
    _pass_on(stream, sinks, counts)
    if counts.skipped:
        warn(f"{many(counts.skipped, 'sentence')} passed through without answers, as the lines above say")
    if not quiet:
        note(counts.in_words(task))


class _Counts:
    """What went through."""

    def __init__(self) -> None:
        self.sentences = self.words = self.skipped = 0
        self._began = time.perf_counter()

    def in_words(self, task: Task) -> str:
        spent = time.perf_counter() - self._began
        units = many(self.words, task.unit, "bunsetsu" if task.unit == "bunsetsu" else None)
        speed = f"{rate(self.sentences, spent):,.0f} sentences/s, reading and writing included"
        return f"{many(self.sentences, 'sentence')}, {units} in {seconds(spent)} ({speed})"


def _pass_on(stream: Iterator[Parsed], sinks: list[AbstractContextManager[Sink]], counts: _Counts) -> None:
    with ExitStack() as opened:
        places = [opened.enter_context(sink) for sink in sinks]
        for parsed in stream:
            for put in places:
                put(parsed)
            for error in parsed.skipped:
                warn(str(error))
            counts.sentences += parsed.n_sentences
            counts.words += parsed.n_words
            counts.skipped += len(parsed.skipped)


def _sinks(
    task: Task, output: str | None, svg: Path | None, *, draw: bool
) -> list[AbstractContextManager[Sink]]:
    """Where answers go: pictures take the place of columns, unless these are asked for as well."""
    if svg is not None and task.name == "chunks":
        raise ValueError("--svg draws dependencies, and chunks have none; --draw shows them in brackets")
    sinks = [] if svg is None else [arcs(svg)]
    if svg is None or output is not None or draw:
        place = output or STANDARD_STREAM
        sinks.append(drawings(place) if draw else columns(place))
    return sinks


def _check_places(model: Path, file: str, output: str | None, svg: Path | None, *, force: bool) -> None:
    inputs: list[str | Path] = [model, file]
    check_different(output, svg)
    if output is not None and output != STANDARD_STREAM:
        check_output(Path(output), *inputs, force=force)
    if svg is not None:
        check_arcs(svg, *inputs, force=force)
