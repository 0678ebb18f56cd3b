"""Parse streams of raw text, paragraph by paragraph, in bounded memory."""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from unkernel._core import whole_text
from unkernel.data.text.columns import parse_text
from unkernel.data.text.conll import Treebank
from unkernel.errors import FormatError, describe_bad_byte
from unkernel.parsing.ordered_work import map_in_order
from unkernel.parsing.parsed_blocks import Parsed
from unkernel.parsing.text.text_parser_model import TextParserModel
from unkernel.parsing.text.tokenizer_model import TokenizerModel

TextModel = TextParserModel | TokenizerModel
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n\s*")
# In longer input without a paragraph's end, the end is searched again only after the input has doubled.
_LONG_BYTES = 1 << 22


@dataclass(frozen=True)
class _Block:
    """Whole paragraphs, or the parts of a long one.

    Attributes
    ----------
    data : bytes
    line : int
        The first line of the block in the file.
    begins_paragraph : bool
    """

    data: bytes
    line: int
    begins_paragraph: bool


def parse_text_stream(
    model: TextModel, pieces: Generator[bytes], name: str, *, skip: bool, threads: int
) -> Generator[Parsed]:
    """Parse a text that arrives in pieces; an empty piece means that the next one has not arrived yet.

    A paragraph that is not UTF-8 ends the stream or, with `skip`, is left out and listed.
    """
    answer = partial(_parse_block, model, name, skip)
    with closing(pieces), closing(map_in_order(answer, _cut_blocks(model, pieces), threads)) as answers:
        for parsed in answers:
            if parsed.skipped and not skip:
                yield replace(parsed, skipped=[])
                raise parsed.skipped[0]
            yield parsed


def _cut_blocks(model: TextModel, pieces: Iterator[bytes]) -> Iterator[_Block | None]:
    spec = (model.tokenizer if isinstance(model, TextParserModel) else model).spec
    held, line, wanted, begins_paragraph = bytearray(), 1, 0, True
    for piece in _strip_byte_order_mark(pieces):
        held += piece
        if not piece or len(held) < wanted:
            yield None
            continue
        end, ends_paragraph = whole_text(spec, bytes(held))
        if end:
            yield _Block(bytes(held[:end]), line, begins_paragraph)
            line += held.count(b"\n", 0, end)
            del held[:end]
            begins_paragraph = ends_paragraph
        wanted = 2 * len(held) if len(held) > _LONG_BYTES else 0
    if held:
        yield _Block(bytes(held), line, begins_paragraph)


def _strip_byte_order_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Strip the byte order mark, which is not part of a text."""
    begin = b""
    for piece in pieces:
        begin += piece
        if len(begin) >= len(codecs.BOM_UTF8):
            break
    yield begin.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def _parse_block(model: TextModel, name: str, skip: bool, block: _Block) -> Parsed:
    text, skipped = _drop_unreadable(block, name, skip=skip)
    tokenizer = model.tokenizer if isinstance(model, TextParserModel) else model
    begins_paragraph = block.begins_paragraph or bool(skipped)
    bank = _read(tokenizer._tokenize(text, 1, begins_paragraph=begins_paragraph))
    data = model._annotate(bank, 1) if isinstance(model, TextParserModel) else bank.to_bytes()
    return Parsed(data, len(bank), bank.n_words, skipped, _read)


def _read(data: bytes) -> Treebank:
    return Treebank._of(parse_text(data, "conllu"))


def _drop_unreadable(block: _Block, name: str, *, skip: bool) -> tuple[bytes, list[FormatError]]:
    """Return the paragraphs in UTF-8, and the errors of all others; without `skip`, stop at the first."""
    data, line = block.data, block.line
    if _find_error(data, line, name) is None:
        return data, []
    readable, errors = [], []
    ends = [found.end() for found in _BLANK_LINE.finditer(data)]
    for begin, end in zip([0, *ends], [*ends, len(data)], strict=True):
        error = _find_error(data[begin:end], line, name)
        line += data.count(b"\n", begin, end)
        if error is None:
            readable.append(data[begin:end])
            continue
        errors.append(error)
        if not skip:
            break
    return b"".join(readable), errors


def _find_error(paragraph: bytes, line: int, name: str) -> FormatError | None:
    try:
        paragraph.decode()
    except UnicodeDecodeError as error:
        before = paragraph[: error.start]
        column = len(before.rpartition(b"\n")[2].decode()) + 1
        return FormatError(
            name, line + before.count(b"\n"), column, describe_bad_byte(paragraph[error.start])
        )
    return None
