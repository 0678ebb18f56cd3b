"""Models of scikit-learn estimators predict like the estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from reference.selection import parametrize_pairs
from unkernel.models import KernelModel, LinearModel, from_estimator, load_model, read_model, write_model

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.5, "gamma": 0.1},
    "poly scale": {"kernel": "poly"},
    "rbf": {"kernel": "rbf"},
    "rbf auto": {"kernel": "rbf", "gamma": "auto"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": -0.5},
}


def digits(classes, seed=0):
    X, y = load_digits(n_class=classes, return_X_y=True)
    selection = np.random.default_rng(seed).permutation(len(y))[:160]
    X, y = X[selection] / 16, y[selection]
    flipped = np.random.default_rng(seed + 1).random(len(y)) < 0.1
    y = np.where(flipped, (y + 1) % classes, y)
    return X[:100], y[:100], X[100:]


def fit(estimator, X, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def call_without_warnings(method, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(X)


def assert_answers_alike(model, estimator, X):
    scores = model.scores(X)
    if hasattr(estimator, "decision_function"):
        np.testing.assert_allclose(
            model.decision.decide(scores), estimator.decision_function(X), rtol=1e-8, atol=1e-9
        )
        assert np.array_equal(model.decision.choose(scores), estimator.predict(X))
    else:
        np.testing.assert_allclose(model.decision.choose(scores), estimator.predict(X), rtol=1e-8, atol=1e-9)


@parametrize_pairs(options=[*KERNELS.values()], make=[SVC, NuSVC], classes=[2, 3, 4])
def test_classifiers(options, make, classes):
    X, y, test = digits(classes)
    extra_options = {"nu": 0.2} if make is NuSVC else {}
    for fitted_on in (X, sparse.csr_matrix(X)):
        estimator = fit(make(**options, **extra_options), fitted_on, y)
        model = from_estimator(estimator)
        assert isinstance(model, KernelModel)
        assert model.fixed_width and model.n_features == 64
        assert model.origin["estimator"] == make.__name__
        rows = test if fitted_on is X else sparse.csr_matrix(test)
        assert_answers_alike(model, estimator, rows)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize(("shape", "break_ties"), [("ovo", False), ("ovr", False), ("ovr", True)])
def test_shapes_and_ties(classes, shape, break_ties):
    X, y, test = digits(classes)
    options = {"decision_function_shape": shape, "break_ties": break_ties}
    estimator = SVC(gamma=2.0, C=0.05, **options).fit(X, y)
    model = from_estimator(estimator)
    assert_answers_alike(model, estimator, test)
    # Scores of 0 are where the two kinds of voting differ.
    assert_answers_alike(model, estimator, np.vstack([np.zeros(64), np.full(64, 1e6)]))


def test_breaking_ties_matters():
    X, y, _ = digits(4)
    rows = 2 * np.random.default_rng(0).random((3000, 64)) * X[:30].repeat(100, axis=0)
    answers = []
    for break_ties in (False, True):
        estimator = SVC(kernel="linear", break_ties=break_ties).fit(X, y)
        answers.append(estimator.predict(rows))
        model = from_estimator(estimator)
        assert np.array_equal(model.decision.choose(model.scores(rows)), answers[-1])
    assert (answers[0] != answers[1]).any()


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_probabilities(classes):
    X, y, test = digits(classes)
    try:
        estimator = fit(SVC(probability=True, random_state=0), X, y)
    except TypeError:
        pytest.skip("this scikit-learn has no SVC(probability=True)")
    model = from_estimator(estimator)
    probabilities = model.decision.probabilities(model.scores(test))
    np.testing.assert_allclose(
        probabilities, call_without_warnings(estimator.predict_proba, test), rtol=0, atol=1e-9
    )
    assert from_estimator(fit(SVC(), X, y)).decision.probability is None


@pytest.mark.parametrize("make", [SVR, NuSVR])
@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
def test_regressions(options, make):
    X, y, test = digits(10)
    estimator = fit(make(**options), X, y)
    model = from_estimator(estimator)
    assert model.decision.scheme == "regression"
    assert_answers_alike(model, estimator, test)


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
def test_one_class(options):
    X, _, test = digits(2)
    estimator = fit(OneClassSVM(nu=0.3, **options), X)
    model = from_estimator(estimator)
    assert model.decision.scheme == "one_class"
    scores = model.scores(test)
    np.testing.assert_allclose(scores[:, 0], estimator.decision_function(test), rtol=1e-8, atol=1e-9)
    assert np.array_equal(model.decision.choose(scores), estimator.predict(test))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        LinearSVC(fit_intercept=False),
        LogisticRegression(),
        SGDClassifier(random_state=0),
        RidgeClassifier(),
        Perceptron(),
    ],
    ids=str,
)
def test_linear_classifiers(estimator, classes):
    X, y, test = digits(classes)
    fit(estimator, X, y)
    model = from_estimator(estimator)
    assert isinstance(model, LinearModel)
    assert_answers_alike(model, estimator, test)
    assert_answers_alike(model, estimator, sparse.csr_matrix(test))


@pytest.mark.parametrize(
    "estimator",
    [LinearSVR(), LinearRegression(), Ridge(fit_intercept=False), Lasso(0.01), SGDRegressor(random_state=0)],
    ids=str,
)
def test_linear_regressions(estimator):
    X, y, test = digits(10)
    fit(estimator, X, y)
    assert_answers_alike(from_estimator(estimator), estimator, test)


def test_sparse_weights():
    X, y, test = digits(4)
    estimator = SGDClassifier(random_state=0, penalty="l1").fit(X, y).sparsify()
    assert sparse.issparse(estimator.coef_)
    assert_answers_alike(from_estimator(estimator), estimator, sparse.csr_matrix(test))


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_of_any_type(classes, tmp_path):
    X, y, test = digits(classes)
    kinds = [np.array(["no", "yes", "maybe"]), np.array([2.0, -1.0, 7.0]), np.array([False, True])]
    for labels in kinds[: 5 - classes]:  # there are two booleans only
        for make in (SVC, LinearSVC):
            estimator = fit(make(), X, labels[y])
            model = from_estimator(estimator)
            model.save(tmp_path / "model.uk")
            for model_or_copy in (model, load_model(tmp_path / "model.uk")):
                assert_answers_alike(model_or_copy, estimator, test)
                assert model_or_copy.classes.dtype.kind == labels.dtype.kind


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_for_libsvm(classes, tmp_path):
    """From scikit-learn to LIBSVM's format, with the same predictions."""
    X, y, test = digits(classes)
    estimator = SVC(kernel="poly", degree=3, coef0=1).fit(X, y)
    write_model(from_estimator(estimator), tmp_path / "model", format="libsvm")
    written_model = read_model(tmp_path / "model")
    assert np.array_equal(written_model.decision.choose(written_model.scores(test)), estimator.predict(test))
    if classes == 2:
        counts = dict(zip(written_model.classes.tolist(), written_model.origin["nr_sv"], strict=True))
        assert [counts[0], counts[1]] == estimator.n_support_.tolist()


