"""Dependency parsing with the arc-eager system."""
