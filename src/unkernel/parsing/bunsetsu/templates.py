"""The feature templates of bunsetsu parsers."""

from __future__ import annotations

import os
from collections.abc import Sequence

from unkernel._core import bunsetsu_template_names
from unkernel.parsing.template_files import read_templates

# Table 1 of Yoshinaga & Kitsuregawa (2009) with the refinements of J.DepP: the words around the pair, and
# whether the content words are equal, which is a sign of coordination.
TEMPLATES = (
    "before.last.surface",
    "modifier.content.surface",
    "modifier.content.subpos",
    "modifier.content.cform",
    "modifier.function.surface",
    "modifier.function.pos",
    "modifier.function.subpos",
    "modifier.function.cform",
    "modifier.last.surface",
    "modifier.beginning",
    "modifier.brackets",
    "modifier.punctuation",
    "modifier.particles",
    "candidate.first.surface",
    "candidate.first.subpos",
    "candidate.content.surface",
    "candidate.content.pos",
    "candidate.content.subpos",
    "candidate.content.cform",
    "candidate.function.surface",
    "candidate.function.subpos",
    "candidate.function.cform",
    "candidate.last.subpos",
    "candidate.end",
    "candidate.brackets",
    "candidate.punctuation",
    "candidate.particles",
    "after.first.surface",
    "after.content.surface",
    "after.last.surface",
    "same.before.candidate",
    "same.modifier.candidate",
    "same.modifier.after",
    "between.distance",
    "between.brackets",
    "between.particles",
)
_DEFAULT = "default"


def template_names(templates: str | os.PathLike[str] | Sequence[str] | None) -> list[str]:
    """Return the names of templates from a list or a file; by default ``TEMPLATES``."""
    if templates is None or (isinstance(templates, str) and templates == _DEFAULT):
        return list(TEMPLATES)
    if isinstance(templates, str | os.PathLike):
        text, file = read_templates(templates, {_DEFAULT: ""})
        return list(bunsetsu_template_names(file, text))
    if not len(templates):
        raise ValueError("templates is empty: give names of templates, or None for the default set")
    return list(templates)
