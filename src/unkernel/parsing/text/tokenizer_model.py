"""Fitted tokenizers. Needs only NumPy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import Multiwords, TokenizerSpec, tokenize
from unkernel.data.files import Source
from unkernel.data.text.columns import parse_text
from unkernel.data.text.conll import Treebank
from unkernel.data.threads import thread_count
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.models import container
from unkernel.parsing.arc_eager.model import read_nonempty
from unkernel.parsing.parser_model import Arrays, SavedModel
from unkernel.parsing.stored_classifiers import restore_classifiers, store_classifiers
from unkernel.parsing.text.gold_text import plain_text
from unkernel.parsing.text.result import SPLITTING, TextResult, compare_text
from unkernel.parsing.text.splits import LONGEST_TOKEN, Rule

_BOUNDARIES, _SPLITS = "boundaries", "splits"
_CHARACTERS = {"pages": np.uint16, "kinds": np.uint8, "shapes": np.uint8, "cases": np.uint32}
_LEARNT = {"pairs": np.uint8, "words": np.uint64, "uses": np.uint8, "features": np.uint64}
_MULTIWORDS = {
    "tokens": np.uint64,
    "token_rules": np.int32,
    "endings": np.uint64,
    "ending_rules": np.int32,
    "split_features": np.uint64,
}
TEXT_NAME = "<text>"


@dataclass(frozen=True, eq=False, repr=False)
class TokenizerModel(SavedModel):
    """Trained tokenizer, made by ``Tokenizer`` or loaded from a file.

    Attributes
    ----------
    spec : TokenizerSpec
        The features of the decisions.
    multiwords : Multiwords
        The multiword tokens.
    arrays : dict of str to ndarray
        The kinds of characters, the statistics of character pairs and of words, and the features.
    rules : list of Rule
        The rules that split multiword tokens.
    longest_ending : int
        Number of characters of the longest ending that has a rule.
    boundary_classifier_ : CompiledClassifier
        Decides where tokens and sentences end.
    split_classifier_ : CompiledClassifier or None
        Decides which ambiguous tokens are split into words.
    parameters : dict
        Parameters of the estimator that fitted the model.

    See Also
    --------
    Tokenizer : The estimator.

    Examples
    --------
    >>> import unkernel
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tokenizer
    >>> Tokenizer().fit(Treebank.from_words([["Dogs", "bark"], ["They", "saw", "it"]] * 9)).save("words.uk")
    >>> unkernel.load("words.uk").tokenize("They bark")[0].forms
    ['They', 'bark']
    """

    kind = "tokenizer"
    noun = "tokenizer"
    estimator = "Tokenizer"

    spec: TokenizerSpec
    multiwords: Multiwords
    arrays: Arrays
    rules: list[Rule]
    longest_ending: int
    boundary_classifier_: CompiledClassifier
    split_classifier_: CompiledClassifier | None
    parameters: dict[str, Any]

    @property
    def n_features_(self) -> int:
        """Number of features."""
        return int(self.spec.columns + self.multiwords.columns)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that make the decisions, by name."""
        splits = {} if self.split_classifier_ is None else {_SPLITS: self.split_classifier_}
        return {_BOUNDARIES: self.boundary_classifier_} | splits

    # --- Answers --------------------------------------------------------------------------------------

    def tokenize(self, text: str, *, n_jobs: int | None = None) -> Treebank:
        """Split a text into sentences, tokens and words.

        Parameters
        ----------
        text : str
            Any text. A text that consists only of blanks has no sentences.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The result does not depend on it.

        Returns
        -------
        Treebank
            Sentences with the columns ID, FORM and MISC. They contain every character of the text, which
            :func:`original_text` restores.

        Raises
        ------
        ValueError
            If the text contains a lone surrogate, which is not a character.
        """
        return Treebank._from_text(
            parse_text(self._tokenize(encode_text(text), n_jobs), "conllu", name=TEXT_NAME)
        )

    def evaluate(self, source: Source | Treebank, *, n_jobs: int | None = None) -> TextResult:
        bank = read_nonempty(source)
        text = plain_text(bank).encode()
        self._engines()  # build the engines before the clock starts
        start = time.process_time()
        tokenized = self._tokenize(text, n_jobs)
        seconds = time.process_time() - start
        answer = Treebank._from_text(parse_text(tokenized, "conllu"))
        return compare_text(bank, answer, seconds=seconds, measures=SPLITTING)

    def _tokenize(self, text: bytes, n_jobs: int | None, *, begins_paragraph: bool = True) -> bytes:
        return tokenize(
            self.spec,
            self.multiwords,
            *self._engines(),
            text,
            begins_paragraph=begins_paragraph,
            threads=thread_count(n_jobs),
        )

    def _engines(self) -> tuple[Any, Any]:
        splits = self.split_classifier_
        return self.boundary_classifier_._engine, None if splits is None else splits._engine

    # --- Files ----------------------------------------------------------------------------------------

    def _store(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_classifiers(self.parts_)
        rules = [[list(word) for word in rule] for rule in self.rules]
        return arrays | self.arrays, settings | {"rules": rules, "longest_ending": self.longest_ending}

    @classmethod
    def _restore(
        cls, name: str, arrays: Arrays, settings: Mapping[str, Any], parameters: dict[str, Any]
    ) -> Self:
        model_arrays = {
            key: np.array(container.read_array(name, arrays, key, [np.dtype(kind)], 1))
            for key, kind in (_CHARACTERS | _LEARNT | _MULTIWORDS).items()
        }
        rules = container.read_setting(name, settings, "rules", list, _are_rules)
        longest = container.read_setting(
            name, settings, "longest_ending", int, lambda k: 0 <= k <= LONGEST_TOKEN
        )
        parts = restore_classifiers(name, arrays, settings)
        rule_tuples = [tuple((word[0], word[1], word[2], word[3]) for word in rule) for rule in rules]
        return cls.from_parts(model_arrays, rule_tuples, longest, parts, parameters)

    @classmethod
    def from_parts(
        cls,
        arrays: Arrays,
        rules: list[Rule],
        longest_ending: int,
        parts: Mapping[str, CompiledClassifier | None],
        parameters: dict[str, Any],
    ) -> Self:
        """Make a model from arrays, rules and classifiers, and check that they fit together.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The learned arrays.
        rules : list of Rule
            The rules that split multiword tokens.
        longest_ending : int
            Number of characters of the longest ending with a rule.
        parts : mapping of str to CompiledClassifier or None
            The classifiers "boundaries" and "splits".
        parameters : dict
            Parameters of the estimator.

        Returns
        -------
        TokenizerModel
            The model.

        Raises
        ------
        ValueError
            If the arrays, rules and classifiers do not fit together.
        """
        boundaries, splits = parts.get(_BOUNDARIES), parts.get(_SPLITS)
        if boundaries is None or not {_BOUNDARIES, _SPLITS} >= set(parts):
            raise ValueError("its classifiers are not those of a tokenizer")
        spec = TokenizerSpec({key: arrays[key] for key in _CHARACTERS | _LEARNT})
        multiwords = new_multiwords(rules, arrays, longest_ending)
        model = cls(spec, multiwords, arrays, rules, longest_ending, boundaries, splits, parameters)
        model._tokenize(b"", None)  # raises a ValueError if the classifiers have other classes
        return model


def new_multiwords(rules: list[Rule], arrays: Mapping[str, NDArray[Any]], longest_ending: int) -> Multiwords:
    """Return the table of multiword tokens, made from the rules and the learned arrays."""
    table = {key: arrays[key] for key in _MULTIWORDS}
    return Multiwords([list(rule) for rule in rules], table, longest_ending=longest_ending)


def encode_text(text: str) -> bytes:
    """Encode a text in UTF-8; ValueError if it contains a lone surrogate."""
    if not isinstance(text, str):
        raise TypeError(
            f"a text must be a str, got {type(text).__name__}: decode bytes first, and give several texts to "
            "parse_many"
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} of the text, {text[error.start]!r}, is half of a surrogate pair and "
            "not a character: read the text with errors='replace', or leave this half out"
        ) from None


def _are_rules(rules: list[Any]) -> bool:
    return all(isinstance(rule, list) and all(map(_is_word, rule)) for rule in rules)


def _is_word(word: Any) -> bool:
    if not isinstance(word, list) or len(word) != 4:
        return False
    ends, fixed_parts = word[:2], word[2:]
    return all(map(_is_position, ends)) and all(isinstance(part, str) for part in fixed_parts)


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2 * LONGEST_TOKEN
