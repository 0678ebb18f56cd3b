"""Read small files of trees, and check the errors of invalid files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import pytest
import zstandard

from unkernel import FormatError, read_trees

SMALL = ["(S (NP dogs) (VP bark))", "(S (NP cats) (VP bark))", "(NP dogs)"]
COMPRESS = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def read(content, **options):
    """Return the result of reading a file named trees.dat with this content."""
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    stream.name = "trees.dat"
    return read_trees(stream, **options)


def refuse(content, line, column, reason, **options):
    """Check that the file is refused at this line and column, for this reason."""
    with pytest.raises(FormatError) as caught:
        read(content, **options)
    error = caught.value
    assert (error.file, error.line, error.column) == ("trees.dat", line, column)
    assert reason in error.reason
