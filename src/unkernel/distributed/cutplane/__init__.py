"""Linear and ranking support vector machines on a Dask cluster."""
