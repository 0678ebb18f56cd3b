"""Predictions, explanations and compilation of models of records."""
