"""One small `.uk` file of every kind that unkernel writes: kernels, engines, learners, plans and parsers.

tools/fuzz_models.py and tests/models/test_resigned_files.py change these files. The family of a file
determines the methods that its model has (see reference.zoo_questions).
"""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import unkernel
from reference.parse_corpora import bunsetsu, chunks, treebank
from reference.text_treebanks import treebank_with_text
from unkernel import Forest, PolyLogisticRegression, PolySVC, RankSVM, RecordEncoder, TreeSVC
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.models import from_estimator

_RNG = np.random.default_rng(5)
ROWS = (_RNG.random((24, 6)) < 0.5).astype(float)
BINARY = np.where(ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2] > 0.5, 1, 0)
MULTICLASS = BINARY + (ROWS[:, 3] * ROWS[:, 4] > 0).astype(int)
TARGETS = ROWS @ np.arange(6.0) + ROWS[:, 0] * ROWS[:, 1]
TREES = ["(A b)", "(A (B c))", "(B b)", "(B (A c) (A b))", "(A (B c) c)", "(B (B b))"]
TREE_CLASSES = [1, 1, 0, 0, 1, 0]
RECORDS = [
    {"age": 31.5, "job": "cook", "since": "2019-02-28", "about": "likes tea, and tea", "tags": ["a", "b"]},
    {"age": 20, "job": "smith", "since": "2020-12-31T23:59:59+01:00", "about": "the sea", "tags": []},
    {"age": None, "job": "cook", "since": None, "about": "", "tags": ["b"]},
    {"age": -4, "job": None, "since": "1969-01-01", "about": "é ≠ e", "tags": ["c", "c"]},
]
LABELS = ["yes", "no", "yes", "no"]


@dataclass(frozen=True)
class Specimen:
    """One small file.

    Attributes
    ----------
    name : str
        Unique, such as ``"compiled split"``.
    family : str
        One of :data:`FAMILIES`.
    content : bytes
    """

    name: str
    family: str
    content: bytes


def make_all_specimens() -> tuple[Specimen, ...]:
    """Return all specimens, made in some seconds."""
    return tuple(specimen for family in FAMILIES for specimen in make_family(family))


@cache
def make_family(family: str) -> tuple[Specimen, ...]:
    """Return the specimens of one family, made once per process."""
    result = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # solvers warn that they did not converge
        path = Path(folder) / "model.uk"
        for name, model in FAMILIES[family]():
            model.save(path)
            result.append(Specimen(name, family, path.read_bytes()))
    return tuple(result)


# --- Rows ---------------------------------------------------------------------------------------------


def _row_models() -> Iterator[tuple[str, Any]]:
    yield from _linear_models()
    yield from _compiled_models()
    for degree in (1, 2, 3):
        yield f"conjunctions degree {degree}", PolySVC(degree=degree).fit(ROWS, BINARY)
    yield "conjunctions of classes", PolySVC().fit(ROWS, MULTICLASS)
    yield "conjunctions logistic", PolyLogisticRegression().fit(ROWS, BINARY)
    yield "conjunctions logistic of classes", PolyLogisticRegression().fit(ROWS, MULTICLASS)
    yield "ranking", RankSVM().fit(ROWS, MULTICLASS)
    yield "ranking degree 2", RankSVM(degree=2).fit(ROWS, MULTICLASS)
    yield "ordinal", RankSVM().fit(ROWS, MULTICLASS).fit_thresholds(ROWS, MULTICLASS)


def _linear_models() -> Iterator[tuple[str, Any]]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.svm import LinearSVC

    fitted = {
        "linear": LinearSVC().fit(ROWS, BINARY),
        "linear of classes": LinearSVC().fit(ROWS, MULTICLASS),
        "linear softmax": LogisticRegression().fit(ROWS, MULTICLASS),
        "linear curves": SGDClassifier(loss="modified_huber").fit(ROWS, MULTICLASS),
        "linear regression": Ridge().fit(ROWS, TARGETS),
        "linear pairs": OneVsOneClassifier(LinearSVC()).fit(ROWS, MULTICLASS),
        "calibrated sigmoid": CalibratedClassifierCV(LinearSVC(), cv=2).fit(ROWS, BINARY),
        "calibrated isotonic": CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2).fit(
            ROWS, MULTICLASS
        ),
    }
    yield from ((name, from_estimator(model)) for name, model in fitted.items())
    several = np.column_stack([BINARY, MULTICLASS])
    yield "linear labels", from_estimator(OneVsRestClassifier(LogisticRegression()).fit(ROWS, several > 0))
    yield "linear outputs", from_estimator(MultiOutputClassifier(LinearSVC()).fit(ROWS, several))
    yield "linear numbers", from_estimator(Ridge().fit(ROWS, several))
    yield "cutting plane", unkernel.CuttingPlaneSVC().fit(ROWS, BINARY)


