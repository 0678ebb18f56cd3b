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
# After a paragraph exceeds this length, its end is searched for again only each time the length has doubled.
_LONG_BYTES = 1 << 22


@dataclass(frozen=True)
class _Block:
    """Whole paragraphs, or a part of a long paragraph.

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
    """Parse a text that arrives in pieces; an empty piece means that more input is still to come.

    A paragraph that is not valid UTF-8 ends the stream or, with `skip`, is left out and listed.
    """
    parse_block = partial(_parse_block, model, name, skip)
    blocks = _cut_blocks(model, pieces)
    with closing(pieces), closing(map_in_order(parse_block, blocks, threads)) as parsed_blocks:
        for parsed in parsed_blocks:
            if parsed.skipped and not skip:
                yield replace(parsed, skipped=[])
                raise parsed.skipped[0]
            yield parsed


def _cut_blocks(model: TextModel, pieces: Iterator[bytes]) -> Iterator[_Block | None]:
    """Cut pieces into blocks. None stands for a pause in the input: parse the earlier blocks now."""
    spec = (model.tokenizer if isinstance(model, TextParserModel) else model).spec
    buffer, line, min_bytes, begins_paragraph = bytearray(), 1, 0, True
    for piece in _strip_byte_order_mark(pieces):
        buffer += piece
        if not piece or len(buffer) < min_bytes:
            yield None
            continue
        end, ends_paragraph = whole_text(spec, bytes(buffer))
        if end:
            yield _Block(bytes(buffer[:end]), line, begins_paragraph)
            line += buffer.count(b"\n", 0, end)
            del buffer[:end]
            begins_paragraph = ends_paragraph
        min_bytes = 2 * len(buffer) if len(buffer) > _LONG_BYTES else 0
    if buffer:
        yield _Block(bytes(buffer), line, begins_paragraph)


def _strip_byte_order_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces without a leading byte order mark."""
    begin = b""
    for piece in pieces:
        begin += piece
        if len(begin) >= len(codecs.BOM_UTF8):
            break
    yield begin.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def _parse_block(model: TextModel, name: str, skip: bool, block: _Block) -> Parsed:
    """Tokenize a block and, if the model is a parser, tag and parse it."""
    text, skipped = _drop_unreadable(block, name, skip=skip)
    tokenizer = model.tokenizer if isinstance(model, TextParserModel) else model
    begins_paragraph = block.begins_paragraph or bool(skipped)
    tokens = tokenizer._tokenize(text, 1, begins_paragraph=begins_paragraph)
    bank = Treebank._from_text(parse_text(tokens, "conllu"))
    parsed = model._annotate(bank, 1) if isinstance(model, TextParserModel) else bank
    return Parsed(parsed, skipped)


def _drop_unreadable(block: _Block, name: str, *, skip: bool) -> tuple[bytes, list[FormatError]]:
    """Return the valid UTF-8 paragraphs, and the errors of the others; without `skip`, stop at the first."""
    data, line = block.data, block.line
    if _find_error(data, line, name) is None:
        return data, []
    readable, errors = [], []
    ends = [match.end() for match in _BLANK_LINE.finditer(data)]
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
