"""Options that an estimator's own declaration gives: its signature, its docstring and its constraints.

An option is declared once, where the estimator declares the parameter. ``--help`` shows the first sentence
of the parameter's description and the default of the signature; the constraints say which values there are.
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

from unkernel.cli.options.shared_options import parse_nodes

# What the command line calls otherwise, or has no use for.
_OPTION_OF = {"random_state": "seed", "fit_intercept": "intercept", "n_jobs": "jobs"}
_NOT_OPTIONS = frozenset({"n_jobs", "verbose", "warm_start", "tokenizer", "tagger", "parser"})
_BY_WORDS_ALONE = frozenset({"pair_weight"})  # where the estimator takes tables as well
_LARGEST_SEED = 2**32 - 1
_WORDS_BY_PARAMETER = {"trie_nodes": parse_nodes}
_METAVARS = {
    "class_weight": "balanced|LABEL=WEIGHT,…",
    "templates": "NAME|FILE",
    "clusters": "FILE",
    "trie": "FILE",
    "trie_nodes": "NODES",
    "cache": "FILE",
    "checkpoint": "FOLDER",
    "memory": "BYTES",
}
_SHORT = {"C": ("--C", "-C")}


def flag(option: str) -> str:
    """An option as it is written."""
    return f"--{option.replace('_', '-')}"


def option_name(parameter: str) -> str:
    """What the option for a parameter is called."""
    return _OPTION_OF.get(parameter, parameter)


def default_value(estimator: type, parameter: str) -> Any:
    """The one place where defaults are is the estimator."""
    return inspect.signature(estimator).parameters[parameter].default


@dataclasses.dataclass(frozen=True)
class DerivedOption:
    """An option of the command line, and the parameter of an estimator that it sets."""

    parameter: str
    kind: Any  # the type that Typer reads it as
    help: str
    default: str  # for people
    metavar: str | None
    convert: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The option's name, as Python spells it."""
        return option_name(self.parameter)

    def annotation(self, panel: str) -> Any:
        """What Typer takes as the type of an argument of a function."""
        spelled = _SHORT.get(self.parameter, (flag(self.name),))
        limits: dict[str, Any] = {}
        if self.kind is bool:
            spelled = (f"{flag(self.name)}/--no-{self.name.replace('_', '-')}",)
        if self.name == "seed":
            limits = {"min": 0, "max": _LARGEST_SEED}
        if self.metavar is not None:
            limits["metavar"] = self.metavar
        shown = typer.Option(
            *spelled, help=self.help, show_default=self.default, rich_help_panel=panel, **limits
        )
        return Annotated[self.kind | None, shown]


@functools.cache  # a command asks several times
def derive_options(estimator: type) -> tuple[DerivedOption, ...]:
    """The options of an estimator, in the order of its signature."""
    signature = inspect.signature(estimator).parameters
    told = read_descriptions(estimator)
    allowed = estimator._parameter_constraints  # type: ignore[attr-defined]
    return tuple(
        _derive_option(name, parameter.default, allowed[name], told.get(name, ("", "")), signature)
        for name, parameter in signature.items()
        if name not in _NOT_OPTIONS
    )


def _derive_option(
    name: str, default: Any, allowed: Any, told: tuple[str, str], parameters: Iterable[str]
) -> DerivedOption:
    spec, description = told
    kind, metavar, convert = _interpret(name, allowed, spec)
    if name in _WORDS_BY_PARAMETER:
        kind, convert = str, _WORDS_BY_PARAMETER[name]
    return DerivedOption(
        parameter=name,
        kind=kind,
        help=name_options(_add_limits(first_sentence(description), allowed), parameters),
        default=_default_words(name, default),
        metavar=_METAVARS.get(name, metavar),
        convert=convert,
    )


