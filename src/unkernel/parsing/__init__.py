"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing.arc_eager import ArcEagerParser
from unkernel.parsing.bunsetsu import BunsetsuParser, BunsetsuResult
from unkernel.parsing.chunk_result import ChunkCounts, ChunkResult, compare_chunks
from unkernel.parsing.chunker import Chunker
from unkernel.parsing.loading import load
from unkernel.parsing.tree_result import LabelResult, TreeResult

__all__ = [
    "ArcEagerParser",
    "BunsetsuParser",
    "BunsetsuResult",
    "ChunkCounts",
    "ChunkResult",
    "Chunker",
    "LabelResult",
    "TreeResult",
    "compare_chunks",
    "load",
]
