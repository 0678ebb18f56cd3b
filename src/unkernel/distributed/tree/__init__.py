"""Tree kernels on a Dask cluster."""