def _add_limits(sentence: str, allowed: Any) -> str:
    """A description of a whole number that can only be one of a few, with the first and the last of them."""
    from sklearn.utils._param_validation import Interval

    for rule in allowed if isinstance(allowed, list) else []:
        if isinstance(rule, Interval) and rule.type is Integral and None not in (rule.left, rule.right):
            return f"{sentence.removesuffix('.')}, from {rule.left} to {rule.right}."
    return sentence


def _default_words(name: str, default: Any) -> str:
    """A seed is always chosen on the command line, so that a model can be made again."""
    if name == "random_state":
        return str(default or 0)
    if isinstance(default, bool):
        option = option_name(name).replace("_", "-")
        return f"--{option}" if default else f"--no-{option}"
    return "none" if default is None else str(default)


def _interpret(name: str, allowed: Any, spec: str) -> tuple[Any, str | None, Callable[[Any], Any]]:
    """How Typer reads a parameter: its type, its metavar, and what its value becomes."""
    from sklearn.utils._param_validation import Interval, StrOptions

    rules = allowed if isinstance(allowed, list) else []
    words = [choice for rule in rules if isinstance(rule, StrOptions) for choice in rule.options]
    numbers = [rule for rule in rules if isinstance(rule, Interval) or rule in (Integral, Real)]
    if words and numbers:
        return str, "|".join(["FLOAT", *_order_choices(words, spec)]), _number_or_word
    if words and (dict not in rules or name in _BY_WORDS_ALONE):
        return make_choices(name, _order_choices(words, spec)), None, _value
    if numbers and str not in rules:
        return int if _is_whole(numbers[0]) else float, None, _same
    return {"random_state": int, "boolean": bool}.get(str(rules[0]) if rules else "", str), None, _same


def make_choices(name: str, words: Iterable[str]) -> Any:
    """A type that Typer offers as a choice of words."""
    members = [(f"choice_{word}", word) for word in words]  # a word alone may be a method's name
    return StrEnum(name, members)


def _order_choices(words: Iterable[str], spec: str) -> list[str]:
    """Choices as the docstring orders them, then those that it does not name."""
    named = re.findall(r'"([^"]+)"', spec)
    words = list(words)
    return [word for word in dict.fromkeys(named) if word in words] + sorted(set(words) - set(named))


def _is_whole(rule: Any) -> bool:
    return getattr(rule, "type", rule) is Integral


def _same(value: Any) -> Any:
    return value


def _value(choice: Enum) -> Any:
    return choice.value


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


# --- Docstrings ---------------------------------------------------------------------------------------


def read_descriptions(estimator: type) -> dict[str, tuple[str, str]]:
    """What a numpydoc docstring says of each parameter: its type, as written, and its description."""
    text = inspect.getdoc(estimator) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    found: dict[str, tuple[str, str]] = {}
    for entry in re.finditer(
        r"^(\w[\w, ]*?) : ([^\n]*)\n((?:[ ]+[^\n]*\n|\n)*)", section[1] if section else "", re.M
    ):
        description = " ".join(entry[3].split())
        found |= dict.fromkeys(entry[1].split(", "), (entry[2], description))
    return found


def first_sentence(description: str) -> str:
    """Up to the first full stop that a blank follows."""
    return re.split(r"(?<=[^.]\.)\s", description, maxsplit=1)[0]


def name_options(text: str, parameters: Iterable[str]) -> str:
    """Markup of docstrings becomes plain text, and ``penalty="l1"`` becomes ``--penalty l1``."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    text = text.replace("``", "").replace("`", "")
    for name in parameters:
        text = re.sub(rf'\b{name}="(\w+)"', rf"{flag(option_name(name))} \1", text)
    return text


# --- Errors -------------------------------------------------------------------------------------------


def check_parameters(estimator: Any) -> None:
    """The estimator's own checks, before anything is read, in the words of the command line."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise ValueError(_name_option_in_error(str(error))) from None


def _name_option_in_error(words: str) -> str:
    words = re.sub(r"The '(\w+)' parameter of \w+", lambda match: flag(option_name(match[1])), words)
    return re.sub(r"\. Got (.*) instead\.$", r", got \1", words)
