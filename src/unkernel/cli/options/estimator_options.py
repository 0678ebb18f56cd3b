"""Derive options from an estimator: from its signature, docstring and parameter constraints.

``--help`` shows a parameter's default and the first sentence of its description. The constraints determine
the type and the choices.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from enum import Enum, StrEnum
from numbers import Integral, Real
from typing import Annotated, Any

import typer

from unkernel.cli.options.shared_options import parse_bins, parse_nodes

_OPTION_NAMES = {"random_state": "seed", "fit_intercept": "intercept", "n_jobs": "jobs"}
_NOT_OPTIONS = frozenset({"n_jobs", "verbose", "warm_start", "tokenizer", "tagger", "parser"})
_WITHOUT_TABLES = frozenset({"pair_weight"})  # these parameters take words or dicts, but options only words
_LARGEST_SEED = 2**32 - 1
_CONVERTERS = {"trie_nodes": parse_nodes, "n_bins": parse_bins}
_METAVARS = {
    "class_weight": "balanced|LABEL=WEIGHT,…",
    "templates": "NAME|FILE",
    "clusters": "FILE",
    "trie": "FILE",
    "trie_nodes": "NODES",
    "n_bins": "N,…",
    "cache": "FILE",
    "checkpoint": "FOLDER",
    "memory": "BYTES",
}
_SHORT_FLAGS = {"C": ("--C", "-C")}


def flag(option: str) -> str:
    """Return the flag of an option, such as ``--min-count``."""
    return f"--{option.replace('_', '-')}"


def option_name(parameter: str) -> str:
    return _OPTION_NAMES.get(parameter, parameter)


def default_value(estimator: type, parameter: str) -> Any:
    return inspect.signature(estimator).parameters[parameter].default


@dataclasses.dataclass(frozen=True)
class DerivedOption:
    """An option of the command line, and the parameter of an estimator that it sets."""

    parameter: str
    kind: Any  # type of the value for Typer
    help: str
    default: str  # text of the default for the help
    metavar: str | None
    convert: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The name of the option, as a Python identifier."""
        return option_name(self.parameter)

    def annotation(self, panel: str) -> Any:
        """Return the type of the function's argument for Typer."""
        spellings = _SHORT_FLAGS.get(self.parameter, (flag(self.name),))
        limits: dict[str, Any] = {}
        if self.kind is bool:
            spellings = (f"{flag(self.name)}/--no-{self.name.replace('_', '-')}",)
        if self.name == "seed":
            limits = {"min": 0, "max": _LARGEST_SEED}
        if self.metavar is not None:
            limits["metavar"] = self.metavar
        option_info = typer.Option(
            *spellings, help=self.help, show_default=self.default, rich_help_panel=panel, **limits
        )
        return Annotated[self.kind | None, option_info]


@functools.cache  # a command calls this function several times
def derive_options(estimator: type) -> tuple[DerivedOption, ...]:
    """Return the options of an estimator, in the order of its signature."""
    signature = inspect.signature(estimator).parameters
    descriptions = read_descriptions(estimator)
    allowed = estimator._parameter_constraints  # type: ignore[attr-defined]
    return tuple(
        _derive_option(name, parameter.default, allowed[name], descriptions.get(name, ("", "")), signature)
        for name, parameter in signature.items()
        if name not in _NOT_OPTIONS
    )


def _derive_option(
    name: str, default: Any, allowed: Any, documented: tuple[str, str], parameters: Iterable[str]
) -> DerivedOption:
    """Return the option for a parameter, given its constraints and its documented type and description."""
    spec, description = documented
    kind, metavar, convert = _interpret(name, allowed, spec)
    if name in _CONVERTERS:
        kind, convert = str, _CONVERTERS[name]
    return DerivedOption(
        parameter=name,
        kind=kind,
        help=name_options(_add_limits(first_sentence(description), allowed), parameters),
        default=_format_default(name, default),
        metavar=_METAVARS.get(name, metavar),
        convert=convert,
    )


def _add_limits(sentence: str, allowed: Any) -> str:
    """Return the description of an integer with its limits added, if it has a lower and an upper limit."""
    from sklearn.utils._param_validation import Interval

    for rule in allowed if isinstance(allowed, list) else []:
        if isinstance(rule, Interval) and rule.type is Integral and None not in (rule.left, rule.right):
            return f"{sentence.removesuffix('.')}, from {rule.left} to {rule.right}."
    return sentence


