"""Questions to the models of each family of the zoo, and their answers as text, for comparison.

A model must answer a question or raise ValueError. Any other exception is a fault, and so is an answer that
violates an invariant, such as heads that do not form a tree.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import unkernel
from reference.dependencies import is_tree
from reference.model_zoo import RECORDS, ROWS, TREES
from reference.parse_corpora import bunsetsu, chunks, treebank
from unkernel import Forest
from unkernel.models import load_model

_MAX_TABLE_BYTES = 16_000_000
Question = Callable[[Any], object]

_REAL_ROWS = ROWS[:3] * np.array([0.5, -2.0, 1e3, 1e-3, 1.0, 0.0])
_WITHOUT_LAST = ROWS[6:10] * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
_ODD_TREES = ["(S (NP (D the) (N dog)) (VP barks))", "(S x)", "(B (B (B (B (B b)))))"]
_FORESTS = [
    Forest(TREES[:3], vectors=np.eye(3)),
    Forest({"a": TREES[:2], "b": _ODD_TREES[:2]}, vectors=np.array([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]])),
]
_PLAIN = [{key: record[key] for key in ("age", "job", "about")} for record in RECORDS]
_COLUMNS = {key: [record[key] for record in _PLAIN] for key in _PLAIN[0]}
_NUMBERS = [{"age": 3.0, "size": 1.5}, {"age": -1e300, "size": float("nan")}]
_ODD_RECORDS: list[Any] = [
    {},
    {"age": 1e308, "job": "", "since": "never", "about": "\x00", "tags": None},
    {"age": float("nan"), "job": 3, "since": 17.0, "about": None, "tags": ["a"] * 5},
    {"age": True, "job": "cook", "since": "0001-01-01", "about": "tea é" * 9, "tags": ["z"]},
    {"age": 10**400, "job": 10**400, "since": 10**400, "size": -(10**400)},
]
_TEXTS = [
    "They didn't see it. Why not?\n\nDogs saw Mr. Smith!",
    "a\n\nb",
    "\n\n",
    "",
    " \t\r\n\x00x",
    "é e\u0301 \U0001f600 猫\u200d\ufeff \u2028\u00a0. . .",
]
_CONLLU = treebank(2, 3).encode()
_CHUNKS = chunks(2, 3).encode()
_KNP = bunsetsu(2, 3).encode()
_SENTENCES = [["They", "saw", "it", "."], ["unheard", "é"], ["猫"]]


def _probabilities(model: Any, questions: Any) -> object:
    """Ask for probabilities; models without them have no such method."""
    return model.predict_proba(questions) if hasattr(model, "predict_proba") else "none"


def _rows() -> list[Question]:
    return [
        lambda model: model.decision_function(_WITHOUT_LAST),
        lambda model: model.decision_function(ROWS[:3]),
        lambda model: model.decision_function(_REAL_ROWS),
        lambda model: model.predict(ROWS[3:6], n_jobs=1),
        lambda model: _probabilities(model, ROWS[:2]),
        lambda model: model.score_one([0, 3, 5]),
        lambda model: model.predict_one([1, 2], [0.5, -1.0]),
        lambda model: str(model.explain([0, 3, 5], top=3)),
        lambda model: str(model.heaviest(3)),
        lambda model: model.trie and model.trie.grow(ROWS[:4], n_jobs=1),
        repr,
    ]


def _machines() -> list[Question]:
    """Return questions for machines, which must be compiled before they can predict."""
    questions: list[Question] = [
        lambda model: model.scores(ROWS[:3]),
        lambda model: model.scores(_REAL_ROWS),
        repr,
    ]
    for engine in ("auto", "inverted", "expanded"):
        questions.append(
            lambda model, engine=engine: unkernel.compile(
                model, engine, measure=False, memory=_MAX_TABLE_BYTES
            ).decision_function(ROWS[:3])
        )
    return questions


def _trees() -> list[Question]:
    return [
        lambda model: model.decision_function(TREES[:2]),
        lambda model: model.predict(_ODD_TREES),
        lambda model: model.decision_function(_FORESTS[0]),
        lambda model: model.predict(_FORESTS[1]),
        lambda model: model.score_one(TREES[3]),
        lambda model: str(model.explain(TREES[3], top=3)),
        lambda model: str(model.heaviest(3)),
        repr,
    ]


def _records() -> list[Question]:
    questions: list[Question] = [
        lambda model: model.decision_function(RECORDS),
        lambda model: model.predict(_PLAIN),
        lambda model: model.predict(_COLUMNS),
        lambda model: model.decision_function(_NUMBERS),
        lambda model: model.predict([record["about"] for record in RECORDS]),
        lambda model: _probabilities(model, _PLAIN),
        lambda model: str(model.explain_one(RECORDS[0], top=3)),
        lambda model: str(model.heaviest(3)),
        repr,
    ]
    for one in [*_PLAIN[:2], *_ODD_RECORDS, *_NUMBERS, "likes tea", ""]:
        questions.append(lambda model, one=one: model.predict_one(one))
    return questions


def _parser(text: bytes, *others: Question) -> list[Question]:
    return [
        lambda model: _check_corpus(model.parse(io.BytesIO(text), n_jobs=1)),
        lambda model: str(model.evaluate(io.BytesIO(text))).count("\n"),
        lambda model: [str(explanation) for explanation in model.explain(io.BytesIO(text), top=2)],
        lambda model: [str(conjunction) for conjunction in model.heaviest(3)],
        lambda model: (model.n_features_, model.nbytes >= 0, str(model.parameters)),
        *others,
    ]


def _check_corpus(corpus: Any) -> str:
    """Check that heads form trees, or bunsetsu depend on later bunsetsu; return the corpus as text."""
    for sentence in corpus:
        if hasattr(sentence, "deprels"):
            assert is_tree(sentence.heads)
        elif hasattr(sentence, "surfaces"):
            assert all(head > position for position, head in enumerate(sentence.heads[:-1]))
    return "".join(map(str, corpus))


def _texts() -> list[Question]:
    questions: list[Question] = []
    for text in _TEXTS:
        questions.append(lambda model, text=text: str(model.parse(text, n_jobs=1)))
        questions.append(lambda model, text=text: "".join(map(str, model.tokenize(text, n_jobs=1))))
    questions.append(lambda model: [str(explanation) for explanation in model.explain(_TEXTS[0], top=2)])
    questions.append(lambda model: (model.n_features_, model.nbytes >= 0, str(model.parameters)))
    return questions


def _words(model: Any) -> object:
    return [model.get(word) if hasattr(model, "get") else word in model for word in ("they", "Dogs", "", "é")]


QUESTIONS: dict[str, list[Question]] = {
    "rows": _rows(),
    "machines": _machines(),
    "trees": _trees(),
    "records": _records(),
    "parser": _parser(_CONLLU, lambda model: _check_corpus(model.parse(_SENTENCES, n_jobs=1))),
    "chunks": _parser(_CHUNKS),
    "bunsetsu": _parser(_KNP),
    "tagger": [
        lambda model: str(model.tag(_SENTENCES, n_jobs=1)),
        lambda model: _check_corpus(model.tag(io.BytesIO(_CONLLU), n_jobs=1)),
        lambda model: str(model.evaluate(io.BytesIO(_CONLLU))).count("\n"),
        lambda model: [str(explanation) for explanation in model.explain(io.BytesIO(_CONLLU), top=2)],
        lambda model: (model.n_features_, model.nbytes >= 0, str(model.parameters)),
    ],
    "text": _texts(),
    "clusters": [_words, repr, len],
}


def read(path: Path, family: str, *, mmap: bool = True, verify: Any = "lazy") -> Any:
    """Load a file with the function that users call."""
    return load_model(path) if family == "machines" else unkernel.load(path, mmap=mmap, verify=verify)


def answerable(model: Any, family: str) -> list[Question]:
    """Return the questions of the family that a valid model answers or refuses with a ValueError."""
    return [question for question in QUESTIONS[family] if not _answer(question, model).startswith("unfit")]


def _answer(question: Question, model: Any) -> str:
    try:
        return ask_one(question, model)
    except (AttributeError, TypeError):
        return "unfit"


def ask_one(question: Question, model: Any) -> str:
    """Return the answer as text, or the first words of a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = question(model)
        except ValueError as error:
            return f"refused: {type(error).__name__}"
        except TypeError as error:
            if not str(error).startswith("a record is"):  # a changed plan may require other records
                raise
            return "refused: TypeError"
    return repr(answer.tolist() if isinstance(answer, np.ndarray) else answer)


def sample_questions(questions: list[Question], max_questions: int, rng: Random) -> list[Question]:
    """Return a random sample of at most `max_questions` questions."""
    return questions if len(questions) <= max_questions else rng.sample(questions, max_questions)
