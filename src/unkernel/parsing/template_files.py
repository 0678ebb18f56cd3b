"""Read files of feature templates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from unkernel.errors import FormatError


def read_templates(templates: str | os.PathLike[str], known: Mapping[str, str]) -> tuple[str, str]:
    """Read templates of unkernel (a name in `known`) or of a file; return their text and their name in
    messages.
    """
    if isinstance(templates, str) and templates in known:
        file = resources.files(__package__).joinpath("templates", known[templates])
        return file.read_text("utf-8"), f"templates {templates!r}"
    path = Path(templates)
    try:
        return path.read_text("utf-8-sig"), str(path)
    except FileNotFoundError as error:
        known_names = ", ".join(map(repr, known))
        raise FileNotFoundError(f"there is no template file {str(path)!r}; ours are {known_names}") from error
    except UnicodeDecodeError as error:
        raise FormatError(str(path), 0, 0, "a template file is text in UTF-8") from error
