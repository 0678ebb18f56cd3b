"""Pipelines that a plan cannot represent are refused, and the message names the step."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC

import unkernel

TEXTS = ["the cat", "a mat", "the mat sat", "a cat sat"] * 3
ROWS = np.random.default_rng(0).normal(size=(12, 3))
LABELS = np.arange(12) % 2
THREE = np.arange(12) % 3


class OwnScaler(StandardScaler):
    def transform(self, X, copy=None):
        return super().transform(X, copy) ** 2


@pytest.mark.parametrize(
    "step",
    [
        CountVectorizer(tokenizer=str.split, token_pattern=None),
        TfidfVectorizer(preprocessor=str.upper),
        CountVectorizer(analyzer=str.split),
        HashingVectorizer(token_pattern=r"\S+"),
        CountVectorizer(strip_accents=str.lower),
        FeatureUnion([("words", CountVectorizer()), ("own", CountVectorizer(analyzer=str.split))]),
    ],
)
def test_text_steps_with_functions(step):
    pipeline = Pipeline([("my step", step), ("last", LogisticRegression())]).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match=r"'my step'.*leave it out, or transform the records before"):
        unkernel.compile(pipeline, sample=TEXTS)


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.sinc),
        FunctionTransformer(lambda X: X),
        FunctionTransformer(np.reciprocal),
        OwnScaler(),
        Pipeline([("components", PCA(2)), ("norms", Normalizer())]),
        ColumnTransformer([("components", PCA(2), [0, 1, 2])]),
        KernelPCA(2),
        Pipeline([("scale", StandardScaler()), ("sinc", FunctionTransformer(np.sinc))]),
        ColumnTransformer([("sinc", FunctionTransformer(np.sinc), [0])], remainder="passthrough"),
        Pipeline([("scale", StandardScaler()), ("categories", OneHotEncoder(handle_unknown="ignore"))]),
    ],
)
def test_steps_that_are_not_known(step):
    pipeline = Pipeline([("my step", step), ("last", LogisticRegression())]).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match=r"'my step'.*leave it out, or transform the records before"):
        unkernel.compile(pipeline, sample=ROWS)


def test_pairs_of_a_hasher():
    pairs = [[("a", 1), ("b", 2)], [("a", 3)]] * 6
    pipeline = Pipeline([("my step", FeatureHasher(input_type="pair")), ("last", LogisticRegression())])
    with pytest.raises(ValueError, match=r"'my step'.*give dicts"):
        unkernel.compile(pipeline.fit(pairs, LABELS))


@pytest.mark.parametrize(
    ("estimator", "labels", "message"),
    [
        (OneVsOneClassifier(SVC()), THREE, "OneVsOneClassifier have different kernels"),
        (OneVsRestClassifier(RandomForestClassifier(2)), THREE, "trees test one number after another"),
        (OneVsRestClassifier(KNeighborsClassifier()), THREE, "KNeighborsClassifier is not supported"),
        (OneVsOneClassifier(LogisticRegression()), LABELS, "OneVsOneClassifier has two classes only"),
        (CalibratedClassifierCV(SVC(), cv=2), LABELS, "give gamma a number"),
        (CalibratedClassifierCV(SVC(), cv=2), THREE, "calibrate a linear classifier"),
        (CalibratedClassifierCV(LogisticRegression(), method="temperature", cv=2), LABELS, "'sigmoid' or"),
        (SVC(kernel=lambda a, b: a @ b.T), LABELS, "kernel of its own"),
        (RandomForestClassifier(2), LABELS, r"trees test one number after .* docs/pipelines\.md lists"),
        (HistGradientBoostingClassifier(max_iter=2), LABELS, "trees test one number after another"),
        (KNeighborsClassifier(), LABELS, r"KNeighborsClassifier is not supported; .* docs/pipelines\.md"),
        (CalibratedClassifierCV(GaussianNB(), cv=2), LABELS, "has probabilities and no scores"),
        (OneVsOneClassifier(BernoulliNB()), THREE, "has probabilities and no scores"),
        (BernoulliNB(alpha=0, force_alpha=True, binarize=9.0), LABELS, "fit it with more smoothing"),
        (GaussianNB(), np.zeros(12), "GaussianNB was trained on one class"),
    ],
)
def test_last_steps(estimator, labels, message):
    pipeline = Pipeline([("scale", StandardScaler()), ("last", estimator)]).fit(ROWS, labels)
    with pytest.raises(ValueError, match=message):
        unkernel.compile(pipeline, sample=ROWS)


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_kernels(ensemble, tmp_path):
    estimator = CalibratedClassifierCV(SVC(gamma=0.5), cv=2, ensemble=ensemble)
    pipeline = Pipeline([("scale", StandardScaler()), ("last", estimator)]).fit(ROWS, LABELS)
    fast = unkernel.compile(pipeline, sample=ROWS, measure=False)
    fast.save(tmp_path / "model.uk")
    loaded = unkernel.load(tmp_path / "model.uk")
    for model in (fast, loaded):
        np.testing.assert_allclose(model.predict_proba(ROWS), pipeline.predict_proba(ROWS), rtol=1e-9)
        np.testing.assert_array_equal(model.predict(ROWS), pipeline.predict(ROWS))


@pytest.mark.parametrize("last", [SVC(), GaussianNB()])
def test_linear_maps_before_other_models(last):
    pipeline = Pipeline([("components", PCA(2)), ("last", last)]).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match=r"'components' \(PCA\) can be compiled only before a linear model"):
        unkernel.compile(pipeline, sample=ROWS)


def test_categorical_naive_bayes():
    words = np.array([["a", "x"], ["b", "y"], ["a", "é"], ["c", "x"]] * 6, dtype=object)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    pipeline = Pipeline([("codes", encoder), ("last", CategoricalNB())]).fit(words, np.arange(24) % 3)
    fast = unkernel.compile(pipeline)
    np.testing.assert_allclose(fast.predict_proba(words), pipeline.predict_proba(words), rtol=1e-9)
    assert list(fast.plan.feature_names) == ["x0 = a", "x0 = b", "x0 = c", "x1 = x", "x1 = y", "x1 = é"]
    for unknown in (pipeline, fast):
        with pytest.raises(ValueError, match=r"Negative values|'z' is not one of the 3 known categories"):
            unknown.predict(np.array([["z", "x"]], dtype=object))
    numbers = Pipeline([("last", CategoricalNB())]).fit(np.arange(24)[:, None] % 3, np.arange(24) % 2)
    with pytest.raises(ValueError, match="takes the columns of an OrdinalEncoder"):
        unkernel.compile(numbers)
