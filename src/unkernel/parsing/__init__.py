"""Parsers and chunkers that decide with compiled models."""
