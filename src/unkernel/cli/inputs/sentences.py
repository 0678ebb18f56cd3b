"""What there is to learn: trees, bunsetsu, chunks, tags or tokens; and how files are told apart."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from unkernel.cli.inputs.file_contents import (
    check_holds_sentences,
    check_no_model,
    detect_sentences,
    has_no_columns,
    read_beginning,
)
from unkernel.cli.inputs.parsers import Parser
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.data import read_bunsetsu, read_chunks, read_conllu, read_conllx
from unkernel.parsing import TextParserModel

if TYPE_CHECKING:
    from unkernel.parsing.base import BaseParser

_NAMES = {"dependency trees": "trees"}  # of tasks, where files are called otherwise
_TREES_SUFFIX = ".conllu"  # or .conllu.gz


@dataclass(frozen=True)
class Task:
    """A kind of file and what learns from it."""

    name: str
    words: str  # for people
    kind: str  # of files of parsers
    learner: str  # the name of the estimator
    unit: str  # what is counted in sentences
    read: Callable[[Any], Any]  # a corpus with right answers

    @property
    def estimator(self) -> type[BaseParser[Any]]:
        """What learns; only now is it imported, as answering does not need it."""
        found: type[BaseParser[Any]] = getattr(importlib.import_module("unkernel.parsing"), self.learner)
        return found

    def count(self, corpus: Any) -> int:
        """Words, or what there is in their place."""
        return int(corpus.n_bunsetsu if self.name == "bunsetsu" else corpus.n_words)


TASKS = {
    task.name: task
    for task in (
        Task("trees", "dependency trees", "arc_eager_parser", "ArcEagerParser", "word", read_conllu),
        Task("bunsetsu", "Japanese bunsetsu", "bunsetsu_parser", "BunsetsuParser", "bunsetsu", read_bunsetsu),
        Task("chunks", "chunks", "chunker", "Chunker", "word", partial(read_chunks, tagged=True)),
        Task("text", "raw text", "text_parser", "TextParser", "word", read_conllu),
        Task("tokens", "raw text", "tokenizer", "Tokenizer", "word", read_conllu),
        Task("tags", "words", "tagger", "Tagger", "word", read_conllu),
    )
}


def find_task(parser: Parser) -> Task:
    """What a parser answers with."""
    return next(task for task in TASKS.values() if task.kind == parser.kind)


def choose_reader(task: Task, format: str | None) -> Callable[[Any], Any]:
    """What reads the task's files; only treebanks have formats."""
    if format is not None and task.name not in ("trees", "tags"):
        raise ValueError(f"--format is for dependency trees, and not for {task.words}")
    return read_conllx if format == "conllx" else task.read


def parse_given(parser: Parser, given: Any) -> dict[str, Any]:
    """What the files of a parser of raw text give it, as the argument of its methods."""
    if isinstance(parser, TextParserModel):
        return {"given": "text" if given is None else given.value}
    if given is not None:
        raise ValueError(f"--from is for parsers of raw text, and this is a {parser.noun}")
    return {}


def check_input(file: str, task: Task, *, raw: bool) -> None:
    """Fail early where a file holds something else, as far as its first bytes tell."""
    if not raw:
        check_holds_sentences(file)
        if task.name == "text" and has_no_columns(read_beginning(file)):
            raise ValueError(f"{file} holds plain text, and no words in columns: leave out --from")
        return
    check_no_model(file, "text")
    if detect_sentences(read_beginning(file)) == "dependency trees":
        remedy = "give --from tokens" if task.name == "text" else "a tokenizer takes raw text"
        raise ValueError(f"{file} holds words in columns, and no raw text: {remedy}")


def check_options_of_rows(path: Path, given: dict[str, Any]) -> None:
    """Options that say nothing to a parser."""
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{path}: {option} is for models of rows or trees, and this is a parser")


def guess_task(begin: bytes) -> Task | None:
    """What a file holds, by its first lines."""
    found = detect_sentences(begin)
    return None if found is None else TASKS[_NAMES.get(found, found)]


class Input:
    """A file to learn from or to measure on; stdin is read at once, as it can be read only once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bytes = sys.stdin.buffer.read() if name == STANDARD_STREAM else None

    def task(self) -> Task | None:
        """What the file seems to hold, by its name or its first lines; None where these do not tell."""
        begin = read_beginning(self._source())
        if begin and _TREES_SUFFIX in Path(self.name).name.lower():
            return TASKS["trees"]
        return guess_task(begin)

    def read(self, read: Callable[[Any], Any], display: Display) -> Any:
        """The corpus, with a bar of how much of it has been read."""
        check_holds_sentences(self.name)
        if self._bytes is not None:
            return read(self._source())
        with display.show_reading(self.name) as file:
            return read(_Named(file, self.name))

    def _source(self) -> Path | io.BytesIO:
        return Path(self.name) if self._bytes is None else io.BytesIO(self._bytes)


class _Named:
    """A file that says in messages what the user calls it."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.read = file.read
