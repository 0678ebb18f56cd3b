"""Run the examples of the README and the documentation, and show or compare what they print.

    python tools/page_outputs.py [PAGE ...]      # write what the examples print into the pages

The ``python`` blocks of a page run in order in one namespace, and the lines ``$ unkernel ...`` of its
``console`` blocks between them, all in one folder. Comments above a block steer it:

- ``<!-- not run: why -->``: the block does not run.
- ``<!-- fails with 2 -->``: its commands end with that exit code.
- ``<!-- output not shown: why -->``: what it prints is not on the page.

An ``output`` block follows a ``python`` block that prints. Commands show their output below themselves, as a
terminal does. The tests compare the output on a page with the current output (:func:`is_alike`). This program
does not replace an output that is alike, so it may be shortened by hand, with ``...`` for omissions. New
outputs are cut to LONGEST_LINES; a page may request fewer, with ``<!-- outputs have at most 8 lines -->``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FIRST_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES = [*FIRST_PAGES, *sorted((ROOT / "docs").rglob("*.md"))]
COLUMNS = 90  # of the terminal that examples print to
PATIENCE_SECONDS = 600
LONGEST_LINES = 20
LONGEST_LINE = 110
FEWER_LINES = re.compile(r"<!-- outputs have at most (\d+) lines -->")
# The rows of a table of measured engines, which differ between machines.
MEASURED = re.compile(r"(^candidates\n[^\n]*\n)(?: [^\n]*\n)+", re.M)

FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[^\n]*\n", re.M | re.S
)
# The comments directly above a block.
REMARKS = re.compile(r"(?:<!--[^>]*-->\s*)+\Z")
OUTPUT = re.compile(r"\n?(?P<indent>[ ]*)```output\n(?P<body>.*?)^(?P=indent)```[^\n]*\n", re.M | re.S)
# Commands that need a shell. All others run in this process, which is faster.
SHELL = re.compile(r"[|<>;&$`*]")
# Numbers that differ between machines and runs: times, speeds, steps until a tolerance, and memory.
VARYING_UNIT = (
    r"(?:(?:\w+ )?(?:s|ms|µs|ns|CPU|seconds?|minutes?|epochs|passes|steps|rounds|iterations)\b"
    r"|times as fast|(?:[\w%]+ )?per second|(?:\w+ ?)?/s\b|\wB at its peak)"
)
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
EXACT_UP_TO = 50  # smaller whole numbers are counts that should not change
CLOSE = 0.02  # relative difference: training stops within a tolerance of the optimum
# A part of an output that need not be equal: an omission, a gap, or a number, perhaps with a varying unit.
PIECE = re.compile(
    rf"\.\.\.|(?P<gap>\bgap:? ?{NUMBER})|(?<![\w.])(?P<number>{NUMBER})(?P<unit> ?{VARYING_UNIT})?"
)


@dataclass(frozen=True)
class Block:
    """A fenced block that runs.

    Attributes
    ----------
    language : str
        ``"python"`` or ``"console"``.
    code : str
        Without indentation.
    line : int
        Number of lines on the page before its first.
    start, end : int
        Place of the fence in the page, including the output block that follows.
    indent : str
        Indentation of its lines.
    output : str
        The text of the output block that follows.
    exit_code : int
        Expected exit code of its commands.
    is_shown : bool
        Whether its output belongs on the page.
    """

    language: str
    code: str
    line: int = 0
    start: int = 0
    end: int = 0
    indent: str = ""
    output: str = ""
    exit_code: int = 0
    is_shown: bool = True


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that run."""
    for fence in FENCE.finditer(text):
        if fence["language"] not in ("python", "console"):
            continue
        search = REMARKS.search(text, 0, fence.start())
        remarks = search[0] if search else ""
        if "not run:" in remarks:
            continue
        fails = re.search(r"fails with (\d+)", remarks)
        output = OUTPUT.match(text, fence.end()) if fence["language"] == "python" else None
        yield Block(
            language=fence["language"],
            code=textwrap.dedent(fence["body"]),
            line=text.count("\n", 0, fence.start("body")),
            start=fence.start(),
            end=(output or fence).end(),
            indent=fence["indent"],
            output=textwrap.dedent(output["body"]) if output else "",
            exit_code=int(fails[1]) if fails else 0,
            is_shown="output not shown" not in remarks,
        )


