"""Common behaviour of all estimators: files, paths, explanations, weights, fitted attributes."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import unkernel
from unkernel import CuttingPlaneSVC, Forest, FormatError, PolyLogisticRegression, PolySVC, RankSVM, TreeSVC
from unkernel.engines import Heavy
from unkernel.models import ExampleKernel, load_model

NAMES = ["height", "width", "depth", "age"]


def rows(classes=3):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (90, 4)).astype(float), columns=NAMES)
    y = (X["height"] + 2 * X["width"] * X["depth"]).to_numpy().astype(int) % classes
    return X, y


ROW_ESTIMATORS = [
    PolySVC(C=0.5, class_weight={0: 2.0, 1: 1.0}, random_state=3),
    PolySVC(degree=1, loss="squared_hinge"),
    PolySVC(storage="split", C=2.0, gamma=1),
    PolySVC(penalty="l1", loss="squared_hinge", C=5.0),
    PolyLogisticRegression(C=10.0, penalty="elasticnet", l1_ratio=0.25),
    CuttingPlaneSVC(C=3.0, max_cuts=50),
    CuttingPlaneSVC(solver="dual", random_state=1),
    RankSVM(C=2.0, pair_weight={(2.0, 0.0): 3.0}),
]
every_row_estimator = pytest.mark.parametrize("estimator", ROW_ESTIMATORS, ids=str)

TREES = ["(S (NP dogs) (VP bark))", "(NP (NP cats) (PP of))", "(X (Y a) (Z b))"] * 3
KINDS = ["s", "np", "x"] * 3


@every_row_estimator
def test_parameters_can_be_numpy_numbers(estimator):
    """Grids made by np.logspace contain such numbers."""
    X, y = rows()
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=0)
    expected = clone(estimator).fit(X, y)
    numbers = {"tol": np.float64, "C": np.float32, "max_iter": np.int64}
    parameters = {name: kind(getattr(estimator, name)) for name, kind in numbers.items()}
    refitted = clone(estimator).set_params(**parameters).fit(X, y)
    np.testing.assert_array_equal(refitted.decision_function(X), expected.decision_function(X))


# --- Files ---------------------------------------------------------------------------------------------


@every_row_estimator
def test_a_loaded_estimator_is_the_saved_one(estimator, tmp_path):
    X, y = rows()
    estimator.fit(X, y)
    estimator.save(tmp_path / "a.uk")
    loaded = type(estimator).load(tmp_path / "a.uk")
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    assert (loaded.objective_, loaded.gap_, loaded.n_iter_) == (
        estimator.objective_,
        estimator.gap_,
        estimator.n_iter_,
    )
    assert loaded.n_features_in_ == 4 and loaded.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(loaded.decision_function(X), estimator.decision_function(X))
    assert hasattr(loaded, "classes_") == (not isinstance(estimator, RankSVM))
    for name in ("storage_", "solver_", "gamma_", "ranks_"):
        assert hasattr(loaded, name) == hasattr(estimator, name)
    assert loaded.fit(X, y).score(X, y) == estimator.score(X, y)


def test_a_loaded_ranker_has_its_thresholds(tmp_path):
    X, y = rows()
    ranker = RankSVM().fit(X, y).fit_thresholds(X, y)
    ranker.save(tmp_path / "r.uk")
    loaded = RankSVM.load(tmp_path / "r.uk")
    np.testing.assert_array_equal(loaded.thresholds_, ranker.thresholds_)
    np.testing.assert_array_equal(loaded.classes_, [0, 1, 2])
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))


def test_a_loaded_tree_learner_is_the_saved_one(tmp_path):
    clf = TreeSVC("ptk", decay=0.3, C=7.0).fit(TREES, KINDS)
    clf.save(tmp_path / "t.uk")
    loaded = TreeSVC.load(tmp_path / "t.uk")
    assert loaded.get_params() == clf.get_params()
    assert (loaded.n_support_, loaded.solver_, loaded.n_iter_) == (clf.n_support_, "exact", clf.n_iter_)
    np.testing.assert_array_equal(loaded.decision_function(TREES), clf.decision_function(TREES))


def test_files_without_parameters_restore_those_that_the_model_stores(tmp_path):
    """Files of the first versions have no list of parameters."""
    X, y = rows()
    model = PolySVC(degree=3, gamma=0.5, C=0.25, loss="squared_hinge").fit(X, y).to_model()
    message = {name: model.origin[name] for name in ("C", "loss", "penalty", "objective", "gap")}
    replace(model, origin=message).save(tmp_path / "old.uk")
    loaded = PolySVC.load(tmp_path / "old.uk")
    assert (loaded.degree, loaded.gamma, loaded.C, loaded.loss) == (3, 0.5, 0.25, "squared_hinge")
    assert not hasattr(loaded, "n_iter_")
    np.testing.assert_array_equal(loaded.predict(X), unkernel.load(tmp_path / "old.uk").predict(X))
    with pytest.raises(FormatError, match="a model of PolySVC, not of PolyLogisticRegression"):
        PolyLogisticRegression.load(tmp_path / "old.uk")


def test_models_of_other_estimators_are_refused_by_name(tmp_path):
    X, y = rows()
    CuttingPlaneSVC().fit(X, y).save(tmp_path / "a.uk")
    with pytest.raises(FormatError, match=r"of CuttingPlaneSVC, not of RankSVM; unkernel\.load reads it"):
        RankSVM.load(tmp_path / "a.uk")
    model = load_model(tmp_path / "a.uk")
    replace(model, origin={}).save(tmp_path / "b.uk")
    with pytest.raises(FormatError, match="that no estimator"):
        CuttingPlaneSVC.load(tmp_path / "b.uk")


def test_compiled_classifiers_load_only_their_own_kind(tmp_path):
    X, y = rows()
    fast = unkernel.compile(PolySVC().fit(X, y))
    fast.save(tmp_path / "rows.uk")
    TreeSVC().fit(TREES, KINDS).save(tmp_path / "trees.uk")
    loaded = unkernel.CompiledClassifier.load(tmp_path / "rows.uk")
    np.testing.assert_array_equal(loaded.predict(X), fast.predict(X))
    assert unkernel.TreeClassifier.load(tmp_path / "trees.uk").predict(TREES).tolist() == KINDS
    with pytest.raises(FormatError, match="holds a CompiledClassifier, not a TreeClassifier"):
        unkernel.TreeClassifier.load(tmp_path / "rows.uk")


# --- Paths ---------------------------------------------------------------------------------------------


@every_row_estimator
def test_a_path_has_the_objective_of_single_fits(estimator):
    X, y = rows()
    Cs = [0.1, 1.0, 4.0]
    path = estimator.set_params(tol=1e-4).path(X, y, Cs)
    assert [fitted.C for fitted in path] == Cs
    for C, fitted in zip(Cs, path, strict=True):
        single = unkernel.PolySVC if isinstance(estimator, PolySVC) else type(estimator)
        single_fit = single(**(estimator.get_params() | {"C": C})).fit(X, y)
        assert fitted.objective_ == pytest.approx(single_fit.objective_, rel=3e-4)
        assert fitted.gap_ <= 1e-4
        assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="'C' parameter"):
        estimator.path(X, y, [1.0, -1.0])


def test_a_path_of_trees_is_its_single_fits():
    path = TreeSVC().path(TREES, KINDS, [0.5, 5.0])
    for fitted, C in zip(path, [0.5, 5.0], strict=True):
        single_fit = TreeSVC(C=C).fit(TREES, KINDS)
        np.testing.assert_array_equal(fitted.decision_function(TREES), single_fit.decision_function(TREES))


def count_calls(monkeypatch) -> dict[str, int]:
    """Count the calls that parse trees, and those that count and index subtrees for a kernel."""
    calls = {"parsed": 0, "counted": 0}
    parse, count = Forest.__init__, ExampleKernel.examples

    def parsing(self, *arguments, **options):
        calls["parsed"] += 1
        parse(self, *arguments, **options)

    def counting(self, *arguments, indexed=False, **options):
        calls["counted"] += indexed
        return count(self, *arguments, indexed=indexed, **options)

    monkeypatch.setattr(Forest, "__init__", parsing)
    monkeypatch.setattr(ExampleKernel, "examples", counting)
    return calls


@pytest.mark.parametrize("solver", ["exact", "sampled"])
@pytest.mark.parametrize("make_input", [list, tuple, Forest])
def test_warm_starts_of_tree_learners_reuse_parsed_and_indexed_trees(monkeypatch, solver, make_input):
    calls = count_calls(monkeypatch)

    def count_calls_of_fit(kinds=KINDS, **parameters):
        trees = X if make_input is Forest else make_input(TREES)  # an equal list suffices
        calls_before = dict(calls)
        warm.set_params(**parameters).fit(trees, kinds)
        return {name: calls[name] - calls_before[name] for name in calls}

    settings = {"solver": solver, "random_state": 0}
    X = make_input(TREES)
    warm = TreeSVC(warm_start=True, **settings)
    parsing = 0 if make_input is Forest else 1
    assert count_calls_of_fit(C=0.5) == {"parsed": parsing, "counted": 1}
    for C in (5.0, 0.5):
        assert count_calls_of_fit(C=C) == {"parsed": 0, "counted": 0}
        cold = TreeSVC(C=C, **settings).fit(X, KINDS)
        np.testing.assert_array_equal(warm.decision_function(TREES), cold.decision_function(TREES))
    assert count_calls_of_fit([kind.upper() for kind in KINDS]) == {"parsed": 0, "counted": 0}
    assert warm.classes_.tolist() == ["NP", "S", "X"]
    assert count_calls_of_fit(decay=0.2) == {"parsed": 0, "counted": 1}  # another kernel on the same trees
    for _ in range(2):
        assert count_calls_of_fit(warm_start=False) == {"parsed": parsing, "counted": 1}


def test_warm_starts_notice_changed_trees():
    warm = TreeSVC(warm_start=True).fit(TREES, KINDS)
    longer = [*TREES, "(Q (WRB when) (VBZ is) (NP it))"]
    for trees, kinds in ((TREES[:-1], KINDS[:-1]), (longer, [*KINDS, KINDS[0]])):
        single_fit = TreeSVC().fit(trees, kinds)
        np.testing.assert_array_equal(
            warm.fit(trees, kinds).decision_function(longer), single_fit.decision_function(longer)
        )
    forest = Forest(TREES)
    warm.fit(forest, KINDS)
    forest.extend(longer[-1:])
    np.testing.assert_allclose(
        warm.fit(forest, [*KINDS, KINDS[0]]).decision_function(longer), single_fit.decision_function(longer)
    )
    changing = list(TREES)
    warm.fit(changing, KINDS)
    changing[0] = longer[-1]
    single_fit = TreeSVC().fit(changing, KINDS)
    np.testing.assert_array_equal(
        warm.fit(changing, KINDS).decision_function(longer), single_fit.decision_function(longer)
    )


def test_pickles_of_tree_learners_omit_the_kept_trees():
    warm = TreeSVC(warm_start=True).fit(TREES, KINDS)
    copied = pickle.loads(pickle.dumps(warm))
    assert not hasattr(copied, "_reusable")
    assert len(pickle.dumps(warm)) == len(pickle.dumps(TreeSVC(warm_start=True).fit(TREES, KINDS)))
    np.testing.assert_array_equal(
        copied.fit(TREES, KINDS).decision_function(TREES), warm.decision_function(TREES)
    )


def test_a_ranker_starts_from_its_last_weights():
    X, y = rows()
    ranker = RankSVM(warm_start=True, tol=1e-6).fit(X, y)
    cold_iterations, objective = ranker.n_iter_, ranker.objective_
    ranker.fit(X, y)
    assert ranker.n_iter_ <= cold_iterations
    assert ranker.objective_ == pytest.approx(objective, rel=1e-5)


# --- Weights and explanations --------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", [PolySVC(degree=1), CuttingPlaneSVC()], ids=str)
def test_linear_weights_are_the_scores(learner, classes):
    X, y = rows(classes)
    learner.fit(X, y)
    for clf in (learner, unkernel.compile(learner)):
        scores = X.to_numpy() @ clf.coef_.T + clf.intercept_
        assert clf.coef_.shape == (1 if classes == 2 else classes, 4)
        np.testing.assert_allclose(np.squeeze(scores), clf.decision_function(X), atol=1e-12)


def test_models_that_are_not_linear_have_no_coef():
    X, y = rows()
    clf = PolySVC(degree=2)
    assert not hasattr(clf, "coef_")
    clf.fit(X, y)
    assert not hasattr(clf, "coef_") and not hasattr(unkernel.compile(clf), "intercept_")


@every_row_estimator
def test_explanations_name_columns_and_classes(estimator):
    X, y = rows()
    estimator.fit(X, y)
    row = X.iloc[[5]]
    why = estimator.explain(row, top=None)
    names = {name for part in why.contributions for name in part.names}
    assert names <= set(NAMES) and names
    assert why == unkernel.compile(estimator).explain(row, top=None)
    if isinstance(estimator, RankSVM):
        assert why.for_class is None and str(why).startswith("score ")
        return
    scores = estimator.decision_function(row)[0]
    winner, runner_up = np.argsort(-scores, kind="stable")[:2]
    assert (why.for_class, why.against) == (winner, runner_up)
    np.testing.assert_allclose(why.comparison.numbers(why.score), scores[[winner, runner_up]], atol=1e-9)
    assert f"{winner} " in str(why).splitlines()[0] and f"against {runner_up} " in str(why).splitlines()[0]
    single_fit = estimator.explain(row, of=1)
    assert single_fit.for_class == 1 and single_fit.against is None
    assert single_fit.comparison.numbers(single_fit.score) == pytest.approx((scores[1],))
    with pytest.raises(ValueError, match="is not one of the classes"):
        estimator.explain(row, of=7)


def test_the_score_of_two_classes_can_be_explained_for_either():
    X, y = rows(2)
    clf = PolySVC().fit(X, np.array(["no", "yes"])[y])
    explanation, reverse = clf.explain(X.iloc[[0]]), clf.explain(X.iloc[[0]], of="no")
    assert (
        (explanation.for_class, explanation.against) == ("yes", "no") == (reverse.against, reverse.for_class)
    )
    assert reverse.comparison.numbers(reverse.score)[0] == -explanation.score
    assert " for yes against no" in str(explanation)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_pairs_of_classes_are_explained_by_the_score_of_the_pair(shape):
    from sklearn.svm import SVC

    X, y = rows()
    machine = SVC(kernel="poly", degree=2, coef0=1, decision_function_shape=shape).fit(X, y)
    fast = unkernel.compile(machine)
    row = X.iloc[[7]]
    why = fast.explain(row)
    assert why.for_class == machine.predict(row)[0]
    assert len(why.comparison.numbers(why.score)) == 1 and why.comparison.numbers(why.score)[0] > 0
    assert why.against not in (None, why.for_class)


@every_row_estimator
def test_the_heaviest_are_labelled_records_over_all_classes(estimator):
    X, y = rows()
    estimator.fit(X, y)
    conjunctions = estimator.heaviest(5)
    assert conjunctions and all(isinstance(conjunction, Heavy) for conjunction in conjunctions)
    sizes = [abs(conjunction.weight) for conjunction in conjunctions]
    assert sizes == sorted(sizes, reverse=True) and min(sizes) > 0
    for conjunction in conjunctions:
        assert conjunction.label == " and ".join(NAMES[column] for column in conjunction.columns)
        assert conjunction.for_class in (None, 0, 1, 2)
    everything = estimator.heaviest(10**6)
    assert everything[:5] == conjunctions
    if not isinstance(estimator, RankSVM):
        assert len({conjunction.for_class for conjunction in everything}) > 1
    with pytest.raises(ValueError, match="top must be"):
        estimator.heaviest(0)


def test_weights_of_two_classes_name_the_favoured_class():
    X, y = rows(2)
    clf = CuttingPlaneSVC().fit(X, np.array(["no", "yes"])[y])
    weights = dict(zip(NAMES, clf.coef_[0], strict=True))
    for conjunction in clf.heaviest():
        assert conjunction.weight == abs(weights[conjunction.label])
        assert (
            conjunction.for_class
            == ("yes" if weights[conjunction.label] > 0 else "no")
            != conjunction.against
        )


def test_trees_are_explained_against_the_runner_up():
    clf = TreeSVC(C=10).fit(TREES, KINDS)
    scores = clf.decision_function(TREES[:1])[0]
    order = np.argsort(-scores, kind="stable")
    why = clf.explain(TREES[0], top=50)
    assert (why.for_class, why.against) == tuple(clf.classes_[order[:2]])
    assert why.score == pytest.approx(scores[order[0]] - scores[order[1]])
    assert why.intercept + why.rest + sum(fragment.value for fragment in why.fragments) == pytest.approx(
        why.score
    )
    # The difference of what each fragment adds to the two scores.
    pair = [
        {fragment.text: fragment.value for fragment in clf.explain(TREES[0], top=50, of=label).fragments}
        for label in (why.for_class, why.against)
    ]
    for fragment in why.fragments:
        expected = pair[0].get(fragment.text, 0.0) - pair[1].get(fragment.text, 0.0)
        assert fragment.value == pytest.approx(expected, abs=1e-5)
    assert f"for {why.for_class} against {why.against}" in str(why)


def test_the_heaviest_fragments_over_all_classes():
    clf = TreeSVC(C=10).fit(TREES, KINDS)
    conjunctions = clf.heaviest(6)
    assert conjunctions == unkernel.compile(clf).heaviest(6)
    assert {conjunction.for_class for conjunction in clf.heaviest(50)} == {"s", "np", "x"}
    assert all(isinstance(one, Heavy) and one.columns is None and one.label for one in conjunctions)
    binary = TreeSVC(C=10).fit(TREES[:2], KINDS[:2])
    assert all(
        conjunction.weight > 0 and {conjunction.for_class, conjunction.against} == {"s", "np"}
        for conjunction in binary.heaviest(8)
    )


# --- Warnings ------------------------------------------------------------------------------------------


def test_warnings_name_the_line_of_the_caller():
    X, y = rows()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PolySVC(max_iter=1, tol=1e-9).fit(X, y)
        CuttingPlaneSVC(max_iter=1, tol=1e-9).path(X, y, [1.0])
        TreeSVC(max_iter=1, tol=1e-12, C=1e3).fit(TREES, KINDS)
    assert {warning.filename for warning in caught} == {__file__}
