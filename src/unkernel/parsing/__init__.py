"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing._base import Step
from unkernel.parsing.arc_eager import ArcEagerParser
from unkernel.parsing.bunsetsu import BunsetsuParser, BunsetsuResult
from unkernel.parsing.chunk_result import ChunkCounts, ChunkResult, compare_chunks
from unkernel.parsing.chunker import Chunker
from unkernel.parsing.explaining import Evidence, ExplainedDecision
from unkernel.parsing.loading import load
from unkernel.parsing.streams import Parsed, parse_stream
from unkernel.parsing.tree_result import LabelResult, TreeResult

__all__ = [
    "ArcEagerParser",
    "BunsetsuParser",
    "BunsetsuResult",
    "ChunkCounts",
    "ChunkResult",
    "Chunker",
    "Evidence",
    "ExplainedDecision",
    "LabelResult",
    "Parsed",
    "Step",
    "TreeResult",
    "compare_chunks",
    "load",
    "parse_stream",
]
