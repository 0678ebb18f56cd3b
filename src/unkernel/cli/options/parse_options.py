"""Options of ``unkernel parse`` and ``unkernel evaluate``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OnErrorName(StrEnum):
    stop = "stop"
    skip = "skip"


class GivenName(StrEnum):
    text = "text"
    tokens = "tokens"
    tags = "tags"


class ShownName(StrEnum):
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
        help="Rows, trees or sentences with the right answers, such as test.svm or test.conllu; plain or "
        ".gz, .xz, .bz2, .zst; - reads stdin.",
    ),
]
InputFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
        show_default=False,
        help="Raw text, such as notes.txt, or sentences, such as raw.conllu, as MODEL takes them; plain or "
        ".gz, .xz, .bz2, .zst; - or nothing reads stdin. Several are answered one after another.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write the answers to all files; the file appears when all is done, and not at all if "
        "the run stops. Replaces no file without --force.",
        show_default="stdout",
    ),
]
OnError = Annotated[
    OnErrorName,
    typer.Option(
        "--on-error",
        help="Of a sentence that is not as it should be: stop there, or skip it. It then passes through as "
        "it is; a paragraph of raw text is left out, and so is one of several files that cannot be read.",
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
GivenOf = Annotated[
    GivenName | None,
    typer.Option(
        "--from",
        help="What FILE gives a parser of raw text: its text, or a treebank's words, or also their tags.",
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
Shown = Annotated[
    ShownName | None,
    typer.Option(
        "--format",
        help="What is written: columns (conllx is read, too), an object per sentence and line, drawings for "
        "the terminal, or dependency arcs, as an HTML page, or as SVG by the extension of --output: .svg for "
        "one sentence, none for a folder.",
        show_default="conllu",
    ),
]
Labels = Annotated[bool, typer.Option("--labels", help="Also show each relation.")]
