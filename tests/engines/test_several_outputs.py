"""Models of several labels or outputs give scikit-learn's answers, in memory and from files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    MultiTaskLasso,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

import unkernel
from reference.selection import few_examples
from unkernel import (
    CuttingPlaneSVC,
    FormatError,
    PolyLogisticRegression,
    PolyRegressor,
    PolySVC,
    RankSVM,
    RecordEncoder,
    TreeSVC,
    load,
)
from unkernel.models import ConjunctionModel, Decision, KernelModel, LinearModel, from_estimator

ROWS, COLUMNS = 40, 5
CLASSIFIERS = [
    LogisticRegression(),
    LinearSVC(),
    RidgeClassifier(),
    SVC(),
    SVC(kernel="poly", degree=2, coef0=1.0),
    MultinomialNB(),
    CalibratedClassifierCV(LinearSVC(), cv=2),
    PolySVC(),
    PolyLogisticRegression(),
]
OF_TWO = [*CLASSIFIERS, FixedThresholdClassifier(LogisticRegression(), threshold=0.3)]
REGRESSIONS = [
    Ridge(),
    LinearRegression(),
    MultiTaskLasso(0.01),
    MultiOutputRegressor(SVR()),
    MultiOutputRegressor(Ridge()),
    MultiOutputRegressor(PolyRegressor()),
]
pytestmark = pytest.mark.filterwarnings("ignore")


def draw_rows(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng, np.where(rng.random((ROWS, COLUMNS)) < 0.5, rng.random((ROWS, COLUMNS)), 0.0)


def draw_labels(rng: Any, count: int) -> Any:
    indicator = (rng.random((ROWS, count)) < rng.uniform(0.2, 0.8, count)).astype(int)
    indicator[:4], indicator[4:8] = 0, 1  # enough rows of both classes for two folds
    return indicator


def ask_or_none(estimator: Any, method: str, X: Any) -> Any:
    """Return the answers of a method; None if it is missing, possibly only in the estimators inside."""
    try:
        return getattr(estimator, method)(X)
    except AttributeError:
        return None


def check_equal(fast: Any, estimator: Any, X: Any) -> None:
    """Compare batch answers with scikit-learn's, and single answers with batch answers to the last bit."""
    expected = estimator.predict(X)
    answers = fast.predict(X)
    assert answers.shape == expected.shape
    scores = fast.decision_function(X)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(answers, expected, rtol=1e-9, atol=1e-9)
    else:
        assert answers.dtype == expected.dtype
        np.testing.assert_array_equal(answers, expected)
    if (expected_scores := ask_or_none(estimator, "decision_function", X)) is not None:
        np.testing.assert_allclose(scores, expected_scores, rtol=1e-9, atol=1e-9)
    shares = ask_or_none(estimator, "predict_proba", X)
    assert (shares is not None) == hasattr(fast, "predict_proba")
    if shares is not None:
        check_probabilities(fast.predict_proba(X), shares)
    for row, answer, score in zip(X, answers.tolist(), scores.tolist(), strict=True):
        columns = np.flatnonzero(row)
        assert fast.predict_one(columns, row[columns]) == answer
        assert fast.score_one(columns, row[columns]) == score
    assert fast.score(X, expected) == 1.0


