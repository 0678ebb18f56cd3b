"""``unkernel parse``: text or sentences in, sentences with answers out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from unkernel.cli.inputs.files import STANDARD_STREAM
from unkernel.cli.inputs.parsers import open_parser
from unkernel.cli.inputs.sentences import Task, check_input, given_of, reader, task_of
from unkernel.cli.options import parsing as own
from unkernel.cli.options import shared
from unkernel.cli.options.help import flowing
from unkernel.cli.outputs import check_different, check_output
from unkernel.cli.render.console import many, note, on_one_line, rate, seconds, warn
from unkernel.cli.render.drawings import Sink, arcs, check_arcs, columns, drawings, objects, page
from unkernel.data.files import name_of
from unkernel.errors import FormatError
from unkernel.parsing import Parsed, parse_stream

_COLUMNS = (own.ShownName.conllu, own.ShownName.conllx)
_FROM_TEXT = ("text", "tokens")  # tasks that write CoNLL-U, and do not read it
_SINKS = {own.ShownName.json: objects, own.ShownName.svg: page}


def register(app: typer.Typer, _: Sequence[str]) -> None:
    """Add the command."""
    app.command(help=flowing(parse.__doc__))(parse)


def parse(
    model: own.ParserFile,
    files: own.InputFiles = None,
    *,
    output: own.Output = None,
    format: own.Shown = None,
    draw: own.Draw = False,
    svg: own.Svg = None,
    given: own.GivenOf = None,
    beam: own.Beam = None,
    on_error: own.OnError = own.OnErrorName.stop,
    jobs: shared.Jobs = None,
    quiet: shared.Quiet = False,
    force: shared.Force = False,
) -> None:
    """Parse text, or sentences, from files or a stream.

    A parser of raw text (unkernel train text) splits, tags and parses any
    UTF-8 text; a tokenizer only splits it. A paragraph is parsed as soon as a
    blank line or the end of the input follows it. The CoNLL-U output contains
    every character of the text. All other parsers and taggers take sentences
    that are split into words; other columns and comments are copied unchanged.
    Memory does not grow with the input, and the results do not depend on the
    number of threads.

    An invalid sentence or paragraph ends the run with exit code 2. Earlier
    results have then been written to stdout; with --output, nothing is
    written. With --on-error skip, an invalid sentence is copied unchanged, a
    paragraph that is not UTF-8 is left out, and a warning names its line.

    Several files are parsed in order, into one output. For raw text, each
    begins with a comment, # newdoc id = FILE. A file that cannot be read ends
    the run or, with --on-error skip, is left out with a warning.

    \b
    [dim]$[/dim] unkernel parse en.uk notes.txt > notes.conllu
    [dim]$[/dim] unkernel parse en.uk letters/*.txt -o letters.conllu.xz --on-error skip
    [dim]$[/dim] echo "They didn't see it. Why not?" | unkernel parse en.uk --format text
    [dim]$[/dim] unkernel parse en.uk notes.txt --format json | jq -r '.words[].lemma'
    [dim]$[/dim] unkernel parse en.uk words.conllu --from tokens --beam 4
    [dim]$[/dim] unkernel parse trees.uk < tagged.conllu > parsed.conllu
    [dim]$[/dim] unkernel parse trees.uk tagged.conllu.xz -o parsed.conllu.xz --jobs 4
    [dim]$[/dim] unkernel parse trees.uk tagged.conllu --svg trees.html
    [dim]$[/dim] zcat web.gz | unkernel parse en.uk --on-error skip | gzip > web.parsed.gz
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    output, svg, draw = _places(output, svg, format, draw=draw)
    documents = _Documents(files or [STANDARD_STREAM], skip=on_error == own.OnErrorName.skip)
    _check_places([model, *documents.files], output, svg, force=force)
    parser = open_parser(model, "parse", beam)
    task, told = task_of(parser), given_of(parser, given)
    raw = told.get("given") == "text" or task.name == "tokens"
    documents.check(task, raw=raw)
    _check_format(task, format)
    sinks = _sinks(task, output, svg, format, draw=draw)
    counts = _Counts()
    stream_of = partial(
        parse_stream,
        parser,
        format="conllx" if format == own.ShownName.conllx else "conllu",
        on_error="skip" if documents.skip else "raise",
        n_jobs=shared.threads(jobs),
        **told,
    )
    _pass_on(documents.answers(stream_of, raw=raw), sinks, counts)
    if counts.skipped:
        what = ("paragraph", "left out") if raw else ("sentence", "passed through without answers")
        warn(f"{many(counts.skipped, what[0])} {what[1]}, as the lines above say")
    if not quiet:
        note(counts.in_words(task))


@dataclass(frozen=True)
class _Documents:
    """The files that are answered, one after another."""

    files: list[str]
    skip: bool  # what cannot be read

    def check(self, task: Task, *, raw: bool) -> None:
        """Fail before anything is read where that would be in vain."""
        if self.files.count(STANDARD_STREAM) > 1:
            raise ValueError("-: stdin can be read only once")
        for file in self.files:
            if file != STANDARD_STREAM and not self._may_be_missing:
                os.stat(file)  # noqa: PTH116 (messages have the name as it was given)
            check_input(file, task, raw=raw)

    @property
    def _may_be_missing(self) -> bool:
        return self.skip and len(self.files) > 1

    def answers(self, stream_of: Callable[[str], Iterator[Parsed]], *, raw: bool) -> Iterator[Parsed]:
        """The answers to all files, with what has to stand between them."""
        written = b""  # its end
        for file in self.files:
            begin = _missing_end(written)
            if raw and len(self.files) > 1:
                begin += f"# newdoc id = {on_one_line(name_of(file))}\n".encode()
            for parsed in self._read(file, stream_of):
                if not parsed.data:
                    yield parsed
                    continue
                yield replace(parsed, data=begin + parsed.data)
                begin, written = b"", (written + parsed.data)[-3:]

    def _read(self, file: str, stream_of: Callable[[str], Iterator[Parsed]]) -> Iterator[Parsed]:
        try:
            yield from stream_of("/dev/stdin" if file == STANDARD_STREAM else file)
        except (OSError, FormatError) as error:
            if not self._may_be_missing:
                raise
            reason = f"{file}: {error.strerror}" if isinstance(error, OSError) else str(error)
            warn(f"{reason}; what follows there is left out")


def _missing_end(written: bytes) -> bytes:
    """The line ends that the last sentence lacks, so that others can follow."""
    if not written or written.endswith((b"\n\n", b"\n\r\n")):
        return b""
    return b"\n" if written.endswith(b"\n") else b"\n\n"


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


def _places(
    output: str | None, svg: Path | None, format: own.ShownName | None, *, draw: bool
) -> tuple[str | None, Path | None, bool]:
    """Where columns or drawings go, where arcs go, and whether to draw: as --format says, or the others."""
    if format is None or format in _COLUMNS:
        return output, svg, draw
    if draw or svg is not None:
        raise ValueError(f"--format {format.value} and {'--draw' if draw else '--svg'} exclude each other")
    if format == own.ShownName.svg and output not in (None, STANDARD_STREAM):
        return None, Path(output), False
    return output, None, format == own.ShownName.text


def _check_format(task: Task, format: own.ShownName | None) -> None:
    """Refuse what a parser does not read or write."""
    if format == own.ShownName.conllu and task.name in _FROM_TEXT:
        return
    if format is not None and format in _COLUMNS:
        reader(task, format.value)
    elif format == own.ShownName.json and task.name in ("chunks", "bunsetsu"):
        raise ValueError(f"--format json is for text and dependency trees, and not for {task.words}")


def _sinks(
    task: Task, output: str | None, svg: Path | None, format: own.ShownName | None, *, draw: bool
) -> list[AbstractContextManager[Sink]]:
    """Where answers go: pictures take the place of columns, unless these are asked for as well."""
    if task.name == "chunks" and (svg is not None or format == own.ShownName.svg):
        raise ValueError("--svg draws dependencies, and chunks have none; --draw shows them in brackets")
    sinks = [] if svg is None else [arcs(svg)]
    if svg is None or output is not None or draw:
        place = output or STANDARD_STREAM
        shown = columns if format is None else _SINKS.get(format, columns)
        sinks.append((drawings if draw else shown)(place))
    return sinks


def _check_places(inputs: Sequence[str | Path], output: str | None, svg: Path | None, *, force: bool) -> None:
    check_different(output, svg)
    if output is not None and output != STANDARD_STREAM:
        check_output(Path(output), *inputs, force=force)
    if svg is not None:
        check_arcs(svg, *inputs, force=force)
