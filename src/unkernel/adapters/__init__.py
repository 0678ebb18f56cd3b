"""Adapters that serve models inside MLflow, MLServer and KServe."""
