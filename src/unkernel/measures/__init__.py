"""Measures of predictions, with confidence intervals: classes, rankings, numbers and parses."""
