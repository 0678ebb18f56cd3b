"""Describe the supported values of a transformer's or estimator's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unkernel.records.sklearn.plan_builder import is_nan

ANY_USED_IN_FIT = "any: only the fitted attributes matter"
ANY_WITHOUT_EFFECT = "any: it does not affect predictions"


@dataclass(frozen=True, eq=False)
class Parameter:
    """The supported values of a parameter.

    Attributes
    ----------
    takes : str
        The values that are supported, in words.
    examples : sequence
        Supported values for the tests. A string in angle brackets, such as ``"<f_classif>"``, represents an
        object that the tests create.
    accepts : callable
        Returns whether a value is supported.
    refused : sequence
        Unsupported values for the tests.
    why : str
        The reason why other values are unsupported, or a remedy.
    """

    takes: str
    examples: Sequence[Any] = ()
    accepts: Callable[[Any], bool] = lambda value: True
    refused: Sequence[Any] = ()
    why: str = ""


@dataclass(frozen=True, eq=False)
class Supported:
    """A supported class of scikit-learn.

    Attributes
    ----------
    module : str
        Module of the class.
    does : str
        What the class computes, for the table of the documentation.
    parameters : dict of str to Parameter
    """

    module: str
    does: str
    parameters: dict[str, Parameter]


def one_of(*values: Any, refused: Sequence[Any] = (), why: str = "") -> Parameter:
    """Describe a parameter that must have one of these values."""
    takes = ", ".join(f"`{value!r}`" for value in values)
    return Parameter(
        takes, values, lambda actual: any(is_same(actual, value) for value in values), refused, why
    )


def is_same(first: Any, second: Any) -> bool:
    """Return whether two values of a parameter are the same: equal, and of one type."""
    if first is second or (is_nan(first) and is_nan(second)):
        return True
    return type(first) is type(second) and bool(first == second)


def used_in_fit(*examples: Any) -> Parameter:
    """Describe a parameter that may have any value, because it is used only in ``fit``."""
    return Parameter(ANY_USED_IN_FIT, examples)


def without_effect(*examples: Any) -> Parameter:
    """Describe a parameter that may have any value, because it does not affect predictions."""
    return Parameter(ANY_WITHOUT_EFFECT, examples)


def any_of(takes: str, *examples: Any) -> Parameter:
    """Describe a parameter that may have any value that scikit-learn accepts."""
    return Parameter(takes, examples)
