"""Trees as texts and files of trees: what is read of them, or where they are refused."""

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
    """What is in a file with that content, which is called trees.dat."""
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    stream.name = "trees.dat"
    return read_trees(stream, **options)


def refuse(content, line, column, reason, **options):
    """The file is refused there, for that reason."""
    with pytest.raises(FormatError) as caught:
        read(content, **options)
    error = caught.value
    assert (error.file, error.line, error.column) == ("trees.dat", line, column)
    assert reason in error.reason
