"""Options of ``unkernel parse`` and ``unkernel evaluate``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ErrorAction(StrEnum):
    stop = "stop"
    skip = "skip"


class InputLevel(StrEnum):
    text = "text"
    tokens = "tokens"
    tags = "tags"


class OutputFormat(StrEnum):
    conllu = "conllu"
    conllx = "conllx"
    json = "json"
    text = "text"
    svg = "svg"


ParserFile = Annotated[
    Path, typer.Argument(metavar="MODEL", readable=False, help="Parser to use, such as en.uk.")
]
TestFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Rows, trees or sentences with the correct labels, such as test.svm or test.conllu; plain or "
        ".gz, .xz, .bz2, .zst; - reads stdin.",
    ),
]
InputFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
        show_default=False,
        help="Raw text, such as notes.txt, or sentences, such as raw.conllu, as MODEL takes them; plain or "
        ".gz, .xz, .bz2, .zst; - or nothing reads stdin. Several are parsed one after another.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File for the results of all files; it appears only when all files are done. Replaces no file "
        "without --force.",
        show_default="stdout",
    ),
]
OnError = Annotated[
    ErrorAction,
    typer.Option(
        "--on-error",
        help="At an invalid sentence: stop, or skip it. A skipped sentence is copied unchanged; a skipped "
        "paragraph of raw text is left out, and so is one of several files that cannot be read.",
    ),
]
Draw = Annotated[bool, typer.Option("--draw", help="Write drawings for the terminal instead of columns.")]
Svg = Annotated[
    Path | None,
    typer.Option(
        "--svg",
        metavar="PATH",
        readable=False,
        help="Draw arcs: to a .svg file (one sentence), a .html page, or a folder, one numbered "
        "file per sentence. Columns are then written only with --output.",
    ),
]
From = Annotated[
    InputLevel | None,
    typer.Option(
        "--from",
        help="Input of a parser of raw text: the text of FILE, or a treebank's words, or words and tags.",
        show_default="text",
    ),
]
Beam = Annotated[
    int | None,
    typer.Option(
        "--beam",
        metavar="K",
        help="Beam width (transition sequences kept); for parsers that were trained with --beam.",
        show_default="as in training",
    ),
]
Format = Annotated[
    OutputFormat | None,
    typer.Option(
        "--format",
        help="Output format: columns (conllx is also the input format), one JSON object per line, drawings "
        "for the terminal, or dependency arcs as an HTML page, or as SVG if --output ends in .svg (one "
        "sentence) or is a folder.",
        show_default="conllu",
    ),
]
Labels = Annotated[bool, typer.Option("--labels", help="Also show the accuracy of each relation.")]
