"""Shared parts of all estimators: targets, progress, fitted attributes, predictions, files."""
