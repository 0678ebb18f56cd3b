"""Empty files, and models that end after one of their first lines, are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from unkernel import compile, load, read_model, read_svmlight, read_trees
from unkernel.errors import FormatError

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
NOTHING = {"empty": b"", "a newline": b"\n", "blanks": b"  \n \t\n", "NULs": bytes(100), "0xff": b"\xff" * 50}


@pytest.mark.parametrize("read", [read_model, read_svmlight, read_trees, load])
@pytest.mark.parametrize("content", NOTHING.values(), ids=NOTHING)
def test_empty_files_of_every_format_are_refused(tmp_path, read, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FormatError):
        read(tmp_path / "file")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.model")), ids=lambda path: path.stem)
def test_models_without_their_last_lines_are_refused_or_compile(tmp_path, path):
    """A header without vectors may be a model that compiles; anything else is a FormatError."""
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(min(len(lines), 25)):
        (tmp_path / "cut").write_bytes(b"".join(lines[:count]))
        try:
            model = read_model(tmp_path / "cut")
        except FormatError:
            continue
        compile(model, measure=False)
