"""Fitted taggers. Needs only NumPy."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import SequenceFeatures, TagColumn, restored_sequence_features, tag_text
from unkernel.data.frames import frame_of
from unkernel.data.text.columns import parse_again
from unkernel.data.text.conll import Treebank
from unkernel.data.text.conll_sentence import COLUMNS
from unkernel.data.threads import thread_count
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import container
from unkernel.parsing.arc_eager.model import TreebankSource, as_treebank, read_nonempty
from unkernel.parsing.feature_names import ChunkFeatureNames
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.score_figures import per_second, percentage
from unkernel.parsing.stored_classifiers import (
    pack_strings,
    restore_classifiers,
    store_classifiers,
    unpack_strings,
)
from unkernel.parsing.tag_check import TagFault
from unkernel.parsing.text.clusters import Lexicon, WordClusters
from unkernel.parsing.text.lemmas import apply_edit

if TYPE_CHECKING:
    from unkernel.parsing.explanation import Decision

TAGGED = ("upos", "xpos", "feats", "lemma")  # in the order in which they are predicted
LEMMA = "lemma"
CLUSTER = "cluster"  # the lexicon that all columns share
Lexicons = list[tuple[str, Lexicon]]
_WORD_COLUMN = COLUMNS.index("form")
_EDIT = re.compile(r"=.+|[klc]:\d{1,6}:\d{1,6}:\d{1,6}:.*", re.DOTALL)


def find_tagged_columns(bank: Treebank) -> list[str]:
    """Return the columns of tags that are not empty in a treebank."""
    return [name for name in TAGGED if set(bank.symbols(name)[1]) - {"_"}]


def feature_sources(names: Sequence[str], lexicons: Lexicons) -> dict[str, Any]:
    """Return the sources of the features of a column: words, earlier columns and lexicons."""
    return {
        "word_column": _WORD_COLUMN,
        "columns": [(name, COLUMNS.index(name)) for name in names],
        "lexicons": lexicons,
    }


@dataclass(frozen=True, eq=False)
class CertainClasses:
    """Words with the same class in any context; one entry for each word and part."""

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
    before : tuple of str
        The columns that are filled before it, which its features use.
    features : SequenceFeatures
    lexicons : list
        Lexicons of words: name, words and values.
    names : list of str
        The classes: tags, or edits that make lemmas.
    split : int
        Number of the first columns that split its decisions into parts.
    cases : list of (list of int, int)
        Classes of those columns, and the part that decides for them.
    classes : list of list of int
        The classes that each part chooses among.
    classifiers : list of CompiledClassifier or None
        The classifiers, part by part; None for parts with a single class.
    certain : CertainClasses
        The words that need no classifier.
    """

    name: str
    templates: str
    before: tuple[str, ...]
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
        """The column as the core takes it."""
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
        """Return the same features and weights with other lexicons."""
        arrays = {key: np.asarray(array) for key, array in self.features.arrays().items()}
        sources = feature_sources(self.before, lexicons)
        features = restored_sequence_features(
            self.templates, self.name, arrays, int(self.features.features), **sources
        )
        return replace(self, features=features, lexicons=lexicons)

    def engines(self) -> list[Any]:
        """Return the engines, part by part."""
        return [None if one is None else one._engine for one in self.classifiers]


