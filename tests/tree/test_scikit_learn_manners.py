"""Checks of estimators as in scikit-learn, with trees in the place of rows, and typical uses."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.utils import get_tags

from reference.tree_examples import make_problem
from unkernel import Forest, TreeKernel, TreeSVC

TEXTS, LABELS = make_problem(1, 90)
NAMES = np.array(["no", "yes"])[LABELS]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
ESTIMATORS = [TreeSVC(), TreeSVC("ptk", solver="sampled", random_state=0, sample_size=50, tol=1e-2)]
every_solver = pytest.mark.parametrize("estimator", ESTIMATORS, ids=["exact", "sampled"])


def predict_texts(estimator):
    """Return the predictions of a fitted estimator, in a comparable form."""
    return estimator.decision_function(TEXTS).tolist()


# --- Parameters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TreeSVC, TreeKernel])
def test_the_constructor_only_stores_its_arguments(kind):
    parameters = kind().get_params()
    markers = {name: object() for name in parameters}
    estimator = kind(**markers)
    assert all(getattr(estimator, name) is marker for name, marker in markers.items())
    assert set(vars(estimator)) == set(parameters)
    assert set(kind._parameter_constraints) == set(parameters)


@pytest.mark.parametrize("kind", [TreeSVC, TreeKernel])
def test_parameters_can_be_read_and_set(kind):
    estimator = kind(kernel="ptk", decay=0.3)
    assert estimator.get_params()["decay"] == 0.3
    assert estimator.set_params(decay=0.7, kernel="st") is estimator
    assert (estimator.decay, estimator.kernel) == (0.7, "st")
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(lambda_=1.0)
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()


def test_repr_and_tags_follow_scikit_learn():
    assert repr(TreeSVC("ptk", C=3)) == "TreeSVC(C=3, kernel='ptk')"
    assert repr(TreeKernel("ptk")) == "TreeKernel(kernel='ptk')"
    assert "TreeSVC" in TreeSVC()._repr_html_()
    assert is_classifier(TreeSVC())
    assert not get_tags(TreeSVC()).input_tags.two_d_array


@every_solver
def test_parameters_are_checked_when_fitting_and_not_before(estimator):
    invalid = clone(estimator).set_params(decay=-1.0)
    with pytest.raises(ValueError, match="decay"):
        invalid.fit(TEXTS, LABELS)


# --- Fitting ----------------------------------------------------------------------------------------


@every_solver
def test_fitting_gives_itself_and_attributes(estimator):
    clf = clone(estimator)
    assert clf.fit(TEXTS, NAMES) is clf
    assert clf.get_params() == estimator.get_params()
    assert clf.classes_.tolist() == ["no", "yes"]
    assert clf.n_iter_ >= 1
    fitted = {name for name in vars(clf) if name.endswith("_")}
    assert {"classes_", "objective_", "gap_", "n_iter_", "solver_", "n_support_"} <= fitted


@every_solver
def test_fitting_again_starts_from_scratch(estimator):
    clf = clone(estimator).fit(TEXTS, NAMES)
    expected = predict_texts(clf)
    assert predict_texts(clf.fit(TEXTS, NAMES)) == expected
    clf.fit(TEXTS[:40], np.arange(40) % 3)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert predict_texts(clf.fit(TEXTS, NAMES)) == expected


@every_solver
def test_fitting_does_not_change_its_inputs(estimator):
    texts, labels, weights = list(TEXTS), NAMES.copy(), np.linspace(1, 2, 90)
    forest = Forest(texts)
    expected = (pickle.dumps(forest), weights.copy())
    for X in (texts, forest):
        clone(estimator).fit(X, labels, weights).predict(X)
    assert texts == TEXTS
    assert np.array_equal(labels, NAMES)
    assert pickle.dumps(forest) == expected[0]
    assert np.array_equal(weights, expected[1])


@every_solver
def test_unfitted_estimators_raise_not_fitted_errors(estimator):
    clf = clone(estimator)
    for ask in (clf.predict, clf.decision_function, lambda X: clf.score(X, LABELS)):
        with pytest.raises(NotFittedError):
            ask(TEXTS)
    with pytest.raises(NotFittedError):
        clf.to_model()


@pytest.mark.parametrize(
    "labels",
    [LABELS, LABELS.astype(float), LABELS.astype(bool), NAMES, NAMES.astype(object), list(NAMES),
     pd.Series(NAMES), pd.Series(NAMES, dtype="category"), LABELS.astype(np.int8) - 1, LABELS[:, None]],
    ids=["int", "float", "bool", "str", "object", "list", "series", "category", "int8", "column"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_of_any_type(labels):
    clf = TreeSVC().fit(TEXTS, labels)
    flat = np.asarray(labels).ravel()
    assert clf.classes_.tolist() == np.unique(flat).tolist()
    expected = np.unique(flat)[(clf.decision_function(TEXTS) > 0).astype(int)]
    assert clf.predict(TEXTS).tolist() == expected.tolist()
    assert clf.score(TEXTS, flat) > 0.85


@every_solver
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_invalid_labels_are_refused(estimator):
    for labels, complaint in (
        (np.where(LABELS, np.nan, 1.0), "NaN"),
        (np.linspace(0.1, 0.9, 90), "continuous"),
        (np.stack([LABELS, LABELS], axis=1), "1d|multi"),
        (np.zeros(90), "one class"),
        (LABELS[:-1], "inconsistent"),
    ):
        with pytest.raises(ValueError, match=complaint):
            clone(estimator).fit(TEXTS, labels)


@pytest.mark.parametrize("X", [np.zeros((90, 2)), pd.DataFrame({"tree": TEXTS}), [[text] for text in TEXTS]])
def test_tables_are_refused_as_trees(X):
    with pytest.raises((TypeError, ValueError)):
        TreeSVC().fit(X, LABELS)


def test_columns_of_tables_are_accepted_as_trees():
    column = pd.Series(TEXTS, index=np.arange(90)[::-1])
    expected = predict_texts(TreeSVC().fit(TEXTS, LABELS))
    for X in (column, np.array(TEXTS), np.array(TEXTS, object), tuple(TEXTS)):
        assert predict_texts(TreeSVC().fit(X, LABELS)) == expected


# --- Answers ----------------------------------------------------------------------------------------


@every_solver
def test_scores_do_not_depend_on_the_other_trees(estimator):
    clf = clone(estimator).fit(TEXTS, LABELS)
    together = clf.decision_function(TEXTS)
    one_by_one = [clf.decision_function([text])[0] for text in TEXTS[:20]]
    np.testing.assert_allclose(one_by_one, together[:20], rtol=1e-12)
    order = np.random.default_rng(0).permutation(90)
    shuffled = clf.decision_function([TEXTS[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], rtol=1e-12)


@every_solver
def test_pickles(estimator):
    clf = clone(estimator).fit(TEXTS, LABELS)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        assert predict_texts(pickle.loads(pickle.dumps(clf, protocol))) == predict_texts(clf)
    assert pickle.loads(pickle.dumps(estimator)).get_params() == estimator.get_params()
    transformer = pickle.loads(pickle.dumps(TreeKernel().fit(TEXTS[:10])))
    assert np.array_equal(transformer.transform(TEXTS), TreeKernel().fit(TEXTS[:10]).transform(TEXTS))


def test_weights_of_zero_and_one():
    unweighted = TreeSVC(tol=1e-5).fit(TEXTS, LABELS)
    assert predict_texts(TreeSVC(tol=1e-5).fit(TEXTS, LABELS, np.ones(90))) == predict_texts(unweighted)
    weights = np.r_[np.ones(60), np.zeros(30)]
    fewer = TreeSVC(tol=1e-5).fit(TEXTS[:60], LABELS[:60])
    zeros = TreeSVC(tol=1e-5).fit(TEXTS, LABELS, weights)
    assert zeros.objective_ == pytest.approx(fewer.objective_, rel=2e-5)
    np.testing.assert_allclose(predict_texts(zeros), predict_texts(fewer), atol=0.02)


def test_classes_of_weight_zero_are_left_out():
    labels = LABELS.copy()
    labels[:5] = 7
    weights = np.r_[np.zeros(5), np.ones(85)]
    clf = TreeSVC().fit(TEXTS, labels, weights)
    assert clf.classes_.tolist() == [0, 1]


# --- Selection --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X", [TEXTS, np.array(TEXTS), pd.Series(TEXTS), Forest], ids=["list", "array", "series", "forest"]
)
def test_cross_validation(X):
    X = Forest(TEXTS) if X is Forest else X
    scores = cross_val_score(TreeSVC(), X, NAMES, cv=FOLDS)
    expected = [
        TreeSVC().fit([TEXTS[i] for i in train], NAMES[train]).score([TEXTS[i] for i in test], NAMES[test])
        for train, test in FOLDS.split(TEXTS, NAMES)
    ]
    assert scores.tolist() == expected
    assert np.mean(scores) > 0.75
    assert cross_val_predict(TreeSVC(), X, NAMES, cv=FOLDS).shape == (90,)


def test_forests_with_vectors_are_cut_with_them():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(90, 2)) + 2 * LABELS[:, None]
    forest = Forest({"a": TEXTS, "b": TEXTS[::-1]}, vectors=vectors)
    assert np.mean(cross_val_score(TreeSVC(), forest, LABELS, cv=FOLDS)) > 0.8
    train, test, train_labels, test_labels = train_test_split(forest, LABELS, random_state=0)
    assert TreeSVC().fit(train, train_labels).score(test, test_labels) > 0.7


@pytest.mark.parametrize("X", [TEXTS, Forest], ids=["list", "forest"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search(X, n_jobs):
    X = Forest(TEXTS) if X is Forest else X
    grid = {"decay": [0.1, 0.4], "C": [0.1, 10.0], "kernel": ["sst", "ptk"]}
    search = GridSearchCV(TreeSVC(), grid, cv=FOLDS, n_jobs=n_jobs, error_score="raise").fit(X, NAMES)
    assert set(search.best_params_) == set(grid)
    assert len(search.cv_results_["params"]) == 8
    best = clone(TreeSVC(**search.best_params_)).fit(TEXTS, NAMES)
    assert search.predict(TEXTS).tolist() == best.predict(TEXTS).tolist()
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_a_learning_curve():
    sizes, train, test = learning_curve(
        TreeSVC(), TEXTS, LABELS, cv=FOLDS, train_sizes=[20, 60], shuffle=True, random_state=0
    )
    assert sizes.tolist() == [20, 60]
    assert train.shape == test.shape == (2, 3)


def test_a_pipeline():
    upper = FunctionTransformer(lambda texts: [text.replace("sees", "SEES") for text in texts])
    pipeline = Pipeline([("upper", upper), ("svc", TreeSVC())]).fit(TEXTS, NAMES)
    assert pipeline.score(TEXTS, NAMES) > 0.85
    assert pipeline.set_params(svc__C=2.0)["svc"].C == 2.0
    search = GridSearchCV(pipeline, {"svc__decay": [0.2, 0.6]}, cv=FOLDS).fit(TEXTS, NAMES)
    assert search.best_params_["svc__decay"] in (0.2, 0.6)


def test_a_kernel_matrix_for_another_learner():
    pipeline = make_pipeline(TreeKernel(), SVC(kernel="precomputed", tol=1e-6)).fit(TEXTS, NAMES)
    learner = TreeSVC(tol=1e-5).fit(TEXTS, NAMES)
    np.testing.assert_allclose(pipeline.decision_function(TEXTS), predict_texts(learner), atol=0.02)
    grid = {"treekernel__decay": [0.1, 0.4], "treekernel__kernel": ["sst", "ptk"], "svc__C": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=FOLDS, error_score="raise").fit(TEXTS, NAMES)
    assert search.score(TEXTS, NAMES) > 0.85
    pipeline_scores = cross_val_score(pipeline, TEXTS, NAMES, cv=FOLDS)
    np.testing.assert_allclose(
        pipeline_scores, cross_val_score(TreeSVC(tol=1e-5), TEXTS, NAMES, cv=FOLDS), atol=0.04
    )


def test_a_kernel_function_for_another_learner():
    """SVC(kernel=function) passes rows of numbers to the function: here, indices of trees."""
    forest = Forest(TEXTS)
    tree_kernel = TreeKernel()

    def values(A, B):
        return tree_kernel(forest[A[:, 0].astype(int)], forest[B[:, 0].astype(int)])

    rows = np.arange(90.0)[:, None]
    scores = SVC(kernel=values, tol=1e-6).fit(rows, NAMES).decision_function(rows)
    expected = SVC(kernel="precomputed", tol=1e-6).fit(TreeKernel()(TEXTS), NAMES)
    np.testing.assert_allclose(scores, expected.decision_function(TreeKernel()(TEXTS)), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("X", ["list", "forest"])
def test_probabilities_by_calibration(classes, X):
    texts, labels = make_problem(2, 120, classes=classes)
    trees = Forest(texts) if X == "forest" else texts
    calibrated = CalibratedClassifierCV(TreeSVC(), cv=3).fit(trees, labels)
    probabilities = calibrated.predict_proba(trees)
    assert probabilities.shape == (120, classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(probabilities.argmax(axis=1) == labels) > 0.8
    assert not hasattr(TreeSVC(), "predict_proba")


def test_one_against_the_rest_of_scikit_learn():
    texts, labels = make_problem(3, 90, classes=3)
    meta_learner = OneVsRestClassifier(TreeSVC(tol=1e-5)).fit(texts, labels)
    learner = TreeSVC(tol=1e-5).fit(texts, labels)
    np.testing.assert_allclose(
        meta_learner.decision_function(texts), learner.decision_function(texts), atol=0.02
    )


def test_ensembles_refuse_trees():
    """Ensembles treat X as a table, so they refuse trees with an error."""
    with pytest.raises((TypeError, ValueError)):
        BaggingClassifier(TreeSVC(), 2).fit(TEXTS, LABELS)
