"""Search for the fastest engine of a model: candidates, layouts and measurements."""
