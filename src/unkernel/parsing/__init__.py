"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing.chunk_result import ChunkCounts, ChunkResult, compare_chunks
from unkernel.parsing.chunker import Chunker

__all__ = ["ChunkCounts", "ChunkResult", "Chunker", "compare_chunks"]
