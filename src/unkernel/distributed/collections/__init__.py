"""Lazy predictions and encodings of Dask arrays and data frames."""
