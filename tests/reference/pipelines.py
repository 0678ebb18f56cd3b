"""Generated scikit-learn pipelines, and awkward records for training and prediction.

Hypothesis draws steps and parameters; the values of records come from a generator with a drawn seed, which
is faster. Each strategy draws an unfitted :class:`Case`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC

from unkernel import PolySVC

N_ROWS, N_TEST_ROWS = 14, 6
STRINGS = ["a", "b", "", " ", "A", "é", "e\u0301", "日本", "İstanbul", "x y", "1", "nan", "None", "ß", "😀"]
UNSEEN = ["new", "ñ", "2", "  ", "neu\x00"]
WORDS = [
    "the", "cat", "Cat", "CAT", "sat", "on", "a", "mat", "I", "x1", "snake_case", "e-mail", "don't", "café",
    "cafe\u0301", "CAFÉ", "straße", "İzmir", "日本語", "naïve", "ﬁne", "x\u00a0y", "tab\there", "\n", "  ",
    "²", "ⅷ", "١٢", "a\u200db", "😀", "K", "\x1c", "\x85", "ǅ", "ΑΣ",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A pipeline, training records with labels, and records to predict."""

    pipeline: Any
    X: Any
    y: Any
    X_test: Any


def classes(rng: np.random.Generator, count: int) -> Any:
    labels = np.array(["no", "yes", "maybé"])[:count]
    return labels[np.arange(N_ROWS) % count][rng.permutation(N_ROWS)]


@st.composite
def classifiers(draw: Any, count: int) -> Any:
    """Draw a classifier for the last step, with this number of classes."""
    linear = [
        LogisticRegression(C=draw(st.sampled_from([0.5, 20.0]))),
        LinearSVC(C=0.3, fit_intercept=draw(st.booleans())),
        RidgeClassifier(),
        Perceptron(max_iter=20, tol=None, random_state=0),
        SGDClassifier(
            loss=draw(st.sampled_from(["hinge", "log_loss", "modified_huber"])),
            max_iter=20,
            tol=None,
            random_state=0,
        ),
    ]
    others = [
        SVC(kernel=draw(st.sampled_from(["linear", "poly", "rbf"])), degree=2, coef0=1.0, gamma="scale"),
        OneVsRestClassifier(draw(st.sampled_from([*linear, SVC(gamma=0.1), PolySVC(degree=2)]))),
        CalibratedClassifierCV(
            draw(st.sampled_from(linear)),
            method=draw(st.sampled_from(["sigmoid", "isotonic"])),
            cv=2,
            ensemble=draw(st.booleans()),
        ),
    ]
    if count == 2:
        of_scores = LinearSVC(C=0.3)
        others.append(
            FixedThresholdClassifier(
                draw(
                    st.sampled_from(
                        [LogisticRegression(), CalibratedClassifierCV(of_scores, cv=2), of_scores]
                    )
                ),
                threshold=draw(st.sampled_from([0.15, 0.6])),
                pos_label=draw(st.sampled_from([None, "no"])),
            )
        )
    if count > 2:
        others.append(OneVsOneClassifier(draw(st.sampled_from(linear))))
    return draw(st.sampled_from(linear + others))


# --- Tables ------------------------------------------------------------------------------------------------


def _blank_out(rng: np.random.Generator, values: list[Any], hole: Any, share: float) -> list[Any]:
    return [hole if rng.random() < share else value for value in values]


def table(rng: np.random.Generator, rows: int, *, hole: Any, holes: bool, unseen: bool, text: bool) -> Any:
    """Return a frame of strings, numbers that stand for categories, numbers, and texts."""
    strings = STRINGS[:5] + (UNSEEN if unseen else [])
    city_names = STRINGS[5:9] + (UNSEEN if unseen else [])
    share = 0.2 if holes else 0.0
    columns: dict[str, Any] = {
        "colour": pd.Series(_blank_out(rng, rng.choice(strings, rows).tolist(), hole, share), dtype=object),
        "stadt": pd.Series(_blank_out(rng, rng.choice(city_names, rows).tolist(), hole, share), dtype=object),
        "grade": rng.integers(0, 6 if unseen else 4, rows),
        "size": _blank_out(rng, np.round(rng.normal(size=rows) * 10, 1).tolist(), np.nan, share),
        "größe": _blank_out(rng, (10.0 ** rng.integers(-3, 6, rows)).tolist(), np.nan, share),
        "flag": rng.random(rows) < 0.5,
    }
    if text:
        columns["text"] = documents(rng, rows)
    return pd.DataFrame(columns)


