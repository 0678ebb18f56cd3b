"""MLflow flavour: save, log and load models of unkernel without pickle.

>>> import mlflow, unkernel.mlflow  # doctest: +SKIP
>>> unkernel.mlflow.log_model(fast, name="income")  # doctest: +SKIP
>>> unkernel.mlflow.load_model("models:/income/1").predict_one(record)  # doctest: +SKIP
>>> mlflow.pyfunc.load_model("models:/income/1").predict(frame)  # doctest: +SKIP
"""

from unkernel.adapters.mlflow import (
    FLAVOR_NAME,  # noqa: F401
    _load_pyfunc,  # noqa: F401  (mlflow.pyfunc.load_model calls it)
    load_model,
    log_model,
    save_model,
    signature_of,
)

__all__ = ["load_model", "log_model", "save_model", "signature_of"]
