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
            "unkernel.parsing.arc_eager.estimator": "ArcEagerParser",
            "unkernel.parsing.arc_eager.model": "ArcEagerModel",
            "unkernel.parsing.arc_eager.result": "LabelResult TreeResult",
            "unkernel.parsing.bunsetsu.estimator": "BunsetsuParser",
            "unkernel.parsing.bunsetsu.model": "BunsetsuModel",
            "unkernel.parsing.bunsetsu.result": "BunsetsuResult",
            "unkernel.parsing.chunks.estimator": "Chunker",
            "unkernel.parsing.chunks.model": "ChunkModel",
            "unkernel.parsing.chunks.result": "ChunkCounts ChunkResult compare_chunks",
            "unkernel.parsing.explanation": "Evidence ExplainedDecision HeavyConjunction",
            "unkernel.parsing.parsed_blocks": "Parsed",
            "unkernel.parsing.parser_model": "ParserModel",
            "unkernel.parsing.streams": "parse_stream",
            "unkernel.parsing.text.clusters": "WordClusters",
            "unkernel.parsing.text.document": "Document",
            "unkernel.parsing.text.gold_text": "original_text",
            "unkernel.parsing.text.result": "Score TextResult compare_text",
            "unkernel.parsing.text.tag_result": "TagResult",
            "unkernel.parsing.text.tagger": "Tagger",
            "unkernel.parsing.text.tagger_model": "TaggerModel",
            "unkernel.parsing.text.text_parser": "TextParser",
            "unkernel.parsing.text.text_parser_model": "TextParserModel",
            "unkernel.parsing.text.tokenizer": "Tokenizer",
            "unkernel.parsing.text.tokenizer_model": "TokenizerModel",
            "unkernel.parsing.training_progress": "Step",
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
