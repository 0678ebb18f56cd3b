"""Chunking: find chunks by tagging words one after another."""
