"""Readers of files other than models of rows and trees, for tools/fuzz_python.py.

They read files of records, texts and templates, and `.uk` files of parsers and of models with plans of
records, then use and check the results. A reader raises a ValueError for refused input, and an AssertionError
if results disagree.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import unkernel
from reference import damage
from reference.dependencies import is_tree
from unkernel.data.text.bunsetsu import read_bunsetsu, read_bunsetsu_parts
from unkernel.data.text.chunks import read_chunks
from unkernel.data.text.conll import read_conllu, read_conllu_parts, read_conllx
from unkernel.parsing.arc_eager.model import new_spec
from unkernel.parsing.bunsetsu.templates import template_names
from unkernel.parsing.chunks.model import FEATURE_SOURCES
from unkernel.parsing.template_files import read_templates
from unkernel.records.files import Block, delimited, open_records, read_training
from unkernel.records.files.columns import infer_column_types
from unkernel.records.plan import Plan

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "parsing" / "golden"
SMALL_BLOCK = 7  # bytes: blocks end inside records and sentences
TARGET = "paid"
RECORDS = [
    {"age": 31.5, "job": "cook", "since": "2019-02-28", "about": "likes tea, and tea", "tags": ["a", "b"]},
    {"age": 20, "job": "smith", "since": "2020-12-31T23:59:59+01:00", "about": "the sea", "tags": []},
    {"age": None, "job": "cook", "since": None, "about": "", "tags": ["b"]},
    {"age": -4, "job": None, "since": "1969-01-01", "about": "é ≠ e", "tags": ["c", "c"]},
]
LABELS = ["yes", "no", "yes", "no"]
ODD_RECORDS: list[dict[str, Any]] = [
    {},
    {"age": 1e308, "job": "", "since": "never", "about": "\x00", "tags": None},
    {"age": float("nan"), "job": 3, "since": 17.0, "about": None, "tags": ["a"] * 5},
    {"age": True, "job": "cook", "since": "0001-01-01", "about": "tea " * 9, "tags": ["z"]},
    {"age": 10**400, "job": 10**400, "since": 10**400},
]


@dataclass(frozen=True)
class Reader:
    """How to read and use the files of one kind, and valid files (`seeds`) to mutate."""

    name: str
    read: Callable[[Path], object]
    seeds: list[bytes]
    is_model: bool = False  # whether the files are `.uk` files, whose header and arrays are mutated


def readers() -> Iterator[Reader]:
    """Yield all readers."""
    yield from record_readers()
    yield from text_readers()
    yield from template_readers()
    yield from parser_readers()
    yield from plan_readers()


# --- Records ------------------------------------------------------------------------------------------

CSV = [
    b'age,job,since,about,paid\n31.5,cook,2019-02-28,"likes ""tea"", and\ntea",yes\n20,smith,,the sea,no\n',
    b"age;job;since;about;paid\r\n1;cook;2020-01-01;;yes\r\n;smith;;x;no\r\nNA;cook;;x;no\r\n",
    b'\xef\xbb\xbfage,paid\n007,true\n12,false\n\n"13",true',
]
JSON_LINES = [
    b'{"age": 31.5, "job": "cook", "tags": ["a", "b"], "paid": "yes"}\n{"age": null, "paid": "no"}\n',
    b'{"since": "2020-01-01", "about": "the \\u00e9", "paid": 1}\n\n{"job": {"a": 1}, "age": 1e3, "paid": 2}',
]


def record_readers() -> Iterator[Reader]:
    """Yield readers of CSV, TSV, JSON lines, and files whose first bytes determine their format."""
    plan = record_models()["encoder"].plan.with_none_as_nan()
    tsv = [content.replace(b",", b"\t").replace(b";", b"\t") for content in CSV]
    for suffix, seeds in ((".csv", CSV), (".tsv", tsv), (".jsonl", JSON_LINES), ("", [*CSV, *JSON_LINES])):
        name = f"records {suffix.removeprefix('.') or 'of any format'}"
        yield Reader(name, lambda path, suffix=suffix: read_records(path, suffix, plan), seeds)


def read_records(path: Path, suffix: str, plan: Plan) -> None:
    """Check that neither the size of blocks nor pyarrow changes the records for prediction and training."""
    name = f"records{suffix}"
    records = outcome(lambda: describe_records(path, name, plan))
    assert outcome(lambda: describe_records(path, name, plan, size=SMALL_BLOCK)) == records
    training = outcome(lambda: describe_training(path, name))
    with mock.patch.object(delimited, "arrow_csv", lambda: None):  # as if pyarrow were not installed
        assert outcome(lambda: describe_records(path, name, plan)) == records
        assert outcome(lambda: describe_training(path, name)) == training
    for block in read_blocks(path, name, plan):
        block.without(TARGET).encode(plan)


def read_blocks(path: Path, name: str, plan: Plan, size: int = 1 << 22) -> Iterator[Block]:
    file = open_records(path, name=name, size=size)
    types = infer_column_types(plan) | {TARGET: "string"}
    if file.columns is not None and not set(types) & set(file.columns):
        raise ValueError("the plan reads none of the columns")
    yield from file.blocks(types)


def describe_records(path: Path, name: str, plan: Plan, size: int = 1 << 22) -> str:
    """Return all records with their lines as text, where NaN equals itself."""
    result = []
    for block in read_blocks(path, name, plan, size):
        result += [(block.line_of(row), record) for row, record in enumerate(block.records())]
    return repr(result)


def describe_training(path: Path, name: str) -> str:
    """Return the training table of a file as text."""
    table = read_training(open_records(path, name=name), TARGET, kinds={}, drop=[])
    columns = {name: list(values) for name, values in table.columns.items()}
    return repr((columns, table.labels.tolist(), table.types))


def outcome(read: Callable[[], str]) -> str:
    """Return what `read` returns, or "refused" if it raises a ValueError."""
    try:
        return read()
    except ValueError:
        return "refused"


# --- Texts and templates ------------------------------------------------------------------------------


conllu_parts = partial(read_conllu_parts, size=SMALL_BLOCK)
bunsetsu_parts = partial(read_bunsetsu_parts, part_bytes=SMALL_BLOCK)


def text_readers() -> Iterator[Reader]:
    """Yield readers of the texts of parsers; the results are parsed, explained, drawn and written."""
    trees, chunks = unkernel.load(GOLDEN / "trees-rich.uk"), unkernel.load(GOLDEN / "chunks-svm.uk")
    bunsetsu = unkernel.load(GOLDEN / "bunsetsu-trie.uk")
    conllu = [beginning("trees.conllu", 2), beginning("crossing.conllu", 2)]
    yield Reader("text conllu", lambda path: ask_text(path, read_conllu, conllu_parts, trees), conllu)
    yield Reader("text conllx", lambda path: ask_text(path, read_conllx, None, None), conllu)
    texts = [beginning("chunks.txt", 3), b"the DT\nman NN\n\nsaw VBD\n"]
    yield Reader("text columns", lambda path: ask_text(path, read_chunks, None, chunks), texts)
    sentences = [beginning("bunsetsu.knp", 2, b"EOS\n")]
    yield Reader(
        "text bunsetsu", lambda path: ask_text(path, read_bunsetsu, bunsetsu_parts, bunsetsu), sentences
    )


def beginning(name: str, sentences: int, end: bytes = b"\n\n") -> bytes:
    return b"".join(part + end for part in (GOLDEN / name).read_bytes().split(end)[:sentences])


def ask_text(path: Path, read: Callable[..., Any], read_parts: Callable[..., Any] | None, model: Any) -> None:
    """Check that reading in parts gives the same sentences, skip invalid ones, and parse the others."""
    valid = read(path, on_error="skip")
    for sentence in valid:
        assert str(sentence) and len(sentence) >= 0  # a sentence of bunsetsu may be empty
        sentence.draw()
    if read_parts is not None:
        parts = list(read_parts(path, on_error="skip"))
        assert [str(sentence) for part in parts for sentence in part] == [str(sentence) for sentence in valid]
    if model is not None:
        ask_parser(model, path.read_bytes())
    corpus = read(path)
    assert [str(sentence) for sentence in corpus] == [
        str(sentence) for sentence in valid
    ] and not valid.skipped


def template_readers() -> Iterator[Reader]:
    """Yield readers of the template files of each parser."""
    ours = ROOT / "src" / "unkernel" / "parsing" / "templates"
    seeds = [
        ours.joinpath(name).read_bytes() for name in ("arc_eager.txt", "chang.txt", "arc_eager_rich.txt")
    ]
    yield Reader("templates arc-eager", learn_templates, seeds)
    chunks = [ours.joinpath(name).read_bytes() for name in ("chunk.txt", "chunk_words.txt", "yamcha.txt")]
    yield Reader("templates chunks", learn_chunk_templates, chunks)
    names = "\n".join(template_names(None)).encode()
    yield Reader("templates bunsetsu", learn_bunsetsu_templates, [names, b"# why\n" + names])


def learn_templates(path: Path) -> None:
    """Learn the features of a small treebank from the templates in a file."""
    spec = new_spec(*read_templates(path, {}), "none", 1)
    spec.learn(read_conllu(GOLDEN / "trees.conllu")[:3]._text)
    assert spec.move_columns >= 0


def learn_chunk_templates(path: Path) -> None:
    from unkernel._core import SequenceFeatures

    text, name = read_templates(path, {})
    features = SequenceFeatures(text, name, **FEATURE_SOURCES)
    corpus = read_chunks(GOLDEN / "chunks.txt", tagged=True)[:3]
    features.learn(corpus._text, np.arange(corpus.n_words, dtype=np.int32) % 3, backward=False, min_count=1)


def learn_bunsetsu_templates(path: Path) -> None:
    from unkernel._core import bunsetsu_training

    corpus = read_bunsetsu(GOLDEN / "bunsetsu.knp")[:3]
    features, _ = bunsetsu_training(corpus._text, corpus.heads, template_names(path), 1)
    for column in range(features.columns):
        assert "=" in features.column_name(column)


# --- Parsers ------------------------------------------------------------------------------------------

QUESTIONS = {"trees": "crossing.conllu", "chunks": "chunks.txt", "bunsetsu": "bunsetsu.knp"}
ENDS = {"trees": b"\n\n", "chunks": b"\n\n", "bunsetsu": b"EOS\n"}


def parser_readers() -> Iterator[Reader]:
    """Yield readers of the `.uk` files of parsers and chunkers."""
    for name, text in QUESTIONS.items():
        sentences = beginning(text, 2, ENDS[name])
        for path in sorted(GOLDEN.glob(f"{name}-*.uk")):
            signed = rewrite(path)
            seeds = [damage.remove_digests(signed), signed]
            yield Reader(
                f"uk {path.stem}",
                lambda file, sentences=sentences: ask_parser(unkernel.load(file), sentences),
                seeds,
                is_model=True,
            )


def rewrite(path: Path) -> bytes:
    """Return a file of an older version as the current version writes it."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "model.uk"
        unkernel.load(path).save(saved)
        return saved.read_bytes()


