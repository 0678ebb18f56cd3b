"""Options of several commands: names, types and help. The commands set the defaults.

Paths are declared with ``readable=False``: the commands themselves report unreadable files, with better
messages.
"""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from unkernel.data.threads import thread_count

_MAX_JOBS = 1024  # largest number of threads; if the system cannot start a thread, the process ends
_POWERS_OF_1000 = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}

_engine = partial(typer.Option, rich_help_panel="The engine")
_data = partial(typer.Option, rich_help_panel="The data")


class EngineName(StrEnum):
    auto = "auto"
    inverted = "inverted"
    bitsliced = "bitsliced"
    expanded = "expanded"
    pruned = "pruned"
    split_ = "split"  # with an underscore, because str has a method `split`
    int16 = "int16"


class UnknownKeys(StrEnum):
    ignore = "ignore"
    error = "error"


DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Rows in the svmlight format, such as rows.svm; for models of trees or records, files such as "
        "questions.dat or new.csv; plain or .gz, .xz, .bz2, .zst; - reads stdin. A pattern in quotes, such "
        "as 'part-*.csv', names several files.",
    ),
]
ExplainedFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Rows in the svmlight format, such as rows.svm; for other models, records, such as new.csv or "
        "one record as JSON, trees, such as questions.dat, sentences, such as test.conllu, or text. Plain or "
        ".gz, .xz, .bz2, .zst; - reads stdin.",
    ),
]
AnyModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        readable=False,
        help="A .uk file, or a text model of LIBSVM, LIBLINEAR, SVMlight, SVM-light-TK or TinySVM, plain or "
        "compressed.",
    ),
]
SourceFile = Annotated[
    list[Path],
    typer.Argument(
        metavar="SOURCE",
        readable=False,
        show_default=False,
        help="A text model of LIBSVM, LIBLINEAR, SVMlight, SVM-light-TK or TinySVM, plain or compressed, or "
        "a .uk file.",
    ),
]

FeatureCount = Annotated[
    int | None,
    _data(min=1, help="Number of columns; larger indices are refused.", show_default="the largest index"),
]
_index_base_option = partial(_data, "--zero-based/--one-based", help="Whether indices start at 0 or 1.")
ZeroBased = Annotated[bool | None, _index_base_option(show_default="0 if there is an index 0")]
ZeroBasedLikeModel = Annotated[bool | None, _index_base_option(show_default="as in training")]
RecordsOfImportances = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Also show the share of each column and pair of columns in the variance of the score, and the "
        "shares of missing and unknown values beside those in training, over the first records of this file; "
        "- reads stdin.",
    ),
]
TestFile = Annotated[
    str | None, _data("--test", metavar="FILE", help="Also measure the accuracy on these rows or trees.")
]

Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File for the predictions, one per line; default: -, which is stdout (with --json: none). For a "
        "pattern: the folder with one file for each file of DATA. Replaces no file without --force.",
    ),
]
PartsDask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS|local",
        help="With a pattern: use the workers of a Dask scheduler; local starts --jobs workers here.",
        show_default="none",
    ),
]
Scores = Annotated[bool, typer.Option("--scores", help="Write the decision values after each label.")]
Probability = Annotated[
    bool, typer.Option("--probability", help="Write the probability of each class after each label.")
]
Top = Annotated[
    int,
    typer.Option(
        "--top",
        metavar="N",
        min=0,
        help="Show the N conjunctions, or fragments of trees, with the largest weights; for a parser, N of "
        "each kind of decision.",
    ),
]
OfClass = Annotated[
    str | None,
    typer.Option(
        "--of",
        metavar="LABEL",
        help="Class whose score is explained.",
        show_default="the second of two classes; with more, the winner against the runner-up",
    ),
]
TopOfRow = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="N",
        min=0,
        help="Show the N largest contributions.",
        show_default="10; 3 per decision of a parser",
    ),
]
Row = Annotated[
    int,
    typer.Option(
        "--row", metavar="N", min=0, help="Number of the row, tree or sentence in the file; 0 is the first."
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="FILE",
        help="File with the names of features: one per line, or number, tab and name.",
    ),
]

Engine = Annotated[
    EngineName, _engine(help="Engine; auto tries all exact engines that apply and keeps the fastest.")
]
Memory = Annotated[
    str | None,
    _engine(
        metavar="BYTES",
        help="Limit for the tables, such as 200M or 1.5G.",
        show_default="a quarter of what is free",
    ),
]
Sample = Annotated[
    str | None,
    _engine(metavar="FILE", help="Typical rows to measure on.", show_default="the support vectors"),
]
Rare = Annotated[
    float,
    _engine(
        min=0,
        help="For split: features in fewer support vectors than this are rare; a number, or a share below 1.",
    ),
]
Threshold = Annotated[
    float | None,
    _engine(help="For pruned: drop conjunctions with a smaller weight.", show_default="none"),
]
Trie = Annotated[
    str | None,
    _engine(
        metavar="FILE",
        help="Rows to grow a prefix trie from; it is kept if it is faster.",
        show_default="none",
    ),
]
UnknownKeysOption = Annotated[
    UnknownKeys | None,
    typer.Option(
        "--unknown-keys",
        help="For models of records: ignore columns that the model does not know, or raise an error.",
        show_default="as before",
    ),
]
TrieNodes = Annotated[
    str | None,
    _engine(
        metavar="NODES",
        help="With --trie: keep a trie of at most NODES nodes, such as 1M or 300k, even if it is slower.",
        show_default="the best of several sizes",
    ),
]
CacheRows = Annotated[
    int | None,
    _engine(
        min=1,
        metavar="ROWS",
        help="Cache the scores of ROWS rows, for rows that occur repeatedly.",
        show_default="none",
    ),
]
Measure = Annotated[
    bool,
    _engine(
        "--measure/--no-measure",
        help="Choose the engine by measuring, or by rules that always give the same file.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE", readable=False, help="Draw time against size: a .png, .svg or .pdf file."
    ),
]
Seconds = Annotated[float, typer.Option("--seconds", min=0.01, max=3600, help="Time for each measurement.")]

Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=_MAX_JOBS, show_default="all cores", help="Threads."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print progress lines instead of a bar.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files of any kind.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]


def parse_nodes(text: str | None) -> int | None:
    """Return a number of nodes parsed from ``1M``, ``300k`` or ``1000000``; k, M and G are powers of 1000."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kKmMgG]?)\s*", text, re.ASCII)
    nodes = Fraction(match[1]) * _POWERS_OF_1000[match[2].upper()] if match else Fraction(0)
    if nodes < 1 or nodes.denominator != 1:
        raise ValueError(f"--trie-nodes must be a number of nodes, such as 1M, 300k or 1000000, got {text!r}")
    return int(nodes)


def parse_bins(text: str | None) -> int | tuple[int, ...] | None:
    """Return a number of intervals parsed from text, or several numbers from a list such as ``4,16,64``."""
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4}){0,9}", text, re.ASCII):
        raise ValueError(f"--n-bins must be a number of intervals, or several such as 4,16,64, got {text!r}")
    numbers = tuple(map(int, text.split(",")))
    return numbers if len(numbers) > 1 else numbers[0]


def count_threads(jobs: int | None) -> int:
    """Return the number of threads that --jobs asks for; by default, the number of cores."""
    return thread_count(-1) if jobs is None else jobs


def index_base(zero_based: bool | None) -> bool | Literal["auto"]:
    """Convert --zero-based or --one-based to the parameter `zero_based` of readers."""
    return "auto" if zero_based is None else zero_based