@dataclass(frozen=True)
class Command:
    """A line of a console block that begins with ``$``, and the output below it."""

    lines: str
    output: str

    @property
    def words(self) -> str:
        """Return the command without its prompt, on one line."""
        return self.lines.replace("\\\n", " ").removeprefix("$ ").strip()

    @property
    def is_run(self) -> bool:
        return self.words.split()[:1] == ["unkernel"]


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block."""
    pattern = re.compile(r"^(?P<lines>\$ (?:[^\n]*\\\n)*[^\n]*\n)(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.M)
    for match in pattern.finditer(block.code):
        yield Command(match["lines"], match["output"])


class CommandError(Exception):
    """The exit code of a command is not the one that the page states."""


class Page:
    """Runs the blocks of one page, in the current folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.namespace: dict[str, object] = {"__name__": "__main__"}
        np.random.seed(0)  # estimators without a random_state draw from it

    def printed_by_python(self, block: Block) -> str:
        """Run a ``python`` block and return what it prints."""
        # Empty lines in front make a traceback name the line of the page.
        code = compile("\n" * block.line + block.code, str(self.path), "exec")
        with imitate_terminal() as printed, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, self.namespace)
        return tidy(printed.getvalue().decode())

    def printed_by_command(self, command: Command, block: Block) -> str:
        """Run a command and return what it prints."""
        if SHELL.search(command.words):
            code, printed = run_in_shell(command.words)
        else:
            from unkernel import cli

            with imitate_terminal() as output:
                code = cli.main(shlex.split(command.words, comments=True)[1:])
            printed = output.getvalue().decode()
        if code != block.exit_code:
            raise CommandError(f"{self.path}:{block.line}: `{command.words}` ended with {code}\n{printed}")
        return tidy(printed)


@contextlib.contextmanager
def imitate_terminal() -> Iterator[io.BytesIO]:
    """Collect the output, as on a terminal of a fixed width without colours."""
    old_columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(COLUMNS)
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield printed
    finally:
        stream.detach()
        if old_columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = old_columns


