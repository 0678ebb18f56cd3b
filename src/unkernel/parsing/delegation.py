"""Methods of estimators that call the same method of the fitted model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_MODEL_JOBS = "None means 1 and -1 means all processors"
_ESTIMATOR_JOBS = "None means that of the estimator"


def delegate(
    method: Callable[Concatenate[Any, _Arguments], _Result],
) -> Callable[Concatenate[Any, _Arguments], _Result]:
    """Return an estimator's method with the name, signature and documentation of a model's method.

    ``n_jobs=None`` stands for the estimator's own number of threads.
    """
    name = method.__name__
    has_jobs = "n_jobs" in inspect.signature(method).parameters

    @functools.wraps(method)
    def call_model(self: Any, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        if has_jobs and options.get("n_jobs") is None:
            options["n_jobs"] = self.n_jobs
        result: _Result = getattr(self._fitted_model, name)(*args, **options)
        return result

    vars(call_model).pop("__isabstractmethod__", None)
    call_model.__doc__ = (inspect.getdoc(method) or "").replace(_MODEL_JOBS, _ESTIMATOR_JOBS)
    return call_model
