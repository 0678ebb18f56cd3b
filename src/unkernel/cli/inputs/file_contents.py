"""Detect the content of a file from its first bytes, for messages about mixed-up files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from unkernel.data.files import read_blocks
from unkernel.errors import FormatError
from unkernel.models.container import begins_as_model
from unkernel.records.files import format_of

_SNIFFED_BYTES = 1 << 16
_TREE = re.compile(rb"\|B[TVS](:[^|\s]*)?\|")  # the marker before a tree, a vector or a string
_BARE_TREE = re.compile(rb"([^\s(|]+)\s+(\([^\s()]*\s.*\))\s*")  # a label and a tree without markers
_MAX_TREE_CHARACTERS = 60  # longest tree in a message
_NUMBER = rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_ROW = re.compile(_NUMBER + rb"(\s+qid:\d+)?(\s+\d+:\S+)*\s*(#.*)?")
_MAX_EXAMINED_LINES = 5
_BUNSETSU = re.compile(rb"\* \d+ -?\d+[A-Z]")  # the line before a bunsetsu: its number, head and relation
_WORD = re.compile(rb"\d+([-.]\d+)?\t")  # the beginning of a word in CoNLL-U: its number
_TAG = re.compile(rb"O|[BIES](-.*)?")  # the tag of a word in or outside a chunk
_CONLLU_COLUMNS = 10
# The first bytes of models of other programs.
_OTHER_MODELS = (b"svm_type ", b"kernel_type ", b"solver_type ", b"SVM-light ", b"TinySVM Version", b"opal #")

# Commands that read a model, and their arguments.
_MODEL_FIRST = {
    "predict": "unkernel predict MODEL DATA",
    "evaluate": "unkernel evaluate MODEL FILE",
    "explain": "unkernel explain MODEL DATA",
    "report": "unkernel report MODEL --test FILE",
    "bench": "unkernel bench MODEL DATA",
    "parse": "unkernel parse MODEL [FILE]...",
}
# The kind of model that ``unkernel train`` learns from each kind of content.
_TRAINED_BY = {
    "rows": "poly",
    "records": "poly",
    "trees": "tree",
    "dependency trees": "parser",
    "bunsetsu": "bunsetsu",
    "chunks": "chunker",
}


def read_beginning(file: str | Path | IO[bytes]) -> bytes:
    """Return the first bytes of a file, decompressed; b"" for pipes and unreadable files."""
    if isinstance(file, str | Path) and not Path(file).is_file():
        return b""
    try:
        with contextlib.closing(read_blocks(file, _SNIFFED_BYTES)) as blocks:  # type: ignore[type-var]
            beginning: bytes = next(blocks, b"")
    except (OSError, FormatError):
        return b""
    return beginning


# --- Models where data should be ----------------------------------------------------------------------


def check_no_model(file: str, expected: str) -> None:
    """Raise ``ValueError`` if a file is a model instead of data."""
    beginning = read_beginning(file)
    if begins_as_model(beginning):
        program = "unkernel"
    elif beginning.startswith(_OTHER_MODELS):
        program = "another program"
    else:
        return
    raise ValueError(f"{file} is a model of {program}, not {expected}; name the file with the {expected}")


def check_no_bare_trees(file: str) -> None:
    """Raise ``ValueError`` for trees without |BT| and |ET|, because they look like records."""
    lines = [line for line in split_lines(read_beginning(file))[:-1] if line.strip()][:_MAX_EXAMINED_LINES]
    first = _BARE_TREE.fullmatch(lines[0]) if lines else None
    if first is None or not all(map(_BARE_TREE.fullmatch, lines)):
        return
    label, tree = (part.decode(errors="replace") for part in first.groups())
    raise ValueError(
        f"{file}: has a label and a tree on each line; put the trees between |BT| and |ET|, as in: "
        f"{label} |BT| {tree if len(tree) <= _MAX_TREE_CHARACTERS else '(S (NP dogs) (VP bark))'} |ET|"
    )


def check_holds_sentences(file: str) -> None:
    """Raise ``ValueError`` if a file begins with a model or rows instead of sentences."""
    check_no_model(file, "sentences")
    if has_rows(read_beginning(file)):
        raise ValueError(f"{file} holds rows, not sentences; name the file with the sentences")


# --- Data where a model should be ---------------------------------------------------------------------


@contextlib.contextmanager
def explain_wrong_file(path: Path, command: str) -> Iterator[None]:
    """If the model file contains data instead, raise an error that shows the arguments of `command`."""
    try:
        yield
    except FormatError as error:
        content = "records" if format_of(str(path)) else detect_content(read_beginning(path))
        if content is None:
            raise
        description = content if content in ("rows", "records", "trees") else f"sentences with {content}"
        raise ValueError(
            f"{path} holds {description}, not a model: {_describe_remedy(path, command, content)}"
        ) from error


def _describe_remedy(path: Path, command: str, content: str) -> str:
    if command in _MODEL_FIRST:
        return f"the MODEL comes first: {_MODEL_FIRST[command]}"
    target = " --target COLUMN" if content == "records" else ""
    return f"train one first: unkernel train {_TRAINED_BY[content]} {path}{target} -o model.uk"


def detect_content(beginning: bytes) -> str | None:
    """Return the likely content of a file: "rows", "trees", a kind of sentences, or None if unknown."""
    if has_trees(beginning):
        return "trees"
    return "rows" if has_rows(beginning) else detect_sentences(beginning)


def has_rows(beginning: bytes) -> bool:
    """Return whether the first lines consist of labels with features."""
    lines = [line.strip() for line in split_lines(beginning)[:-1]]  # the last line may be incomplete
    rows = [line for line in lines if line and not line.startswith(b"#")][:_MAX_EXAMINED_LINES]
    return any(b":" in line for line in rows) and all(map(_ROW.fullmatch, rows))


def has_trees(beginning: bytes) -> bool:
    """Return whether the first line, not counting comments, has a tree."""
    lines = (line.strip() for line in split_lines(beginning))
    first = next((line for line in lines if line and not line.startswith(b"#")), b"")
    return first.startswith(b"(") or _TREE.search(first.partition(b"#")[0]) is not None


def detect_sentences(beginning: bytes) -> str | None:
    """Return the kind of sentences: ``"dependency trees"``, ``"bunsetsu"``, ``"chunks"`` or None."""
    lines = split_lines(beginning)
    if any(line == b"EOS" or _BUNSETSU.match(line) for line in lines):
        return "bunsetsu"
    first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    if _WORD.match(first) and first.count(b"\t") == _CONLLU_COLUMNS - 1:
        return "dependency trees"
    # Files of chunks: all lines have the same number of fields, and most of them end with a tag.
    lines_of_fields = [line.split() for line in lines[:-1] if line.strip()]  # the last line may be incomplete
    n_tags = sum(_TAG.fullmatch(fields[-1]) is not None for fields in lines_of_fields)
    widths = {len(fields) for fields in lines_of_fields}
    is_chunks = len(widths) == 1 and widths.pop() > 1 and 2 * n_tags > len(lines_of_fields)
    return "chunks" if is_chunks else None


def has_no_columns(beginning: bytes) -> bool:
    """Return whether there is text, but no tab."""
    return b"\t" not in beginning and any(
        line.strip() and not line.startswith(b"#") for line in split_lines(beginning)
    )


def split_lines(beginning: bytes) -> list[bytes]:
    """Return the lines of some bytes, without line ends."""
    return [line.rstrip(b"\r") for line in beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