@st.composite
def naive_bayes(draw: Any) -> Any:
    """Draw a naive Bayes classifier."""
    return draw(
        st.sampled_from(
            [
                MultinomialNB(alpha=draw(st.sampled_from([0.01, 1.0])), fit_prior=draw(st.booleans())),
                ComplementNB(norm=draw(st.booleans())),
                BernoulliNB(binarize=draw(st.sampled_from([None, 0.0, 0.4]))),
                GaussianNB(var_smoothing=draw(st.sampled_from([1e-9, 1e-3]))),
            ]
        )
    )


@st.composite
def bayes_pipelines(draw: Any) -> Case:
    """Draw tables of numbers and categories, encoded by their targets, before naive Bayes."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    last = draw(naive_bayes())
    holes = draw(st.booleans())
    kinds = {"hole": draw(st.sampled_from([np.nan, None])), "holes": holes, "text": False}
    X = table(rng, N_ROWS, unseen=False, **kinds)
    X_test = table(rng, N_TEST_ROWS, unseen=draw(st.booleans()), **kinds)
    numbers: list[Any] = [SimpleImputer()] if holes else []
    numbers.append(
        MinMaxScaler() if isinstance(last, (MultinomialNB, ComplementNB, BernoulliNB)) else "passthrough"
    )
    numbers += draw(st.sampled_from([[], [PolynomialFeatures(2)]]))
    names = draw(st.sampled_from([["colour", "stadt"], ["grade", "stadt"]]))
    encoder = TargetEncoder(
        smooth=draw(st.sampled_from(["auto", 0.0, 3.0])),
        cv=2,
        random_state=0,
    )
    columns = ColumnTransformer(
        [("numbers", make_chain(numbers), ["size", "größe"]), ("categories", encoder, names)]
    )
    count = draw(st.sampled_from([2, 3]))
    if isinstance(last, BernoulliNB) and last.binarize is None:
        columns = Pipeline([("columns", columns), ("flags", Binarizer(threshold=0.3))])
    return Case(Pipeline([("columns", columns), ("last", last)]), X, classes(rng, count), X_test)


@st.composite
def category_encoders(draw: Any) -> Any:
    if draw(st.booleans()):
        unknown = draw(st.sampled_from(["error", "ignore", "infrequent_if_exist"]))
        limits = draw(
            st.sampled_from([{}, {"min_frequency": 3}, {"max_categories": 3}, {"min_frequency": 0.2}])
        )
        drop = draw(st.sampled_from([None, "first", "if_binary"]))
        return OneHotEncoder(handle_unknown=unknown, drop=drop, sparse_output=draw(st.booleans()), **limits)
    missing = draw(st.sampled_from([np.nan, -7]))
    if draw(st.booleans()):
        limits = draw(st.sampled_from([{}, {"min_frequency": 3}, {"max_categories": 3}]))
        return OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=draw(st.sampled_from([-1, -3])),
            encoded_missing_value=missing,
            **limits,
        )
    return OrdinalEncoder(encoded_missing_value=missing)


@st.composite
def number_transformers(draw: Any) -> Any:
    return draw(
        st.sampled_from(
            [
                StandardScaler(with_mean=draw(st.booleans()), with_std=draw(st.booleans())),
                MinMaxScaler(
                    feature_range=draw(st.sampled_from([(0, 1), (-2, 5)])), clip=draw(st.booleans())
                ),
                MaxAbsScaler(),
                RobustScaler(
                    with_centering=draw(st.booleans()),
                    with_scaling=draw(st.booleans()),
                    unit_variance=draw(st.booleans()),
                ),
                Normalizer(norm=draw(st.sampled_from(["l1", "l2", "max"]))),
                Binarizer(threshold=draw(st.sampled_from([0.0, 1.5, -0.5]))),
                KBinsDiscretizer(
                    n_bins=draw(st.sampled_from([2, 4])),
                    encode=draw(st.sampled_from(["onehot", "onehot-dense", "ordinal"])),
                    strategy=draw(st.sampled_from(["uniform", "quantile", "kmeans"])),
                    **({"quantile_method": "averaged_inverted_cdf"}),
                ),
                PolynomialFeatures(
                    degree=draw(st.sampled_from([2, 3, (2, 2), (0, 2)])),
                    interaction_only=draw(st.booleans()),
                    include_bias=draw(st.booleans()),
                    order=draw(st.sampled_from(["C", "F"])),
                ),
                SelectKBest(f_classif, k=draw(st.sampled_from([1, "all"]))),
                VarianceThreshold(),
                SelectFromModel(LogisticRegression(), threshold=draw(st.sampled_from(["mean", -np.inf]))),
                "passthrough",
            ]
        )
    )


@st.composite
def number_imputers(draw: Any) -> Any:
    return SimpleImputer(
        strategy=draw(st.sampled_from(["mean", "median", "most_frequent", "constant"])),
        fill_value=draw(st.sampled_from([None, 3.5])),
        add_indicator=draw(st.booleans()),
        keep_empty_features=draw(st.booleans()),
    )


def make_chain(steps: list[Any]) -> Any:
    """Return a pipeline of the steps, or the step itself if there is only one."""
    if len(steps) == 1:
        return steps[0]
    return Pipeline([(f"{position} é", step) for position, step in enumerate(steps)])


@st.composite
def column_choices(draw: Any, names: list[str], frame: Any) -> Any:
    """Draw columns by name, position, mask, slice or selector."""
    positions = [list(frame.columns).index(name) for name in names]
    choices = [names, positions, [name in names for name in frame.columns]]
    if positions == list(range(positions[0], positions[-1] + 1)):
        choices += [slice(positions[0], positions[-1] + 1), slice(names[0], names[-1])]
    choices.append(make_column_selector("^(" + "|".join(names) + ")$"))
    return draw(st.sampled_from(choices))


@st.composite
def table_pipelines(draw: Any) -> Case:
    """Draw a ColumnTransformer of several parts, followed by some steps."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    has_missing, text = draw(st.booleans()), draw(st.booleans())
    missing = draw(st.sampled_from([np.nan, None]))
    options = {"hole": missing, "holes": has_missing, "text": text}
    X = table(rng, N_ROWS, unseen=False, **options)
    X_test = table(rng, N_TEST_ROWS, unseen=draw(st.booleans()), **options)
    parts: list[tuple[str, Any, Any]] = []
    names = draw(st.sampled_from([["colour", "stadt"], ["stadt"], ["grade"], ["flag", "grade"]]))
    imputers = (
        [SimpleImputer(strategy="most_frequent", missing_values=missing)]
        if has_missing and "stadt" in names
        else []
    )
    encoder = draw(category_encoders())
    if imputers and draw(st.booleans()):
        imputers = [SimpleImputer(strategy="constant", fill_value="?é", missing_values=missing)]
    impute = bool(imputers) and draw(st.booleans())
    parts.append(
        ("categories", make_chain([*(imputers if impute else []), encoder]), draw(column_choices(names, X)))
    )
    numbers = draw(st.sampled_from([["size"], ["größe", "size"], ["size", "größe"]]))
    chain = [draw(number_imputers())] if has_missing else []
    chain += draw(st.lists(number_transformers(), min_size=1, max_size=2))
    parts.append(("numbers", make_chain(chain), draw(column_choices(numbers, X))))
    if text:
        parts.append(("text", draw(vectorizers()), draw(st.sampled_from(["text", 6]))))
    remainder: Any = "drop"
    if not (set(X.columns) - {"grade", "flag", *names, *numbers, *(["text"] if text else [])}):
        remainder = draw(st.sampled_from(["drop", "passthrough"]))
    columns = ColumnTransformer(
        draw(st.permutations(parts)),
        remainder=remainder,
        sparse_threshold=draw(st.sampled_from([0.0, 0.3, 1.0])),
        transformer_weights=draw(st.sampled_from([None, {"numbers": 0.5}])),
    )
    last_steps = draw(
        st.sampled_from(
            [
                [],
                [MaxAbsScaler()],
                [StandardScaler(with_mean=False)],
                [Normalizer()],
                [VarianceThreshold()],
                [SelectKBest(f_classif, k=2)],
                [SelectFromModel(LogisticRegression(), threshold="median")],
                [PolynomialFeatures(2, include_bias=draw(st.booleans()))],
                [Binarizer(threshold=0.5)],
            ]
        )
    )
    if columns.sparse_threshold == 0.0:
        last_steps = draw(
            st.sampled_from([last_steps, [StandardScaler()], [MinMaxScaler()], [RobustScaler()]])
        )
    count = draw(st.sampled_from([2, 3]))
    steps = [("columns", columns), *((f"after {k}", step) for k, step in enumerate(last_steps))]
    return Case(Pipeline([*steps, ("last", draw(classifiers(count)))]), X, classes(rng, count), X_test)


