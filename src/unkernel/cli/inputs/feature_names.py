"""Read names of features from a text file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from unkernel.cli.inputs.file_contents import check_no_model
from unkernel.data.files import read_blocks
from unkernel.errors import FormatError


def read_names(path: str | None, first_index: int) -> dict[int, str]:
    """Return names by column, from lines ``name`` or ``number<TAB>name``; numbers are as in data files."""
    if path is None:
        return {}
    check_no_model(path, "names of features")
    lines = _read_lines(path)
    if lines and _is_number(lines[0].partition("\t")[0]) and "\t" in lines[0]:
        return _parse_numbered(path, lines, first_index)
    return {column: line.strip() for column, line in enumerate(lines) if line.strip()}


def _read_lines(path: str) -> list[str]:
    content = b"".join(read_blocks(path)).removeprefix(b"\xef\xbb\xbf")
    lines = content.split(b"\n")
    texts = []
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        try:
            texts.append(line.decode().removesuffix("\r"))
        except UnicodeDecodeError:
            raise FormatError(path, number, 0, "the name of a feature is not UTF-8 text") from None
    return texts


def _parse_numbered(path: str, lines: list[str], first_index: int) -> dict[int, str]:
    names: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        feature, tab, name = line.partition("\t")
        if not tab or not _is_number(feature) or not name.strip():
            raise FormatError(path, number, 0, "expected a feature's number, a tab and its name")
        column = int(feature) - first_index
        if column < 0:
            raise FormatError(path, number, 0, "there is no feature 0: the model counts features from 1")
        if column in names:
            raise FormatError(path, number, 0, f"feature {feature} has a name already")
        names[column] = name.strip()
    return names


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def name_columns(columns: Iterable[int], names: Mapping[int, str], first_index: int) -> list[str]:
    """Return the name of each column, or its number in data files."""
    return [names.get(column, str(column + first_index)) for column in columns]
