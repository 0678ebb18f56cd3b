"""Names of features: templates with their values, such as ``stack.xpos=NN``.

The core identifies features by numbers. This module computes their names on demand from the model's tables.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_ABSENT = "(none)"  # the value of attributes of a missing word
_STRING_ATTRIBUTES = (
    *("form", "word", "lemma", "upos", "xpos", "feats"),
    *(f"prefix{letters}" for letters in range(1, 5)),
    *(f"suffix{letters}" for letters in range(1, 5)),
    "shape",
    "cluster",
)
_CHILDREN = ("0", "1", "2", "3+")
_DISTANCES = ("1", "2", "3", "4", "5-6", "7-9", "10-14", "15+")
_DIRECTIONS = ("right", "left")  # from the head to the dependent


def _strip_lines(text: str) -> list[str]:
    """Return the nonempty lines of templates, without comments and surrounding blanks."""
    stripped = (line.partition("#")[0].strip() for line in text.split("\n"))
    return [line for line in stripped if line]


class ArcFeatureNames:
    """Names of the features of moves or of labels in an arc-eager parser.

    Parameters
    ----------
    section : {"moves", "labels"}
    templates : str
        The text of the templates.
    stored : mapping
        The result of ``ArcEagerSpec.stored``.
    labels : sequence of str
        All relations, including those of lifted arcs.
    """

    def __init__(
        self, section: str, templates: str, stored: Mapping[str, Any], labels: Sequence[str]
    ) -> None:
        kind = {"moves": "move", "labels": "arc"}[section]
        self._keys = np.asarray(stored[f"{kind}_keys"])
        self._begins = np.asarray(stored[f"{kind}_begins"]).tolist()
        self._templates = [
            [term.strip() for term in line.split("+")] for line in _select_section(section, templates)
        ]
        self._values: dict[str, Sequence[str]] = {
            name: [_ABSENT, *strings]
            for name, strings in zip(_STRING_ATTRIBUTES, stored["strings"], strict=True)
        }
        self._values |= {"label": labels, "left-valency": _CHILDREN, "right-valency": _CHILDREN}
        self._values |= {"distance": _DISTANCES, "direction": _DIRECTIONS}

    def __call__(self, column: int) -> str:
        """Return the name of a column, such as ``stack.xpos=NN + input.xpos=IN``."""
        key = int(self._keys[column])
        terms = self._templates[bisect_right(self._begins, column) - 1]
        named_terms = []
        # A key has one digit per term: the index of the term's value. The base is the number of its values.
        for term in reversed(terms):
            values = self._values[term.rpartition(".")[2]]
            key, digit = divmod(key, len(values))
            named_terms.append(f"{term}={values[digit]}")
        return " + ".join(reversed(named_terms))


def _select_section(section: str, templates: str) -> list[str]:
    """Return the templates of a section, and those that form conjunctions with them only ("beside")."""
    lines, is_inside = [], False
    for line in _strip_lines(templates):
        if line.startswith("["):
            is_inside = line in (f"[{section}]", f"[beside {section}]")
        elif is_inside:
            lines.append(line)
    return lines


class ChunkFeatureNames:
    """Names of the features of a chunker or tagger.

    Parameters
    ----------
    templates : str
        The text of the templates.
    arrays : mapping
        The result of ``SequenceFeatures.arrays``.
    count : int
        Number of features.
    tags : sequence of str
        The classes, which are the values of ``tag``.
    """

    _OUTSIDE = ("(before the first)", "(behind the last)")  # codes 0 and 1: outside the sentence
    _TERM = re.compile(r"([a-z0-9]+)\[\s*([+-]?\d+)\s*\]")

    def __init__(self, templates: str, arrays: Mapping[str, Any], count: int, tags: Sequence[str]) -> None:
        sections = [
            [self._TERM.findall(line) for line in _strip_lines(section)]
            for section in re.split(r"^\s*\[beside\]", templates, flags=re.MULTILINE)
        ]
        terms = [term for section in sections for template in section for term in template]
        attributes = list(dict.fromkeys(name for name, _ in terms if name != "tag"))
        values = {name: _read_values(arrays, number) for number, name in enumerate(attributes)}
        values["tag"] = list(tags)
        self._values = {name: [*self._OUTSIDE, *names] for name, names in values.items()}
        self._count = count
        self._arrays = arrays
        # The core places templates with tags after all other templates of their section.
        self._templates = [template for section in sections for template in sorted(section, key=_has_tag)]
        self._template_of = np.zeros(count, np.int32)
        self._number_of = np.zeros(count, np.int64)
        for number in range(len(self._templates)):
            ids = np.asarray(arrays[f"ids.{number}"])  # the column of each value of the template, or -1
            numbers_of_features = np.flatnonzero(ids >= 0)
            self._template_of[ids[numbers_of_features]] = number
            self._number_of[ids[numbers_of_features]] = numbers_of_features

    def __call__(self, column: int) -> str:
        """Return the name of a column, such as ``word[-1]=the + tag[-1]=B-NP``."""
        template, number = int(self._template_of[column]), int(self._number_of[column])
        terms = self._templates[template]
        codes = []
        # A join lists pairs. The high 32 bits hold the number of the previous join's pair (in the first join,
        # the code of the first term). The low 32 bits hold the code of the next term.
        for join in reversed(range(len(terms) - 1)):
            key = int(np.asarray(self._arrays[f"joins.{template}.{join}"])[number])
            number, code = key >> 32, key & 0xFFFFFFFF
            codes.append(code)
        codes.append(number)
        return " + ".join(
            f"{name}[{int(offset)}]={self._get_value(name, code)}"
            for (name, offset), code in zip(terms, reversed(codes), strict=True)
        )

    def _get_value(self, name: str, code: int) -> str:
        values = self._values[name]
        return values[code] if code < len(values) else f"#{code}"


def _has_tag(template: Sequence[tuple[str, str]]) -> bool:
    return any(name == "tag" for name, _ in template)


def _read_values(arrays: Mapping[str, Any], attribute: int) -> list[str]:
    """Return the values of an attribute, which are stored as concatenated bytes and their ends."""
    text = np.asarray(arrays[f"value_bytes.{attribute}"]).tobytes()
    ends = np.asarray(arrays[f"value_ends.{attribute}"]).tolist()
    begins = [0, *ends][:-1]
    return [
        text[begin:end].decode("utf-8", "surrogateescape") for begin, end in zip(begins, ends, strict=True)
    ]