def _kernel_models() -> Iterator[tuple[str, Any]]:
    from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

    pairs = {"decision_function_shape": "ovo"}
    fitted = {
        "kernel linear": SVC(kernel="linear").fit(ROWS, BINARY),
        "kernel polynomial": SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(ROWS, BINARY),
        "kernel polynomial of classes": SVC(kernel="poly", degree=3, coef0=1.0, **pairs).fit(
            ROWS, MULTICLASS
        ),
        "kernel rbf": SVC(kernel="rbf").fit(ROWS, BINARY),
        "kernel rbf of classes": NuSVC(kernel="rbf", nu=0.2, **pairs).fit(ROWS, MULTICLASS),
        "kernel sigmoid": SVC(kernel="sigmoid").fit(ROWS, BINARY),
        "kernel regression": SVR(kernel="rbf").fit(ROWS, TARGETS),
        "kernel one class": OneClassSVM(kernel="rbf").fit(ROWS),
    }
    yield from ((name, from_estimator(model)) for name, model in fitted.items())
    libsvm = Path(__file__).parents[1] / "golden" / "libsvm-poly2-prob.model"
    yield "kernel probabilities", unkernel.read_model(libsvm)


def _compiled_models() -> Iterator[tuple[str, Any]]:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.svm import SVC

    binary = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=0.1).fit(ROWS, BINARY)
    multiclass = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0, C=0.1).fit(ROWS, MULTICLASS)
    options: dict[str, dict[str, Any]] = {
        "inverted": {},
        "bitsliced": {},
        "expanded": {},
        "split": {"rare": 5},
        "pruned": {"threshold": 1e-3},
    }
    for engine, engine_options in options.items():
        for name, machine in (("", binary), (" of classes", multiclass)):
            yield (
                f"compiled {engine}{name}",
                unkernel.compile(machine, engine, measure=False, **engine_options),
            )
        if engine in ("expanded", "split"):
            trie = unkernel.compile(
                machine, engine, measure=False, trie=ROWS, trie_nodes=20, **engine_options
            )
            yield f"compiled {engine} trie", trie
    for kernel in ("linear", "rbf", "sigmoid"):
        machine = SVC(kernel=kernel).fit(ROWS * 0.5, BINARY)
        yield f"compiled {kernel}", unkernel.compile(machine, measure=False)
    several = MultiOutputClassifier(multiclass).fit(ROWS, np.column_stack([BINARY, MULTICLASS]))
    yield "compiled outputs", unkernel.compile(several, measure=False)
    labels = np.column_stack([BINARY, MULTICLASS > 1])
    yield "compiled labels", unkernel.compile(OneVsRestClassifier(PolySVC()).fit(ROWS, labels), measure=False)
    conjunctions = PolySVC(degree=3).fit(ROWS, MULTICLASS)
    yield "compiled conjunctions", unkernel.compile(conjunctions, measure=False)
    yield (
        "compiled conjunctions trie",
        unkernel.compile(conjunctions, measure=False, trie=ROWS, trie_nodes=20),
    )
    yield "compiled regression", unkernel.compile(_regression(), measure=False)
    yield "compiled int16", unkernel.compile(_model_of_integer_weights(), "int16", measure=False)


def _regression() -> Any:
    from sklearn.svm import SVR

    return SVR(kernel="poly", degree=2).fit(ROWS, TARGETS)


def _model_of_integer_weights() -> Any:
    """Return a model of a parser; weights of online learners are small integers times a unit."""
    return _parser().model_.parts_["moves.0"].model


