"""An estimator's parameters, as JSON can hold them."""

from __future__ import annotations

import os
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

# Of C and of weights. Beyond it, rounding of a loss that should be 0 costs more than all weights of the model
# do: no solver could end, or show how close it has come.
LARGEST_COST = 1e20
COST = Interval(Real, 0, LARGEST_COST, closed="right")

_OF_ONE_RUN = ("n_jobs", "verbose")  # parameters that say nothing about what was learned
_ITEMS = "items"  # of dicts, whose keys JSON would turn into texts


def parameters_to_json(estimator: Any) -> dict[str, Any]:
    """All parameters that are numbers, texts, paths, None, or lists or dicts of these; others are left out.

    So are those of one run: the same data and seed give the same file on any number of threads.
    """
    stored: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _OF_ONE_RUN:
            continue
        try:
            stored[name] = _to_json(value)
        except TypeError:  # a RandomState, a client
            continue
    return stored


def parameters_from_json(stored: Any) -> dict[str, Any]:
    """What :func:`parameters_to_json` gave; nothing where a file has none.

    Parameters of one run, which former versions stored, are left out.

    Raises
    ------
    ValueError
        If a parameter is damaged.
    """
    if not isinstance(stored, dict):
        return {}
    try:
        return {name: _from_json(value) for name, value in stored.items() if name not in _OF_ONE_RUN}
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