def _format_default(name: str, default: Any) -> str:
    """Return the text of a default. The default seed is 0 instead of None, to make results repeatable."""
    if name == "random_state":
        return str(default or 0)
    if isinstance(default, bool):
        option = option_name(name).replace("_", "-")
        return f"--{option}" if default else f"--no-{option}"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "none" if default is None else str(default)


def _interpret(name: str, allowed: Any, spec: str) -> tuple[Any, str | None, Callable[[Any], Any]]:
    """Return the type of a parameter for Typer, its metavar, and a function that converts its value.

    `allowed` are the parameter's constraints as scikit-learn defines them; `spec` is its type as documented.
    """
    from sklearn.utils._param_validation import Interval, StrOptions

    rules = allowed if isinstance(allowed, list) else []
    choices = [choice for rule in rules if isinstance(rule, StrOptions) for choice in rule.options]
    numbers = [rule for rule in rules if isinstance(rule, Interval) or rule in (Integral, Real)]
    if choices and numbers:
        return str, "|".join(["FLOAT", *_order_choices(choices, spec)]), _parse_number_or_word
    if choices and (dict not in rules or name in _WITHOUT_TABLES):
        return make_choices(name, _order_choices(choices, spec)), None, _get_value
    if numbers and str not in rules:
        return int if _is_integral(numbers[0]) else float, None, _return_unchanged
    return (
        {"random_state": int, "boolean": bool}.get(str(rules[0]) if rules else "", str),
        None,
        _return_unchanged,
    )


def make_choices(name: str, choices: Iterable[str]) -> Any:
    """Return a type that Typer shows as a choice of words."""
    # Members have a prefix, because a choice may have the name of a method of str.
    members = [(f"choice_{choice}", choice) for choice in choices]
    return StrEnum(name, members)


def _order_choices(choices: Iterable[str], spec: str) -> list[str]:
    """Return choices in the order of the docstring, followed by all other choices, sorted."""
    named = re.findall(r'"([^"]+)"', spec)
    choices = list(choices)
    documented = [choice for choice in dict.fromkeys(named) if choice in choices]
    return documented + sorted(set(choices) - set(named))


def _is_integral(rule: Any) -> bool:
    return getattr(rule, "type", rule) is Integral


def _return_unchanged(value: Any) -> Any:
    return value


def _get_value(choice: Enum) -> Any:
    return choice.value


def _parse_number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


# --- Docstrings ---------------------------------------------------------------------------------------


def read_descriptions(estimator: type) -> dict[str, tuple[str, str]]:
    """Return the type, as written, and the description of each parameter in a numpydoc docstring."""
    text = inspect.getdoc(estimator) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    descriptions: dict[str, tuple[str, str]] = {}
    for entry in re.finditer(
        r"^(\w[\w, ]*?) : ([^\n]*)\n((?:[ ]+[^\n]*\n|\n)*)", section[1] if section else "", re.M
    ):
        description = " ".join(entry[3].split())
        descriptions |= dict.fromkeys(entry[1].split(", "), (entry[2], description))
    return descriptions


def first_sentence(description: str) -> str:
    """Return the text up to the first full stop that precedes a blank."""
    return re.split(r"(?<=[^.]\.)\s", description, maxsplit=1)[0]


def name_options(text: str, parameters: Iterable[str]) -> str:
    """Return plain text without markup, in which ``penalty="l1"`` is written ``--penalty l1``."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    text = text.replace("``", "").replace("`", "")
    for name in parameters:
        text = re.sub(rf'\b{name}="(\w+)"', rf"{flag(option_name(name))} \1", text)
    return text


# --- Errors -------------------------------------------------------------------------------------------


def check_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator; error messages name options instead of parameters."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise ValueError(_name_option_in_error(str(error))) from None


def _name_option_in_error(message: str) -> str:
    message = re.sub(r"The '(\w+)' parameter of \w+", lambda match: flag(option_name(match[1])), message)
    return re.sub(r"\. Got (.*) instead\.$", r", got \1", message)
