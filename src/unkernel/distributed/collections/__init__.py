"""Predict and encode Dask arrays and data frames lazily."""
