"""Parse streams of any length, sentence by sentence, in bounded memory.

A thread reads ahead. The available input, up to a limit, is cut after its last whole sentence and parsed by
the requested number of threads. Blocks are therefore large if input arrives fast, and a sentence typed by a
user is parsed without waiting for the next one. The results do not depend on the sizes of blocks.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from unkernel._core import ColumnText, whole_bunsetsu_sentences, whole_sentences
from unkernel.data.files import Source, name_of, read_blocks
from unkernel.data.text.bunsetsu import BunsetsuCorpus, parse_corpus, split_parts
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.data.text.columns import OnError, check_on_error, split_blocks
from unkernel.data.text.conll import Treebank, TreebankFormat
from unkernel.data.threads import thread_count
from unkernel.errors import FormatError
from unkernel.parsing.arc_eager.model import ArcEagerModel
from unkernel.parsing.bunsetsu.model import BunsetsuModel
from unkernel.parsing.chunks.model import ChunkModel, mark_tag_column
from unkernel.parsing.parsed_blocks import Corpus, Parsed, count_words
from unkernel.parsing.parser_model import ParserModel, SavedModel
from unkernel.parsing.tag_check import StreamCheck
from unkernel.parsing.text.tagger_model import TaggerModel
from unkernel.parsing.text.text_parser_model import Given, TextParserModel, check_given
from unkernel.parsing.text.text_stream import parse_text_stream
from unkernel.parsing.text.tokenizer_model import TokenizerModel

if TYPE_CHECKING:
    from unkernel.parsing.model_estimator import BaseParser
    from unkernel.parsing.text.text_parser import TextParser
    from unkernel.parsing.text.tokenizer import Tokenizer

SentenceModel = ParserModel | TextParserModel

BLOCK_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18  # bytes read at a time
_PIECES_AHEAD = 8  # largest number of pieces that are read before they are needed


def parse_stream(
    parser: SavedModel | BaseParser[Any, Any] | TextParser | Tokenizer,
    source: Source,
    *,
    format: TreebankFormat = "conllu",
    on_error: OnError = "raise",
    given: Given = "text",
    n_jobs: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Parsed]:
    r"""Parse the sentences of a file of any length, or of a pipe, as they arrive.

    Parameters
    ----------
    parser : fitted parser, tagger or chunker, or a model that ``unkernel.load`` returned
        The parser. A :class:`TextParser` and a :class:`Tokenizer` read raw text paragraph by paragraph.
        Paragraphs end at blank lines, or after a megabyte without a blank line.
    source : path or open file
        Plain or compressed. For a pipe, pass an unbuffered binary file, which returns available
        bytes without waiting for more.
    format : {"conllu", "conllx"}, default="conllu"
        Format of treebanks.
    on_error : {"raise", "skip"}, default="raise"
        How malformed sentences are handled. "raise" yields the sentences before the first malformed one and
        then raises a FormatError. "skip" passes malformed sentences through and lists them; paragraphs of raw
        text that are not UTF-8 are left out.
    given : {"text", "tokens", "tags"}, default="text"
        Input of a :class:`TextParser`: raw text, a treebank with words, or a treebank with words and tags.
    n_jobs : int, default=None
        Number of threads; None means ``n_jobs`` of the parser. The result does not depend on it.
    block_bytes : int, default=1048576
        Approximate number of bytes per block.

    Returns
    -------
    iterator of Parsed
        The analysed sentences, block by block.

    Raises
    ------
    FormatError
        If a sentence is malformed, with ``on_error="raise"``.
    ValueError
        If the text lacks tags that the parser needs. Many unknown tags cause one ``UserWarning``.

    See Also
    --------
    Parsed : The blocks that the iterator yields.

    Examples
    --------
    >>> import io
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import Chunker, parse_stream
    >>> text = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    >>> stream = io.BytesIO(b"She PRP\nsaw VBD\n\n")
    >>> [part.data for part in parse_stream(Chunker().fit(text), stream)]
    [b'She PRP B-NP\nsaw VBD B-VP\n\n']
    """
    skip = check_on_error(on_error)
    model = _get_model(parser)
    jobs = getattr(parser, "n_jobs", None) if n_jobs is None else n_jobs
    if block_bytes < 1:
        raise ValueError(f"block_bytes must be at least 1, got {block_bytes}")
    if isinstance(model, TextParserModel) and check_given(given) == "tags":
        model = model.parser
    if isinstance(model, TokenizerModel) or (isinstance(model, TextParserModel) and given == "text"):
        size = min(block_bytes, _PIECE_BYTES)  # blocks are parsed in parallel, each by one thread
        pieces = _read_pieces(source, size, pauses=True)
        return parse_text_stream(model, pieces, name_of(source), skip=skip, threads=thread_count(jobs))
    assert isinstance(model, ParserModel | TextParserModel)
    sentence_format = _choose_sentence_format(model, format)
    return _parse_blocks(model, source, sentence_format, skip=skip, n_jobs=jobs, block_bytes=block_bytes)


def _parse_blocks(
    model: SentenceModel,
    source: Source,
    sentence_format: _SentenceFormat,
    *,
    skip: bool,
    n_jobs: int | None,
    block_bytes: int,
) -> Iterator[Parsed]:
    name, line = name_of(source), 1
    check = StreamCheck(name)
    with contextlib.closing(_read_pieces(source, block_bytes)) as pieces:
        for corpus in sentence_format.read_corpora(pieces, name):
            check(model.tag_faults(corpus), line, count_words(corpus))
            skipped = sentence_format.list_skipped(corpus, _Position(name, line))
            parsed = Parsed(model._annotate(corpus, n_jobs), skipped)
            if parsed.skipped and not skip:
                yield _keep_before_error(parsed, _Position(name, line), sentence_format)
                raise parsed.skipped[0]
            yield parsed
            line += parsed.data.count(b"\n")


def _keep_before_error(parsed: Parsed, position: _Position, sentence_format: _SentenceFormat) -> Parsed:
    """Return the sentences before the first malformed one; its line number is the same after annotation."""
    end = 0
    for _ in range(parsed.skipped[0].line - position.line):
        end = parsed.data.index(b"\n", end) + 1
    data = parsed.data[: sentence_format.find_end(parsed.data[:end])]
    return Parsed(sentence_format.read(data, position), [])


# --- Differences between the parsers -----------------------------------------------------------------


class _Position(NamedTuple):
    """The position of a block: its file, and its first line in the file."""

    file: str
    line: int


class _SentenceFormat:
    """Cuts, reads and writes the sentences of one kind of parser."""

    def read_corpora(self, pieces: Iterator[bytes], name: str) -> Iterator[Any]:
        raise NotImplementedError

    def find_end(self, data: bytes) -> int:
        """Return the byte offset after the last whole sentence of `data`."""
        raise NotImplementedError

    def list_skipped(self, corpus: Any, position: _Position) -> list[FormatError]:
        return list(corpus.skipped)

    def read(self, data: bytes, position: _Position) -> Corpus:
        raise NotImplementedError


class _TreebankFormat(_SentenceFormat):
    def __init__(self, format: TreebankFormat) -> None:
        self._format = format

    def read_corpora(self, pieces: Iterator[bytes], name: str) -> Iterator[Treebank]:
        return map(Treebank._from_text, split_blocks(pieces, name, self._format, skip=True))

    def find_end(self, data: bytes) -> int:
        return int(whole_sentences(data, self._format))

    def read(self, data: bytes, position: _Position) -> Treebank:
        return Treebank._from_text(
            ColumnText(data, position.file, self._format, 0, "none", True, position.line)
        )


class _ChunkFormat(_SentenceFormat):
    def __init__(self, columns: int) -> None:
        self._columns = columns  # number of columns in the training text

    def read_corpora(self, pieces: Iterator[bytes], name: str) -> Iterator[ChunkCorpus]:
        return (
            mark_tag_column(text, self._columns) for text in split_blocks(pieces, name, "chunks", skip=True)
        )

    def find_end(self, data: bytes) -> int:
        return int(whole_sentences(data, "chunks"))

    def read(self, data: bytes, position: _Position) -> ChunkCorpus:
        return ChunkCorpus._from_text(
            ColumnText(data, position.file, "chunks", 0, "none", True, position.line), True
        )


class _BunsetsuFormat(_SentenceFormat):
    def read_corpora(self, pieces: Iterator[bytes], name: str) -> Iterator[BunsetsuCorpus]:
        return split_parts(pieces, name, skip=True)

    def find_end(self, data: bytes) -> int:
        return int(whole_bunsetsu_sentences(data, 0))

    def list_skipped(self, corpus: BunsetsuCorpus, position: _Position) -> list[FormatError]:
        return [FormatError(position.file, *fault) for fault in corpus.skipped]

    def read(self, data: bytes, position: _Position) -> BunsetsuCorpus:
        return parse_corpus(data, position.file, line=position.line, skip=True)


def _get_model(parser: Any) -> SavedModel:
    if isinstance(parser, SavedModel):
        return parser
    model = parser.to_model() if hasattr(parser, "to_model") else None
    if isinstance(model, SavedModel):
        return model
    raise TypeError(f"expected a parser of unkernel.parsing, got {type(parser).__name__}")


def _choose_sentence_format(model: SentenceModel, format: TreebankFormat) -> _SentenceFormat:
    if isinstance(model, ArcEagerModel | TaggerModel | TextParserModel):
        if format not in ("conllu", "conllx"):
            raise ValueError(f"format must be 'conllu' or 'conllx', got {format!r}")
        return _TreebankFormat(format)
    if isinstance(model, ChunkModel):
        return _ChunkFormat(model.columns)
    assert isinstance(model, BunsetsuModel)
    return _BunsetsuFormat()


# --- Reading ahead ------------------------------------------------------------------------------------


class _ReadAhead:
    """Reads pieces of a file ahead in a thread, until the file ends or ``stopped`` is set."""

    def __init__(self, source: Source) -> None:
        self.pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(_PIECES_AHEAD)
        self.stopped = threading.Event()
        # A thread that waits for input cannot be stopped. A daemon thread does not keep the process alive.
        threading.Thread(target=self._read, args=(source,), name="unkernel-reader", daemon=True).start()

    def _read(self, source: Source) -> None:
        try:
            for piece in read_blocks(source, _PIECE_BYTES, wait=False):
                if not self._put(piece):
                    return
            self._put(None)
        except BaseException as error:  # raised again in the thread that takes the pieces
            self._put(error)

    def _put(self, piece: bytes | BaseException | None) -> bool:
        while not self.stopped.is_set():
            with contextlib.suppress(queue.Full):
                self.pieces.put(piece, timeout=0.1)
                return True
        return False

    def take(self, size: int) -> tuple[bytes, bytes | BaseException | None]:
        """Wait for input; return about `size` bytes or fewer, and the item that was read last.

        The last item is a piece of bytes, None at the end of the file, or an exception from reading the file.
        """
        taken: list[bytes] = []
        item = self.pieces.get()
        while isinstance(item, bytes):
            taken.append(item)
            size -= len(item)
            if size <= 0 or self.pieces.empty():
                break
            item = self.pieces.get()
        return b"".join(taken), item


def _read_pieces(source: Source, size: int, *, pauses: bool = False) -> Generator[bytes]:
    """Yield the bytes of a file as they arrive; with `pauses`, yield ``b""`` before waiting for input."""
    ahead = _ReadAhead(source)
    try:
        item: bytes | BaseException | None = b""
        while isinstance(item, bytes):
            if pauses and ahead.pieces.empty():
                yield b""
            data, item = ahead.take(size)
            if data:
                yield data
        if item is not None:
            raise item
    finally:
        ahead.stopped.set()
