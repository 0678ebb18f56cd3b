"""``unkernel parse``: parse text or sentences."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from unkernel.cli.batch_files import (
    Cluster,
    Journal,
    Part,
    PartResult,
    Work,
    answer_parts,
    check_folder,
    check_pattern,
    list_parts,
)
from unkernel.cli.inputs.parsers import Parser, open_parser
from unkernel.cli.inputs.sentences import Task, check_input, choose_reader, find_task, parse_given
from unkernel.cli.options import parse_options, shared_options
from unkernel.cli.output_files import check_different, check_output
from unkernel.cli.render.stream_outputs import (
    Sink,
    check_arcs,
    write_arcs,
    write_columns,
    write_drawings,
    write_objects,
    write_page,
)
from unkernel.cli.terminal.console import flatten, format_seconds, note, rate, warn
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM, stdin_path
from unkernel.data import Treebank
from unkernel.data.files import name_of
from unkernel.data.text.columns import parse_text
from unkernel.errors import FormatError
from unkernel.measures.number_format import format_count
from unkernel.parsing import Parsed, parse_stream

# Formats with one word per line.
_COLUMNS = (parse_options.OutputFormat.conllu, parse_options.OutputFormat.conllx)
_TEXT_TASKS = ("text", "tokens")  # models that read text and write CoNLL-U
_MAX_WARNINGS_PER_FILE = 20
_WRITERS = {parse_options.OutputFormat.json: write_objects, parse_options.OutputFormat.svg: write_page}


def parse(
    model: parse_options.ParserFile,
    files: parse_options.InputFiles = None,
    *,
    output: parse_options.Output = None,
    format: parse_options.Format = None,
    draw: parse_options.Draw = False,
    svg: parse_options.Svg = None,
    given: parse_options.From = None,
    beam: parse_options.Beam = None,
    on_error: parse_options.OnError = parse_options.ErrorAction.stop,
    dask: shared_options.PartsDask = None,
    jobs: shared_options.Jobs = None,
    quiet: shared_options.Quiet = False,
    force: shared_options.Force = False,
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

    FILE may be a pattern in quotes, such as 'letters/*.txt'. Then --output is a folder with one file of
    results for each file. To resume an interrupted run, start it again. With --dask, several workers parse
    at the same time; all of them must see the files under the same names.

    \b
    [dim]$[/dim] unkernel parse en.uk notes.txt > notes.conllu
    [dim]$[/dim] unkernel parse en.uk letters/*.txt -o letters.conllu.xz --on-error skip
    [dim]$[/dim] unkernel parse en.uk 'letters/*.txt' -o parsed --dask local --jobs 4
    [dim]$[/dim] echo "They didn't see it. Why not?" | unkernel parse en.uk --format text
    [dim]$[/dim] unkernel parse en.uk notes.txt --format json | jq -r '.words[].lemma'
    [dim]$[/dim] unkernel parse en.uk words.conllu --from tokens --beam 4
    [dim]$[/dim] unkernel parse trees.uk < tagged.conllu > parsed.conllu
    [dim]$[/dim] unkernel parse trees.uk tagged.conllu.xz -o parsed.conllu.xz --jobs 4
    [dim]$[/dim] unkernel parse trees.uk tagged.conllu --svg trees.html
    [dim]$[/dim] zcat web.gz | unkernel parse en.uk --on-error skip | gzip > web.parsed.gz
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    given_files = files or [STANDARD_STREAM]
    request = _Request(model, format, draw, given, beam, skip=on_error == parse_options.ErrorAction.skip)
    if check_pattern(given_files, dask):
        cluster = Cluster(dask, shared_options.count_threads(jobs))
        _parse_parts(request, given_files[0], output, svg, cluster, quiet=quiet, force=force)
        return
    outputs = _choose_outputs(output, svg, request)
    _check_outputs([model, *given_files], outputs, force=force)
    parser, counts = open_parser(model, "parse", beam), _Counts(warn)
    _parse_files(
        request, parser, given_files, outputs, threads=shared_options.count_threads(jobs), counts=counts
    )
    if counts.skipped:
        warn(counts.describe_skipped())
    if not quiet:
        note(counts.describe(find_task(parser)))


@dataclass(frozen=True)
class _Request:
    """A parser and its options; they apply to every file."""

    model: Path
    format: parse_options.OutputFormat | None
    draw: bool
    given: parse_options.InputLevel | None
    beam: int | None
    skip: bool  # whether to skip invalid sentences


def _parse_files(
    request: _Request,
    parser: Parser,
    files: list[str],
    outputs: _Outputs,
    *,
    threads: int,
    counts: _Counts,
) -> None:
    """Parse files, and write the results to `outputs`."""
    documents = _Documents(files, skip=request.skip)
    task, options = find_task(parser), parse_given(parser, request.given)
    raw = options.get("given") == "text" or task.name == "tokens"
    documents.check(task, raw=raw)
    _check_format(task, request.format)
    sinks = _open_sinks(task, outputs, request.format)
    parse_file = partial(
        parse_stream,
        parser,
        format="conllx" if request.format == parse_options.OutputFormat.conllx else "conllu",
        on_error="skip" if request.skip else "raise",
        n_jobs=threads,
        **options,
    )
    counts.raw = raw
    _write_results(documents.parse_all(parse_file, raw=raw, on_unreadable=counts.warn), sinks, counts)


# --- Several files, each parsed on its own --------------------------------------------------------------


def _parse_parts(
    request: _Request,
    pattern: str,
    output: str | None,
    svg: Path | None,
    cluster: Cluster,
    *,
    quiet: bool,
    force: bool,
) -> None:
    """Parse each file that a pattern names, and write its results to a file of its own."""
    if svg is not None:
        raise ValueError("--svg draws one file; for several, --format svg writes a page for each")
    folder, start = check_folder(pattern, output), time.perf_counter()
    request = replace(request, model=Path(cluster.path_on_worker(request.model)))
    task = find_task(open_parser(request.model, "parse", request.beam))
    _check_format(task, request.format)
    suffix = _choose_suffix(task, request)
    parts = list_parts(
        cluster.path_on_worker(pattern), Path(cluster.path_on_worker(folder)), lambda _: suffix
    )
    journal = Journal(folder, "parse", request.model, asdict(request) | {"model": None}, force=force)
    work = Work(partial(_parse_part, request, cluster.threads_per_part), "parsing")
    with Display(quiet=quiet) as display:
        counts = answer_parts(parts, work, journal, cluster, display)
    if not quiet:
        before = f", {counts['done_before']:,} answered before" if counts["done_before"] else ""
        speed = _describe_speed(counts, task, time.perf_counter() - start)
        note(f"{format_count(counts['parts'], 'file')}{before}: {speed}")


def _parse_part(request: _Request, threads: int, part: Part) -> PartResult:
    """Parse one part on a worker."""
    warnings: list[str] = []
    counts = _Counts(warnings.append)
    stamp = request.model.stat()
    parser = _load_parser(request.model, request.beam, (stamp.st_size, stamp.st_mtime_ns))
    outputs = _choose_outputs(part.output, None, request)
    _parse_files(request, parser, [part.data], outputs, threads=threads, counts=counts)
    summary = [f"{part.data}: {counts.describe_skipped()}"] if counts.skipped else []
    return PartResult(counts.totals, [*warnings[:_MAX_WARNINGS_PER_FILE], *summary])


@lru_cache(maxsize=1)
def _load_parser(model: Path, beam: int | None, _stamp: tuple[int, int]) -> Parser:
    """Load the parser once per process; another `_stamp`, its size and time, means that it has changed."""
    return open_parser(model, "parse", beam)


def _choose_suffix(task: Task, request: _Request) -> str:
    if request.draw or request.format == parse_options.OutputFormat.text:
        return ".txt"
    suffixes = {parse_options.OutputFormat.json: ".jsonl", parse_options.OutputFormat.svg: ".html"}
    column_suffix = ".txt" if task.name in ("chunks", "bunsetsu") else ".conllu"
    return suffixes.get(request.format, column_suffix) if request.format else column_suffix


# --- Several files, parsed into one output ------------------------------------------------------------------


@dataclass(frozen=True)
class _Documents:
    """Files to parse one after another."""

    files: list[str]
    skip: bool  # whether to skip unreadable files if there are several files

    def check(self, task: Task, *, raw: bool) -> None:
        """Raise an error if a file cannot be parsed; called before any file is read."""
        if self.files.count(STANDARD_STREAM) > 1:
            raise ValueError("-: stdin can be read only once")
        for file in self.files:
            if file != STANDARD_STREAM and not self._skips_unreadable:
                os.stat(file)  # noqa: PTH116 (Path.stat would change the name in the message)
            check_input(file, task, raw=raw)

    @property
    def _skips_unreadable(self) -> bool:
        return self.skip and len(self.files) > 1

    def parse_all(
        self,
        parse_file: Callable[[str], Iterator[Parsed]],
        *,
        raw: bool,
        on_unreadable: Callable[[str], object],
    ) -> Iterator[Parsed]:
        """Parse all files; yield their results, with separators between files."""
        last_bytes = b""  # of all output so far
        for file in self.files:
            prefix = _complete_ending(last_bytes)
            comment = f"# newdoc id = {flatten(name_of(file))}\n" if raw and len(self.files) > 1 else ""
            for parsed in self._read(file, parse_file, on_unreadable):
                if not parsed.data:
                    yield parsed
                    continue
                commented = _add_comment(parsed, comment) if comment else parsed
                yield replace(commented, prefix=prefix)
                prefix, comment, last_bytes = b"", "", (last_bytes + parsed.data)[-3:]

    def _read(
        self, file: str, parse_file: Callable[[str], Iterator[Parsed]], on_unreadable: Callable[[str], object]
    ) -> Iterator[Parsed]:
        """Parse a file; if it is unreadable and unreadable files are skipped, only report the error."""
        try:
            yield from parse_file(str(stdin_path()) if file == STANDARD_STREAM else file)
        except (OSError, FormatError) as error:
            if not self._skips_unreadable:
                raise
            reason = f"{file}: {error.strerror}" if isinstance(error, OSError) else str(error)
            on_unreadable(f"{reason}; the rest of the file is left out")


def _add_comment(parsed: Parsed, comment: str) -> Parsed:
    """Return parsed text with a comment before its first sentence."""
    corpus = Treebank._from_text(parse_text(comment.encode() + parsed.data, "conllu"))
    return replace(parsed, corpus=corpus)


def _complete_ending(written: bytes) -> bytes:
    """Return the line ends to write after the bytes `written`, before another sentence can follow."""
    if not written or written.endswith((b"\n\n", b"\n\r\n")):
        return b""
    return b"\n" if written.endswith(b"\n") else b"\n\n"


class _Counts:
    """Counts parsed and skipped sentences; calls `warn` with the error of each skipped sentence."""

    def __init__(self, warn: Callable[[str], object]) -> None:
        self.totals: Counter[str] = Counter(sentences=0, words=0)
        self.warn = warn
        self.raw = False  # whether the input is raw text
        self.skipped = 0
        self._began = time.perf_counter()

    def add(self, parsed: Parsed) -> None:
        self.totals.update(sentences=parsed.n_sentences, words=parsed.n_words)
        self.skipped += len(parsed.skipped)
        for error in parsed.skipped:
            self.warn(str(error))

    def describe_skipped(self) -> str:
        nouns = ("paragraph", "left out") if self.raw else ("sentence", "passed through without answers")
        return f"{format_count(self.skipped, nouns[0])} {nouns[1]}; see the lines above"

    def describe(self, task: Task) -> str:
        return _describe_speed(self.totals, task, time.perf_counter() - self._began)


def _describe_speed(counts: Counter[str], task: Task, seconds: float) -> str:
    units = format_count(counts["words"], task.unit, "bunsetsu" if task.unit == "bunsetsu" else None)
    speed = f"{rate(counts['sentences'], seconds):,.0f} sentences/s, reading and writing included"
    return f"{format_count(counts['sentences'], 'sentence')}, {units} in {format_seconds(seconds)} ({speed})"


def _write_results(
    stream: Iterator[Parsed], sinks: list[AbstractContextManager[Sink]], counts: _Counts
) -> None:
    with ExitStack() as opened:
        writers = [opened.enter_context(sink) for sink in sinks]
        for parsed in stream:
            for write in writers:
                write(parsed)
            counts.add(parsed)


class _Outputs(NamedTuple):
    """The output files of a run, and their form.

    Attributes
    ----------
    output : str or None
        File for columns, JSON or text drawings.
    svg : Path or None
        File or folder for drawings of arcs.
    draw : bool
        Whether text drawings are written to `output` instead of columns.
    """

    output: str | None
    svg: Path | None
    draw: bool


def _choose_outputs(output: str | None, svg: Path | None, request: _Request) -> _Outputs:
    """Return the outputs that --format, or else --draw and --svg, ask for."""
    format, draw = request.format, request.draw
    if format is None or format in _COLUMNS:
        return _Outputs(output, svg, draw)
    if draw or svg is not None:
        raise ValueError(f"--format {format.value} and {'--draw' if draw else '--svg'} exclude each other")
    if format == parse_options.OutputFormat.svg and output not in (None, STANDARD_STREAM):
        return _Outputs(None, Path(output), draw=False)
    return _Outputs(output, None, draw=format == parse_options.OutputFormat.text)


def _check_format(task: Task, format: parse_options.OutputFormat | None) -> None:
    """Raise ``ValueError`` if the parser does not read or write a format."""
    if format == parse_options.OutputFormat.conllu and task.name in _TEXT_TASKS:
        return
    if format is not None and format in _COLUMNS:
        choose_reader(task, format)
    elif format == parse_options.OutputFormat.json and task.name in ("chunks", "bunsetsu"):
        raise ValueError(f"--format json is for text and dependency trees, not for {task.content}")


def _open_sinks(
    task: Task, outputs: _Outputs, format: parse_options.OutputFormat | None
) -> list[AbstractContextManager[Sink]]:
    """Return the writers of results: of columns or drawings, and of arcs; only of arcs with --svg alone."""
    output, svg, draw = outputs
    if task.name == "chunks" and (svg is not None or format == parse_options.OutputFormat.svg):
        raise ValueError("--svg draws dependencies, and chunks have none; --draw shows them in brackets")
    sinks = [] if svg is None else [write_arcs(svg)]
    if svg is None or output is not None or draw:
        path = output or STANDARD_STREAM
        write_results = write_columns if format is None else _WRITERS.get(format, write_columns)
        sinks.append((write_drawings if draw else write_results)(path))
    return sinks


def _check_outputs(inputs: Sequence[str | Path], outputs: _Outputs, *, force: bool) -> None:
    output, svg, _ = outputs
    check_different(output, svg)
    if output is not None and output != STANDARD_STREAM:
        check_output(Path(output), *inputs, force=force)
    if svg is not None:
        check_arcs(svg, *inputs, force=force)
