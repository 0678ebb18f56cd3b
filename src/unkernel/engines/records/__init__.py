"""Compiled classifiers of records, and the pipelines that they are made from."""
