"""``TableEstimator`` with several labels per record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.preprocessing import MultiLabelBinarizer

import unkernel
from unkernel import PolyLogisticRegression, TableEstimator
from unkernel.selection.labels import LabelLearners, compute_label_loss, read_labels

RNG = np.random.default_rng(0)
PEOPLE = [
    {"age": int(RNG.integers(20, 70)), "job": str(RNG.choice(["clerk", "pilot", "smith"]))}
    for _ in range(120)
]
TAGS = [
    [
        *(["old"] if (one["age"] > 45) != (RNG.random() < 0.05) else []),
        *(["é, flies"] if (one["job"] == "pilot") != (RNG.random() < 0.05) else []),
    ]
    for one in PEOPLE
]
NAMES = ["old", "é, flies"]
INDICATOR = np.array([[name in tags for name in NAMES] for tags in TAGS], dtype=int)


@pytest.fixture(scope="module")
def fitted() -> TableEstimator:
    return TableEstimator().fit(PEOPLE, TAGS)


def test_a_model_of_labels(fitted: TableEstimator, tmp_path: Path) -> None:
    assert (fitted.task_, fitted.classes_.tolist()) == ("labels", NAMES)
    assert fitted.best_.loss < fitted.trials_[0].loss / 2
    predicted, shares = fitted.predict(PEOPLE), fitted.predict_proba(PEOPLE)
    np.testing.assert_array_equal(predicted, fitted.pipeline_.predict(PEOPLE))
    np.testing.assert_allclose(shares, fitted.pipeline_.predict_proba(PEOPLE), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(predicted, shares > 0.5)
    assert fitted.score(PEOPLE, TAGS) == (predicted == INDICATOR).all(axis=1).mean() > 0.7
    assert fitted.score(PEOPLE, INDICATOR) == fitted.score(PEOPLE, TAGS)
    fitted.save(tmp_path / "tags.uk")
    for fast in (unkernel.load(tmp_path / "tags.uk"), unkernel.compile(fitted)):
        assert fast.classes_.tolist() == NAMES
        np.testing.assert_array_equal(fast.predict(PEOPLE), predicted)
    assert is_classifier(fitted) and fitted.__sklearn_tags__().classifier_tags.multi_label
    with pytest.raises(ValueError, match="cannot be updated"):
        fitted.update(PEOPLE, TAGS)
    with pytest.raises(ValueError, match=r"y\[0\] has the label 'x', which the model does not know"):
        fitted.score(PEOPLE, [["x"]] * len(PEOPLE))
    with pytest.raises(ValueError, match="a list of labels, or a row of 0 and 1"):
        fitted.score(PEOPLE, [1] * len(PEOPLE))


@pytest.mark.parametrize(
    "y",
    [
        list(map(set, TAGS)),
        pd.Series(TAGS),
        pd.DataFrame(INDICATOR, columns=NAMES),
        pd.DataFrame(INDICATOR.astype(bool), columns=NAMES),
        INDICATOR,
        INDICATOR.tolist(),
    ],
    ids=["sets", "series", "frame", "booleans", "array", "lists"],
)
def test_forms_of_labels(y: Any) -> None:
    labels = read_labels(y)
    assert labels is not None
    np.testing.assert_array_equal(labels.indicator, INDICATOR)
    assert labels.names.tolist() in (NAMES, [0, 1])


@given(
    st.lists(
        st.sets(
            st.sampled_from(["a", "b", "ç"]) | st.text(st.characters(exclude_characters="\0"), max_size=2)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_lists_of_labels_are_read_as_by_scikit_learn(rows: list[set[str]]) -> None:
    if not any(rows):
        with pytest.raises(ValueError, match="no record has a label"):
            read_labels(rows)
        return
    binarizer = MultiLabelBinarizer()
    expected = binarizer.fit_transform(rows)
    labels = read_labels(rows)
    assert labels is not None
    np.testing.assert_array_equal(labels.indicator, expected)
    np.testing.assert_array_equal(labels.names, np.array(binarizer.classes_.tolist()))


@pytest.mark.parametrize(
    "y", [["a", "b"], [1, 0], np.array([[1], [0]]), [[1, 2], [3, 4]], np.array([["a", "b"]] * 2)], ids=str
)
def test_other_targets_are_no_labels(y: Any) -> None:
    assert read_labels(y) is None


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a"], ["a", "b"], "b"], r"y\[2\] is 'b', and other targets are lists"),
        ([["a"], None, ["b"]], r"y\[1\] is None"),
        ([["a", 1], ["b"], []], "all strings, or all whole numbers"),
        ([["a"], [], ["a"]], "there is only the label 'a'"),
        ([[f"label {k}"] for k in range(1001)], "1001 labels are too many"),
        ([["a", "b"], ["a"], ["b", "a"]], "all records have the label 'a': leave it out"),
        (np.eye(3, 4, dtype=int), "no record has the label 3: leave it out"),
        ([["a\0"], ["b"], []], "ends in a NUL character"),
        ([[], [], []], "no record has a label"),
    ],
    ids=["string", "missing", "types", "one", "many", "of all", "of none", "NUL", "empty"],
)
def test_labels_that_cannot_be_learned(y: Any, message: str) -> None:
    people = (PEOPLE * 10)[: len(y)]
    with pytest.raises(ValueError, match=message):
        TableEstimator().fit(people, y)


def test_other_options(people: Any = PEOPLE) -> None:
    with pytest.raises(
        ValueError, match="class_weight is for classes, and the target is predicted as labels"
    ):
        TableEstimator(class_weight="balanced").fit(people, TAGS)
    with pytest.raises(ValueError, match="y must have a list of labels"):
        TableEstimator(task="labels").fit(people, ["a", "b"] * 60)
    with pytest.raises(ValueError, match="use task='labels'"):
        TableEstimator(task="classes").fit(people, TAGS)


def test_one_learner_per_label_and_its_loss() -> None:
    rows = np.column_stack([[one["age"] / 70, one["job"] == "pilot"] for one in PEOPLE]).T.astype(float)
    learners = LabelLearners(lambda: PolyLogisticRegression(degree=1, random_state=0), 3).set_params(C=0.5)
    targets = np.column_stack([INDICATOR, np.ones(len(PEOPLE), int)])
    learners.fit(rows, targets)
    shares = learners.predict_proba(rows)
    alone = PolyLogisticRegression(degree=1, C=0.5, random_state=0).fit(rows, targets[:, 1])
    np.testing.assert_allclose(shares[:, 1], alone.predict_proba(rows)[:, 1], rtol=1e-12)
    assert (shares[:, 2] == 1.0).all()
    expected = np.mean([log_loss(targets[:, k], shares[:, k], labels=[0, 1]) for k in range(3)])
    assert compute_label_loss(targets, shares) == pytest.approx(expected)