def check_probabilities(actual: Any, expected: Any) -> None:
    assert isinstance(actual, list) == isinstance(expected, list)
    pairs = zip(actual, expected, strict=True) if isinstance(actual, list) else [(actual, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def list_classes(fast: Any) -> Any:
    classes = fast.classes_
    return [one.tolist() for one in classes] if isinstance(classes, list) else classes.tolist()


def check_file(fast: Any, path: Path, X: Any) -> None:
    """Check that the file has the same answers, mapped into memory or not."""
    fast.save(path)
    for mmap in (False, True):
        loaded = load(path, mmap=mmap)
        np.testing.assert_array_equal(loaded.decision_function(X), fast.decision_function(X))
        np.testing.assert_array_equal(loaded.predict(X), fast.predict(X))
        assert list_classes(loaded) == list_classes(fast)


# --- Estimators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", OF_TWO, ids=str)
@given(seed=st.integers(0, 1 << 30), count=st.integers(2, 5))
@few_examples(4)
def test_several_labels(inner: Any, seed: int, count: int) -> None:
    rng, X = draw_rows(seed)
    estimator = OneVsRestClassifier(inner).fit(X, draw_labels(rng, count))
    fast = unkernel.compile(estimator, measure=False)
    check_equal(fast, estimator, X)
    assert fast.classes_.tolist() == estimator.classes_.tolist()


@pytest.mark.parametrize("inner", CLASSIFIERS, ids=str)
@given(seed=st.integers(0, 1 << 30), counts=st.lists(st.integers(2, 4), min_size=1, max_size=3))
@few_examples(4)
def test_several_outputs(inner: Any, seed: int, counts: list[int]) -> None:
    rng, X = draw_rows(seed)
    names = np.array(["no", "yes", "perhaps", "é"])
    targets = np.column_stack([names[np.arange(ROWS) % count][rng.permutation(ROWS)] for count in counts])
    estimator = MultiOutputClassifier(inner).fit(X, targets)
    fast = unkernel.compile(estimator, measure=False)
    check_equal(fast, estimator, X)
    assert list_classes(fast) == list_classes(estimator)


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=str)
@given(seed=st.integers(0, 1 << 30), count=st.integers(2, 3))
@few_examples(4)
def test_several_numbers(estimator: Any, seed: int, count: int) -> None:
    rng, X = draw_rows(seed)
    check_equal(
        unkernel.compile(estimator.fit(X, rng.normal(size=(ROWS, count))), measure=False), estimator, X
    )


def test_a_search_and_thresholds_inside() -> None:
    rng, X = draw_rows(3)
    targets = draw_labels(rng, 3)
    search = GridSearchCV(OneVsRestClassifier(LogisticRegression()), {"estimator__C": [0.1, 10.0]}, cv=2)
    check_equal(unkernel.compile(search.fit(X, targets)), search.best_estimator_, X)
    with_thresholds = MultiOutputClassifier(FixedThresholdClassifier(LogisticRegression(), threshold=0.2))
    fast = unkernel.compile(with_thresholds.fit(X, targets))
    check_equal(fast, with_thresholds, X)
    assert [output.threshold.value for output in fast.decision.outputs] == [0.2] * 3


@pytest.mark.parametrize("inner", [LogisticRegression(), LinearSVC(), SVC(), PolySVC()], ids=str)
@pytest.mark.parametrize("columns", [[0, 1, 2], [2, 0, 1], [1, 2, 0]], ids=str)
def test_labels_of_all_rows_or_of_none(inner: Any, columns: list[int]) -> None:
    """scikit-learn's smallest score depends on the first label, which may have no classifier."""
    rng, X = draw_rows(5)
    targets = draw_labels(rng, 3)
    targets[:, 1:] = [0, 1]
    estimator = OneVsRestClassifier(inner).fit(X, targets[:, columns])
    fast = unkernel.compile(estimator, measure=False)
    np.testing.assert_array_equal(fast.predict(X), estimator.predict(X))
    np.testing.assert_allclose(fast.decision_function(X), estimator.decision_function(X), atol=1e-9)
    assert fast.predict_one([0, 1]) == fast.predict([[1, 1, 0, 0, 0]])[0].tolist()
    with pytest.raises(ValueError, match="only labels of all rows or none"):
        unkernel.compile(OneVsRestClassifier(inner).fit(X, np.tile([0, 1], (ROWS, 1))))


def test_ridge_classifiers_of_labels() -> None:
    rng, X = draw_rows(7)
    for count in (2, 3):
        estimator = RidgeClassifier().fit(X, draw_labels(rng, count))
        check_equal(unkernel.compile(estimator), estimator, X)


def test_support_vectors_of_several_outputs_are_stored_once() -> None:
    rng, X = draw_rows(9)
    estimator = OneVsRestClassifier(SVC()).fit(X, draw_labels(rng, 4))
    model = from_estimator(estimator)
    assert isinstance(model, KernelModel)
    used = np.unique(np.concatenate([inner.support_ for inner in estimator.estimators_]))
    assert model.n_support == len(used) < sum(len(inner.support_) for inner in estimator.estimators_)


# --- Pipelines ----------------------------------------------------------------------------------------


PEOPLE = [
    {"age": float(age), "job": job, "about": f"{job} {word}"}
    for age in range(20, 60, 4)
    for job, word in (("clerk", "tea"), ("pilot", "sea"), ("smith", "tea sea"))
]
TOPICS = np.array(
    [[one["age"] > 40, one["job"] == "pilot", "tea" in one["about"]] for one in PEOPLE], dtype=int
)
TARGETS = np.array([[one["job"], "old" if one["age"] > 40 else "new"] for one in PEOPLE])
NAMES = ["old", "flies", "tea"]


def make_front(kind: str) -> Any:
    if kind == "ours":
        return RecordEncoder(min_count=1)
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["job"]),
            ("text", TfidfVectorizer(), "about"),
        ]
    )


