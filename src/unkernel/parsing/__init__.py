"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing.arc_eager import ArcEagerParser
from unkernel.parsing.tree_result import LabelResult, TreeResult

__all__ = ["ArcEagerParser", "LabelResult", "TreeResult"]
