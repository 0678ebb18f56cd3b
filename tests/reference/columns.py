"""The slow twin of the reader of columns: CoNLL-U, CoNLL-X and chunks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reference.svmlight import BadLineError

BLANKS = b" \t\v\f\r"
NO_WORD = re.compile(r"\d+[-.]\d+", re.ASCII)
DIGITS = re.compile(r"\d+", re.ASCII)
HEAD = 6


@dataclass
class Sentence:
    line: int  # number of its first line
    rows: list[list[str]] = field(default_factory=list)  # the columns of its words
    lines: list[int] = field(default_factory=list)  # line numbers of its words
    heads: list[int] = field(default_factory=list)


def read(data: bytes, format: str, trees: str = "none") -> list[Sentence]:
    """Return all sentences. The first bad line raises a BadLineError with its line and column."""
    sentences: list[Sentence] = []
    current: Sentence | None = None
    no_words = False  # whether multiword tokens or empty nodes have occurred in this sentence
    for number, line in enumerate([*data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), b""], start=1):
        if not line.strip(BLANKS):
            if current and (current.rows or no_words):
                end_sentence(current, format, trees)
                sentences.append(current)
                current, no_words = None, False
            continue
        current = current or Sentence(number)
        text = decode(line.removesuffix(b"\r"), number)
        if format == "chunks":
            read_chunk(current, text, number, [row for sentence in sentences for row in sentence.rows][:1])
        elif not text.startswith("#"):
            no_words |= not read_word(current, text, number, format)
    return sentences


def decode(line: bytes, number: int) -> str:
    end = line.find(b"\0") if b"\0" in line else len(line)
    try:
        line[:end].decode()
    except UnicodeDecodeError as error:
        raise BadLineError(number, len(line[: error.start].decode()) + 1) from None
    if end < len(line):
        raise BadLineError(number, len(line[:end].decode()) + 1)
    return line.decode()


def read_chunk(sentence: Sentence, text: str, number: int, first: list[list[str]]) -> None:
    row = [part for part in re.split("[ \t]", text) if part]
    if any(len(row) != len(other) for other in [*first, *sentence.rows[:1]]):
        raise BadLineError(number, len(text) + 1)
    sentence.rows.append(row)
    sentence.lines.append(number)


def read_word(sentence: Sentence, text: str, number: int, format: str) -> bool:
    """Read the line of a word; return False for other lines."""
    row = text.split("\t")
    for column, value in enumerate(row[:10]):
        if not value:
            raise BadLineError(number, column_number(row, column))
    if len(row) != 10:
        raise BadLineError(number, column_number(row, 10) if len(row) > 10 else len(text) + 1)
    if row[0] != str(len(sentence.rows) + 1):
        if format == "conllu" and NO_WORD.fullmatch(row[0]):
            return False
        raise BadLineError(number, 1)
    head = -1 if row[HEAD] == "_" else int(row[HEAD]) if DIGITS.fullmatch(row[HEAD]) else None
    if head is None or head >= 2**31 or head == len(sentence.rows) + 1:
        raise BadLineError(number, column_number(row, HEAD))
    sentence.rows.append(row)
    sentence.lines.append(number)
    sentence.heads.append(head)
    return True


def column_number(row: list[str], column: int) -> int:
    return len("\t".join(row[:column])) + (2 if column else 1)


def end_sentence(sentence: Sentence, format: str, trees: str) -> None:
    if format == "chunks":
        return
    if not sentence.rows:
        raise BadLineError(sentence.line, 1)
    if (word := first_word_with_invalid_head(sentence.heads, trees)) is not None:
        raise BadLineError(sentence.lines[word], column_number(sentence.rows[word], HEAD))


def first_word_with_invalid_head(heads: list[int], trees: str) -> int | None:
    """Return the first word whose head is invalid, as the reader reports it."""
    beyond = [i for i, head in enumerate(heads) if head > len(heads)]
    if beyond or trees == "none":
        return beyond[0] if beyond else None
    if -1 in heads:
        return heads.index(-1)
    roots = [i for i, head in enumerate(heads) if head == 0]
    if trees == "tree" and len(roots) > 1:
        return roots[1]
    # Of several cycles, the first one reached is named, by its first word.
    for start in range(len(heads)):
        if cycle := cycle_above(heads, start):
            return min(cycle)
    return None


def cycle_above(heads: list[int], start: int) -> list[int]:
    """Return the cycle in which the path up from a word ends; empty if the path leads to a root."""
    path = [start]
    while heads[path[-1]] != 0:
        head = heads[path[-1]] - 1
        if head in path:
            return path[path.index(head) :]
        path.append(head)
    return []
