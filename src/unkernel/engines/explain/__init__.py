"""Explain scores: contributions of conjunctions and of tree fragments."""
