"""Write parsed sentences: as columns, as JSON, as drawings for the terminal, or as arcs in files."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from unkernel.cli.output_files import check_output, check_path
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM, stdout_bytes
from unkernel.data.atomic_write import replace_file
from unkernel.data.files import name_of, open_writer
from unkernel.data.text.chunks import ChunkSentence
from unkernel.data.text.conll_sentence import Sentence, sentence_to_json
from unkernel.parsing import Parsed

Sink = Callable[[Parsed], object]  # writes the next sentences
_OTHER_PICTURES = (".png", ".pdf", ".jpg", ".jpeg", ".gif")
_PAGE = ".html"
_PICTURE = ".svg"
_NUMBERED_PICTURE = re.compile(rf"[0-9]{{6,}}\{_PICTURE}")  # name of a picture in a folder
_HEAD = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font-family: sans-serif; margin: 2em }} figure {{ margin: 0 0 2em; overflow-x: auto }}</style>
</head><body>
"""
_TAIL = "</body></html>\n"


@contextlib.contextmanager
def write_columns(output: str) -> Iterator[Sink]:
    """Yield a function that writes the input lines with the annotation filled in."""
    with _open_output(output) as write:
        yield lambda parsed: write(parsed.data)


@contextlib.contextmanager
def write_drawings(output: str) -> Iterator[Sink]:
    """Yield a function that writes one drawing per sentence, no wider than the terminal."""
    on_terminal = output == STANDARD_STREAM and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else None
    with _open_output(output) as write:
        yield lambda parsed: write(
            "".join(f"{draw_sentence(sentence, width)}\n" for sentence in parsed.corpus).encode()
        )


@contextlib.contextmanager
def write_objects(output: str) -> Iterator[Sink]:
    """Yield a function that writes one JSON object per sentence, each on a line."""
    with _open_output(output) as write:
        yield lambda parsed: write(
            "".join(map(_to_json_line, cast(Iterable[Sentence], parsed.corpus))).encode()
        )


def _to_json_line(sentence: Sentence) -> str:
    return json.dumps(sentence_to_json(sentence), ensure_ascii=False) + "\n"


def draw_sentence(sentence: Any, width: int | None) -> str:
    """Return a drawing of a sentence: its tree, at most `width` cells wide, or its chunks in brackets."""
    return str(sentence.draw() if isinstance(sentence, ChunkSentence) else sentence.draw(width))


def write_arcs(path: Path) -> AbstractContextManager[Sink]:
    """Return a writer of arcs over words: one picture, one page, or a folder of pictures."""
    if path.suffix.lower() == _PICTURE:
        return _write_picture(path)
    return write_page(os.fspath(path)) if path.suffix.lower() == _PAGE else _write_folder(path)


def check_arcs(path: Path, *inputs: str | Path, force: bool) -> None:
    """Raise ``ValueError`` if pictures cannot be written to `path`; to be called before parsing."""
    if path.suffix.lower() in (_PICTURE, _PAGE):
        check_output(path, *inputs, force=force)
    elif path.exists() and not path.is_dir():
        raise ValueError(f"{path}: is a file; --svg takes a folder, or a name that ends in .svg or .html")
    elif not path.is_dir():
        if path.suffix.lower() in _OTHER_PICTURES:
            raise ValueError(f"{path}: pictures are SVG; name a folder, or a file that ends in .svg or .html")
        check_path(path)
    elif any(
        _NUMBERED_PICTURE.fullmatch(file.name) and file.parent.samefile(path) for file in map(Path, inputs)
    ):
        raise ValueError(f"{path}: has an input among its pictures; name another folder")
    elif not force and any(_NUMBERED_PICTURE.fullmatch(file.name) for file in path.iterdir()):
        raise ValueError(f"{path}: has pictures already; name another folder, or replace them with --force")


@contextlib.contextmanager
def _write_picture(path: Path) -> Iterator[Sink]:
    """Yield a function that collects the picture of the only sentence; write it at the end."""
    pictures: list[str] = []

    def add_pictures(parsed: Parsed) -> None:
        if len(pictures) + parsed.n_sentences > 1:
            raise ValueError(f"{path}: there is more than one sentence; name a folder, or a .html page")
        pictures.extend(sentence.to_svg() for sentence in cast(Iterable[Any], parsed.corpus))

    yield add_pictures
    if not pictures:
        raise ValueError(f"{path}: there is no sentence to draw")
    with replace_file(path) as file:
        file.write(pictures[0].encode())


@contextlib.contextmanager
def write_page(output: str) -> Iterator[Sink]:
    """Yield a function that writes arcs over words to an HTML page."""
    with _open_output(output) as write:
        title = "trees" if output == STANDARD_STREAM else name_of(Path(output).stem)
        write(_HEAD.format(title=html.escape(title)).encode())

        def write_sentences(parsed: Parsed) -> None:
            for sentence in cast(Iterable[Any], parsed.corpus):
                caption = html.escape(sentence.text)
                write(f"<figure><figcaption>{caption}</figcaption>\n{sentence.to_svg()}</figure>\n".encode())

        yield write_sentences
        write(_TAIL.encode())


@contextlib.contextmanager
def _write_folder(path: Path) -> Iterator[Sink]:
    """Yield a function that writes one picture per sentence, with its number as name."""
    path.mkdir(exist_ok=True)
    number = 0

    def write_sentences(parsed: Parsed) -> None:
        nonlocal number
        for sentence in cast(Iterable[Any], parsed.corpus):
            number += 1
            with replace_file(path / f"{number:06}{_PICTURE}") as file:
                file.write(sentence.to_svg().encode())

    yield write_sentences


@contextlib.contextmanager
def _open_output(output: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to a file or, without buffering, to stdout."""
    if output != STANDARD_STREAM:
        with open_writer(output) as write:
            yield write
        return
    stream = stdout_bytes()

    def write_and_flush(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    yield write_and_flush
