"""The tasks of parsers, with their files: trees, bunsetsu, chunks, tags, tokens and raw text."""

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
    from unkernel.parsing.model_estimator import BaseParser

_TASKS_BY_CONTENT = {"dependency trees": "trees"}  # all other tasks are named after their content
_CONLLU_SUFFIX = ".conllu"  # may be followed by a suffix such as .gz


@dataclass(frozen=True)
class Task:
    """A kind of sentences, and the estimator that learns from them."""

    name: str
    content: str  # the content of files, in messages
    kind: str  # the kind of model files
    learner: str  # the name of the estimator
    unit: str  # the unit of `count`: "word" or "bunsetsu"
    read: Callable[[Any], Any]  # reads an annotated corpus

    @property
    def estimator(self) -> type[BaseParser[Any, Any]]:
        """The estimator; it is imported on first use, because parsing does not need it."""
        estimator: type[BaseParser[Any, Any]] = getattr(
            importlib.import_module("unkernel.parsing"), self.learner
        )
        return estimator

    def count(self, corpus: Any) -> int:
        """Return the number of words or bunsetsu in a corpus."""
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
    return next(task for task in TASKS.values() if task.kind == parser.kind)


def choose_reader(task: Task, format: Any) -> Callable[[Any], Any]:
    """Return the function that reads the task's files; only treebanks have formats."""
    if format is not None and task.name not in ("trees", "tags"):
        raise ValueError(f"--format is for dependency trees, not for {task.content}")
    return read_conllx if format == "conllx" else task.read


def parse_given(parser: Parser, given: Any) -> dict[str, Any]:
    """Return the argument ``given`` for a parser of raw text; other parsers have no such argument."""
    if isinstance(parser, TextParserModel):
        return {"given": "text" if given is None else given.value}
    if given is not None:
        raise ValueError(f"--from is for parsers of raw text, and this is a {parser.noun}")
    return {}


def check_input(file: str, task: Task, *, raw: bool) -> None:
    """Raise ``ValueError`` if the first bytes of a file do not match the task."""
    if not raw:
        check_holds_sentences(file)
        if task.name == "text" and has_no_columns(read_beginning(file)):
            raise ValueError(f"{file} holds plain text, not words in columns: leave out --from")
        return
    check_no_model(file, "text")
    if detect_sentences(read_beginning(file)) == "dependency trees":
        remedy = "give --from tokens" if task.name == "text" else "a tokenizer takes raw text"
        raise ValueError(f"{file} holds words in columns, not raw text: {remedy}")


def guess_task(beginning: bytes) -> Task | None:
    """Return the likely task of a file, given its first lines, or None."""
    content = detect_sentences(beginning)
    return None if content is None else TASKS[_TASKS_BY_CONTENT.get(content, content)]


class Input:
    """A file for training or evaluation. The content of stdin is kept, because stdin cannot be read twice."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bytes = sys.stdin.buffer.read() if name == STANDARD_STREAM else None

    def task(self) -> Task | None:
        """Return the likely task of the file, given its name and its first lines, or None."""
        beginning = read_beginning(self._source())
        if beginning and _CONLLU_SUFFIX in Path(self.name).name.lower():
            return TASKS["trees"]
        return guess_task(beginning)

    def read(self, reader: Callable[[Any], Any], display: Display) -> Any:
        """Return the corpus in the file; show the progress of reading."""
        check_holds_sentences(self.name)
        if self._bytes is not None:
            return reader(self._source())
        with display.show_reading(self.name) as file:
            return reader(_NamedFile(file, self.name))

    def _source(self) -> Path | io.BytesIO:
        return Path(self.name) if self._bytes is None else io.BytesIO(self._bytes)


class _NamedFile:
    """A file that has the name given by the user in messages."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.read = file.read