@st.composite
def number_pipelines(draw: Any) -> Case:
    """Draw arrays of numbers, and chains and unions of transformers."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X, X_test = np.round(rng.normal(size=(N_ROWS, 3)) * 4), np.round(rng.normal(size=(N_TEST_ROWS, 3)) * 9, 1)
    steps: list[Any] = []
    if draw(st.booleans()):
        missing = draw(st.sampled_from([np.nan, 0]))
        for values in (X, X_test):
            values[rng.random(values.shape) < 0.2] = missing
        steps.append(draw(number_imputers()).set_params(missing_values=missing))
    steps += draw(st.lists(number_transformers(), min_size=1, max_size=3))
    if draw(st.booleans()):
        parts = [("one", draw(number_transformers())), ("two", draw(number_transformers()))]
        parts.append(("three", draw(st.sampled_from(["drop", "passthrough"]))))
        steps.append(FeatureUnion(parts, transformer_weights=draw(st.sampled_from([None, {"two": 2.0}]))))
    count = draw(st.sampled_from([2, 3]))
    named_steps = [(f"step {position}", step) for position, step in enumerate(steps)]
    return Case(Pipeline([*named_steps, ("last", draw(classifiers(count)))]), X, classes(rng, count), X_test)


# --- Texts and dicts ---------------------------------------------------------------------------------------


def documents(rng: np.random.Generator, rows: int) -> list[str]:
    """Return texts of few words, some of them empty or with awkward characters."""
    texts = []
    for row in range(rows):
        words = rng.choice(WORDS, rng.integers(0, 7)).tolist() + (["cat mat"] if row % 2 else ["sat on"])
        texts.append(rng.choice([" ", "  ", ", "]).join(words))
    return texts


@st.composite
def text_options(draw: Any) -> dict[str, Any]:
    analyzer = draw(st.sampled_from(["word", "char", "char_wb"]))
    options = {
        "analyzer": analyzer,
        "ngram_range": draw(st.sampled_from([(1, 1), (1, 2), (2, 3), (1, 4), (3, 3)])),
        "lowercase": draw(st.booleans()),
        "strip_accents": draw(st.sampled_from([None, "ascii", "unicode"])),
        "binary": draw(st.booleans()),
    }
    if analyzer == "word":
        options["stop_words"] = draw(st.sampled_from([None, "english", ["cat", "café"]]))
        options["token_pattern"] = draw(st.sampled_from([r"(?u)\b\w\w+\b", r"(?u)\b\w+\b"]))
        options["ngram_range"] = draw(st.sampled_from([(1, 1), (1, 2), (1, 3)]))
    return options


@st.composite
def vectorizers(draw: Any) -> Any:
    options = draw(text_options())
    kind = draw(st.sampled_from(["count", "tfidf", "hashing"]))
    if kind == "hashing":
        return HashingVectorizer(
            n_features=draw(st.sampled_from([1, 7, 64])),
            norm=draw(st.sampled_from([None, "l1", "l2"])),
            alternate_sign=draw(st.booleans()),
            **options,
        )
    options |= draw(st.sampled_from([{}, {"min_df": 2}, {"max_df": 0.9}, {"max_features": 5}]))
    if kind == "count":
        return CountVectorizer(**options)
    return TfidfVectorizer(**options, **draw(tfidf_options()))


@st.composite
def tfidf_options(draw: Any) -> dict[str, Any]:
    return {
        "norm": draw(st.sampled_from([None, "l1", "l2"])),
        "use_idf": draw(st.booleans()),
        "smooth_idf": draw(st.booleans()),
        "sublinear_tf": draw(st.booleans()),
    }


@st.composite
def text_pipelines(draw: Any) -> Case:
    """Draw one or two vectorizers, and steps that may follow."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    first = draw(vectorizers())
    if draw(st.booleans()):
        parts = [("one", first), ("two", make_chain([draw(vectorizers()), draw(transformers_of_counts())]))]
        first = FeatureUnion(parts, transformer_weights=draw(st.sampled_from([None, {"one": 0.5}])))
    steps = [first, *draw(st.lists(transformers_of_counts(), max_size=2))]
    count = draw(st.sampled_from([2, 3]))
    named_steps = [(f"step {position}", step) for position, step in enumerate(steps)]
    pipeline = Pipeline([*named_steps, ("last", draw(classifiers(count)))])
    return Case(pipeline, documents(rng, N_ROWS), classes(rng, count), documents(rng, N_TEST_ROWS))


