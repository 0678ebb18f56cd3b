"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing.arc_eager import ArcEagerParser
from unkernel.parsing.bunsetsu import BunsetsuParser, BunsetsuResult
from unkernel.parsing.tree_result import LabelResult, TreeResult

__all__ = ["ArcEagerParser", "BunsetsuParser", "BunsetsuResult", "LabelResult", "TreeResult"]
