"""Products of features: multiplied natively, or folded into a model of conjunctions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    LabelEncoder,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import unkernel
from reference.selection import parametrize_pairs
from unkernel import RecordEncoder
from unkernel.models import ConjunctionModel, LinearModel


def frame(rows: int = 80) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], rows),
            "size": np.round(rng.normal(size=rows), 2),
            "shape": rng.choice(["round", "flat"], rows),
        }
    )
    return X, ((X["colour"] == "red") & (X["size"] > 0)).to_numpy() + 2 * (X["shape"] == "flat").to_numpy()


def one_hot() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore", drop="if_binary"), ["colour", "shape"]),
            ("bins", KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["size"]),
        ]
    )


@parametrize_pairs(
    classes=[2, 4],
    estimator=[LogisticRegression(), LinearSVC(), RidgeClassifier()],
    degree=[2, 3, (2, 3)],
    interaction_only=[True, False],
)
def test_products_are_absorbed_into_the_model(classes, estimator, degree, interaction_only, tmp_path):
    X, y = frame()
    products = PolynomialFeatures(degree, interaction_only=interaction_only)
    pipeline = make_pipeline(one_hot(), products, estimator).fit(X, y % classes)
    fast = unkernel.compile(pipeline, sample=X, measure=False)
    assert isinstance(fast.to_model(), ConjunctionModel)
    assert len(fast.plan.feature_names) == 7  # without their products
    fast.save(tmp_path / "model.uk")
    for model in (fast, unkernel.load(tmp_path / "model.uk")):
        np.testing.assert_allclose(
            model.decision_function(X), pipeline.decision_function(X), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_array_equal(model.predict(X), pipeline.predict(X))
        if hasattr(pipeline, "predict_proba"):
            np.testing.assert_allclose(model.predict_proba(X), pipeline.predict_proba(X), atol=1e-9)
    record = X.iloc[0].to_dict()
    assert fast.predict_one(record) == pipeline.predict(X[:1])[0]
    assert "colour = " in str(fast.explain_one(record))


def test_products_of_a_record_encoder_become_conjunctions():
    X, y = frame()
    pipeline = make_pipeline(RecordEncoder(n_bins=4), PolynomialFeatures(2), LogisticRegression()).fit(X, y)
    fast = unkernel.compile(pipeline, sample=X, measure=False)
    assert isinstance(fast.to_model(), ConjunctionModel)
    np.testing.assert_allclose(fast.decision_function(X), pipeline.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("encoder", "estimator"),
    [
        (one_hot(), CalibratedClassifierCV(LinearSVC(), cv=2)),  # no model of conjunctions has such curves
        (make_pipeline(one_hot(), StandardScaler(with_mean=False)), LogisticRegression()),  # not 0 and 1
        (make_pipeline(one_hot(), PolynomialFeatures(2)), LogisticRegression()),  # products of products
    ],
)
def test_products_are_multiplied_natively(encoder, estimator):
    X, y = frame()
    pipeline = make_pipeline(encoder, PolynomialFeatures(2), estimator).fit(X, y)
    fast = unkernel.compile(pipeline, sample=X, measure=False)
    assert isinstance(fast.to_model(), LinearModel)
    for row in (0, 7):
        expected = pipeline.predict(X[row : row + 1])[0]
        assert fast.predict_one(X.iloc[row].to_dict()) == expected


def test_plans_of_older_files_have_powers():
    X, y = frame()
    numbers = X[["size"]].to_numpy()
    pipeline = make_pipeline(PolynomialFeatures(3), StandardScaler(), LogisticRegression()).fit(numbers, y)
    fast = unkernel.compile(pipeline, sample=numbers, measure=False)
    products = next(step for step in fast.plan.steps if step.kind == "products")
    older = unkernel.records.PlanStep(
        "products", {"input": products.table["input"], "powers": np.arange(4, dtype=np.int32)}, products.names
    )
    steps = [older if step is products else step for step in fast.plan.steps]
    plan = unkernel.records.Plan(fast.plan.columns, steps, required=True)
    np.testing.assert_array_equal(
        plan.encode(numbers).to_scipy().toarray(), fast.transform(numbers).toarray()
    )


def test_classes_of_a_label_encoder(tmp_path):
    X, y = frame()
    names = np.array(["none", "red", "flat", "both"])[y]
    encoder = LabelEncoder().fit(names)
    pipeline = make_pipeline(one_hot(), LogisticRegression()).fit(X, encoder.transform(names))
    expected = encoder.inverse_transform(pipeline.predict(X))
    for classes in (encoder, encoder.classes_, encoder.classes_.tolist()):
        fast = unkernel.compile(pipeline, sample=X, classes=classes, measure=False)
        fast.save(tmp_path / "model.uk")
        for model in (fast, unkernel.load(tmp_path / "model.uk")):
            np.testing.assert_array_equal(model.predict(X), expected)
            assert model.predict_one(X.iloc[0].to_dict()) == expected[0]
    rows = unkernel.compile(pipeline[-1], classes=encoder, measure=False)
    np.testing.assert_array_equal(rows.predict(pipeline[:-1].transform(X)), expected)


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "a", "c"], [["a"]]])
def test_classes_that_do_not_fit(classes):
    X, y = frame()
    pipeline = make_pipeline(one_hot(), LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="classes"):
        unkernel.compile(pipeline, classes=classes)
    with pytest.raises(ValueError, match="the model has others"):
        unkernel.compile(pipeline.fit(X, y.astype(str)), classes=["a", "b", "c", "d"])
