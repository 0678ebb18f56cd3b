"""Chunking: tag words one after another."""
