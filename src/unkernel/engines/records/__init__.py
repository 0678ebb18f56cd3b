"""Compiled classifiers of records, and the pipelines they are made of."""
