"""Compiled classifiers of records, and the pipelines from which they are made."""
