"""Explanations equal the contributions of all conjunctions of a row, computed one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
from reference.conjunctions import factor, number
from reference.kernels import EXACT, make_kernel_model, monomial_contributions, polynomial, set_contributions
from reference.models import make_model
from unkernel.models import Decision, LinearModel
from unkernel.models.kernel import Kernel

every_top = pytest.mark.parametrize("top", [0, 1, 3, None])


def as_matrix(row, width):
    """Return a list of columns, or a dict from columns to values, as a matrix of one row."""
    entries = row if isinstance(row, dict) else dict.fromkeys(row, 1.0)
    X = np.zeros((1, width))
    for column, value in entries.items():
        if column < width:
            X[0, column] = value
    return X


def assert_adds_up(explanation):
    total = np.array(explanation.intercept) + explanation.rest
    size = np.abs(explanation.intercept) + np.abs(explanation.rest)
    for contribution in explanation.contributions:
        total = total + contribution.value
        size = size + np.abs(contribution.value)
    assert (np.abs(total - explanation.score) <= 1e-12 * np.maximum(size, 1)).all()


def assert_explains(found, expected):
    """Check that contributions are as expected, except zeros; `expected` has the intercept at ()."""
    np.testing.assert_allclose(np.atleast_1d(found.intercept), expected[()], rtol=1e-10, atol=1e-12)
    contributions = {c.features: np.atleast_1d(c.value) for c in found.contributions}
    assert len(contributions) == len(found.contributions) == found.n_conjunctions
    assert () not in contributions
    for features, value in expected.items():
        if features:
            np.testing.assert_allclose(contributions.pop(features, 0 * value), value, rtol=1e-9, atol=1e-11)
    assert not contributions
    np.testing.assert_allclose(np.atleast_1d(found.rest), 0.0, atol=1e-15)


def assert_largest_first(explanation):
    """Check the order by the effect on the score, or on the difference between the scores of two classes."""
    numbers_of_contributions = [explanation.comparison.numbers(c.value) for c in explanation.contributions]
    effects = [abs(numbers[0] - sum(numbers[1:])) for numbers in numbers_of_contributions]
    assert effects == sorted(effects, reverse=True)
    assert all(np.abs(c.value).max() > 0 for c in explanation.contributions)


@given(
    seed=st.integers(0, 2**32),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 3]),
    row=st.lists(st.integers(0, 14), unique=True, max_size=9),
    coef0=st.sampled_from([0.0, 1.0, 2.5, -0.5]),
)
def test_binary_rows_of_kernel_models(seed, degree, scores, row, coef0):
    model = make_kernel_model(seed, polynomial(degree, 0.5, coef0), scores=scores)
    fast = unkernel.compile(model, "expanded")
    explanation = fast.explain(row, top=None)
    assert_explains(explanation, set_contributions(model, row))
    assert_adds_up(explanation)
    assert_largest_first(explanation)
    np.testing.assert_allclose(
        np.atleast_1d(explanation.score), model.scores(as_matrix(row, 15))[0], rtol=1e-9, atol=1e-9
    )


@given(
    seed=st.integers(0, 2**32),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 3]),
    real=st.booleans(),
    row=st.dictionaries(st.integers(0, 14), st.sampled_from([0.5, -1.0, 2.0, 3.0]), max_size=6),
)
def test_real_rows_of_kernel_models(seed, degree, scores, real, row):
    model = make_kernel_model(seed, polynomial(degree), scores=scores, real=real)
    explanation = unkernel.compile(model, "expanded").explain(row, top=None)
    assert_explains(explanation, monomial_contributions(model, row))
    assert_adds_up(explanation)
    assert_largest_first(explanation)


@pytest.mark.parametrize("degree", [2, 3])
def test_binary_rows_of_real_support_vectors(degree):
    model = make_kernel_model(2, polynomial(degree), real=True)
    row = [0, 3, 4, 8]
    explanation = unkernel.compile(model).explain(row, top=None)
    assert_explains(explanation, monomial_contributions(model, dict.fromkeys(row, 1.0)))


def conjunction_contributions(model, row):
    """Return the contribution of each conjunction with a weight to a row {column: value}."""
    weights = dict(zip(model.keys.tolist(), model.weights, strict=True))
    ranks = {column: rank for rank, column in enumerate(model.columns.tolist())}
    choose = combinations if model.sets else combinations_with_replacement
    result = {(): model.intercept}
    for size in range(1, model.degree + 1):
        for members in choose(sorted(c for c in row if c in ranks and row[c] != 0), size):
            key = number([ranks[c] for c in members], model.degree, model.sets)
            result[members] = weights.get(key, 0.0 * model.intercept) * factor(
                model, [row[c] for c in members]
            )
    return result


@given(
    model=st.builds(
        make_model,
        st.integers(0, 2**32),
        degree=st.integers(1, 3),
        sets=st.booleans(),
        feature_map=st.sampled_from(["kernel", "plain"]),
        used=st.just(7),
        n_features=st.just(9),
        classes=st.integers(2, 3).map(range),
    ),
    binary=st.booleans(),
    row=st.dictionaries(st.integers(0, 8), st.sampled_from([0.5, -1.0, 2.0, 1.0, 0.0])),
)
def test_trained_weights(model, binary, row):
    if binary:
        row = dict.fromkeys(row, 1.0)
    fast = unkernel.compile(model)
    explanation = fast.explain(row, top=None)
    assert_explains(explanation, conjunction_contributions(model, row))
    assert_adds_up(explanation)
    expected = np.ravel(fast.decision_function(as_matrix(row, 9)))
    np.testing.assert_allclose(np.atleast_1d(explanation.score), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("scores", [1, 6])
def test_linear_models(scores):
    model = make_kernel_model(1, Kernel("linear"), scores=scores, real=True)
    row = {0: 2.0, 5: -1.0, 99: 3.0}
    weights = model.support_vectors.T @ model.coefficients
    expected = {(): model.intercept, (0,): 2.0 * weights[0], (5,): -weights[5]}
    explanation = unkernel.compile(model).explain(row)
    assert_explains(explanation, expected)
    assert_adds_up(explanation)


# --- Listed contributions ------------------------------------------------------------------------------

MODEL = make_kernel_model(1, polynomial(3))
FAST = unkernel.compile(MODEL, "split")
ROW = [0, 3, 4, 8, 9]


@every_top
@pytest.mark.parametrize("row", [ROW, {0: 2.0, 3: -1.0, 7: 0.5}])
def test_the_largest_contributions_are_listed_and_the_others_summed(top, row):
    all_contributions = FAST.explain(row, top=None)
    explanation = FAST.explain(row, top=top)
    assert explanation.contributions == all_contributions.contributions[:top]
    assert explanation.n_conjunctions == all_contributions.n_conjunctions > 5
    assert explanation.score == all_contributions.score
    assert_adds_up(explanation)


def test_every_engine_has_the_same_explanation():
    expected = FAST.explain(ROW)
    assert len(expected.contributions) == 10
    for engine in ("auto", *EXACT):
        assert unkernel.compile(MODEL, engine).explain(ROW) == expected


@pytest.mark.parametrize(
    "row",
    [
        tuple(ROW),
        np.array(ROW),
        np.array(ROW, np.int32),
        [9, 0, 8, 4, 3],
        [*ROW, 12, 2**40],
        dict.fromkeys(ROW, 1),
        {**dict.fromkeys(ROW, 1.0), 5: 0.0},
        as_matrix(ROW, 12),
        sparse.csr_matrix(as_matrix(ROW, 12)),
        sparse.coo_array(as_matrix(ROW, 12)),
    ],
)
def test_rows_of_any_type(row):
    assert FAST.explain(row) == FAST.explain(ROW)


@pytest.mark.parametrize("row", [[], {}, {3: 0.0}, [99], {99: 2.0}, np.zeros((1, 12)), (), np.zeros((1, 0))])
def test_empty_rows_have_the_score_of_the_intercept(row):
    explanation = FAST.explain(row)
    assert explanation.contributions == [] and explanation.n_conjunctions == 0 and explanation.rest == 0
    assert explanation.score == explanation.intercept == pytest.approx(FAST.score_one([]), rel=1e-12)


LETTERS = list("abcdefghijkl")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, {0: "0", 3: "3", 9: "9"}),
        (LETTERS, {0: "a", 3: "d", 9: "j"}),
        (np.array(LETTERS), {0: "a", 3: "d", 9: "j"}),
        ({3: "three", 0: 17}, {0: "17", 3: "three", 9: "9"}),
        (LETTERS[:4], {0: "a", 3: "d", 9: "9"}),
        ({}, {0: "0", 3: "3", 9: "9"}),
    ],
)
def test_names(names, expected):
    result = FAST.explain([0, 3, 9], top=None, names=names).contributions
    assert len(result) == 7
    for contribution in result:
        assert contribution.features == tuple(sorted(contribution.features))
        assert contribution.names == tuple(expected[f] for f in contribution.features)


def test_squares_are_listed_twice():
    features = {c.features for c in FAST.explain({3: 2.0, 4: 1.0}, top=None).contributions}
    assert features == {(3,), (4,), (3, 3), (3, 4), (4, 4), (3, 3, 3), (3, 3, 4), (3, 4, 4), (4, 4, 4)}


def test_explanations_as_text():
    explanation = FAST.explain(ROW, top=2, names=LETTERS)
    lines = str(explanation).splitlines()
    assert lines[0] == f"score {explanation.score:+.6g} for 10 against 0"
    assert lines[1].split() == [f"{explanation.intercept:+.6g}", "(intercept)"]
    assert lines[2].split() == [
        f"{explanation.contributions[0].value:+.6g}",
        *" and ".join(explanation.contributions[0].names).split(),
    ]
    assert lines[-1].endswith(f"({explanation.n_conjunctions - 2} others)")
    assert "contributions" not in repr(explanation)
    assert "others)" not in str(FAST.explain(ROW, top=None))


def test_explanations_of_negative_scores_name_the_favoured_class():
    winner, loser = (10, 0) if FAST.score_one(ROW) > 0 else (0, 10)
    first = str(FAST.explain(ROW, of=loser)).splitlines()[0]
    assert first.endswith(f"for {loser} against {winner}; negative values speak for {winner}")
    assert "negative" not in str(FAST.explain(ROW, of=winner))


# --- Refused inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ([-1], "counted from 0"),
        ({-1: 1.0}, "counted from 0"),
        ({1: np.nan}, "finite"),
        ({1: -np.inf}, "finite"),
        (np.full((1, 12), np.nan), "finite"),
        (np.zeros((2, 12)), "one row is explained at a time, got 2"),
        (np.zeros((0, 12)), "one row is explained at a time, got 0"),
        (sparse.csr_matrix((3, 12)), "one row is explained at a time, got 3"),
        (list(range(400)), "a row of 400 features has too many conjunctions"),
        (dict.fromkeys(range(400), 0.5), "too many conjunctions"),
    ],
)
def test_rows_that_are_refused(row, complaint):
    with pytest.raises(ValueError, match=complaint):
        FAST.explain(row)


@pytest.mark.parametrize(
    "row",
    [
        [1.7],
        {1.5: 1.0},
        "12",
        [[1, 2], [3, 4]],
        ["a"],
    ],
)
def test_rows_that_would_be_misread_are_refused(row):
    """Values that are not column numbers are refused."""
    with pytest.raises((ValueError, TypeError)):
        FAST.explain(row)


def test_a_row_of_values_is_no_list_of_columns():
    by_columns = FAST.explain([1, 3])
    for row in (np.array([0.0, 1.0, 0.0, 1.0]), np.array([False, True, False, True]), [[0, 1, 0, 1]]):
        assert FAST.explain(row) == by_columns
    assert FAST.explain({1: 1.0, 3: 1.0}) == by_columns


@pytest.mark.parametrize("top", [-1, True, 1.5, "3", [1.0, 2.0]])
def test_invalid_values_of_top_are_refused(top):
    with pytest.raises(ValueError, match="top must be a number of conjunctions"):
        FAST.explain(ROW, top=top)


def test_a_row_of_another_width_is_refused_where_the_width_is_known():
    fast = unkernel.compile(make_kernel_model(fixed_width=True))
    assert fast.explain(np.ones((1, 12))).n_conjunctions > 1
    with pytest.raises(ValueError, match="features"):
        fast.explain(np.ones((1, 5)))


@pytest.mark.parametrize("kernel", [Kernel("rbf"), Kernel("sigmoid"), polynomial(5)])
def test_kernels_that_have_no_conjunctions(kernel):
    with pytest.raises(ValueError, match="is not a sum over few conjunctions"):
        unkernel.compile(make_kernel_model(kernel=kernel)).explain(ROW)


def test_pruned_classifiers_are_refused():
    fast = unkernel.compile(MODEL, "pruned", threshold=0.1)
    with pytest.raises(ValueError, match=r"unkernel\.compile\(fast\.model\)"):
        fast.explain(ROW)


@pytest.mark.parametrize("sets", [True, False])
def test_trained_weights_of_rows_that_are_too_long(sets):
    model = make_model(1, degree=3, sets=sets, used=400, n_features=400, keys=[1, 2, 3])
    with pytest.raises(ValueError, match="a row of 400 features has too many conjunctions"):
        unkernel.compile(model).explain(list(range(400)))


@pytest.mark.parametrize("gamma", [1e300, 1e155, 1e-155, 1e-300])
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_rows_are_explained_if_and_only_if_they_can_be_scored(gamma, degree, scale):
    """If a power of gamma is not finite, decision_function and explain refuse the row."""
    rows = np.random.default_rng(0).random((60, 6)).round() * 1.0
    trained = unkernel.PolySVC(degree=degree).fit(rows, rows[:, 0] != rows[:, 1]).model_
    fast = unkernel.compile(replace(trained, gamma=gamma))
    row = rows[0] * scale
    try:
        score = fast.decision_function([row])[0]
    except ValueError as error:
        assert "a score is not finite" in str(error)
        with pytest.raises(ValueError, match="a score is not finite"):
            fast.explain(row, of=True)
    else:
        assert fast.explain(row, of=True).score == pytest.approx(score, rel=1e-9)


def test_weights_of_equal_size_are_listed_in_one_order():
    """Ties are ordered by columns, so a shorter list is a prefix of a longer list."""
    weights = np.random.default_rng(0).integers(-2, 3, (500, 1)) / 2.0
    model = LinearModel(weights, np.zeros(1), Decision("binary", np.array([0, 1])), 500, False, {})
    all_contributions = unkernel.compile(model).heaviest(10**6)
    effects = [(-abs(heavy.weight), heavy.columns) for heavy in all_contributions]
    assert effects == sorted(effects)
    for top in (1, 5, 100, 499, 500):
        assert unkernel.compile(model).heaviest(top) == all_contributions[:top]
