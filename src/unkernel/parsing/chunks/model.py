"""Fitted chunkers. Needs only NumPy."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from unkernel._core import (
    ColumnText,
    SequenceFeatures,
    chunk_tag_names,
    chunk_text,
    recode_chunks,
    restored_sequence_features,
)
from unkernel.data import file_memory_limit
from unkernel.data.files import Source
from unkernel.data.text.chunks import ChunkCorpus, read_chunks
from unkernel.data.threads import thread_count
from unkernel.engines.compilation import compile
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.models import KernelModel, TreeModel, container
from unkernel.models.model_files import COMPILED, model_from, model_part
from unkernel.parsing.chunks.result import ChunkResult, score_tags
from unkernel.parsing.feature_names import ChunkFeatureNames
from unkernel.parsing.input_checks import check_beam, check_is_no_sentence, check_not_empty, read_beam
from unkernel.parsing.parser_model import Arrays, ParserModel
from unkernel.parsing.stored_classifiers import select_arrays
from unkernel.parsing.tag_check import TagFault, find_tag_fault

if TYPE_CHECKING:
    from unkernel.parsing.explanation import Decision

ChunkSource = Source | ChunkCorpus
SCHEMES = ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES")
DIRECTIONS = ("forward", "backward")
ENGINES = ("auto", "inverted", "bitsliced", "expanded", "split")  # engines whose scores are exact
_FEATURES = "features."
_TAGS = "tags"
_POS_COLUMN = 1
FEATURE_SOURCES: dict[str, Any] = {"word_column": 0, "columns": [("pos", _POS_COLUMN)]}
_POS_ADVICE = "give the part of speech of each word in its second column, or lists of words with tags"
_TAG = re.compile("O|[BIES](-.*)?")
# Features in fewer support vectors than this are rare. Their conjunctions would need one weight per tag, and
# these weights would fill most of the tables. Instead, engines sum over the support vectors that have the
# rare features. A smaller limit makes tables larger but not faster; a larger limit makes them slower.
_MIN_SUPPORT_VECTORS = 32
_PEAK_MEMORY_FACTOR = 2  # peak memory while tables are built, divided by the size of the tables


def compile_unmeasured(
    model: Any, engine: str, n_jobs: int | None = None, *, memory: int | None = None
) -> CompiledClassifier:
    """Compile a model without measuring speed: the same model always gives the same tables."""
    if engine == "auto":
        engine = "split" if isinstance(model, KernelModel) and model.kernel.degree > 1 else "expanded"
    classifier = compile(model, engine=engine, rare=_MIN_SUPPORT_VECTORS, memory=memory, n_jobs=n_jobs)
    assert isinstance(classifier, CompiledClassifier)
    return classifier


@dataclass(frozen=True, eq=False, repr=False)
class ChunkModel(ParserModel):
    """Trained chunker, made by ``Chunker`` or loaded from a file.

    Attributes
    ----------
    templates : str
        Text of the feature templates.
    features : SequenceFeatures
        The features.
    types : list of str
        The types of chunks.
    classes : ndarray of int32
        The tags that the classifier chooses among, as indices into ``tag_names``.
    scheme : str
        Tag scheme that the classifier uses.
    direction : {"forward", "backward"}
        Direction in which sentences are tagged.
    columns : int
        Number of columns of the training text, including the tags.
    beam : int
        Number of tag sequences that are followed simultaneously.
    engine : str
        Engine of the classifier.
    classifier_ : CompiledClassifier
        The classifier of tags.
    parameters : dict
        Parameters of the estimator that fitted the model.

    See Also
    --------
    Chunker : The estimator.

    Examples
    --------
    >>> import unkernel
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import Chunker
    >>> text = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    >>> Chunker().fit(text).save("chunker.uk")
    >>> model = unkernel.load("chunker.uk")
    >>> model.types_, model.evaluate(text).f1
    (['NP', 'VP'], 100.0)
    """

    kind = "chunker"
    noun = "chunker"
    estimator = "Chunker"

    templates: str
    features: SequenceFeatures
    types: list[str]
    classes: NDArray[np.int32]
    scheme: str
    direction: str
    columns: int
    beam: int
    engine: str
    classifier_: CompiledClassifier
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        check_beam(self.beam)

    @property
    def tag_names(self) -> list[str]:
        """Names of all tags that the chunk types have in the scheme."""
        return chunk_tag_names(self.types)

    @property
    def n_features_(self) -> int:
        """Number of features."""
        return int(self.features.features)

    @property
    def classes_(self) -> NDArray[np.str_]:
        """The tags that the classifier chooses among, in the internal scheme."""
        return np.array(self.tag_names)[self.classes]

    @property
    def types_(self) -> list[str]:
        """The types of chunks."""
        return list(self.types)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifier, by its name ``"tags"``."""
        return {_TAGS: self.classifier_}

    def class_names(self, part: str) -> list[str]:
        return [str(tag) for tag in self.classes_]

    def feature_names(self, part: str) -> Callable[[int], str]:
        tags = self.class_names(part)
        return ChunkFeatureNames(self.templates, self.features.arrays(), self.n_features_, tags)

    # --- Answers --------------------------------------------------------------------------------------

    def parse(
        self,
        source: ChunkSource | Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> ChunkCorpus:
        """Find the chunks of a text.

        Parameters
        ----------
        source : path, open file, ChunkCorpus or lists of words
            The text. If it has as many columns as the training text, the tags replace its last column;
            otherwise they are added as a new last column.
        tags : lists of str, default=None
            Parts of speech, if `source` consists of lists of words.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

        Returns
        -------
        ChunkCorpus
            The text with tags in IOB2.
        """
        corpus = self._read_untagged(source, tags)
        self.check_tags(corpus)
        return corpus._with_tags(self.tags(corpus, n_jobs), self.tag_names)

    def evaluate(self, source: ChunkSource, *, n_jobs: int | None = None) -> ChunkResult:
        corpus = read_nonempty(source)
        self.check_tags(corpus)
        _ = self.classifier_._engine  # build the engine before the clock starts
        start = time.process_time()
        predicted = self.tags(corpus, n_jobs)
        return score_tags(corpus, predicted, self.types, time.process_time() - start)

    def tag_faults(self, corpus: ChunkCorpus) -> list[TagFault]:
        check_pos(self.features, corpus)
        trained_tags = self.features.known(0)  # None if the templates use no parts of speech
        if trained_tags is None or not corpus.n_words:
            return []
        codes, names = corpus.symbols(_POS_COLUMN)
        fault = find_tag_fault(
            "2", np.asarray(codes), list(names), trained_tags=trained_tags, advice=_POS_ADVICE
        )
        return [] if fault is None else [fault]

    def tags(self, corpus: ChunkCorpus, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Find the tags of all words in IOB2.

        Parameters
        ----------
        corpus : ChunkCorpus
            The text.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        ndarray of int32
            The tag of each word, as an index into the names of IOB2 tags.
        """
        check_pos(self.features, corpus)
        tags = chunk_text(
            corpus._text,
            self.features,
            self.classifier_._engine,
            self.classes,
            scheme=self.scheme,
            backward=self.direction == "backward",
            beam=self.beam,
            threads=thread_count(n_jobs),
        )
        return np.asarray(tags)

    def _annotate(self, corpus: ChunkCorpus, n_jobs: int | None) -> ChunkCorpus:
        return corpus._with_tags(self.tags(corpus, n_jobs), self.tag_names)

    def _trace_decisions(self, source: Any, tags: Any) -> Iterator[tuple[Decision, NDArray[np.int32]]]:
        corpus = self._read_untagged(source, tags)
        self.check_tags(corpus)
        from unkernel.parsing.decision_trace import trace_chunks

        recoded = np.asarray(recode_chunks(corpus.offsets, self.tags(corpus), self.scheme))
        # Tags that the classifier does not know, which recoding may introduce, get the class -1.
        classes = np.minimum(np.searchsorted(self.classes, recoded), len(self.classes) - 1)
        classes = np.where(self.classes[classes] == recoded, classes, -1).astype(np.int32)
        backward = self.direction == "backward"
        offsets, columns = map(np.asarray, self.features.rows(corpus._text, classes, backward=backward))
        return trace_chunks(corpus, classes, offsets, columns, _TAGS)

    def _read_untagged(
        self, source: ChunkSource | Sequence[Sequence[str]], pos: Sequence[Sequence[str]] | None
    ) -> ChunkCorpus:
        """Return a text or lists of words as a corpus to tag; `pos` is only for lists of words."""
        if isinstance(source, list | tuple):
            return ChunkCorpus.from_words(source, *([] if pos is None else [pos]))
        if pos is not None:
            raise ValueError("tags go with lists of words; a text has parts of speech in its second column")
        if isinstance(source, ChunkCorpus):
            return source
        check_is_no_sentence(source)
        return mark_tag_column(read_chunks(cast(Source, source), tagged=False)._text, self.columns)

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        """Store the classifier's model, not its compiled tables, which are large and quick to rebuild."""
        arrays, settings = model_part(self.classifier_.model)
        arrays |= {_FEATURES + name: np.asarray(array) for name, array in self.features.arrays().items()}
        arrays["classes"] = self.classes
        settings |= {
            "templates": self.templates,
            "types": self.types,
            "features": int(self.features.features),
            "scheme": self.scheme,
            "direction": self.direction,
            "columns": self.columns,
            "beam": self.beam,
            "engine": self.engine,
        }
        return arrays, settings

    @classmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        templates = container.read_setting(name, settings, "templates", str)
        count = container.read_setting(name, settings, "features", int, lambda number: 0 <= number < 2**31)
        feature_arrays = {key: np.asarray(array) for key, array in select_arrays(arrays, _FEATURES).items()}
        engine = container.read_setting(name, settings, "engine", str, ENGINES.__contains__)
        model = cls(
            templates=templates,
            features=restored_sequence_features(templates, name, feature_arrays, count, **FEATURE_SOURCES),
            types=container.read_setting(name, settings, "types", list, _are_names),
            classes=np.array(container.read_array(name, arrays, "classes", [np.dtype(np.int32)], 1)),
            scheme=container.read_setting(name, settings, "scheme", str, SCHEMES.__contains__),
            direction=container.read_setting(name, settings, "direction", str, DIRECTIONS.__contains__),
            columns=container.read_setting(name, settings, "columns", int, lambda number: number >= 1),
            beam=read_beam(name, settings),
            engine=engine,
            classifier_=_compile_within_limit(_read_model(name, arrays, settings), engine),
            parameters=parameters,
        )
        n_tags = len(model.tag_names)
        if len(model.classes) == 0 or not 0 <= model.classes.min() <= model.classes.max() < n_tags:
            raise FormatError(name, 0, 0, "the chunker's tags are not those of its types")
        model.tags(ChunkCorpus.from_words([]))  # raises a ValueError if the classifier has other tags
        return model


def _compile_within_limit(model: Any, engine: str) -> CompiledClassifier:
    """Compile the model of a file within the memory limit of loading."""
    allowance = file_memory_limit.get_allowance()
    if allowance is None:
        return compile_unmeasured(model, engine)
    table_bytes = max(int(allowance.left) // _PEAK_MEMORY_FACTOR, 1)
    try:
        classifier = compile_unmeasured(model, engine, memory=table_bytes)
    except MemoryError as error:
        raise allowance.new_limit_error(
            "the tables of its classifier would take more memory", np.inf
        ) from error
    file_memory_limit.claim(classifier.nbytes, "the tables of its classifier")
    return classifier


def _read_model(name: str, arrays: Arrays, settings: Mapping[str, Any]) -> Any:
    model = model_from(name, COMPILED, arrays, dict(settings))  # the classifier's model
    if isinstance(model, TreeModel):
        raise FormatError(name, 0, 0, "a chunker's model must not be a tree model")
    return model


def _are_names(names: list[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def check_pos(features: SequenceFeatures, corpus: ChunkCorpus, advice: str = "") -> None:
    """Raise ValueError if the templates use parts of speech and a text has none."""
    has_pos = corpus.n_columns - corpus.tagged >= 2
    if features.known(0) is None or not len(corpus) or has_pos:
        return
    expected, missing = "a word and its part of speech", "the part of speech"
    if corpus.tagged:
        expected = "a word, its part of speech and its tag"
        malformed = [tag for tag in corpus.symbols(-1)[1] if not _TAG.fullmatch(tag)]
        missing = f"the tag ({malformed[0]!r} is none)" if malformed else missing
    raise ValueError(
        f"{corpus.name}: {'2 columns' if corpus.tagged else '1 column'}, where {expected} are expected, as "
        f"the templates look at parts of speech: {missing} is missing{advice}"
    )


def read_tagged(source: ChunkSource) -> ChunkCorpus:
    """Return a text whose last column has tags."""
    return source if isinstance(source, ChunkCorpus) else read_chunks(source, tagged=True)


def read_nonempty(source: ChunkSource) -> ChunkCorpus:
    """Return a text for evaluation; ValueError if it is empty."""
    corpus = read_tagged(source)
    check_not_empty(corpus.name, corpus.n_words)
    return corpus


def mark_tag_column(text: ColumnText, columns: int) -> ChunkCorpus:
    """Return a text as a corpus to tag; if it has `columns` columns, the last has tags to replace."""
    if text.columns > columns:
        raise ValueError(
            f"{text.file} has {text.columns} columns, and the training text had {columns}; a text has one "
            "word per line, with its part of speech and so on in further columns"
        )
    return ChunkCorpus._from_text(text, text.columns == columns)
