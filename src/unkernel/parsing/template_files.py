"""Read files of feature templates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from unkernel.errors import FormatError


def read_templates(templates: str | os.PathLike[str], builtin: Mapping[str, str]) -> tuple[str, str]:
    """Return the text of feature templates, and a name for error messages.

    `templates` is the name of a built-in set or a path. `builtin` maps each name to a file of the package.
    """
    if isinstance(templates, str) and templates in builtin:
        file = resources.files(__package__).joinpath("templates", builtin[templates])
        return file.read_text("utf-8"), f"templates {templates!r}"
    path = Path(templates)
    try:
        return path.read_text("utf-8-sig"), str(path)
    except FileNotFoundError as error:
        builtin_names = ", ".join(map(repr, builtin))
        raise FileNotFoundError(
            f"there is no template file {str(path)!r}; built-in templates are {builtin_names}"
        ) from error
    except UnicodeDecodeError as error:
        raise FormatError(str(path), 0, 0, "the template file is not valid UTF-8") from error
