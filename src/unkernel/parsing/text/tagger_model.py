"""Fitted taggers. Needs only NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import tag_text
from unkernel.data.text.columns import check_skipped
from unkernel.data.text.conll import Treebank
from unkernel.data.text.conll_sentence import COLUMNS
from unkernel.data.threads import thread_count
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import container
from unkernel.parsing.arc_eager.model import TreebankSource, as_treebank, read_nonempty
from unkernel.parsing.feature_names import ChunkFeatureNames
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.stored_classifiers import (
    restore_classifiers,
    store_classifiers,
)
from unkernel.parsing.tag_check import TagFault
from unkernel.parsing.text.clusters import WordClusters
from unkernel.parsing.text.learned_column import (
    CLUSTER,
    LEMMA,
    TAGGED,
    LearnedColumn,
    find_tagged_columns,
    restore_column,
)
from unkernel.parsing.text.lemmas import apply_edit
from unkernel.parsing.text.tag_result import TagResult, score_columns

if TYPE_CHECKING:
    from unkernel.parsing.explanation import Decision


@dataclass(frozen=True, eq=False, repr=False)
class TaggerModel(ParserModel):
    """Trained tagger, made by ``Tagger`` or loaded from a file.

    Attributes
    ----------
    columns : list of LearnedColumn
        The columns, in the order in which they are filled.
    parameters : dict
        Parameters of the estimator that fitted the model.

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
        lexicon = dict(self.columns[0].lexicons).get(CLUSTER)
        return None if lexicon is None else WordClusters.from_lexicon(lexicon)

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
        column = self._get_column(name)
        return [column.names[index] for index in column.classes[int(number)]]

    def feature_names(self, part: str) -> Callable[[int], str]:
        column = self._get_column(part.partition(".")[0])
        features = column.features
        return ChunkFeatureNames(column.templates, features.arrays(), int(features.features), column.names)

    def _get_column(self, name: str) -> LearnedColumn:
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
        tagged = self._annotate(bank, n_jobs)
        check_skipped(tagged._text)
        return tagged

    parse = tag

    def evaluate(self, source: TreebankSource, *, n_jobs: int | None = None) -> TagResult:
        bank = read_nonempty(source)
        measured = [name for name in self.columns_ if name in find_tagged_columns(bank)]
        if not measured:
            raise ValueError(f"{bank.name} has no {' and no '.join(self.columns_)} to compare with")
        for column in self.columns:
            column.engines()  # build the engines before the clock starts
        start = time.process_time()
        tagged = self.tag(bank, n_jobs=n_jobs)
        seconds = time.process_time() - start
        return score_columns(bank, tagged, measured, seconds)

    def tag_faults(self, corpus: Treebank) -> list[TagFault]:
        return []

    def _find_classes(self, bank: Treebank, n_jobs: int | None = None) -> list[NDArray[np.int32]]:
        """Return the classes of all words, column by column."""
        classes = tag_text(
            bank._text,
            [column.native for column in self.columns],
            [column.engines() for column in self.columns],
            threads=thread_count(n_jobs),
        )
        return [np.asarray(column_classes) for column_classes in classes]

    def _annotate(self, bank: Treebank, n_jobs: int | None) -> Treebank:
        return self._replace_tags(bank, self._find_classes(bank, n_jobs)) if bank.n_words else bank

    def _replace_tags(self, bank: Treebank, classes: list[NDArray[np.int32]]) -> Treebank:
        """Return the sentences with new values in all columns, given the classes of the words."""
        values = []
        for column, class_of_word in zip(self.columns, classes, strict=True):
            numbers, names = class_of_word, column.names
            if column.name == LEMMA:
                numbers, names = _apply_edits(bank, class_of_word, column.names)
            values.append((COLUMNS.index(column.name), numbers, names))
        return Treebank._from_text(bank._text.replace_columns(sorted(values, key=lambda value: value[0])))

    def _trace_decisions(self, source: Any, tags: Any) -> Iterator[tuple[Decision, NDArray[np.int32]]]:
        from unkernel.parsing.decision_trace import trace_tags

        bank = as_treebank(source)
        if not bank.n_words:
            return iter(())
        classes = self._find_classes(bank)
        return trace_tags(self._replace_tags(bank, classes), self.columns, classes)

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_classifiers(self.parts_)
        stored = []
        for column in self.columns:
            column_arrays, description = column.store()
            arrays |= column_arrays
            stored.append(description)
        return arrays, settings | {"columns": stored}

    @classmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        stored = container.read_setting(name, settings, "columns", list, _are_columns)
        parts = restore_classifiers(name, arrays, settings)
        model = cls([], parameters)
        for description in stored:
            model.columns.append(restore_column(name, description, model.columns_, arrays, parts))
        model._find_classes(as_treebank([]))  # raises a ValueError if the classifiers do not match the parts
        return model


def _are_columns(columns: list[Any]) -> bool:
    names = [column.get("name") for column in columns if isinstance(column, dict)]
    return 0 < len(names) == len(columns) == len(set(names)) and set(names) <= set(TAGGED)


def _apply_edits(
    bank: Treebank, edits: NDArray[np.int32], names: list[str]
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the lemma of each word as an index into the returned list of lemmas."""
    forms, form_names = bank.symbols("form")
    pairs, inverse = np.unique(edits.astype(np.int64) << 32 | forms, return_inverse=True)
    lemmas = [apply_edit(names[pair >> 32], form_names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
    return inverse.astype(np.int32), lemmas
