"""Fitted parsers of raw text. Needs only NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from unkernel.data.text.columns import parse_text
from unkernel.data.text.conll import Treebank
from unkernel.data.threads import thread_count
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing.arc_eager.model import ArcEagerModel, TreebankSource, read_comparable_trees
from unkernel.parsing.ordered_work import map_in_order
from unkernel.parsing.parser_model import Arrays, SavedModel
from unkernel.parsing.tag_check import TagFault
from unkernel.parsing.text.document import Document
from unkernel.parsing.text.gold_text import plain_text
from unkernel.parsing.text.result import TextResult, compare_text, list_measures
from unkernel.parsing.text.tagger_model import TaggerModel
from unkernel.parsing.text.tokenizer_model import TEXT_NAME, TokenizerModel, encode_text

if TYPE_CHECKING:
    from unkernel.parsing.explanation import ExplainedDecision

Given = Literal["text", "tokens", "tags"]
GIVEN = ("text", "tokens", "tags")
_PARTS: dict[str, type[SavedModel]] = {
    "tokenizer": TokenizerModel,
    "tagger": TaggerModel,
    "parser": ArcEagerModel,
}
_Model = TypeVar("_Model")
_BATCH_BYTES = 1 << 17  # short texts are parsed together
_NEW_TEXT = b"# newdoc\n"  # separates the texts of a batch; the parser never writes this line itself


class _LazyModel(Generic[_Model]):
    """A model that is made on first use, once for all threads."""

    def __init__(self, make: Callable[[], _Model]) -> None:
        self._make = make
        self._lock = Lock()

    def get(self) -> _Model:
        with self._lock:
            if not hasattr(self, "_model"):
                self._model = self._make()
        return self._model


class TextParserModel(SavedModel):
    """Trained parser of raw text, made by ``TextParser`` or loaded from a file.

    A loaded file stays mapped into memory. Each of its three models is checked and prepared on first use; if
    it is damaged, a ``FormatError`` is raised then. :meth:`check_model` checks all three models at once.

    Parameters
    ----------
    tokenizer : callable
        Returns the tokenizer.
    tagger : callable
        Returns the tagger.
    parser : callable
        Returns the dependency parser.
    parameters : dict
        Parameters of the estimator that was fitted.

    Attributes
    ----------
    parameters : dict
        Parameters of the estimator that was fitted.

    See Also
    --------
    TextParser : The estimator.

    Examples
    --------
    >>> import unkernel
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import TextParser
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "it"], ["Dogs", "bark"]] * 9,
    ...     [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]] * 9,
    ...     heads=[[2, 0, 2], [2, 0]] * 9,
    ...     deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]] * 9,
    ... )
    >>> TextParser().fit(bank).save("text.uk")
    >>> unkernel.load("text.uk").parse("They bark")[0].heads
    [2, 0]
    """

    kind = "text_parser"
    noun = "text parser"
    estimator = "TextParser"

    def __init__(
        self,
        tokenizer: Callable[[], TokenizerModel],
        tagger: Callable[[], TaggerModel],
        parser: Callable[[], ArcEagerModel],
        parameters: dict[str, Any],
    ) -> None:
        self._tokenizer = _LazyModel(tokenizer)
        self._tagger = _LazyModel(tagger)
        self._parser = _LazyModel(parser)
        self.parameters = parameters

    @property
    def tokenizer(self) -> TokenizerModel:
        """The tokenizer, which can be used and saved alone."""
        return self._tokenizer.get()

    @property
    def tagger(self) -> TaggerModel:
        """The tagger, which can be used and saved alone."""
        return self._tagger.get()

    @property
    def parser(self) -> ArcEagerModel:
        """The dependency parser, which can be used and saved alone."""
        return self._parser.get()

    @property
    def models(self) -> dict[str, SavedModel]:
        """The three models by name."""
        return {name: getattr(self, name) for name in _PARTS}

    @property
    def n_features_(self) -> int:
        """Number of features of all models."""
        return sum(model.n_features_ for model in self.models.values())

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers by name, such as ``"tagger.upos.0"``."""
        return {
            f"{name}.{part}": classifier
            for name, model in self.models.items()
            for part, classifier in model.parts_.items()
        }

    def with_beam(self, beam: int) -> Self:
        """Return this model with another beam width of the parser.

        Parameters
        ----------
        beam : int
            The beam width, as for :meth:`ArcEagerModel.with_beam`.

        Returns
        -------
        TextParserModel
            A model that shares the classifiers of this one.
        """
        parser = self.parser.with_beam(beam)
        return type(self)(self._tokenizer.get, self._tagger.get, lambda: parser, self.parameters)

    # --- Answers --------------------------------------------------------------------------------------

    def parse(self, text: str, *, n_jobs: int | None = None) -> Document:
        """Split a text into sentences and words, and find their tags, lemmas and trees.

        Parameters
        ----------
        text : str
            The text, as for :meth:`TokenizerModel.tokenize`.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

        Returns
        -------
        Document
            The parsed text; it contains every character of `text`.
        """
        return Document._from_text(self._annotate_text(encode_text(text), n_jobs)._text)

    def parse_many(self, texts: Iterable[str], *, n_jobs: int | None = None) -> Generator[Document]:
        """Parse many texts in bounded memory, whatever their number.

        Parameters
        ----------
        texts : iterable of str
            The texts; they are read one by one as needed.
        n_jobs : int, default=None
            Number of threads; texts are divided among them. None means 1 and -1 means all processors. The
            results do not depend on it.

        Returns
        -------
        generator of Document
            The parsed texts in the order of `texts`, equal to the results of :meth:`parse`.
        """
        if isinstance(texts, str):
            raise TypeError("parse_many takes several texts, and got one: use parse")
        return self._parse_batches(_group_into_batches(texts), thread_count(n_jobs))

    def _parse_batches(self, batches: Iterable[list[bytes]], threads: int) -> Generator[Document]:
        for documents in map_in_order(self._parse_batch, batches, threads):
            yield from documents

    def _parse_batch(self, texts: list[bytes]) -> list[Document]:
        """Split short texts one by one, and tag and parse them together."""
        tokenized = [self.tokenizer._tokenize(text, 1) for text in texts]
        words = _read_words(b"".join(_NEW_TEXT + tokens for tokens in tokenized if tokens))
        annotated = self._annotate(words, 1).to_bytes()
        separator = b"\n" + _NEW_TEXT  # its line feed is the blank line after the previous text
        parsed = iter((b"\n" + annotated).removesuffix(b"\n").split(separator)[1:])
        # Texts without words were not parsed; their documents are empty.
        return [Document._from_conllu(next(parsed) + b"\n" if tokens else b"") for tokens in tokenized]

    def explain(self, source: str | Treebank, *, top: int | None = 10) -> list[ExplainedDecision]:
        """Explain how the words of a text get their tags and heads, decision by decision.

        Parameters
        ----------
        source : str or Treebank
            A text, or sentences that are split into words.
        top : int or None, default=10
            Number of conjunctions of features to list per decision; None lists all.

        Returns
        -------
        list of ExplainedDecision
            The decisions of the tagger, then those of the parser; their parts are named as in ``parts_``.
            Words whose tag was always the same in training are tagged without a decision.
        """
        words = self.tokenizer.tokenize(source) if isinstance(source, str) else source
        if not words.n_words:
            return []
        explained = {
            "tagger": self.tagger.explain(words, top=top),
            "parser": self.parser.explain(self.tagger.tag(words), top=top),
        }
        return [
            replace(decision, part=f"{name}.{decision.part}")
            for name, decisions in explained.items()
            for decision in decisions
        ]

    def tag_faults(self, corpus: Treebank) -> list[TagFault]:
        """Return an empty list, because the model needs no tags.

        Parameters
        ----------
        corpus : Treebank
            The sentences.

        Returns
        -------
        list
            Always empty.
        """
        return []

    def _annotate_text(self, text: bytes, n_jobs: int | None) -> Treebank:
        return self._annotate(_read_words(self.tokenizer._tokenize(text, n_jobs)), n_jobs)

    def _annotate(self, bank: Treebank, n_jobs: int | None) -> Treebank:
        return self.parser._annotate(self.tagger._annotate(bank, n_jobs), n_jobs)

    def evaluate(
        self, source: TreebankSource, *, given: Given = "text", n_jobs: int | None = None
    ) -> TextResult:
        """Parse the text of a treebank and compare the result with its annotation.

        Parameters
        ----------
        source : path, open file or Treebank
            Sentences with the correct annotation.
        given : {"text", "tokens", "tags"}, default="text"
            Input of the parser. "text" gives the text of the treebank (from its comments ``# text``, with a
            blank line before each paragraph), "tokens" gives its sentences and words, and "tags" gives its
            tags as well.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        TextResult
            The accuracy and the speed.
        """
        check_given(given)
        bank = read_comparable_trees(source)
        text = plain_text(bank).encode()
        self._annotate_text(b"", 1)  # build the engines before the clock starts
        start = time.process_time()
        if given == "text":
            parsed = self._annotate_text(text, n_jobs)
        else:
            model = self if given == "tokens" else self.parser
            parsed = model._annotate(bank, n_jobs)
        seconds = time.process_time() - start
        return compare_text(bank, parsed, seconds=seconds, measures=list_measures(self.tagger.columns_))

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        """Store each model as one array, because files with few arrays are mapped faster."""
        arrays: Arrays = {}
        sizes = {}
        for name, model in self.models.items():
            arrays[name], sizes[name] = container.encode_nested(*model.to_container())
        return arrays, {"sizes": sizes}

    @classmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        sizes = container.read_setting(name, settings, "sizes", dict)
        context = copy_context()  # carries the memory limit of loading
        models: dict[str, Any] = {}
        for part, model in _PARTS.items():
            content = container.read_array(name, arrays, part, [np.dtype("<u8")], 1)
            size = container.read_setting(name, sizes, part, int, lambda size: size >= 0)
            models[part] = partial(context.copy().run, _read_model, name, model, content, size)
        return cls(**models, parameters=parameters)

    def check_columns(self) -> None:
        """Do nothing: each of the three models checks its columns when it is prepared."""

    def check_model(self, file: str) -> None:
        """Prepare and check all three models.

        Parameters
        ----------
        file : str
            Name of the file in error messages.

        Raises
        ------
        FormatError
            If a model is damaged.
        """
        _ = self.models


def _read_model(name: str, model: type[SavedModel], content: NDArray[np.uint64], size: int) -> SavedModel:
    kind, arrays, settings = container.read_nested(name, content, size)
    if kind != model.kind:
        raise FormatError(name, 0, 0, f"it contains a file of kind {kind!r}, not a {model.noun}")
    return model.from_container(name, arrays, settings)


def check_given(given: str) -> str:
    """Return `given`; ValueError if it is not in ``GIVEN``."""
    if given not in GIVEN:
        raise ValueError(f"given must be one of {', '.join(GIVEN)}, got {given!r}")
    return given


def _read_words(conllu: bytes) -> Treebank:
    return Treebank._from_text(parse_text(conllu, "conllu", name=TEXT_NAME))


def _group_into_batches(texts: Iterable[str]) -> Iterator[list[bytes]]:
    """Yield batches of encoded texts; a batch ends as soon as it has ``_BATCH_BYTES`` bytes."""
    batch: list[bytes] = []
    size = 0
    for number, text in enumerate(texts):
        try:
            batch.append(encode_text(text))
        except (TypeError, ValueError) as error:
            raise type(error)(f"text {number}: {error}") from None
        size += len(batch[-1])
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
