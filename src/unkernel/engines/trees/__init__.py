"""Compiled classifiers of trees."""
