"""Parse text: tokenizers, taggers, dependency parsers and chunkers.

The trained models need only NumPy; the estimators, which train them, also need scikit-learn.
"""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.parsing.arc_eager.estimator import ArcEagerParser
    from unkernel.parsing.arc_eager.model import ArcEagerModel
    from unkernel.parsing.arc_eager.result import LabelResult, TreeResult
    from unkernel.parsing.bunsetsu.estimator import BunsetsuParser
    from unkernel.parsing.bunsetsu.model import BunsetsuModel
    from unkernel.parsing.bunsetsu.result import BunsetsuResult
    from unkernel.parsing.chunks.estimator import Chunker
    from unkernel.parsing.chunks.model import ChunkModel
    from unkernel.parsing.chunks.result import ChunkCounts, ChunkResult, compare_chunks
    from unkernel.parsing.explanation import Evidence, ExplainedDecision, HeavyConjunction
    from unkernel.parsing.parsed_blocks import Parsed
    from unkernel.parsing.parser_model import ParserModel
    from unkernel.parsing.streams import parse_stream
    from unkernel.parsing.text.clusters import WordClusters
    from unkernel.parsing.text.document import Document
    from unkernel.parsing.text.gold_text import original_text
    from unkernel.parsing.text.result import Score, TextResult, compare_text
    from unkernel.parsing.text.tag_result import TagResult
    from unkernel.parsing.text.tagger import Tagger
    from unkernel.parsing.text.tagger_model import TaggerModel
    from unkernel.parsing.text.text_parser import TextParser
    from unkernel.parsing.text.text_parser_model import TextParserModel
    from unkernel.parsing.text.tokenizer import Tokenizer
    from unkernel.parsing.text.tokenizer_model import TokenizerModel
    from unkernel.parsing.training_progress import Step
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ArcEagerModel": "unkernel.parsing.arc_eager.model",
            "ArcEagerParser": "unkernel.parsing.arc_eager.estimator",
            "BunsetsuModel": "unkernel.parsing.bunsetsu.model",
            "BunsetsuParser": "unkernel.parsing.bunsetsu.estimator",
            "BunsetsuResult": "unkernel.parsing.bunsetsu.result",
            "ChunkCounts": "unkernel.parsing.chunks.result",
            "ChunkModel": "unkernel.parsing.chunks.model",
            "ChunkResult": "unkernel.parsing.chunks.result",
            "Chunker": "unkernel.parsing.chunks.estimator",
            "Document": "unkernel.parsing.text.document",
            "Evidence": "unkernel.parsing.explanation",
            "ExplainedDecision": "unkernel.parsing.explanation",
            "HeavyConjunction": "unkernel.parsing.explanation",
            "LabelResult": "unkernel.parsing.arc_eager.result",
            "Parsed": "unkernel.parsing.parsed_blocks",
            "ParserModel": "unkernel.parsing.parser_model",
            "Score": "unkernel.parsing.text.result",
            "Step": "unkernel.parsing.training_progress",
            "TagResult": "unkernel.parsing.text.tag_result",
            "Tagger": "unkernel.parsing.text.tagger",
            "TaggerModel": "unkernel.parsing.text.tagger_model",
            "TextParser": "unkernel.parsing.text.text_parser",
            "TextParserModel": "unkernel.parsing.text.text_parser_model",
            "TextResult": "unkernel.parsing.text.result",
            "Tokenizer": "unkernel.parsing.text.tokenizer",
            "TokenizerModel": "unkernel.parsing.text.tokenizer_model",
            "TreeResult": "unkernel.parsing.arc_eager.result",
            "WordClusters": "unkernel.parsing.text.clusters",
            "compare_chunks": "unkernel.parsing.chunks.result",
            "compare_text": "unkernel.parsing.text.result",
            "original_text": "unkernel.parsing.text.gold_text",
            "parse_stream": "unkernel.parsing.streams",
        },
    )

__all__ = [
    "ArcEagerModel",
    "ArcEagerParser",
    "BunsetsuModel",
    "BunsetsuParser",
    "BunsetsuResult",
    "ChunkCounts",
    "ChunkModel",
    "ChunkResult",
    "Chunker",
    "Document",
    "Evidence",
    "ExplainedDecision",
    "HeavyConjunction",
    "LabelResult",
    "Parsed",
    "ParserModel",
    "Score",
    "Step",
    "TagResult",
    "Tagger",
    "TaggerModel",
    "TextParser",
    "TextParserModel",
    "TextResult",
    "Tokenizer",
    "TokenizerModel",
    "TreeResult",
    "WordClusters",
    "compare_chunks",
    "compare_text",
    "original_text",
    "parse_stream",
]
