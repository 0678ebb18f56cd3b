"""The learned columns of taggers, and how files store them. Needs only NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import SequenceFeatures, TagColumn, restored_sequence_features
from unkernel.data.text.conll import Treebank
from unkernel.data.text.conll_sentence import COLUMNS
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import container
from unkernel.parsing.parser_model import Arrays
from unkernel.parsing.stored_classifiers import pack_strings, select_arrays, unpack_strings
from unkernel.parsing.text.clusters import Lexicon

TAGGED = ("upos", "xpos", "feats", "lemma")  # in the order in which they are predicted
LEMMA = "lemma"
CLUSTER = "cluster"  # the lexicon that all columns except lemmas share
Lexicons = list[tuple[str, Lexicon]]
_WORD_COLUMN = COLUMNS.index("form")
_EDIT = re.compile(r"=.+|[klc]:\d{1,6}:\d{1,6}:\d{1,6}:.*", re.DOTALL)


def find_tagged_columns(bank: Treebank) -> list[str]:
    """Return the columns of tags that are not empty in a treebank."""
    return [name for name in TAGGED if set(bank.symbols(name)[1]) - {"_"}]


def list_feature_sources(names: Sequence[str], lexicons: Lexicons) -> dict[str, Any]:
    """Return the sources of the features of a column: words, earlier columns and lexicons."""
    return {
        "word_column": _WORD_COLUMN,
        "columns": [(name, COLUMNS.index(name)) for name in names],
        "lexicons": lexicons,
    }


@dataclass(frozen=True, eq=False)
class CertainClasses:
    """Words that get the same class whenever a part decides on them; one entry for each word and part."""

    words: list[str]
    parts: NDArray[np.int32]
    classes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LearnedColumn:
    """The classifiers of one column.

    Attributes
    ----------
    name : str
        Name of the column, such as ``"upos"``.
    templates : str
        The text of the feature templates.
    earlier : tuple of str
        The columns that are predicted before this one and are used in its features.
    features : SequenceFeatures
    lexicons : list
        Lexicons, each with its name, its words and their values.
    names : list of str
        The classes: tags, or edits that turn words into lemmas.
    split : int
        Number of earlier columns whose classes select the part, that is, the classifier.
    cases : list of (list of int, int)
        Combinations of classes of these earlier columns, each with the part that it selects.
    classes : list of list of int
        The classes that each part chooses among.
    classifiers : list of CompiledClassifier or None
        The classifiers, part by part; None for parts with a single class.
    certain : CertainClasses
        The words that need no classifier.
    """

    name: str
    templates: str
    earlier: tuple[str, ...]
    features: SequenceFeatures
    lexicons: Lexicons
    names: list[str]
    split: int
    cases: list[tuple[list[int], int]]
    classes: list[list[int]]
    classifiers: list[CompiledClassifier | None]
    certain: CertainClasses

    @cached_property
    def native(self) -> TagColumn:
        """The column in the form that the core uses."""
        return TagColumn(
            self.features,
            text_column=COLUMNS.index(self.name),
            names=self.names,
            classes=self.classes,
            split=self.split,
            cases=self.cases,
            certain=(self.certain.words, self.certain.parts.tolist(), self.certain.classes.tolist()),
        )

    def with_lexicons(self, lexicons: Lexicons) -> Self:
        """Return a column with other lexicons and the same features and classifiers."""
        arrays = {key: np.asarray(array) for key, array in self.features.arrays().items()}
        sources = list_feature_sources(self.earlier, lexicons)
        features = restored_sequence_features(
            self.templates, self.name, arrays, int(self.features.features), **sources
        )
        return replace(self, features=features, lexicons=lexicons)

    def engines(self) -> list[Any]:
        """Return the engines, part by part."""
        return [None if part is None else part._engine for part in self.classifiers]

    def store(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the arrays and the settings of the column, without its classifiers."""
        name, certain = self.name, self.certain
        arrays: Arrays = {
            f"{name}.features.{key}": np.asarray(array) for key, array in self.features.arrays().items()
        }
        arrays |= {
            f"{name}.names": pack_strings(self.names),
            f"{name}.certain.words": pack_strings(certain.words),
            f"{name}.certain.parts": certain.parts,
            f"{name}.certain.classes": certain.classes,
        }
        for lexicon, (words, values) in self.lexicons:
            prefix = _make_lexicon_prefix(name, lexicon)
            arrays |= {f"{prefix}.words": pack_strings(words), f"{prefix}.values": pack_strings(values)}
        return arrays, {
            "name": name,
            "templates": self.templates,
            "features": int(self.features.features),
            "lexicons": [lexicon for lexicon, _ in self.lexicons],
            "split": self.split,
            "cases": self.cases,
            "classes": self.classes,
        }


def restore_column(
    file: str,
    stored: dict[str, Any],
    earlier: list[str],
    arrays: Arrays,
    parts: dict[str, CompiledClassifier],
) -> LearnedColumn:
    """Make a column from the result of :meth:`LearnedColumn.store`; ValueError if it is damaged."""
    name, templates = stored["name"], str(stored["templates"])
    lexicons: Lexicons = [
        (lexicon, _restore_lexicon(file, _make_lexicon_prefix(name, lexicon), arrays))
        for lexicon in map(str, stored["lexicons"])
    ]
    feature_arrays = {
        key: np.ascontiguousarray(array) for key, array in select_arrays(arrays, f"{name}.features.").items()
    }
    features = restored_sequence_features(
        templates, file, feature_arrays, int(stored["features"]), **list_feature_sources(earlier, lexicons)
    )
    names = unpack_strings(file, arrays, f"{name}.names")
    if name == LEMMA and not all(map(_EDIT.fullmatch, names)):
        raise ValueError("an edit of words is damaged")
    return LearnedColumn(
        name=name,
        templates=templates,
        earlier=tuple(earlier),
        features=features,
        lexicons=lexicons,
        names=names,
        split=int(stored["split"]),
        cases=[(list(map(int, classes)), int(part)) for classes, part in stored["cases"]],
        classes=[list(map(int, part_classes)) for part_classes in stored["classes"]],
        classifiers=[parts.get(f"{name}.{number}") for number in range(len(stored["classes"]))],
        certain=_restore_certain(file, f"{name}.certain", arrays),
    )


def _make_lexicon_prefix(column: str, lexicon: str) -> str:
    """Return the prefix of the names of a lexicon's arrays."""
    return lexicon if lexicon == CLUSTER else f"{column}.{lexicon}"


def _restore_lexicon(file: str, prefix: str, arrays: Arrays) -> tuple[list[str], list[str]]:
    return (
        unpack_strings(file, arrays, f"{prefix}.words"),
        unpack_strings(file, arrays, f"{prefix}.values"),
    )


def _restore_certain(file: str, prefix: str, arrays: Arrays) -> CertainClasses:
    # Files of earlier versions do not store the words whose class is certain.
    if f"{prefix}.words" not in arrays:
        return CertainClasses([], np.zeros(0, np.int32), np.zeros(0, np.int32))
    integers = [np.dtype("<i4")]
    return CertainClasses(
        unpack_strings(file, arrays, f"{prefix}.words"),
        container.read_array(file, arrays, f"{prefix}.parts", integers, 1),
        container.read_array(file, arrays, f"{prefix}.classes", integers, 1),
    )
