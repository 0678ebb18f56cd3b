"""Measure the quality of predictions, with confidence intervals: of classes, rankings, numbers and parses."""
