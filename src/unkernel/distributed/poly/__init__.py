"""Models of conjunctions of features on a Dask cluster."""
