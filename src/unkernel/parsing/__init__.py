"""Parsers and chunkers that decide with compiled models."""

from unkernel.parsing.bunsetsu import BunsetsuEvaluation, BunsetsuParser

__all__ = ["BunsetsuEvaluation", "BunsetsuParser"]
