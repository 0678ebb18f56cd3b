"""Fitted dependency parsers. Needs only NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ArcEagerSpec
from unkernel.data.files import Source
from unkernel.data.text.conll import Treebank, read_conllu
from unkernel.data.text.conll_sentence import COLUMNS
from unkernel.data.threads import thread_count
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import container
from unkernel.parsing.arc_eager.result import TreeResult, score_trees
from unkernel.parsing.feature_names import ArcFeatureNames
from unkernel.parsing.input_checks import check_beam, check_is_no_sentence, check_not_empty, read_beam
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.stored_classifiers import (
    pack_strings,
    restore_classifiers,
    select_arrays,
    store_classifiers,
    unpack_strings,
)
from unkernel.parsing.tag_check import MISSING, TagFault, find_tag_fault
from unkernel.parsing.text.clusters import WordClusters

if TYPE_CHECKING:
    from unkernel.parsing.explanation import Decision

TreebankSource = Source | Treebank
SPLITS = ("labels", "both", "none")
_STRINGS = "strings."
_KINDS_WITHOUT_CLUSTERS = 15  # number of kinds of strings in files written before clusters existed
_CLUSTERS = "clusters."
_TAG_COLUMNS = {"upos": 3, "xpos": 4}  # index of each column among the kinds of strings
_TAG_ADVICE = (
    "give tagged CoNLL-U, or lists of words with their universal parts of speech as tags and, if the "
    "treebank has its own, those as xpos"
)
_MOVES = ("SHIFT", "REDUCE", "LEFT-ARC", "RIGHT-ARC")
_ARRAYS = ("move_keys", "arc_keys", "move_begins", "arc_begins")
_LISTS = (
    "labels",
    "lifted_labels",
    "root_label",
    "move_parts",
    "arc_parts",
    "move_classes",
    "arc_classes",
)


def new_spec(
    template_text: str,
    template_file: str,
    split: str,
    min_count: int = 1,
    clusters: WordClusters | None = None,
) -> ArcEagerSpec:
    """Return a specification with templates, but without the strings and features of a treebank."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
    return ArcEagerSpec(
        template_file,
        template_text,
        ([], []) if clusters is None else clusters.to_lexicon(),
        split_moves=split == "both",
        split_labels=split != "none",
        min_count=min_count,
    )


