"""Parsers and chunkers that decide with compiled models."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.parsing._base import Step
    from unkernel.parsing.arc_eager.estimator import ArcEagerParser
    from unkernel.parsing.arc_eager.result import LabelResult, TreeResult
    from unkernel.parsing.bunsetsu.estimator import BunsetsuParser, BunsetsuResult
    from unkernel.parsing.chunks.estimator import Chunker
    from unkernel.parsing.chunks.result import ChunkCounts, ChunkResult, compare_chunks
    from unkernel.parsing.explaining import Evidence, ExplainedDecision
    from unkernel.parsing.streams import Parsed, parse_stream
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ArcEagerParser": "unkernel.parsing.arc_eager.estimator",
            "BunsetsuParser": "unkernel.parsing.bunsetsu.estimator",
            "BunsetsuResult": "unkernel.parsing.bunsetsu.estimator",
            "ChunkCounts": "unkernel.parsing.chunks.result",
            "ChunkResult": "unkernel.parsing.chunks.result",
            "Chunker": "unkernel.parsing.chunks.estimator",
            "Evidence": "unkernel.parsing.explaining",
            "ExplainedDecision": "unkernel.parsing.explaining",
            "LabelResult": "unkernel.parsing.arc_eager.result",
            "Parsed": "unkernel.parsing.streams",
            "Step": "unkernel.parsing._base",
            "TreeResult": "unkernel.parsing.arc_eager.result",
            "compare_chunks": "unkernel.parsing.chunks.result",
            "parse_stream": "unkernel.parsing.streams",
        },
    )

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
    "parse_stream",
]
