"""Predict with models of records, explain them, and compile them."""