@dataclass(frozen=True, eq=False, repr=False)
class ArcEagerModel(ParserModel):
    """Trained dependency parser, made by ``ArcEagerParser`` or loaded from a file.

    Attributes
    ----------
    spec : ArcEagerSpec
        Everything except the weights: strings, labels, features, and which classifier makes each decision.
    templates : str
        Text of the feature templates.
    beam : int
        Number of sequences of moves that are followed simultaneously.
    clusters : WordClusters or None
        Word clusters, if the parser uses them.
    move_classifiers_ : list of CompiledClassifier or None
        Classifiers of moves, one per part; None for parts with a single class.
    label_classifiers_ : list of CompiledClassifier or None
        Classifiers of labels, one per part; None for parts with a single class.
    parameters : dict
        Parameters of the estimator that fitted the model.

    See Also
    --------
    ArcEagerParser : The estimator.

    Examples
    --------
    >>> import unkernel
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import ArcEagerParser
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "it"], ["Dogs", "bark"]],
    ...     [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]],
    ...     heads=[[2, 0, 2], [2, 0]],
    ...     deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
    ... )
    >>> ArcEagerParser(min_count=1, min_updates=1).fit(bank).save("parser.uk")
    >>> model = unkernel.load("parser.uk")
    >>> model.labels_
    ['nsubj', 'root', 'obj']
    >>> model.evaluate(bank).las
    100.0
    """

    kind = "arc_eager_parser"
    estimator = "ArcEagerParser"

    spec: ArcEagerSpec
    templates: str
    beam: int
    clusters: WordClusters | None
    move_classifiers_: list[CompiledClassifier | None]
    label_classifiers_: list[CompiledClassifier | None]
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        check_beam(self.beam)

    def with_beam(self, beam: int) -> Self:
        """Return this parser with another beam width.

        Parameters
        ----------
        beam : int
            Number of sequences of moves that are followed simultaneously, up to 64. Narrower beams are
            faster; beams much narrower than in training are less accurate.

        Returns
        -------
        ArcEagerModel
            A parser that shares the classifiers of this one.

        Raises
        ------
        ValueError
            If the parser was trained without a beam. The scores of its sequences of moves are not comparable.
        """
        check_beam(beam)
        if beam > 1 and self.parameters.get("beam", 1) == 1:
            raise ValueError(
                f"beam={beam} needs a parser that was trained with a beam, and this one was not: "
                "give its training beam=8"
            )
        return replace(self, beam=beam)

    @property
    def labels_(self) -> list[str]:
        """The dependency relations that the parser can assign."""
        return list(self.spec.labels)

    @property
    def n_features_(self) -> int:
        """Number of features of moves and labels."""
        return int(self.spec.move_columns + self.spec.arc_columns)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers by name, such as ``"moves.0"``, without parts that have a single class."""
        named = [("moves", self.move_classifiers_), ("labels", self.label_classifiers_)]
        return {
            f"{name}.{number}": part
            for name, parts in named
            for number, part in enumerate(parts)
            if part is not None
        }

    def class_names(self, part: str) -> list[str]:
        kind, _, number = part.partition(".")
        if kind == "moves":
            return [_MOVES[move] for move in self.spec.move_classes[int(number)]]
        return [self.spec.labels[label] for label in self.spec.arc_classes[int(number)]]

    def feature_names(self, part: str) -> Callable[[int], str]:
        kind = part.partition(".")[0]
        return ArcFeatureNames(kind, self.templates, self.spec.stored(), self.spec.labels)

    # --- Answers --------------------------------------------------------------------------------------

    def parse(
        self,
        source: TreebankSource | Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        xpos: Sequence[Sequence[str]] | None = None,
        n_jobs: int | None = None,
    ) -> Treebank:
        """Find the dependency trees of sentences.

        Parameters
        ----------
        source : path, open file, Treebank or lists of words
            The sentences. Existing heads and relations are replaced; every other byte is unchanged.
        tags : lists of str, default=None
            Universal parts of speech, if the sentences are lists of words.
        xpos : lists of str, default=None
            The treebank's own parts of speech, if the sentences are lists of words.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

        Returns
        -------
        Treebank
            The sentences with their trees.
        """
        bank = as_treebank(source, tags, xpos)
        self.check_tags(bank)
        return bank._with_trees(*self._find_trees(bank, n_jobs), self.labels_)

    def evaluate(self, source: TreebankSource, *, n_jobs: int | None = None) -> TreeResult:
        bank = read_gold_trees(source)
        self.check_tags(bank)
        self._engines()  # build the engines before the clock starts
        start = time.process_time()
        trees = self._find_trees(bank, n_jobs)
        seconds = time.process_time() - start
        return score_trees(bank, bank._with_trees(*trees, self.labels_), seconds)

    def tag_faults(self, corpus: Treebank) -> list[TagFault]:
        faults = []
        for column, attribute in _TAG_COLUMNS.items():
            trained_tags = self.spec.strings(attribute)
            is_unused = not trained_tags or (column == "xpos" and not self._has_trained_xpos)
            if is_unused or not corpus.n_words:
                continue
            codes, names = corpus.symbols(column) if column == "upos" else _fill_in_tags(corpus)
            faults.append(find_tag_fault(column, codes, names, trained_tags=trained_tags, advice=_TAG_ADVICE))
        return [fault for fault in faults if fault is not None]

    @cached_property
    def _has_trained_xpos(self) -> bool:
        """Whether the training text had xpos tags. If not, universal tags took their place."""
        upos, xpos = (set(self.spec.strings(attribute)) for attribute in _TAG_COLUMNS.values())
        return bool(xpos - upos)

    def _drop_untrained_xpos(self, bank: Treebank) -> Treebank:
        """Return the sentences without xpos tags if the training text had none."""
        if self._has_trained_xpos or set(bank.symbols("xpos")[1]) <= {MISSING}:
            return bank
        blank = (COLUMNS.index("xpos"), np.zeros(bank.n_words, np.int32), [MISSING])
        return Treebank._from_text(bank._text.replace_columns([blank]))

    def _find_trees(self, bank: Treebank, n_jobs: int | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        text = self._drop_untrained_xpos(bank)._text
        heads, relations = self.spec.parse(
            *self._engines(), text, beam=self.beam, threads=thread_count(n_jobs)
        )
        return np.asarray(heads), np.asarray(relations)

    def _engines(self) -> tuple[list[Any], list[Any]]:
        def engine(part: CompiledClassifier | None) -> Any:
            return None if part is None else part._engine

        return list(map(engine, self.move_classifiers_)), list(map(engine, self.label_classifiers_))

    def _annotate(self, bank: Treebank, n_jobs: int | None) -> Treebank:
        return Treebank._from_text(bank._text.replace_trees(*self._find_trees(bank, n_jobs), self.labels_))

    def _trace_decisions(self, source: Any, tags: Any) -> Iterator[tuple[Decision, NDArray[np.int32]]]:
        bank = as_treebank(source, tags)
        self.check_tags(bank)
        from unkernel.parsing.decision_trace import trace_trees

        return trace_trees(self.spec, self._engines(), self._drop_untrained_xpos(bank), self.beam)

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_classifiers(self.parts_)
        stored = self.spec.stored()
        for number, names in enumerate(stored["strings"]):
            arrays[f"{_STRINGS}{number}"] = pack_strings(names)
        arrays |= {name: np.asarray(stored[name]) for name in _ARRAYS}
        settings |= {name: stored[name] for name in _LISTS}
        if self.clusters is not None:
            _, content, _ = self.clusters.to_container()
            arrays |= {f"{_CLUSTERS}{key}": value for key, value in content.items()}
        return arrays, settings | {"templates": self.templates, "beam": self.beam}

    @classmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        templates = container.read_setting(name, settings, "templates", str)
        clusters = _restore_clusters(name, arrays)
        spec = new_spec(templates, name, parameters["split"], clusters=clusters)
        spec.restore(_build_spec_table(name, arrays, settings))
        parts = restore_classifiers(name, arrays, settings)
        model = cls(
            spec=spec,
            templates=templates,
            beam=read_beam(name, settings),
            clusters=clusters,
            move_classifiers_=[parts.get(f"moves.{k}") for k in range(len(spec.move_classes))],
            label_classifiers_=[parts.get(f"labels.{k}") for k in range(len(spec.arc_classes))],
            parameters=parameters,
        )
        model.parse([])  # raises a ValueError if the classifiers do not match the parts
        return model


def _restore_clusters(name: str, arrays: Arrays) -> WordClusters | None:
    cluster_arrays = select_arrays(arrays, _CLUSTERS)
    return WordClusters.from_container(name, cluster_arrays, {}) if cluster_arrays else None


def _build_spec_table(name: str, arrays: Arrays, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table that ``ArcEagerSpec.restore`` reads, from the arrays and settings of a file."""
    table = {key: settings.get(key) for key in _LISTS}
    table |= {key: np.ascontiguousarray(arrays[key]) for key in _ARRAYS if key in arrays}
    count = sum(key.startswith(_STRINGS) for key in arrays)
    strings = [unpack_strings(name, arrays, f"{_STRINGS}{number}") for number in range(count)]
    table["strings"] = [*strings, []] if count == _KINDS_WITHOUT_CLUSTERS else strings
    return table


