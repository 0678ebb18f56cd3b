"""Translate vectorizers of texts, dicts and lists of strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from unkernel.records import steps
from unkernel.records.feature_names import NumberedNames
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.plan_builder import Builder, Source, Vector, refuse
from unkernel.records.sklearn.supported_steps import TRANSFORMERS
from unkernel.records.text_analysis import TOKEN_PATTERNS


def translate_count_vectorizer(builder: Builder, vectorizer: Any, source: Source, where: str) -> Vector:
    """Count n-grams."""
    ngrams = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    table = _make_text_table(vectorizer, source, where) | steps.vocabulary(
        ngrams, [int(vectorizer.vocabulary_[ngram]) for ngram in ngrams], len(ngrams)
    )
    return builder.add(PlanStep("text", table, ngrams))


def translate_tfidf_vectorizer(builder: Builder, vectorizer: Any, source: Source, where: str) -> Vector:
    """Count and weight n-grams."""
    counts = translate_count_vectorizer(builder, vectorizer, source, where)
    return translate_tfidf_transformer(builder, vectorizer, counts, where)


def translate_tfidf_transformer(builder: Builder, transformer: Any, source: Source, where: str) -> Vector:
    """Multiply counts by the inverse document frequency, and normalize."""
    if not isinstance(source, Vector):
        refuse(where, "takes counts of words, and gets columns of the record")
    idf = np.array(transformer.idf_, dtype=np.float64) if transformer.use_idf else np.empty(0)
    table = {"input": source.step, "sublinear": bool(transformer.sublinear_tf), "idf": idf}
    return _normalize(builder, builder.add(PlanStep("tfidf", table, source.names)), transformer.norm)


def translate_hashing_vectorizer(builder: Builder, vectorizer: Any, source: Source, where: str) -> Vector:
    """Count n-grams; the feature of an n-gram is its hash."""
    table = _make_text_table(vectorizer, source, where) | _make_hash_options(vectorizer)
    names = NumberedNames("hash", int(vectorizer.n_features))
    return _normalize(builder, builder.add(PlanStep("text", table, names)), vectorizer.norm)


def translate_dict_vectorizer(builder: Builder, vectorizer: Any, source: Source, where: str) -> Vector:
    """Add the entries of a dict: numbers, strings and lists of strings."""
    names = list(vectorizer.feature_names_)
    ids = [int(vectorizer.vocabulary_[name]) for name in names]
    table = {"columns": steps.int32([_get_single_column(source, where)]), "separator": vectorizer.separator}
    return builder.add(PlanStep("pairs", table | steps.vocabulary(names, ids), names))


def translate_feature_hasher(builder: Builder, hasher: Any, source: Source, where: str) -> Vector:
    """Add the hashed entries of a dict, or the hashed strings of a list."""
    columns = steps.int32([_get_single_column(source, where)])
    names = NumberedNames("hash", int(hasher.n_features))
    if hasher.input_type == "dict":
        return builder.add(
            PlanStep("pairs", {"columns": columns, "separator": "="} | _make_hash_options(hasher), names)
        )
    return builder.add(
        PlanStep("strings", {"columns": columns, "binary": False} | _make_hash_options(hasher), names)
    )


def _make_hash_options(hasher: Any) -> dict[str, Any]:
    empty = steps.vocabulary([])
    return empty | {
        "hashed": True,
        "alternate_sign": bool(hasher.alternate_sign),
        "width": int(hasher.n_features),
    }


def _normalize(builder: Builder, vector: Vector, norm: str | None) -> Vector:
    if norm is None:
        return vector
    return builder.add(PlanStep("normalize", {"input": vector.step, "norm": norm}, vector.names))


def _get_single_column(source: Source, where: str) -> int:
    if isinstance(source, Vector) or len(source.columns) != 1:
        refuse(where, "takes one column of the record")
    if source.fills:
        refuse(where, "takes texts, and an imputer before it makes a table of them")
    return source.columns[0]


def _make_text_table(vectorizer: Any, source: Source, where: str) -> dict[str, Any]:
    is_word = vectorizer.analyzer == "word"
    if is_word and vectorizer.token_pattern not in TOKEN_PATTERNS:
        supported = TRANSFORMERS["CountVectorizer"].parameters["token_pattern"].takes
        refuse(where, f"has token_pattern={vectorizer.token_pattern!r}, and only {supported} can be compiled")
    shortest, longest = vectorizer.ngram_range
    stop_words = sorted(vectorizer.get_stop_words() or ()) if is_word else ()
    return steps.text_table(
        _get_single_column(source, where),
        analyzer=vectorizer.analyzer,
        lowercase=bool(vectorizer.lowercase),
        strip_accents=vectorizer.strip_accents,
        token_pattern=vectorizer.token_pattern if is_word else None,
        shortest_token=TOKEN_PATTERNS[vectorizer.token_pattern] if is_word else 1,
        shortest=int(shortest),
        longest=int(longest),
        binary=bool(vectorizer.binary),
        stop_words=stop_words,
    )
