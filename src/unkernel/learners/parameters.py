"""Set the parameters of estimators as attributes, and convert them to and from JSON."""

from __future__ import annotations

import os
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

# Upper limit of C and of weights. With larger costs, the rounding error of a zero loss exceeds the objective:
# no solver can then converge or certify its gap.
LARGEST_COST = 1e20
COST = Interval(Real, 0, LARGEST_COST, closed="right")

_RUN_PARAMETERS = ("n_jobs", "verbose")  # parameters that do not affect the model
_ITEMS = "items"  # dicts are stored as lists of items, because JSON turns keys into strings


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``__init__`` only stores its arguments, as scikit-learn requires."""

    def _set_parameters(self, local_variables: dict[str, Any]) -> None:
        """Set all parameters, given the local variables of ``__init__``."""
        for name, value in local_variables.items():
            if name != "self":
                setattr(self, name, value)


def parameters_to_json(estimator: Any) -> dict[str, Any]:
    """Return all parameters that JSON can hold: numbers, strings, paths, None, and lists or dicts of these.

    Parameters of the run, such as ``n_jobs``, are omitted: they must not change the file.
    """
    stored: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _RUN_PARAMETERS:
            continue
        try:
            stored[name] = _to_json(value)
        except TypeError:  # for example a RandomState or a client
            continue
    return stored


def parameters_from_json(stored: Any) -> dict[str, Any]:
    """Return the parameters stored by :func:`parameters_to_json`; an empty dict if there are none.

    Parameters of the run, which earlier versions stored, are ignored.

    Raises
    ------
    ValueError
        If a parameter is damaged.
    """
    if not isinstance(stored, dict):
        return {}
    try:
        return {name: _from_json(value) for name, value in stored.items() if name not in _RUN_PARAMETERS}
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("the parameters of the estimator are damaged") from error


def _to_json(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_to_json(part) for part in value]
    if isinstance(value, dict):
        return {_ITEMS: [[_to_json(key), _to_json(entry)] for key, entry in value.items()]}
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(part) for part in value)
    if isinstance(value, dict) and isinstance(value.get(_ITEMS), list):
        return {_from_json(pair[0]): _from_json(pair[1]) for pair in value[_ITEMS]}
    return value