# --- Trees --------------------------------------------------------------------------------------------


def _tree_models() -> Iterator[tuple[str, Any]]:
    for kernel in ("sst", "st", "sst_bow", "ptk"):
        yield f"tree {kernel}", TreeSVC(kernel).fit(TREES, TREE_CLASSES)
    yield "tree of classes", TreeSVC().fit(TREES, [0, 1, 2, 0, 1, 2])
    vectors = np.arange(18.0).reshape(6, 3) % 5
    for combine in ("sum", "product"):
        forest = Forest({"a": TREES, "b": TREES[::-1]}, vectors=vectors)
        machine = TreeSVC(combine=combine, vector_kernel="polynomial", tree_pairing="all")
        yield f"tree {combine}", machine.fit(forest, TREE_CLASSES)
    for combine, kernel in (("vectors", "rbf"), ("sum", "sigmoid")):
        machine = TreeSVC("ptk", combine=combine, vector_kernel=kernel, normalize=False)
        yield f"tree {combine} {kernel}", machine.fit(Forest(TREES, vectors=vectors), TREE_CLASSES)


# --- Records ------------------------------------------------------------------------------------------


def _record_models() -> Iterator[tuple[str, Any]]:
    from sklearn.pipeline import make_pipeline

    kinds = {"age": "binned", "since": "date", "about": "text", "tags": "strings", "job": "category"}
    encoder = make_pipeline(RecordEncoder(min_count=1, kinds=kinds), PolySVC())
    yield "plan encoder", unkernel.compile(encoder.fit(RECORDS, LABELS), measure=False)
    for name, pipeline, X, y in _pipelines():
        yield f"plan {name}", unkernel.compile(pipeline.fit(X, y), measure=False)


def _pipelines() -> Iterator[tuple[str, Any, Any, Any]]:
    import pandas as pd
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction import DictVectorizer, FeatureHasher
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
    from sklearn.feature_selection import SelectKBest
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        Binarizer,
        FunctionTransformer,
        KBinsDiscretizer,
        MinMaxScaler,
        Normalizer,
        OneHotEncoder,
        OrdinalEncoder,
        PolynomialFeatures,
        PowerTransformer,
        QuantileTransformer,
        SplineTransformer,
        StandardScaler,
    )
    from sklearn.svm import SVC, LinearSVC

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
    table = ColumnTransformer(steps, sparse_threshold=1.0)
    yield "table", make_pipeline(table, PolySVC()), frame, LABELS
    calibrated = CalibratedClassifierCV(LogisticRegression(), cv=2)
    yield "calibrated", make_pipeline(table, calibrated), frame, LABELS
    dicts = [{"age": 1.5, "job": "cook"}, {"job": "smith"}, {"age": 2.0, "tags": "a"}, {"age": 0.5}]
    yield "dicts", make_pipeline(DictVectorizer(), PolySVC()), dicts, LABELS
    yield "hashed dicts", make_pipeline(FeatureHasher(16), LinearSVC()), dicts, LABELS
    texts = [record["about"] or "tea" for record in RECORDS]
    words = CountVectorizer(ngram_range=(1, 2), binary=True)
    yield "words", make_pipeline(words, SelectKBest(k=3), PolySVC()), texts, LABELS
    chars = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True)
    yield "characters", make_pipeline(chars, LinearSVC()), texts, LABELS
    numbers = frame[["age"]].fillna(0).assign(size=[1.0, 2.0, 0.0, 5.0])
    products = [MinMaxScaler(clip=True), PolynomialFeatures(2), Normalizer()]
    yield "numbers", make_pipeline(*products, SVC(kernel="rbf", gamma=1.0)), numbers, LABELS
    logarithms = make_pipeline(FunctionTransformer(np.arcsinh), QuantileTransformer(n_quantiles=4))
    curves = [
        ("logarithms", logarithms, ["age", "size"]),
        ("powers", PowerTransformer(), ["age", "size"]),
        ("ranks", QuantileTransformer(n_quantiles=3, output_distribution="normal"), ["size"]),
        ("splines", SplineTransformer(n_knots=3, extrapolation="linear"), ["age", "size"]),
        ("tides", SplineTransformer(n_knots=4, degree=2, extrapolation="periodic"), ["size"]),
        ("exponentials", make_pipeline(MinMaxScaler(), FunctionTransformer(np.exp), Normalizer()), ["age"]),
    ]
    yield "curves", make_pipeline(ColumnTransformer(curves), LogisticRegression()), numbers, LABELS
    yield "regression", make_pipeline(Binarizer(), Ridge()), numbers, [1.0, 2.0, 3.0, 4.0]


