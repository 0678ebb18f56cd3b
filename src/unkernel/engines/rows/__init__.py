"""Compiled classifiers of rows."""
