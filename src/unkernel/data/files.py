"""Read and write files, plain or compressed. Readers detect the compression from the first bytes."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Protocol, cast

from unkernel.data.atomic_write import replace_file
from unkernel.errors import FormatError, describe_bad_byte

Source = str | os.PathLike[str] | IO[bytes] | IO[str]

BLOCK_BYTES = 1 << 22

# Number of compressed bytes per call of Zstandard, which does not limit its output. Four bytes expand to at
# most 128 KB, so 2 KB expand to at most 64 MB.
_ZSTD_INPUT_BYTES = 1 << 11

_SUFFIX_OF_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def name_of(source: Source) -> str:
    """Return the name of a file for error messages, with question marks for bytes that are not UTF-8."""
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    if not isinstance(name, str):
        return "<stream>"
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_blocks(source: Source, size: int = BLOCK_BYTES, *, wait: bool = True) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in blocks of about `size` bytes; only the last may be shorter.

    With ``wait=False``, each block contains the bytes that a pipe has delivered so far, and may be shorter. A
    compressed file that is damaged or truncated raises a :class:`~unkernel.errors.FormatError`.
    """
    with _open_stream(source, wait) as stream:
        blocks = _decompress(stream, stream.detect_compression(), size)
        yield from _join_blocks(_report_damage(blocks, name_of(source)), size if wait else 1)


def read_text(source: Source) -> str:
    """Return the text of a file; raise a ``FormatError`` that names the line if it is not UTF-8."""
    try:
        return b"".join(read_blocks(source)).decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FormatError(name_of(source), line, 0, describe_bad_byte(error.object[error.start])) from None


class _Stream:
    """Reads bytes from any file object, and detects its compression."""

    def __init__(self, file: Any, wait: bool) -> None:
        self._file = file
        self._read_some = file.read if wait else getattr(file, "read1", file.read)
        self._ahead = io.BytesIO()  # bytes that detect_compression read and read has not yet returned

    def read(self, size: int = -1) -> bytes:
        return self._ahead.read(size) or self._read_file(size)

    def detect_compression(self) -> str:
        """Return the suffix of the file's compression; ``""`` if it is not compressed."""
        begin = b""
        while len(begin) < max(map(len, _SUFFIX_OF_MAGIC)):
            block = self._read_file(BLOCK_BYTES)
            if not block:
                break
            begin += block
        self._ahead = io.BytesIO(begin)
        return next((suffix for magic, suffix in _SUFFIX_OF_MAGIC.items() if begin.startswith(magic)), "")

    def _read_file(self, size: int) -> bytes:
        block = self._read_some(size)
        if block is None:
            raise BlockingIOError(f"{name_of(self._file)} has nothing to read yet; open it in blocking mode")
        return block.encode(errors="surrogateescape") if isinstance(block, str) else bytes(block)


@contextlib.contextmanager
def _open_stream(source: Source, wait: bool) -> Iterator[_Stream]:
    if isinstance(source, str | os.PathLike):
        with open(source, "rb", buffering=0) as file:  # noqa: PTH123 (any PathLike, not only Path)
            yield _Stream(file, wait)
    elif hasattr(source, "read"):
        yield _Stream(source, wait)
    else:
        raise TypeError(
            f"expected a path or an open file, got {type(source).__name__}; wrap bytes in io.BytesIO"
        )


def _decompress(stream: _Stream, compression: str, size: int) -> Iterator[bytes]:
    """Yield the decompressed bytes in blocks of at most `size` bytes; blocks of Zstandard may be larger."""
    if compression == ".zst":
        return _read_zstd(stream)
    if not compression:
        return _read_plain(stream, size)
    decompress = _find_decompressor(compression)
    return _read_plain(decompress(stream), size)


def _find_decompressor(compression: str) -> Callable[[Any], Any]:
    """Import a decompressor; return a function that opens a compressed file for reading."""
    if compression == ".gz":
        import gzip

        return lambda file: gzip.GzipFile(fileobj=file, mode="rb")
    if compression == ".xz":
        import lzma

        return lzma.LZMAFile
    import bz2

    return bz2.BZ2File


def _read_plain(stream: _Readable, size: int) -> Iterator[bytes]:
    while block := stream.read(size):
        yield block


def _read_zstd(stream: _Readable) -> Iterator[bytes]:
    """Yield decompressed blocks. Unlike zstandard's own reader, this function detects truncated files."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    for block in _read_plain(stream, BLOCK_BYTES):
        for begin in range(0, len(block), _ZSTD_INPUT_BYTES):
            compressed = block[begin : begin + _ZSTD_INPUT_BYTES]
            while compressed:
                if frame.eof:
                    frame = decompressor.decompressobj()
                try:
                    text = frame.decompress(compressed)
                except zstandard.ZstdError as error:
                    raise OSError(str(error)) from error
                yield text
                compressed = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise EOFError


def _report_damage(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the blocks; raise a ``FormatError`` if the compressed file is damaged or truncated."""
    try:
        yield from blocks
    except EOFError:
        raise FormatError(name, 0, 0, "the compressed file ends early; get or write it again") from None
    except _list_damage_errors() as error:
        # bz2 and gzip report damage as an OSError without an error number; errors of the system have one.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(
            name, 0, 0, f"the compressed file is damaged ({error}); get or write it again"
        ) from error


def _list_damage_errors() -> tuple[type[Exception], ...]:
    """Return the errors that decompressors raise; called only in an error handler, to avoid imports."""
    import lzma
    import zlib

    return (lzma.LZMAError, zlib.error, OSError)


def _join_blocks(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join blocks until each, except the last, has at least `size` bytes."""
    collected: list[bytes] = []
    n_bytes = 0
    for block in blocks:
        collected.append(block)
        n_bytes += len(block)
        if n_bytes >= size:
            yield b"".join(collected)
            collected, n_bytes = [], 0
    if n_bytes:
        yield b"".join(collected)


@contextlib.contextmanager
def open_writer(target: Source) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes bytes to `target`.

    The suffix of a path selects the compression (.gz, .xz, .bz2, .zst). The file is replaced in one step when
    the ``with`` block ends without an error. If `target` is an open file, bytes (or text) are written to it
    immediately.
    """
    if isinstance(target, str | os.PathLike):
        suffix = os.path.splitext(target)[1]  # noqa: PTH122 (pathlib is slow to import)
        with replace_file(target) as file, _open_compressor(file, suffix) as compressed:
            yield compressed.write
    elif not hasattr(target, "write"):
        raise TypeError(f"expected a path or an open file, got {type(target).__name__}")
    elif isinstance(target, io.TextIOBase):
        yield lambda block: target.write(block.decode())
    else:
        yield cast(IO[bytes], target).write


def _open_compressor(file: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[Any]:
    if suffix == ".gz":
        import gzip

        # Without a name and a time, the same content gives the same bytes.
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
    if suffix == ".xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    if suffix == ".bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return contextlib.nullcontext(file)