# --- Texts --------------------------------------------------------------------------------------------


def _parser(**options: Any) -> Any:
    from unkernel.parsing import ArcEagerParser

    bank = read_conllu(io.BytesIO(treebank(8, 1).encode()), trees=True)
    small = {"epochs": 2, "runs": 1, "min_count": 1, "min_updates": 1}
    return ArcEagerParser(**(small | options)).fit(bank)


def _parsers() -> Iterator[tuple[str, Any]]:
    yield "parser online", _parser()
    yield "parser of one degree, with a beam", _parser(degree=1, beam=4, split="both")
    yield "parser svm", _parser(learner="svm", split="none", degree=1)
    yield "parser logistic", _parser(learner="logistic", degree=1, templates="rich")


def _chunkers() -> Iterator[tuple[str, Any]]:
    from unkernel.parsing import Chunker

    corpus = read_chunks(io.BytesIO(chunks(8, 1).encode()), tagged=True)
    yield "chunker", Chunker().fit(corpus)
    backward = Chunker(direction="backward", scheme="IOBES", templates="yamcha", beam=1)
    yield "chunker backward", backward.fit(corpus)
    yield "chunker logistic", Chunker(learner="logistic", degree=1, scheme="IOE1").fit(corpus)
    yield "chunker of pairs", Chunker(engine="split", templates="words").fit(corpus)


def _bunsetsu_parsers() -> Iterator[tuple[str, Any]]:
    from unkernel.parsing import BunsetsuParser

    corpus = read_bunsetsu(io.BytesIO(bunsetsu(6, 1).encode()))
    yield "bunsetsu", BunsetsuParser().fit(corpus)
    yield "bunsetsu trie", BunsetsuParser(engine="expanded", trie=corpus, trie_nodes=30).fit(corpus)
    yield "bunsetsu logistic", BunsetsuParser(degree=1, learner="logistic").fit(corpus)


def _taggers() -> Iterator[tuple[str, Any]]:
    from unkernel.parsing import Tagger

    small: dict[str, Any] = {"epochs": 2, "min_count": 1, "min_updates": 1}
    bank = treebank_with_text(4)
    yield "tagger", Tagger(**small).fit(bank)
    yield "tagger of one column", Tagger(["upos"], clusters=_clusters(), **small).fit(bank)


def _text_models() -> Iterator[tuple[str, Any]]:
    from unkernel.parsing import ArcEagerParser, Tagger, TextParser, Tokenizer

    bank = treebank_with_text(4)
    yield "tokenizer", Tokenizer(epochs=2, runs=1).fit(bank)
    without_text = read_conllu(io.BytesIO(treebank(8, 1).encode()), trees=True)
    yield "tokenizer without multiwords", Tokenizer(epochs=1, runs=1, degree=1).fit(without_text)
    small: dict[str, Any] = {"epochs": 1, "runs": 1, "min_count": 1, "min_updates": 1}
    yield (
        "text parser",
        TextParser(
            tokenizer=Tokenizer(epochs=2, runs=1),
            tagger=Tagger(**small),
            parser=ArcEagerParser(**small),
            folds=2,
        ).fit(bank),
    )


def _clusters() -> Any:
    from unkernel.parsing import WordClusters

    texts = ["they see it", "dogs see it", "they saw Mr. Smith", "dogs bark"]
    return WordClusters.learn(texts * 3, n_clusters=3)


FAMILIES = {
    "rows": _row_models,
    "machines": _kernel_models,
    "trees": _tree_models,
    "records": _record_models,
    "parser": _parsers,
    "chunks": _chunkers,
    "bunsetsu": _bunsetsu_parsers,
    "tagger": _taggers,
    "text": _text_models,
    "clusters": lambda: [("word clusters", _clusters())],
}