def ask_parser(model: Any, text: bytes) -> None:
    """Parse, evaluate and explain `text`, and list the heaviest conjunctions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tags that the model does not know
        questions: Sequence[Callable[[], object]] = [
            lambda: check_heads(model.parse(BytesIO(text))),
            lambda: model.evaluate(BytesIO(text)),
            lambda: [str(explanation) for explanation in model.explain(BytesIO(text), top=3)],
            lambda: [str(conjunction) for conjunction in model.heaviest(3)],
        ]
        for question in questions:
            with contextlib.suppress(ValueError):
                question()
    assert model.n_features_ >= 0 and model.nbytes >= 0 and isinstance(model.parameters, dict)


def check_heads(corpus: Any) -> None:
    """Check that heads form trees, and that every bunsetsu depends on a later one."""
    for sentence in corpus:
        if hasattr(sentence, "deprels"):
            assert is_tree(sentence.heads)
        elif hasattr(sentence, "surfaces"):
            assert all(head > place for place, head in enumerate(sentence.heads[:-1]))


# --- Plans --------------------------------------------------------------------------------------------


def record_models() -> dict[str, Any]:
    """Return models of records whose plans have steps of all kinds."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

    kinds = {"age": "binned", "since": "date", "about": "text", "tags": "strings", "job": "category"}
    encoder = make_pipeline(unkernel.RecordEncoder(min_count=1, kinds=kinds), unkernel.PolySVC())
    result = {"encoder": unkernel.compile(encoder.fit(RECORDS, LABELS), measure=False)}
    import pandas as pd

    frame = pd.DataFrame([{key: record[key] for key in ("age", "job", "about")} for record in RECORDS])
    bins = KBinsDiscretizer(3, encode="onehot", strategy="uniform")
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    steps = [
        ("bins", make_pipeline(SimpleImputer(strategy="mean"), bins), ["age"]),
        ("scaled", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age"]),
        ("one", OneHotEncoder(handle_unknown="ignore"), ["job"]),
        ("ordinal", ordinal, ["job"]),
        ("words", TfidfVectorizer(), "about"),
        ("hashed", HashingVectorizer(n_features=32, analyzer="char_wb", ngram_range=(1, 2)), "about"),
    ]
    table = make_pipeline(ColumnTransformer(steps, sparse_threshold=1.0), unkernel.PolySVC())
    result["table"] = unkernel.compile(table.fit(frame, LABELS), measure=False)
    dicts = [{"age": 1.5, "job": "cook"}, {"job": "smith"}, {"age": 2.0, "tags": "a"}, {"age": 0.5}]
    pairs = make_pipeline(DictVectorizer(), unkernel.PolySVC())
    result["dicts"] = unkernel.compile(pairs.fit(dicts, LABELS), measure=False)
    return result


def plan_readers() -> Iterator[Reader]:
    """Yield readers of the `.uk` files of models of records."""
    with tempfile.TemporaryDirectory() as folder:
        for name, model in record_models().items():
            path = Path(folder) / f"{name}.uk"
            model.save(path)
            seeds = [damage.remove_digests(path.read_bytes()), path.read_bytes()]
            yield Reader(
                f"uk plan-{name}", lambda file: ask_records(unkernel.load(file)), seeds, is_model=True
            )


def ask_records(model: Any) -> None:
    """Predict and explain records: one at a time, as a list of dicts, and as a dict of columns."""
    rows = [{key: record[key] for key in ("age", "job", "about")} for record in RECORDS]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    questions: list[Callable[[], object]] = [
        lambda: model.decision_function(RECORDS),
        lambda: model.predict(rows),
        lambda: model.predict(columns),
        lambda: model.explain_one(RECORDS[0], top=3),
        lambda: str(model),
    ]
    questions += [lambda row=row: model.predict_one(row) for row in [*rows, *ODD_RECORDS]]
    for question in questions:
        with contextlib.suppress(ValueError, TypeError):  # TypeError: the plan refuses the type of a value
            question()
