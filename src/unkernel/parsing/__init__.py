"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing._base import Step
from unkernel.parsing.arc_eager.estimator import ArcEagerParser
from unkernel.parsing.arc_eager.result import LabelResult, TreeResult
from unkernel.parsing.bunsetsu.estimator import BunsetsuParser, BunsetsuResult
from unkernel.parsing.chunks.estimator import Chunker
from unkernel.parsing.chunks.result import ChunkCounts, ChunkResult, compare_chunks
from unkernel.parsing.explaining import Evidence, ExplainedDecision
from unkernel.parsing.loading import load
from unkernel.parsing.streams import Parsed, parse_stream

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