def run_in_shell(command: str) -> tuple[int, str]:
    """Return the exit code of a command and its output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    completed = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "PATH": path, "COLUMNS": str(COLUMNS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return completed.returncode, completed.stdout


def tidy(printed: str) -> str:
    """Return output without trailing blanks in lines, and without empty lines at both ends."""
    lines = [line.rstrip() for line in printed.splitlines()]
    text = "\n".join(lines).strip("\n")
    return f"{text}\n" if text else ""


# --- Comparison -----------------------------------------------------------------------------------------


def is_alike(shown: str, printed: str) -> bool:
    """Return whether the output on a page (`shown`) agrees with the current output (`printed`).

    Blanks and lines of tables may differ in width, and ``...`` stands for any text. Whole numbers up to 50
    must be equal. All other numbers may differ by two percent or by one in the last digit that is shown,
    because training stops within a tolerance. Times, speeds, numbers of steps, gaps and the memory of a
    process may have any value.
    """
    shown, printed = re.sub(r"\s*\.\.\.\s*", "...", remove_widths(shown)), remove_widths(printed)
    pattern, numbers, place = "", [], 0
    for piece in PIECE.finditer(shown):
        pattern += re.escape(shown[place : piece.start()])
        place = piece.end()
        if piece[0] == "...":
            pattern += ".*?"
        elif piece["gap"]:
            pattern += rf"gap:? ?{NUMBER}"
        elif piece["unit"]:
            pattern += NUMBER + re.escape(piece["unit"])
        elif "." in piece["number"] or abs(int(piece["number"].replace(",", ""))) > EXACT_UP_TO:
            pattern += f"({NUMBER})"
            numbers.append(piece["number"])
        else:
            pattern += re.escape(piece[0])
    match = re.fullmatch(pattern + re.escape(shown[place:]), printed, re.S)
    return match is not None and all(map(are_close, numbers, match.groups()))


def are_close(shown: str, printed: str) -> bool:
    """Return whether two numbers differ by at most `CLOSE`, or by one in the last digit shown."""
    shown_number, printed_number = (float(text.replace(",", "")) for text in (shown, printed))
    mantissa, _, exponent = shown.partition("e")
    last_digit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(shown_number - printed_number) <= max(1.01 * last_digit, CLOSE * abs(shown_number))


def remove_widths(text: str) -> str:
    """Return a text with single blanks, and with lines of tables shortened."""
    return re.sub(r"\s+", " ", re.sub(r"([─━═-])\1+", r"\1", text)).strip()


def differences(path: Path) -> Iterator[str]:
    """Run a page in the current folder, and yield every block whose output differs from the page."""
    page = Page(path)
    for block in blocks(path.read_text(encoding="utf-8")):
        for shown, printed in outputs(page, block):
            if block.is_shown and not is_alike(shown, printed):
                yield f"{path}:{block.line}: shows\n{shown}\nand prints\n{printed}"


def outputs(page: Page, block: Block) -> Iterator[tuple[str, str]]:
    """Run a block, and yield pairs of the output on the page and the current output, one pair per command."""
    if block.language == "python":
        yield block.output, page.printed_by_python(block)
        return
    for command in commands(block):
        if command.is_run:
            yield command.output, page.printed_by_command(command, block)


# --- Writing --------------------------------------------------------------------------------------------


def insert_outputs(path: Path) -> str:
    """Run a page in the current folder, and return its text with the current output of its blocks."""
    text, page = path.read_text(encoding="utf-8"), Page(path)
    limit = FEWER_LINES.search(text)
    max_lines = int(limit[1]) if limit else LONGEST_LINES
    parts, place = [], 0
    for block in blocks(text):
        parts += [text[place : block.start], rewrite(page, block, text[block.start : block.end], max_lines)]
        place = block.end
    return "".join([*parts, text[place:]])


def rewrite(page: Page, block: Block, source: str, max_lines: int) -> str:
    """Return a block with its current outputs, of at most `max_lines` lines each.

    A block whose outputs are alike or not shown is returned unchanged.
    """
    pairs = list(outputs(page, block))
    if not block.is_shown or all(is_alike(shown, printed) for shown, printed in pairs):
        return source
    if block.language == "python":
        parts = [make_fence("python", block.code)]
        parts += [make_fence("output", shorten(printed, max_lines)) for _, printed in pairs if printed]
        return textwrap.indent("\n".join(parts), block.indent)
    remaining_pairs = iter(pairs)
    lines = []
    for command in commands(block):
        shown, printed = next(remaining_pairs) if command.is_run else (command.output, command.output)
        lines += [command.lines, shown if is_alike(shown, printed) else shorten(printed, max_lines)]
    return textwrap.indent(make_fence("console", "".join(lines)), block.indent)


def shorten(printed: str, max_lines: int) -> str:
    """Cut an output to `max_lines` lines, and leave out parts that differ between machines."""
    lines = MEASURED.sub(r"\1  ...\n", printed).splitlines()
    lines = [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 4]} ..." for line in lines]
    if len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], "..."]
    return "\n".join([*lines, ""])


def make_fence(language: str, text: str) -> str:
    return f"```{language}\n{text}```\n"


def write_treebanks(folder: Path) -> None:
    """Write the treebanks that the README requires. All other pages make the files that they use."""
    sys.path.insert(0, str(ROOT / "tests"))
    from reference.small_grammar import grammar

    grammar(40, seed=0).write(folder / "train.conllu")
    grammar(10, seed=1).write(folder / "dev.conllu")


def main(arguments: list[str]) -> int:
    """Write the outputs of some pages, or of all."""
    pages = [Path(argument).resolve() for argument in arguments] or PAGES
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if not any(blocks(text)):
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if page in FIRST_PAGES:
                write_treebanks(Path(folder))
            now = insert_outputs(page)
        if now != text:
            page.write_text(now, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
