"""Adapters for serving models with MLflow, MLServer and KServe."""