@pytest.mark.parametrize("kind", ["ours", "scikit-learn"])
@pytest.mark.parametrize(
    ("last", "targets"),
    [
        (OneVsRestClassifier(LogisticRegression()), TOPICS),
        (OneVsRestClassifier(PolySVC()), TOPICS),
        (OneVsRestClassifier(SVC(kernel="poly", degree=2)), TOPICS),
        (MultiOutputClassifier(LogisticRegression()), TARGETS),
        (MultiOutputClassifier(LinearSVC()), TARGETS),
        (MultiOutputClassifier(SVC(kernel="linear")), TARGETS),
        (MultiOutputRegressor(PolyRegressor()), TOPICS * 1.5),
        (Ridge(), TOPICS * 1.5),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_pipelines(kind: str, last: Any, targets: Any, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(PEOPLE)
    pipeline = make_pipeline(make_front(kind), last).fit(frame, targets)
    fast = unkernel.compile(pipeline, sample=frame)
    if targets.dtype.kind == "f":
        np.testing.assert_allclose(fast.predict(frame), pipeline.predict(frame), rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(fast.predict(frame), pipeline.predict(frame))
    check_file(fast, tmp_path / "model.uk", frame)
    loaded = load(tmp_path / "model.uk")
    batch = fast.predict(frame).tolist()
    for record, answer, score in zip(PEOPLE, batch, fast.decision_function(frame).tolist(), strict=True):
        assert loaded.predict_one(record) == answer
        assert loaded.score_one(record) == score
        bound = fast.bind({"job": record["job"]})
        rest = {name: value for name, value in record.items() if name != "job"}
        np.testing.assert_allclose(bound.score_one(rest), score, rtol=1e-9, atol=1e-9)
    assert hasattr(loaded, "predict_proba_one") == hasattr(pipeline, "predict_proba")
    if hasattr(pipeline, "predict_proba"):
        check_probabilities(loaded.predict_proba(frame), pipeline.predict_proba(frame))
        single = loaded.predict_proba_one(PEOPLE[0])
        shares = loaded.predict_proba(frame)
        expected = [part[0].tolist() for part in shares] if isinstance(shares, list) else shares[0].tolist()
        assert single == expected


def test_labels_have_names(tmp_path: Path) -> None:
    binarizer = MultiLabelBinarizer()
    topics = [[name for name, is_set in zip(NAMES, row, strict=True) if is_set] for row in TOPICS]
    indicator = binarizer.fit_transform(topics)
    pipeline = make_pipeline(RecordEncoder(min_count=1), OneVsRestClassifier(PolySVC()))
    fast = unkernel.compile(pipeline.fit(PEOPLE, indicator), classes=binarizer)
    assert fast.classes_.tolist() == sorted(NAMES)
    check_file(fast, tmp_path / "model.uk", PEOPLE)
    restored = binarizer.inverse_transform(load(tmp_path / "model.uk").predict(PEOPLE))
    assert [set(row) for row in restored] == [set(row) for row in topics]
    explanation = fast.explain_one(PEOPLE[3], of="flies")
    assert (explanation.for_class, explanation.against, explanation.output) == ("flies", None, None)
    shown = explanation.comparison.numbers
    parts = [shown(part.value)[0] for part in explanation.contributions]
    total = shown(explanation.intercept)[0] + sum(parts) + shown(explanation.rest)[0]
    assert total == pytest.approx(fast.score_one(PEOPLE[3])[sorted(NAMES).index("flies")])
    assert {heavy.for_class for heavy in fast.heaviest(20)} <= set(NAMES)
    assert fast.importances(PEOPLE).columns
    with pytest.raises(ValueError, match="'x' is not one of the classes"):
        fast.explain_one(PEOPLE[3], of="x")
    with pytest.raises(ValueError, match="give no y"):
        fast.importances(PEOPLE, indicator)
    with pytest.raises(ValueError, match="has the label 2, and there are 2 classes"):
        unkernel.compile(pipeline, classes=["a", "b"])


def test_explanations_of_outputs() -> None:
    pipeline = make_pipeline(RecordEncoder(min_count=1), MultiOutputClassifier(PolyLogisticRegression()))
    fast = unkernel.compile(pipeline.fit(PEOPLE, TARGETS))
    jobs, ages = fast.explain_one(PEOPLE[0]), fast.explain_one(PEOPLE[0], of=1)
    assert (jobs.output, jobs.for_class) == (0, PEOPLE[0]["job"])
    assert (ages.output, ages.for_class, ages.against) == (1, "old", "new")
    assert str(ages).startswith("output 1: score -")
    assert fast.explain_one(PEOPLE[0], of=(0, "smith")).for_class == "smith"
    assert fast.explain_one(PEOPLE[0], of=(1, "new")).against == "old"
    scores = fast.score_one(PEOPLE[0])
    assert ages.comparison.numbers(ages.score) == pytest.approx((scores[3],))
    heavy = fast.heaviest(40)
    assert {one.output for one in heavy} == {0, 1}
    assert {one.for_class for one in heavy if one.output == 1} == {"old", "new"}
    assert "of output" in str(heavy[0])
    for wrong in (2, -1, "old", True, (0, "x")):
        with pytest.raises(ValueError, match=r"of must be the number of an output|not one of the classes"):
            fast.explain_one(PEOPLE[0], of=wrong)
    with pytest.raises(ValueError, match="the model has several outputs"):
        unkernel.compile(pipeline, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="a threshold needs a classifier of two classes"):
        fast.with_threshold(0.3)
    with pytest.raises(ValueError, match="no report of a model of several labels or outputs"):
        fast.report(PEOPLE, TARGETS)


def test_a_difference_from_the_pipeline_is_found() -> None:
    pipeline = make_pipeline(RecordEncoder(min_count=1), OneVsRestClassifier(LogisticRegression()))
    pipeline.fit(PEOPLE, TOPICS)
    assert unkernel.compile(pipeline, sample=PEOPLE).decision.n_scores == 3
    pipeline.decision_function = lambda X: (
        1.000001 * OneVsRestClassifier.decision_function(pipeline[-1], pipeline[:-1].transform(X))
    )
    with pytest.raises(ValueError, match="the scores of the compiled pipeline differ"):
        unkernel.compile(pipeline, sample=PEOPLE)
    del pipeline.decision_function
    pipeline.predict = lambda X: 1 - pipeline[-1].predict(pipeline[:-1].transform(X))
    with pytest.raises(ValueError, match="the compiled pipeline answers"):
        unkernel.compile(pipeline, sample=PEOPLE)


# --- Files and refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [LogisticRegression(), SVC(), PolyLogisticRegression()], ids=str)
def test_model_files(inner: Any, tmp_path: Path) -> None:
    rng, X = draw_rows(11)
    model = from_estimator(OneVsRestClassifier(inner).fit(X, draw_labels(rng, 3)))
    assert isinstance(model, LinearModel | KernelModel | ConjunctionModel)
    assert "3 labels" in repr(model)
    model.save(tmp_path / "model.uk")
    loaded = unkernel.compile(tmp_path / "model.uk", measure=False)
    fast = unkernel.compile(model, measure=False)
    np.testing.assert_array_equal(loaded.decision_function(X), fast.decision_function(X))
    assert loaded.decision.to_json() == model.decision.to_json()
    if isinstance(model, KernelModel):
        with pytest.raises(ValueError, match="a single output"):
            unkernel.write_model(model, tmp_path / "model.libsvm", format="libsvm")


def test_damaged_decisions() -> None:
    label = Decision("binary", np.array([0, 1]))
    decision = Decision("multi_label", np.array(["a", "b"]), outputs=(label, label))
    stored = decision.to_json()
    assert Decision.from_json("file", json.loads(json.dumps(stored))).to_json() == stored
    outputs = stored["outputs"]
    for damage in (
        {"outputs": outputs[:1]},
        {"outputs": []},
        {"outputs": "x"},
        {"outputs": [outputs[0], None]},
        {"outputs": [outputs[0], stored]},
        {"outputs": [outputs[0], outputs[1] | {"outputs": []}]},
        {"outputs": [outputs[0], outputs[1] | {"ranking": True, "scheme": "regression"}]},
        {"outputs": [outputs[0], outputs[1] | {"classes": {"dtype": "<i8", "values": [1, 2]}}]},
        {"outputs": [outputs[0], outputs[1] | {"scheme": "one_class"}]},
        {"scheme": "multi_output"} | {"probability": "softmax"},
        {"scheme": "one_vs_rest"},
        {"scheme": "binary"},
        {"probability": "softmax"},
        {"decision_threshold": {"value": 0.5, "positive": 1, "of": "score"}},
    ):
        with pytest.raises(FormatError, match="damaged"):
            Decision.from_json("file", stored | damage)


def test_decisions_that_do_not_fit() -> None:
    label = Decision("binary", np.array([0, 1]))
    number = Decision("regression", np.empty(0, dtype=np.int64))
    nothing = np.empty(0, dtype=np.int64)
    for scheme, classes, outputs, message in (
        ("multi_label", np.array(["a", "b"]), (), "needs a decision for each output"),
        ("multi_label", np.array(["a"]), (label,), "at least two labels"),
        ("multi_output", np.array([0, 1]), (label,), "classes of its outputs"),
        ("multi_output", nothing, (label, number), "all classes, or all numbers"),
        ("binary", np.array([0, 1]), (label,), "a single output"),
    ):
        with pytest.raises(ValueError, match=message):
            Decision(scheme, classes, outputs=outputs)
    both = Decision("multi_output", nothing, outputs=(label, label))
    with pytest.raises(ValueError, match="several outputs"):
        both.codes(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ClassifierChain(LogisticRegression()), "give MultiOutputClassifier"),
        (OneVsRestClassifier(make_pipeline(StandardScaler(), LogisticRegression())), "around a Pipeline"),
        (MultiOutputClassifier(make_pipeline(StandardScaler(), SVC())), "around a Pipeline"),
    ],
    ids=str,
)
def test_refused_estimators(estimator: Any, message: str) -> None:
    rng, X = draw_rows(13)
    estimator.fit(X, draw_labels(rng, 3))
    with pytest.raises(ValueError, match=message):
        unkernel.compile(estimator)


def test_chains_of_regressions_are_refused() -> None:
    rng, X = draw_rows(13)
    chain = RegressorChain(Ridge()).fit(X, rng.normal(size=(ROWS, 2)))
    with pytest.raises(ValueError, match=r"RegressorChain is not supported.*give MultiOutputRegressor"):
        unkernel.compile(chain)


def test_members_of_stacks_have_one_output() -> None:
    from sklearn.ensemble import StackingClassifier

    rng, X = draw_rows(15)
    members = [("ridge", RidgeClassifier())]
    stack = StackingClassifier(members, RidgeClassifier(), cv=2, stack_method="decision_function")
    y = draw_labels(rng, 1)[:, 0]
    stack.fit(X, y).estimators_[0].fit(X, draw_labels(rng, 2))
    with pytest.raises(ValueError, match="is not supported; give linear models"):
        unkernel.compile(stack)


@pytest.mark.parametrize("estimator", [PolySVC(), PolyLogisticRegression(), CuttingPlaneSVC()], ids=str)
def test_estimators_name_the_way_to_several_labels(estimator: Any) -> None:
    rng, X = draw_rows(17)
    name = type(estimator).__name__
    with pytest.raises(ValueError, match=rf"OneVsRestClassifier\({name}\(\)\) to labels, or .*MultiOutputC"):
        estimator.fit(X, draw_labels(rng, 2))
    for labels in ([["a"], ["a", "b"]] * 20, [{"a"}, {"b"}] * 20):
        with pytest.raises(ValueError, match=rf"MultiLabelBinarizer, and fit .*\({name}\(\)\)"):
            estimator.fit(X, labels)
    column = estimator.fit(X, draw_labels(rng, 1))
    assert column.predict(X).shape == (ROWS,)


def test_other_estimators_take_one_target() -> None:
    rng, X = draw_rows(17)
    with pytest.raises(
        ValueError, match=r"fit sklearn.multioutput.MultiOutputRegressor\(PolyRegressor\(\)\)"
    ):
        PolyRegressor().fit(X, rng.normal(size=(ROWS, 2)))
    for estimator, inputs in ((RankSVM(), X), (TreeSVC(), ["(A b)"] * ROWS)):
        with pytest.raises(ValueError, match="1d array"):
            estimator.fit(inputs, draw_labels(rng, 2))


def test_scores_of_predictions_are_those_of_scikit_learn() -> None:
    rng, X = draw_rows(19)
    targets, numbers = draw_labels(rng, 3), rng.normal(size=(ROWS, 2))
    for estimator, y in (
        (OneVsRestClassifier(LogisticRegression()), targets),
        (MultiOutputClassifier(LogisticRegression()), targets),
        (Ridge(), numbers),
    ):
        fast = unkernel.compile(estimator.fit(X, y))
        assert fast.score(X, y) == pytest.approx(estimator.score(X, y))
        assert 0.0 <= fast.score(X, y) < 1.0
        with pytest.raises(ValueError, match="the shape of the predictions"):
            fast.score(X, y[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast.__sklearn_tags__().target_tags.multi_output
    assert fast._estimator_type == "regressor"


def test_dask_collections() -> None:
    dask_array = pytest.importorskip("dask.array")
    rng, X = draw_rows(21)
    labels = unkernel.compile(OneVsRestClassifier(LogisticRegression()).fit(X, draw_labels(rng, 3)))
    outputs = unkernel.compile(MultiOutputClassifier(LogisticRegression()).fit(X, draw_labels(rng, 2)))
    lazy = dask_array.from_array(X, chunks=(16, COLUMNS))
    for fast in (labels, outputs):
        np.testing.assert_array_equal(fast.predict(lazy).compute(), fast.predict(X))
        np.testing.assert_array_equal(fast.decision_function(lazy).compute(), fast.decision_function(X))
    np.testing.assert_array_equal(labels.predict_proba(lazy).compute(), labels.predict_proba(X))
    with pytest.raises(ValueError, match="a list of arrays"):
        outputs.predict_proba(lazy)