def test_searches():
    X, y, test = digits(3)
    search = GridSearchCV(SVC(), {"C": [0.1, 1]}, cv=2).fit(X, y)
    assert_answers_alike(from_estimator(search), search.best_estimator_, test)
    with pytest.raises(ValueError, match="refit=True"):
        from_estimator(GridSearchCV(SVC(), {"C": [0.1, 1]}, cv=2, refit=False).fit(X, y))
    with pytest.raises(NotFittedError):
        from_estimator(GridSearchCV(SVC(), {"C": [0.1, 1]}))


def test_unsupported_estimators_are_refused():
    X, y, _ = digits(2)
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    with pytest.raises(ValueError, match="transform the rows"):
        from_estimator(pipeline)
    assert from_estimator(pipeline[-1]).n_features == 64
    with pytest.raises(ValueError, match="precomputed"):
        from_estimator(SVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(ValueError, match="kernel of its own"):
        from_estimator(SVC(kernel=lambda a, b: a @ b.T).fit(X, y))
    for estimator in (DecisionTreeClassifier(), PoissonRegressor()):
        with pytest.raises(ValueError, match="is not supported"):
            from_estimator(estimator.fit(X, y))
    with pytest.raises(TypeError):
        from_estimator("model")


@pytest.mark.parametrize(
    "estimator", [SVC(), OneClassSVM(), SVR(), LinearSVC(), LogisticRegression()], ids=str
)
def test_estimators_that_are_not_fitted(estimator):
    with pytest.raises(NotFittedError):
        from_estimator(estimator)


class Namesake:
    """A class with the name of a scikit-learn class, and no relation to it."""

    def __init__(self):
        self.support_vectors_ = None

    def fit(self, X, y):
        return self

    def __sklearn_tags__(self):
        return SVC().__sklearn_tags__()


def test_classes_with_their_names():
    class Derived(SVC):
        pass

    X, y, test = digits(3)
    derived = Derived().fit(X, y)
    assert_answers_alike(from_estimator(derived), derived, test)
    Namesake.__name__ = "SVC"
    with pytest.raises(ValueError, match="is not supported"):
        from_estimator(Namesake())


def test_rows_of_another_width():
    X, y, _ = digits(2)
    for estimator in (SVC(), LinearSVC()):
        with pytest.raises(ValueError, match="X has 63 features, but the model was trained on 64"):
            from_estimator(estimator.fit(X, y)).scores(X[:, 1:])


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, BernoulliNB])
@pytest.mark.parametrize("count", [2, 3])
def test_naive_bayes(kind, count, tmp_path):
    X, y, _ = digits(count)
    options = {"binarize": None} if kind is BernoulliNB else {}
    estimator = kind(**options).fit(sparse.csr_matrix(X), y)
    model = from_estimator(estimator)
    scores = model.scores(X)
    np.testing.assert_allclose(model.decision.probabilities(scores), estimator.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(model.decision.choose(scores), estimator.predict(X))


@pytest.mark.parametrize("estimator", [GaussianNB(), BernoulliNB()])
def test_naive_bayes_that_changes_its_rows(estimator):
    X, y, _ = digits(2)
    with pytest.raises(ValueError, match="give it as the last step of a pipeline, such as make_pipeline"):
        from_estimator(estimator.fit(X, y))