def _fill_in_tags(bank: Treebank) -> tuple[NDArray[np.int32], list[str]]:
    """Return the xpos tag of each word as an index into the returned names.

    A word without an xpos tag gets its universal tag, as in training.
    """
    xpos, names = bank.symbols("xpos")
    upos, upos_names = bank.symbols("upos")
    missing = np.array([name == MISSING for name in names])[xpos]
    index_of = {name: index for index, name in enumerate(dict.fromkeys([*names, *upos_names]))}
    replacements = np.array([index_of[name] for name in upos_names], np.int32)[upos]
    return np.where(missing, replacements, xpos), list(index_of)


def as_treebank(source: Any, tags: Any = None, xpos: Any = None) -> Treebank:
    """Read a treebank from a file, or make one from lists of words; return a treebank unchanged."""
    if isinstance(source, list | tuple):
        return Treebank.from_words(source, tags, xpos=xpos)
    if tags is not None or xpos is not None:
        raise ValueError("tags are only for lists of words: a treebank has its own tags, so leave them out")
    check_is_no_sentence(source)
    return source if isinstance(source, Treebank) else read_conllu(source)


def read_nonempty(source: Any) -> Treebank:
    """Return a treebank for training or evaluation; ValueError if it is empty."""
    bank = as_treebank(source)
    check_not_empty(bank.name, bank.n_words)
    return bank


def read_gold_trees(source: Any) -> Treebank:
    """Return a treebank for training or evaluation; ValueError if it is empty or a sentence has no tree."""
    bank = read_nonempty(source)
    bank.check_trees()
    return bank


def read_comparable_trees(source: Any) -> Treebank:
    """Return a treebank for evaluation; ValueError if some of its sentences have trees and others do not."""
    bank = read_nonempty(source)
    if (bank.heads >= 0).any():
        bank.check_trees()
    return bank