@dataclass(frozen=True)
class TagResult:
    """Accuracy and speed of a tagger.

    Attributes
    ----------
    accuracy : dict of str to float
        Percentage of words with the correct value, for each column that the tagger fills and the treebank
        has.
    all : float
        Percentage of words for which all these columns are correct.
    n_sentences : int
        Number of sentences.
    n_words : int
        Number of words.
    seconds : float
        CPU time of tagging, without reading and comparing.

    See Also
    --------
    TaggerModel.evaluate : Evaluate a tagger.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tagger
    >>> bank = Treebank.from_words([["They", "saw"], ["Dogs", "bark"]], [["PRON", "VERB"], ["NOUN", "VERB"]])
    >>> Tagger(min_count=1, min_updates=1).fit(bank).evaluate(bank).accuracy
    {'upos': 100.0}
    """

    accuracy: dict[str, float]
    all: float
    n_sentences: int
    n_words: int
    seconds: float

    @property
    def words_per_second(self) -> float:
        """Number of words tagged per second of CPU time."""
        return per_second(self.n_words, self.seconds)

    def to_frame(self) -> Any:
        """Return the accuracy of the columns as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per column.
        """
        shares = self.accuracy | {"all": self.all}
        return frame_of([{"column": name, "accuracy": share} for name, share in shares.items()])

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.2f} %" for name, share in self.accuracy.items())
        return (
            f"{shares}, all {self.all:.2f} % of {self.n_words:,} words; {self.words_per_second:,.0f} words/s"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TaggerModel(ParserModel):
    """Trained tagger, made by ``Tagger`` or loaded from a file.

    Attributes
    ----------
    columns : list of LearnedColumn
        The columns, in the order in which they are filled.
    parameters : dict
        Parameters of the estimator that was fitted.

    See Also
    --------
    Tagger : The estimator.

    Examples
    --------
    >>> import unkernel
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tagger
    >>> bank = Treebank.from_words([["They", "saw"], ["Dogs", "bark"]], [["PRON", "VERB"], ["NOUN", "VERB"]])
    >>> Tagger(min_count=1, min_updates=1).fit(bank).save("tagger.uk")
    >>> unkernel.load("tagger.uk").tag([["Dogs", "saw"]])[0].upos
    ['NOUN', 'VERB']
    """

    kind = "tagger"
    noun = "tagger"
    estimator = "Tagger"

    columns: list[LearnedColumn]
    parameters: dict[str, Any]

    @property
    def columns_(self) -> list[str]:
        """The columns that the tagger fills."""
        return [column.name for column in self.columns]

    @property
    def clusters(self) -> WordClusters | None:
        """The word clusters, if the tagger uses them, otherwise None."""
        found = dict(self.columns[0].lexicons).get(CLUSTER)
        return None if found is None else WordClusters.from_lexicon(found)

    @property
    def n_features_(self) -> int:
        """Number of features of all columns."""
        return sum(int(column.features.features) for column in self.columns)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers by name, such as ``"xpos.3"``, without parts that have a single class."""
        return {
            f"{column.name}.{number}": part
            for column in self.columns
            for number, part in enumerate(column.classifiers)
            if part is not None
        }

    def class_names(self, part: str) -> list[str]:
        name, _, number = part.partition(".")
        column = self._column(name)
        return [column.names[one] for one in column.classes[int(number)]]

    def feature_names(self, part: str) -> Callable[[int], str]:
        column = self._column(part.partition(".")[0])
        features = column.features
        return ChunkFeatureNames(column.templates, features.arrays(), int(features.features), column.names)

    def _column(self, name: str) -> LearnedColumn:
        return next(column for column in self.columns if column.name == name)

    # --- Answers --------------------------------------------------------------------------------------

    def tag(self, source: TreebankSource | Sequence[Sequence[str]], *, n_jobs: int | None = None) -> Treebank:
        """Predict the tags and lemmas of words.

        Parameters
        ----------
        source : path, open file, Treebank or lists of words
            The sentences. Existing values of the columns are replaced; every other byte is unchanged.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

        Returns
        -------
        Treebank
            The sentences with their tags.
        """
        bank = as_treebank(source)
        return Treebank._of(parse_again(bank._text, self._annotate(bank, n_jobs)))

    parse = tag

    def evaluate(self, source: TreebankSource, *, n_jobs: int | None = None) -> TagResult:
        bank = read_nonempty(source)
        measured = [name for name in self.columns_ if name in find_tagged_columns(bank)]
        if not measured:
            raise ValueError(f"{bank.name} has no {' and no '.join(self.columns_)} to compare with")
        for column in self.columns:
            column.engines()  # build them before the clock starts
        start = time.process_time()
        found = self.tag(bank, n_jobs=n_jobs)
        seconds = time.process_time() - start
        right = {name: _compare_column(bank, found, name) for name in measured}
        return TagResult(
            accuracy={name: _percent_true(own) for name, own in right.items()},
            all=_percent_true(np.logical_and.reduce(list(right.values()))),
            n_sentences=len(bank),
            n_words=bank.n_words,
            seconds=seconds,
        )

    def tag_faults(self, corpus: Treebank) -> list[TagFault]:
        return []

    def _find_classes(self, bank: Treebank, n_jobs: int | None = None) -> list[NDArray[np.int32]]:
        """Return the classes of all words, column by column."""
        found = tag_text(
            bank._text,
            [column.native for column in self.columns],
            [column.engines() for column in self.columns],
            threads=thread_count(n_jobs),
        )
        return [np.asarray(own) for own in found]

    def _annotate(self, bank: Treebank, n_jobs: int | None) -> bytes:
        return self._write_tags(bank, self._find_classes(bank, n_jobs)) if bank.n_words else bank.to_bytes()

    def _write_tags(self, bank: Treebank, found: list[NDArray[np.int32]]) -> bytes:
        values = []
        for column, own in zip(self.columns, found, strict=True):
            numbers, names = (
                (own, column.names) if column.name != LEMMA else _apply_edits(bank, own, column.names)
            )
            values.append((COLUMNS.index(column.name), numbers, names))
        return bytes(bank._text.write_columns(sorted(values, key=lambda one: one[0])))

    def _trace_decisions(self, source: Any, tags: Any) -> Iterator[tuple[Decision, NDArray[np.int32]]]:
        from unkernel.parsing.decision_trace import trace_tags

        bank = as_treebank(source)
        if not bank.n_words:
            return iter(())
        found = self._find_classes(bank)
        tagged = Treebank._of(parse_again(bank._text, self._write_tags(bank, found)))
        return trace_tags(tagged, self.columns, found)

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_classifiers(self.parts_)
        stored = []
        for column in self.columns:
            arrays |= {
                f"{column.name}.features.{key}": np.asarray(array)
                for key, array in column.features.arrays().items()
            }
            arrays[f"{column.name}.names"] = pack_strings(column.names)
            arrays[f"{column.name}.certain.words"] = pack_strings(column.certain.words)
            arrays[f"{column.name}.certain.parts"] = column.certain.parts
            arrays[f"{column.name}.certain.classes"] = column.certain.classes
            for lexicon, (words, values) in column.lexicons:
                prefix = _lexicon_prefix(column.name, lexicon)
                arrays[f"{prefix}.words"] = pack_strings(words)
                arrays[f"{prefix}.values"] = pack_strings(values)
            stored.append(
                {
                    "name": column.name,
                    "templates": column.templates,
                    "features": int(column.features.features),
                    "lexicons": [name for name, _ in column.lexicons],
                    "split": column.split,
                    "cases": column.cases,
                    "classes": column.classes,
                }
            )
        return arrays, settings | {"columns": stored}

    @classmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        stored = container.read_setting(name, settings, "columns", list, _are_columns)
        parts = restore_classifiers(name, arrays, settings)
        model = cls([], parameters)
        for one in stored:
            model.columns.append(_restore_column(name, one, model.columns_, arrays, parts))
        model._find_classes(as_treebank([]))  # ValueError if the classifiers are not those of the parts
        return model


def _restore_column(
    file: str, stored: dict[str, Any], before: list[str], arrays: Arrays, parts: dict[str, CompiledClassifier]
) -> LearnedColumn:
    name, templates = stored["name"], str(stored["templates"])
    lexicons: Lexicons = [
        (lexicon, _restore_lexicon(file, _lexicon_prefix(name, lexicon), arrays))
        for lexicon in map(str, stored["lexicons"])
    ]
    prefix = f"{name}.features."
    own = {
        key.removeprefix(prefix): np.ascontiguousarray(array)
        for key, array in arrays.items()
        if key.startswith(prefix)
    }
    features = restored_sequence_features(
        templates, file, own, int(stored["features"]), **feature_sources(before, lexicons)
    )
    names = unpack_strings(file, arrays, f"{name}.names")
    if name == LEMMA and not all(map(_EDIT.fullmatch, names)):
        raise ValueError("an edit of words is damaged")
    return LearnedColumn(
        name=name,
        templates=templates,
        before=tuple(before),
        features=features,
        lexicons=lexicons,
        names=names,
        split=int(stored["split"]),
        cases=[([int(one) for one in classes], int(part)) for classes, part in stored["cases"]],
        classes=[[int(one) for one in own] for own in stored["classes"]],
        classifiers=[parts.get(f"{name}.{number}") for number in range(len(stored["classes"]))],
        certain=_restore_certain(file, f"{name}.certain", arrays),
    )


def _lexicon_prefix(column: str, lexicon: str) -> str:
    """Return the prefix of the names of its arrays."""
    return lexicon if lexicon == CLUSTER else f"{column}.{lexicon}"


def _restore_lexicon(file: str, prefix: str, arrays: Arrays) -> tuple[list[str], list[str]]:
    return (
        unpack_strings(file, arrays, f"{prefix}.words"),
        unpack_strings(file, arrays, f"{prefix}.values"),
    )


def _restore_certain(file: str, prefix: str, arrays: Arrays) -> CertainClasses:
    if f"{prefix}.words" not in arrays:  # in files of the first version, classifiers decide everything
        return CertainClasses([], np.zeros(0, np.int32), np.zeros(0, np.int32))
    integers = [np.dtype("<i4")]
    return CertainClasses(
        unpack_strings(file, arrays, f"{prefix}.words"),
        container.read_array(file, arrays, f"{prefix}.parts", integers, 1),
        container.read_array(file, arrays, f"{prefix}.classes", integers, 1),
    )


def _are_columns(columns: list[Any]) -> bool:
    names = [one.get("name") for one in columns if isinstance(one, dict)]
    return 0 < len(names) == len(columns) == len(set(names)) and set(names) <= set(TAGGED)


def _apply_edits(
    bank: Treebank, edits: NDArray[np.int32], names: list[str]
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the lemmas of all words, as numbers of distinct names."""
    forms, form_names = bank.symbols("form")
    pairs, inverse = np.unique(edits.astype(np.int64) << 32 | forms, return_inverse=True)
    lemmas = [apply_edit(names[pair >> 32], form_names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
    return inverse.astype(np.int32), lemmas


def _compare_column(gold: Treebank, found: Treebank, column: str) -> NDArray[np.bool_]:
    """Return which words have the correct value."""
    codes, names = gold.symbols(column)
    other, other_names = found.symbols(column)
    place = {name: number for number, name in enumerate(names)}
    numbers = np.array([place.get(name, -1) for name in other_names], np.int32)
    same: NDArray[np.bool_] = numbers[other] == codes
    return same


def _percent_true(right: NDArray[np.bool_]) -> float:
    return percentage(int(np.count_nonzero(right)), len(right))
