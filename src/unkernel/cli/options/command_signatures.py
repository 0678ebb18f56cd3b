"""Make functions for Typer with parameters that are assembled at run time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from unkernel.cli.options.estimator_options import DerivedOption
from unkernel.cli.options.help_text import reflow

# For the name of each argument or option: its type for Typer, and its default.
Parts = Mapping[str, tuple[Any, Any]]
REQUIRED = inspect.Parameter.empty


def make_command(run: Callable[[dict[str, Any]], None], parts: Parts, help: str) -> Callable[..., None]:
    """Return a function with one parameter per part; it passes its arguments to `run` as a dict."""

    def command(**arguments: Any) -> None:
        run(arguments)

    annotations = {name: annotation for name, (annotation, _) in parts.items()}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotations[name])
        for name, (_, default) in parts.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = annotations
    command.__doc__ = reflow(help)
    return command


def derive_parts(options: Iterable[DerivedOption], panels: Mapping[str, str], panel: str) -> Parts:
    """Return parts made from an estimator's options; `panels` moves options to other panels of the help."""
    return {option.name: (option.annotation(panels.get(option.name, panel)), None) for option in options}


def given_options(arguments: Mapping[str, Any], options: Iterable[DerivedOption]) -> dict[str, Any]:
    """Return the values of the options that are set, by name."""
    convert = {option.name: option.convert for option in options}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        if name in convert:
            values[name] = convert[name](value)
        elif value is not False:  # False means that a flag is not set
            values[name] = value.value if isinstance(value, Enum) else value
    return values
