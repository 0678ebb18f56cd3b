"""Engines: compiled, immutable views of models that score rows."""

from unkernel.engines.classifier import CompiledClassifier, load

__all__ = ["CompiledClassifier", "load"]