@st.composite
def transformers_of_counts(draw: Any) -> Any:
    return draw(
        st.sampled_from(
            [
                TfidfTransformer(**draw(tfidf_options())),
                MaxAbsScaler(),
                Normalizer(norm="max"),
                Binarizer(),
                VarianceThreshold(),
                SelectKBest(f_classif, k=3),
                StandardScaler(with_mean=False),
                "passthrough",
            ]
        )
    )


def _dicts(rng: np.random.Generator, rows: int) -> list[dict[str, Any]]:
    records = []
    for _ in range(rows):
        record: dict[str, Any] = {"always": float(rng.integers(1, 4))}
        for key in ("x", "ké", "", "a=b", "flag"):
            if rng.random() < 0.6:
                record[key] = [
                    1, -2.5, 0, True, rng.choice(STRINGS).item(), "v", rng.choice(STRINGS, 2).tolist()
                ][rng.integers(6 if key != "x" else 7)]  # fmt: skip
        records.append(record)
    return records


@st.composite
def dict_pipelines(draw: Any) -> Case:
    """Draw DictVectorizer or FeatureHasher, for dicts or lists of strings."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["vectorizer", "dict", "string"]))
    hashing = {"n_features": draw(st.sampled_from([1, 8, 50])), "alternate_sign": draw(st.booleans())}
    X, X_test = _dicts(rng, N_ROWS), _dicts(rng, N_TEST_ROWS)
    if kind == "vectorizer":
        first: Any = DictVectorizer(
            separator=draw(st.sampled_from(["=", "", "é"])),
            sparse=draw(st.booleans()),
            sort=draw(st.booleans()),
        )
    elif kind == "dict":
        first = FeatureHasher(**hashing)
        X, X_test = (
            [{k: v for k, v in record.items() if not isinstance(v, list)} for record in records]
            for records in (X, X_test)
        )
    else:
        first = FeatureHasher(input_type="string", **hashing)
        X, X_test = [[rng.choice(STRINGS, rng.integers(1, 6)).tolist() for _ in many] for many in (X, X_test)]
    count = draw(st.sampled_from([2, 3]))
    steps = [first, *draw(st.lists(transformers_of_counts(), max_size=1))]
    named_steps = [(f"step {position}", step) for position, step in enumerate(steps)]
    return Case(Pipeline([*named_steps, ("last", draw(classifiers(count)))]), X, classes(rng, count), X_test)


@st.composite
def mapped_pipelines(draw: Any) -> Case:
    """Draw numbers or texts, PCA or TruncatedSVD, scalers and selections, and a linear model."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    is_text = draw(st.booleans())
    if is_text:
        X, X_test = documents(rng, N_ROWS), documents(rng, N_TEST_ROWS)
        steps: list[Any] = [TfidfVectorizer(**draw(tfidf_options()))]
    else:
        center = draw(st.sampled_from([0.0, 1e3]))
        X, X_test = (np.round(rng.normal(size=(rows, 4)) * 5, 1) + center for rows in (N_ROWS, N_TEST_ROWS))
        before = [[], [StandardScaler()], [MinMaxScaler()], [Normalizer()], [PolynomialFeatures(2)]]
        steps = draw(st.sampled_from(before))
    maps = [
        PCA(draw(st.sampled_from([2, 3])), whiten=draw(st.booleans()), random_state=0),
        TruncatedSVD(draw(st.sampled_from([2, 3])), random_state=0),
    ]
    after = [
        StandardScaler(with_mean=draw(st.booleans())),
        RobustScaler(with_centering=draw(st.booleans()), with_scaling=draw(st.booleans())),
        MinMaxScaler(draw(st.sampled_from([(0, 1), (-2, 5)]))),
        MaxAbsScaler(),
        PCA(2),
        SelectKBest(f_classif, k=1),
        "passthrough",
    ]
    steps += [draw(st.sampled_from(maps)), *draw(st.lists(st.sampled_from(after), max_size=2, unique=True))]
    count = draw(st.sampled_from([2, 3]))
    last = draw(classifiers(count).filter(lambda one: not isinstance(one, SVC)))
    named = [(f"step {place}", step) for place, step in enumerate(steps)]
    return Case(Pipeline([*named, ("last", last)]), X, classes(rng, count), X_test)
