"""Delegate methods and properties of a class to an object in one of its attributes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
# Methods that delegate have the docstring of the model's method, with the second text in place of the first.
_MODEL_JOBS = "None means 1 and -1 means all processors"
_ESTIMATOR_JOBS = "None means that of the estimator"


def delegate(
    method: Callable[Concatenate[Any, _Arguments], _Result], to: str = "_fitted_model"
) -> Callable[Concatenate[Any, _Arguments], _Result]:
    """Return a method that calls `method` of the object in the attribute `to`, with the same docstring.

    ``n_jobs=None`` means the estimator's number of threads.
    """
    name = method.__name__
    has_jobs = "n_jobs" in inspect.signature(method).parameters

    @functools.wraps(method)
    def call_method(self: Any, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        if has_jobs and options.get("n_jobs") is None:
            options["n_jobs"] = self.n_jobs
        result: _Result = getattr(getattr(self, to), name)(*args, **options)
        return result

    vars(call_method).pop("__isabstractmethod__", None)  # functools.wraps copies it from abstract methods
    call_method.__doc__ = (inspect.getdoc(method) or "").replace(_MODEL_JOBS, _ESTIMATOR_JOBS)
    return call_method


def delegate_property(name: str, doc: str, to: str = "_fitted_model") -> Any:
    """Return a property that reads the attribute `name` of the object in the attribute `to`."""

    def get_attribute(self: Any) -> Any:
        return getattr(getattr(self, to), name)

    return property(get_attribute, doc=doc)
