"""All kinds of compression, detected by the first bytes, and damaged files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from unkernel.data import read_svmlight
from unkernel.data.files import read_blocks
from unkernel.errors import FormatError

ROWS = b"".join(b"%d %d:%d.5\n" % (i % 3, 1 + i % 50, i) for i in range(5000))
COMPRESS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
kinds = pytest.mark.parametrize("kind", COMPRESS)


def read_labels(data: bytes):
    return read_svmlight(io.BytesIO(data)).y


@pytest.mark.parametrize("suffix", [".svm", ".xz", ".gz", ""])
@kinds
def test_compression_is_detected_by_content(kind, suffix, tmp_path):
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(COMPRESS[kind](ROWS))
    result = read_svmlight(path)
    np.testing.assert_array_equal(result.y, np.arange(5000) % 3)
    np.testing.assert_array_equal(result.X.data, np.arange(5000) + 0.5)


def test_plain_text_under_the_name_of_a_compressed_file(tmp_path):
    path = tmp_path / "rows.xz"
    path.write_bytes(b"1 1:1\n")
    assert read_svmlight(str(path)).y.tolist() == [1]


@kinds
def test_concatenated_compressed_streams_are_read(kind):
    compress = COMPRESS[kind]
    assert len(read_labels(compress(ROWS) + compress(b"7 1:1\n") + compress(b"8"))) == 5002


@kinds
def test_truncation_is_noticed_at_every_length(kind):
    data = COMPRESS[kind](ROWS[:2000])
    for size in sorted({6, 7, 10, 20, len(data) // 2, len(data) - 5, len(data) - 1}):
        with pytest.raises(FormatError, match="ends early") as caught:
            read_labels(data[:size])
        assert caught.value.file == "<stream>"


@kinds
def test_damage_is_named(kind, tmp_path):
    data = bytearray(COMPRESS[kind](ROWS))
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(255 - byte for byte in data[middle : middle + 40])
    path = tmp_path / "rows"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_svmlight(path)
    assert caught.value.file == str(path)


@kinds
def test_highly_compressed_files_are_read_in_bounded_blocks(kind):
    total, bound = (150_000_000, 2**27) if kind == "zst" else (20_000_000, 2**21)
    data = COMPRESS[kind](b"\n" * total)
    sizes = [len(block) for block in read_blocks(io.BytesIO(data), 1 << 20)]
    assert sum(sizes) == total
    assert max(sizes) <= bound


def test_text_files_and_short_reads():
    assert read_svmlight(io.StringIO("1 1:1 # é\n2 2:1")).y.tolist() == [1, 2]

    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 3) if size > 0 else size)

    assert read_svmlight(Slow(b"1 1:1\n2 2:1\n")).y.tolist() == [1, 2]
    assert read_svmlight(Slow(lzma.compress(b"1 1:1\n2 2:1\n"))).y.tolist() == [1, 2]


def test_open_files_are_not_closed_and_are_named_in_errors(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"skipped\n1 1:1\n1 x\n")
    with path.open("rb") as file:
        file.readline()
        with pytest.raises(FormatError) as caught:
            read_svmlight(file)
        assert not file.closed
    assert caught.value.file == str(path)
    assert caught.value.line == 2


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), min_size=1), st.booleans())
def test_each_read_of_a_pipe_is_passed_on_at_once(data, lengths, compressed):
    """Each read of a pipe gives one block; the blocks together equal the file."""
    stored = gzip.compress(data) if compressed else b"x" * 6 + data

    class Pipe:
        position = reads = 0

        def read(self, size: int) -> bytes:
            raise AssertionError("it must not wait for more than there is")

        def read1(self, size: int) -> bytes:
            length = min(size, lengths[self.reads % len(lengths)])
            block = stored[self.position : self.position + length]
            self.position += len(block)
            self.reads += 1
            return block

    blocks = list(read_blocks(Pipe(), 100, wait=False))
    assert b"".join(blocks) == (data if compressed else stored)
    assert all(0 < len(block) <= 100 for block in blocks)


def test_a_block_is_returned_before_the_next_read():
    class Pipe:
        parts = iter([b"first line", b"second"])

        def read1(self, size: int) -> bytes:
            return next(self.parts)  # a third read would fail

        read = read1

    blocks = read_blocks(Pipe(), wait=False)
    assert [next(blocks), next(blocks)] == [b"first line", b"second"]
