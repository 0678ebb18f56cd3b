"""Chunking: tags for words, one after another."""
